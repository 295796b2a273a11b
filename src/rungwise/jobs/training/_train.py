"""Training: from a configuration and data to a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, from_plain, is_regular, read_json, to_plain
from rungwise.core.compute import choose_device
from rungwise.core.disk import usable_cache
from rungwise.core.output import short_repr
from rungwise.jobs._job import called_from_python
from rungwise.jobs._python_values import as_collection, plain_value, refused
from rungwise.jobs._terminal import chosen_device, console, say, say_issues
from rungwise.jobs.evaluation import evaluate, place_of
from rungwise.jobs.training._fit_model import fit
from rungwise.jobs.training._options import QUICK, Running, is_data, refuse_lost_data, refuse_without_data
from rungwise.jobs.training._run_record import RunRecord
from rungwise.jobs.training._seeds import check_seeds, say_spreads
from rungwise.models.io import CONFIG as CONFIG_OF_MODEL
from rungwise.parts import import_named, named_modules
from rungwise.training import CONFIG, MODEL, is_run
from rungwise.training.config import is_preset_name, load_config, load_run_config, merged, with_origins

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.evaluation import Result
    from rungwise.evaluation.benchmarks import BenchmarkResult
    from rungwise.jobs._options import AnyData, AnyPath
    from rungwise.models import PairScorer
    from rungwise.training.config import AnyRunConfig, Choice


class Run(RunRecord):
    """A training or a fit, as it stands in its folder, which can be evaluated and resumed.

    It stands for its folder wherever one may be given, such as in :func:`rungwise.evaluate`, which then keeps the
    result in the run. Without ``data`` it is evaluated and resumed on the data that its configuration names.
    """

    @classmethod
    def open(cls, folder: AnyPath) -> Run:
        """The run that stands in a folder, as :func:`rungwise.train` returned it.

        Raises:
            UserError: If there is none, its configuration cannot be read, or the folder holds several seeds.

        >>> import rungwise
        >>> rungwise.Run.open("nowhere")
        Traceback (most recent call last):
        rungwise.core.UserError: nowhere: holds no run; give the folder that was given as out= to rungwise.train
        """
        place = Path(folder)
        if not is_run(place):
            seeds = sorted(one.name for one in place.glob("seed-*") if is_run(one))
            raise UserError(
                f"{place}: holds several seeds; open one of them, such as {place / seeds[0]}"
                if seeds
                else f"{place}: holds no run; give the folder that was given as out= to rungwise.train"
            )
        config = load_run_config(place / CONFIG)
        made: Mapping[str, Any] = {}
        if is_regular(place / MODEL / CONFIG_OF_MODEL):
            made = read_json(place / MODEL / CONFIG_OF_MODEL).get("provenance", {})
        numbers, measure = made.get("validation", {}), str(made.get("chosen_by", ""))
        run = cls(_whole(place), config, measure, numbers.get(measure), int(numbers.get("epoch", 0)))
        return replace(run, finished=len(run.history) >= getattr(config, "total_epochs", 0))

    @property
    def model(self) -> PairScorer:
        """The model that validation chose, loaded each time that it is asked for."""
        from rungwise.models import load

        return load(os.fspath(Path(self) / MODEL))

    @property
    def results(self) -> tuple[Result, ...]:
        """Results that are kept in the run.

        Raises:
            UserError: If a file is damaged, or is the result of another model than the run has now.
        """
        from rungwise.runs import kept_results

        return tuple(one.result for one in kept_results(self.folder))

    def evaluate(self, data: Any = None, **options: Any) -> Result | BenchmarkResult:
        """Evaluate the model; the result is kept in the run.

        Args:
            data: Folder, caption file or collection; default what the run was trained on.
            options: Any option of :func:`rungwise.evaluate`.
        """
        return evaluate(self, data_of(self, data), **options)

    def resume(self, data: Any = None, **settings: Any) -> Run:
        """Go on with the run, for example for more ``epochs`` than before.

        Args:
            data: What the run was trained on, where it cannot be read from where it was.
            settings: Any setting of :func:`rungwise.train`, and its options but those that name another run.
        """
        if self.seeds:
            raise UserError(f"{self.folder.parent}: holds several seeds; resume one of them, such as run.seeds[SEED]")
        if others := [name for name in ("config", "out", "resume", "seeds") if name in settings]:
            raise UserError(f"{others[0]}= is of another run; leave it out, or give it to rungwise.train")
        place = Path(self)
        return train(place / CONFIG, data_of(self, data), out=place, resume=True, **settings)


def _whole(folder: AnyPath) -> Path:
    """The absolute path of a folder: a run is found after its program went into another folder."""
    return Path(os.path.abspath(folder))  # noqa: PTH100 - links are not followed: people arrange files by them


def data_of(run: Run, given: Any) -> Any:
    """Data for a run: given, the ones that it was trained on, or where its configuration says that they are."""
    found = given if given is not None else run.data
    if found is not None:
        return found
    if not run.config.data.path:
        raise UserError(f"{run.folder / CONFIG}: does not say where the data are; give data=")
    refuse_lost_data(run.config.data.path)
    return run.config.data.path


@dataclass(frozen=True)
class TrainedRun:
    """What came of a training.

    Attributes:
        run: The run.
        data: The collection with the splits that it was trained on.
        choice: How the model was chosen.
    """

    run: Run
    data: ImageCaptions
    choice: Choice

    __repr__ = short_repr


def train(
    config: str | os.PathLike[str] | AnyRunConfig | ImageCaptions = QUICK,
    data: AnyData | None = None,
    *,
    out: AnyPath = "run",
    resume: bool = False,
    seeds: tuple[int, ...] | list[int] = (),
    device: str | None = None,
    cache: AnyPath | None = None,
    lost_after: float = 120.0,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Train or fit a model on pictures with captions, or on features.

    Args:
        config: A preset such as ``"vsepp"`` or ``"vsepp/coco"``, a YAML file, or a configuration. A system alone takes
            the preset for the data. Data in its place are trained on by the preset quick.
        data: Folder or caption file, or a collection. It overrides the configuration's ``data.path``.
        out: Folder of the run: model/, checkpoint, history.
        resume: Go on with the run that stands in ``out``.
        seeds: Several seeds, such as ``(0, 1, 2)``. A run for each stands in ``out``.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        cache: Folder of the feature cache; default RUNGWISE_CACHE or the system's.
        lost_after: Under torchrun, seconds without a sign of life after which another process counts as lost.
        quiet: Print nothing; errors are raised all the same.
        settings: Any setting of the configuration, as in YAML: ``epochs=3``, ``loss={"kind": "ladder"}``. One of the
            group ``data`` has its whole name: ``**{"data.relevance": "tfidf"}``. ``modules=["mylosses.py"]`` imports a
            loss or another part of your own.

    Returns:
        The run. Of several seeds it is the median one by rsum, and holds the others.

    Raises:
        UserError: If there is no such preset or setting, or the data do not fit.

    >>> import rungwise
    >>> from rungwise.scenes import SceneConfig, generate
    >>> data = generate("scenes", SceneConfig(pictures=40, side=32))  # doctest: +SKIP
    >>> run = rungwise.train("scenes", data, out="run", epochs=1, learning_rates=1e-3)  # doctest: +SKIP
    >>> run.evaluate()["rsum"]  # doctest: +SKIP
    """
    from rungwise.data import ImageCaptions, dataset_of, read

    given: Any = {"cache": cache, "seeds": seeds}
    modules = settings.pop("modules", ())
    modules = [modules] if isinstance(modules, str | os.PathLike) else modules
    if not isinstance(modules, list | tuple) or not all(isinstance(one, str | os.PathLike) for one in modules):
        raise refused("modules", modules, "a list of names of modules, or of files such as mylosses.py")
    import_named(map(os.fspath, modules), option="modules=")
    asked = Running(out=out, resume=resume, device=device, lost_after=lost_after, quiet=quiet, **given)
    if config is None or isinstance(config, Mapping):
        raise refused("config", config, "a preset, a YAML file or data, and settings by their names: epochs=3")
    if not isinstance(config, str | os.PathLike) and not is_dataclass(config):
        config = as_collection(config, "config")
    if data is not None:
        data = as_collection(data, "data")
    if isinstance(config, ImageCaptions) and data is not None:
        raise UserError("data are given twice, in place of the configuration and as data=; give one of them")
    if isinstance(config, ImageCaptions) or (
        data is None and isinstance(config, str | os.PathLike) and is_data(config)
    ):
        config, data = QUICK, config
    with called_from_python(quiet, _names()):
        if isinstance(config, str | os.PathLike):
            collection = data if isinstance(data, ImageCaptions) else None
            name = os.fspath(config)
            if collection is None and data is not None and is_preset_name(name) and "/" not in name:
                collection = read(str(data))
            dataset = "" if collection is None else dataset_of(collection)
            found = load_config(name, dataset, resumed=Path(out) if resume else None)
        else:
            found, collection = config, data if isinstance(data, ImageCaptions) else None
        if settings:
            plain = to_plain(found)
            for setting, value in settings.items():
                plain = merged(plain, _nested(setting, value))
            found = from_plain(type(found), plain, "")
        if data is not None and (path := place_of(data)) is not None:
            found = replace(found, data=replace(found.data, path=str(path)))  # type: ignore[arg-type]
        of = found.data
        if not isinstance(data, ImageCaptions) and (of.layout or of.key != "dot" or of.join_restval):
            collection = None  # which was read as it is usual, to choose the preset
        check_seeds(asked.seeds, ["--seed"] * ("seed" in settings))
        return go(found, asked, collection).run


def go(config: AnyRunConfig, asked: Running, data: ImageCaptions | None = None) -> TrainedRun:
    """Train or fit what is configured.

    Args:
        config: The configuration.
        asked: Options of the run.
        data: The collection, where it was read already.

    Raises:
        UserError: If the data cannot be read, or do not fit the configuration.
    """
    from rungwise.data import NO_SPLIT, read, why_untrained, with_splits, with_validation
    from rungwise.training import run
    from rungwise.training.config import FitConfig, accepted
    from rungwise.training.distributed import is_first
    from rungwise.training.fit import check_fits
    from rungwise.training.tracking import TerminalWatcher

    usable_cache(asked.cache)
    accepted(config)  # before data are read; what is said of it is said when the run begins
    config = with_origins(replace(config, modules=tuple(dict.fromkeys((*config.modules, *named_modules())))))
    device = chosen_device(asked.device) if is_first() else choose_device(asked.device)
    given = data
    if data is None:
        refuse_without_data(config)
        of = config.data
        if asked.resume:
            refuse_lost_data(of.path)
        data = read(of.path, layout=of.layout or None, key=of.key, join_restval=of.join_restval)
    if (place := place_of(data)) is not None and place.resolve() == Path(asked.out).resolve():
        raise UserError(f"--out {asked.out}: holds the data; name another folder for the run")
    check_fits(config, data)
    if why := why_untrained(data, config.data.train, config.data.validation):
        others = [one for one in data.split_names if one not in (config.data.validation, NO_SPLIT)]
        remedy = f"; name the splits to train on, such as --data.train {' '.join(others)}" if others else ""
        raise UserError(f"{data.name}: {why}{remedy}")
    if data.features is None and is_first():
        fetch_weights(config)
    split = with_validation(with_splits(data), config.data.train, config.data.validation)
    if is_first():
        say(f"{data.name}: {len(data)} pictures, {len(data.captions)} captions")
        say_issues(data.issues)
        _say_splits(data, split)
    out = Path(asked.out)
    if isinstance(config, FitConfig):
        fitted = fit(config, split, asked, device)
        return TrainedRun(Run(_whole(out), config, fitted.measure, fitted.value, data=given), split, fitted.choice)
    more = {"cache": asked.cache, "resume": asked.resume, "device": device, "lost_after": asked.lost_after}
    watcher = TerminalWatcher(console)
    if asked.seeds:
        from rungwise.runs import train_seeds

        several = train_seeds(config, split, out, asked.seeds, watcher=watcher, **more)  # type: ignore[arg-type]
        if is_first() and several.finished:
            say_spreads(several, out)
        runs = {
            seed: Run(_whole(place), config, finished=several.finished, data=given)
            for seed, place in several.folders.items()
        }
        chosen = next(iter(several.median.values()), asked.seeds[0])
        return TrainedRun(replace(runs[chosen], seeds=runs), split, config.snapshot)
    result = run(config, split, out, watcher=watcher, **more)  # type: ignore[arg-type]
    found = Run(_whole(out), config, result.measure, result.best_value, result.best_epoch, result.finished, data=given)
    return TrainedRun(found, split, config.snapshot)


def _names() -> set[str]:
    """Parameters of :func:`train`, and settings that it takes by name: options of other programs stay as they are."""
    from rungwise.training.config import FitConfig, TrainConfig

    settings = (one.name for kind in (TrainConfig, FitConfig) for one in fields(kind))
    return {*signature(train).parameters, *settings}


def _nested(name: str, value: Any) -> dict[str, Any]:
    """Plain settings of which one is given, by its name with the names of its groups before it.

    >>> _nested("data.relevance", "tfidf")
    {'data': {'relevance': 'tfidf'}}
    """
    if isinstance(value, RunRecord):  # the configuration that names it is read from other folders, too
        plain: Any = str(value.folder)
    elif isinstance(value, os.PathLike):
        plain = os.fspath(value)
    else:
        plain = to_plain(value) if is_dataclass(value) and not isinstance(value, type) else plain_value(value)
    for one in reversed(name.split(".")):
        plain = {one: plain}
    found: dict[str, Any] = plain
    return found


def fetch_weights(config: AnyRunConfig) -> None:
    """Fetch the weights that a run begins with, so that without a network it ends before a picture is read."""
    from rungwise.encoders.images import ImageConfig
    from rungwise.training.config import TrainConfig, WholeModel

    stages = config.stage_configs() if isinstance(config, TrainConfig) else ()
    begun = stages[0][1] if stages else config
    image = getattr(begun.model, "image", None)
    anew = not isinstance(begun, TrainConfig) or (not begun.start and isinstance(begun.tune, WholeModel))
    if anew and isinstance(image, ImageConfig):
        image.fetch()


def _say_splits(data: ImageCaptions, split: ImageCaptions) -> None:
    """Print which pictures were held out, where the data have no such split."""
    from rungwise.data import NO_SPLIT

    if split is data:
        return
    count = Counter(split.splits)
    if any(one != NO_SPLIT for one in data.splits):
        held = next(one for one in split.splits if one not in data.splits)
        say(f"{count[held]} of {count[held] + count['train']} training pictures are held out to validate, by their ids")
    else:
        say(
            f"no splits in the data: {count['val']} of {len(split)} pictures are held out to validate and"
            f" {count['test']} to test, drawn by their ids"
        )
