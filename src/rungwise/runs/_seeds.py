"""One configuration with several seeds: a run for each, and a summary of all.

Each run is a complete run folder, ``out/seed-3``. ``out/seeds.json`` holds every number of every seed, with mean,
standard deviation and an interval of the mean.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from rungwise.core import UserError, digest_of_json, in_words, read_json, to_plain
from rungwise.core.disk import replacing
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, dataset_of
from rungwise.evaluation import EvaluationSettings, Provenance, Result, evaluate, positives_from_labels, protocol_named
from rungwise.evaluation.statistics import median_place
from rungwise.models import load
from rungwise.runs._results import is_run_folder, keep_result
from rungwise.training import CONFIG, MODEL, is_begun
from rungwise.training import run as run_stages
from rungwise.training.config import TrainConfig
from rungwise.training.distributed import LOST_AFTER, joined, resuming
from rungwise.training.tracking import Watcher

SEEDS = "seeds.json"
FORMAT = "rungwise-seeds/1"
LEVEL = 0.95
_PROTOCOLS = {"coco": ("coco-1k-5fold", "coco-5k"), "flickr30k": ("flickr30k-1k",), "flickr8k": ("flickr8k-1k",)}
"""Protocols of published datasets whose test splits are complete."""


@dataclass(frozen=True)
class Spread:
    """A number over several seeds.

    Attributes:
        values: Values of the seeds.

    >>> spread = Spread((26.0, 27.0, 28.0))
    >>> spread.mean, spread.deviation, [round(bound, 2) for bound in spread.interval]
    (27.0, 1.0, [24.52, 29.48])
    """

    values: tuple[float, ...]

    __repr__ = short_repr

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds (n - 1); NaN for one seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean over seeds, by Student's t; NaN for one seed."""
        if len(self.values) < 2:
            return math.nan, math.nan
        from scipy import stats  # takes half a second, which reading a file of seeds does not need

        half = float(stats.t.ppf(0.5 + LEVEL / 2, len(self.values) - 1)) * self.deviation / math.sqrt(len(self.values))
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class SeedRuns:
    """The results of several seeds.

    Attributes:
        folders: Folder of each run, by seed.
        validation: Spread of each validation measure over the runs' best snapshots.
        test: Spread of each test measure, by protocol and measure; empty where there is no test split.
        finished: Whether all runs came to their end; those that were stopped can be resumed.
    """

    folders: Mapping[int, Path]
    validation: Mapping[str, Spread]
    test: Mapping[str, Mapping[str, Spread]]
    finished: bool

    __repr__ = short_repr

    @property
    def median(self) -> Mapping[str, int]:
        """Seed of the run whose rsum on the test split is the median, by protocol.

        Of an even count, that of the lower of the two in the middle.
        """
        seeds = sorted(self.folders)
        return {of: seeds[median_place(own["rsum"].values)] for of, own in self.test.items() if "rsum" in own}


def train_seeds(
    config: TrainConfig,
    data: ImageCaptions,
    out: Path,
    seeds: Sequence[int],
    *,
    cache: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    watcher: Watcher | None = None,
    lost_after: float = LOST_AFTER,
) -> SeedRuns:
    """Train a model with each seed, one after the other, and summarise their results.

    The configuration's own seed is not used. If the data have a test split, the best snapshot of each run is evaluated
    on it too; the result is kept in the run's folder. ``out`` is the folder of the runs: ``seed-0`` and so on, and
    ``seeds.json``. With ``resume`` the interrupted seed goes on, finished seeds are not trained again, and new seeds in
    the list are started.

    Arguments that are not named here are those of :func:`rungwise.training.engine.train`.

    Raises:
        UserError: If a seed is invalid or given twice, ``out`` holds runs that are not to be resumed, or a run is
            refused as in ``train``.
    """
    seeds = checked_seeds(seeds)
    if is_run_folder(out):
        raise UserError(f"{out}: holds a run of one seed; name another folder for runs of several")
    asked = _asked(config, data)
    known = _known(out, asked) if resume else {}
    if not resume and (taken := [out / f"seed-{seed}" for seed in seeds if (out / f"seed-{seed}").exists()]):
        raise UserError(f"{taken[0]}: holds a run already; go on with it (resume), or name another folder")
    if not resume and (out / SEEDS).exists():
        raise UserError(f"{out / SEEDS}: of other runs, and would be overwritten; resume them, or name another folder")
    folders = {seed: out / f"seed-{seed}" for seed in seeds}
    numbers: dict[int, _Numbers] = {}
    lost = partial(resuming, out / f"seed-{seeds[0]}" / CONFIG, out, "--seeds", *map(str, seeds))
    with joined(device, lost_after=lost_after, go_on=lost) as (processes, _):
        for seed, folder in folders.items():
            if seed in known and is_run_folder(folder):
                numbers[seed] = known[seed]
                continue
            if watcher is not None and processes.first:
                watcher.say(f"seed {seed} ({seeds.index(seed) + 1} of {len(seeds)}): {folder}")
            begun = resume and is_begun(folder)
            found = run_stages(
                replace(config, seed=seed),
                data,
                folder,
                cache=cache,
                resume=begun,
                device=device,
                watcher=watcher,
            )
            if not found.finished:
                return SeedRuns(folders, {}, {}, finished=False)
            if processes.first:
                # Of a run of stages these are the lines of all, and the best epoch is one of the last stage.
                best = next(line for line in reversed(found.history) if line["epoch"] == found.best_epoch)
                numbers[seed] = {"validation": {name: best[name] for name in best if _is_measure(name)}}
                for result in _tested(folder, data, seed, cache, device):
                    numbers[seed][f"test {result.protocol}"] = dict(result.numbers)
                _write(out, asked, {**known, **numbers})
            processes.wait()
    return _together(folders, numbers)


def checked_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Refuse an empty list of seeds, repeated ones, and numbers outside of 32 bits.

    >>> checked_seeds([0, 1, 0])
    Traceback (most recent call last):
    rungwise.core.UserError: seeds: 0 stands twice in 0 1 0; give each seed once
    """
    text = " ".join(map(str, seeds))
    if not seeds:
        raise UserError("seeds: none are given; give some, such as 0 1 2")
    for seed in seeds:
        if not 0 <= seed < 1 << 32:
            raise UserError(f"seeds: {seed} in {text} does not lie in 0..{(1 << 32) - 1}; correct it")
    seed, times = Counter(seeds).most_common(1)[0]
    if times > 1:
        how = "twice" if times == 2 else f"{times} times"
        raise UserError(f"seeds: {seed} stands {how} in {text}; give each seed once")
    return tuple(seeds)


_Numbers = dict[str, dict[str, float]]
"""Numbers of one seed by name, under ``validation`` and ``test PROTOCOL``."""


class _Kept(BaseModel):
    """Content of the file of the seeds."""

    model_config = ConfigDict(strict=True, extra="forbid")

    format: str
    asked: str
    seeds: dict[str, dict[str, dict[str, float | None]]]
    spreads: dict[str, dict[str, list[float | None]]]


def _asked(config: TrainConfig, data: ImageCaptions) -> str:
    """Hash of everything that the seeds have in common."""
    settings = to_plain(config)
    settings["data"]["path"] = ""
    for name in ("seed", "preset"):
        settings.pop(name)
    return digest_of_json([settings, data.content_hash()])


def _is_measure(name: str) -> bool:
    """Whether a number of an epoch is a validation measure: it names a direction, or is a sum or mean."""
    return "/" in name or name[:1].isupper() or name == "rsum"


def _known(out: Path, asked: str) -> dict[int, _Numbers]:
    """Numbers of finished seeds with the same settings and data."""
    path = out / SEEDS
    if not path.exists():
        return {}
    try:
        kept = _Kept.model_validate(read_json(path))
        if kept.format != FORMAT:
            raise ValueError(f"its format is {kept.format!r}")
        known = {int(seed): numbers for seed, numbers in kept.seeds.items()}
    except (ValidationError, ValueError) as error:
        first = in_words(error.errors()[0]) if isinstance(error, ValidationError) else error
        raise UserError(
            f"{path}: the numbers of the seeds are damaged ({first}); remove the file, and resume"
        ) from None
    if kept.asked != asked:
        return {}
    return {
        seed: {of: {name: math.nan if one is None else one for name, one in own.items()} for of, own in numbers.items()}
        for seed, numbers in known.items()
    }


def _write(out: Path, asked: str, numbers: Mapping[int, _Numbers]) -> None:
    spreads = {
        of: {
            name: [_plain(one) for one in (spread.mean, spread.deviation, *spread.interval)]
            for name, spread in own.items()
        }
        for of, own in _spreads(numbers).items()
    }
    content = {
        "format": FORMAT,
        "asked": asked,
        "seeds": {
            str(seed): {of: {name: _plain(one) for name, one in own.items()} for of, own in every.items()}
            for seed, every in sorted(numbers.items())
        },
        "spreads": spreads,
    }
    with replacing(out / SEEDS) as draft:
        draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _plain(number: float) -> float | None:
    return None if math.isnan(number) else number


def _spreads(numbers: Mapping[int, _Numbers]) -> dict[str, dict[str, Spread]]:
    """Spreads of the numbers that every seed has."""
    every = [numbers[seed] for seed in sorted(numbers)]
    shared = [of for of in every[0] if all(of in one for one in every)] if every else []
    return {
        of: {
            name: Spread(tuple(one[of][name] for one in every))
            for name in every[0][of]
            if all(name in one[of] for one in every)
        }
        for of in shared
    }


def _together(folders: Mapping[int, Path], numbers: Mapping[int, _Numbers]) -> SeedRuns:
    spreads = _spreads(numbers)
    test = {of.removeprefix("test "): own for of, own in spreads.items() if of != "validation"}
    return SeedRuns(folders, spreads.get("validation", {}), test, finished=True)


def _tested(folder: Path, data: ImageCaptions, seed: int, cache: Path | None, device: str | None) -> list[Result]:
    """Evaluate a run's best snapshot on the test split, if there is one, and keep the results in its folder."""
    if "test" not in data.splits or not (test := data.split("test")).captions:
        return []
    model = load(folder / MODEL, device)
    scores = model.on(test, cache=cache)
    dataset, results = dataset_of(scores.data), []
    for protocol in _protocols(scores.data, dataset):
        labelled = protocol == "labels"
        result = evaluate(
            **scores.for_evaluation(),
            image_of_caption=scores.data.image_of_caption,
            protocol=protocol,
            provenance=Provenance.of(scores.data, split="test", model_hash=model.fingerprint, seed=seed),
            settings=EvaluationSettings(
                positives=positives_from_labels(scores.data.labels, scores.data.image_of_caption) if labelled else None
            ),
        )
        keep_result(folder, result)
        results.append(result)
    return results


def _protocols(test: ImageCaptions, dataset: str) -> tuple[str, ...]:
    """The dataset's own protocols where the test split is complete; by labels too, where there are some."""
    labels = ("labels",) if any(test.labels) else ()
    fitting = []
    for name in _PROTOCOLS.get(dataset, ()):
        try:
            protocol_named(name).folds(test.image_of_caption, len(test))
        except UserError:  # a part of the test split, whose numbers are under no name
            continue
        fitting.append(name)
    return (*(fitting or ["full"]), *labels)
