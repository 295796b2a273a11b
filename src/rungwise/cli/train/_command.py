"""``rungwise train``."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from rungwise.cli.frame import HELP, HELP_ALL, options, parse, refuse_unknown
from rungwise.cli.train._kinds import with_kinds, without_kinds
from rungwise.cli.train._preset_choice import PresetChoice, check_choice, choose_preset, values_of
from rungwise.core import UserError, is_regular, require_there
from rungwise.core.network import address_of
from rungwise.jobs import program, say
from rungwise.jobs.training import QUICK, Running, check_seeds, is_data, refuse_without_data
from rungwise.training import MODEL
from rungwise.training.config import is_preset_name, load_config, systems

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.jobs import Run
    from rungwise.training.config import AnyRunConfig, Choice, TrainConfig

SETTINGS = (
    "stages", "data", "model", "start", "tune", "loss", "sampler", "step", "warm-up-epochs", "epochs",
    "learning-rates", "optimizer", "schedule", "rates", "batch-size", "clip-norm", "weight-decay",
    "gradient-checkpointing", "snapshot", "ema", "precision", "compile", "logs", "feature-precision", "resident",
    "seed", "checkpoint-steps",
)  # fmt: skip
FIT_SETTINGS = ("data", "model", "grid", "snapshot", "refit")
"""Settings of a fit; with those of a training, a misspelt option is recognised before torch is loaded."""

_COMMAND = "rungwise train"
_EXAMPLES = (
    "rungwise train photos",
    "rungwise train vsepp photos --out run --batch-size 64",
    "rungwise train run/config.yaml --out run --resume",
)


@dataclass
class Train(Running):
    """Train or fit a model on pictures with captions, or on features.

    Every setting of the configuration can be overridden here.

    Attributes:
        config: A preset or a YAML file. Left out, it is quick. A system alone takes the preset for the data; rungwise
            presets lists all. Systems are SYSTEMS.
        data: Folder or caption file. Overrides the configuration's data.path.
    """

    config: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[CONFIG]")] = QUICK
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[DATA]")] = None


assert Train.__doc__ is not None
Train.__doc__ = Train.__doc__.replace("SYSTEMS", ", ".join(systems()))


def _parsed(arguments: list[str]) -> tuple[str | None, Any, PresetChoice | None]:
    """Name of the configuration, the options with all settings in ``settings``, and the preset that the data chose."""
    said = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if any(word in HELP for word in said) and HELP_ALL not in said:
        about = "Train or fit a model on pictures with captions, or on features."
        about = f"{about} Systems with presets are {', '.join(systems())}. SYSTEM {HELP_ALL} lists every setting there."
        parse(Train, ["--help"], _COMMAND, examples=_EXAMPLES, description=about, more=len(SETTINGS))
    known = [f"--{no}{name}{end}" for name in {*SETTINGS, *FIT_SETTINGS} for no in ("", "no-") for end in ("", ".")]
    refuse_unknown([*options(Train), *known, HELP_ALL], said, _COMMAND)
    _refuse_absent(arguments)
    # The configuration file is named first: what it says becomes the default of every other option.
    named = arguments[0] if arguments and not arguments[0].startswith("-") else None
    if picked := choose_preset(arguments):
        arguments = [picked.name, *arguments[1:]]
    resumed = Path((values_of(said, "--out") or ["run"])[-1]) if "--resume" in said else None
    if named:
        found = load_config(picked.name if picked else named, resumed=resumed)
    else:
        from rungwise.training.config import TrainConfig

        found = TrainConfig()
    settings = with_kinds(found, said)
    kind: Any = type(settings)
    settings_field = ("settings", Annotated[kind, tyro.conf.arg(name="")], field(default_factory=kind))
    whole: Any = make_dataclass("Train", [settings_field], bases=(Train,), namespace={"__doc__": Train.__doc__})
    default = whole(config=named or QUICK, settings=settings)
    return (
        named,
        parse(
            whole, without_kinds(settings, arguments), _COMMAND, default=default, config=(tyro.conf.AvoidSubcommands,)
        ),
        picked,
    )


def _refuse_absent(arguments: list[str]) -> None:
    """Refuse data that are not there before torch is loaded, which every configuration needs."""
    named, place = [*arguments, "", ""][:2]
    if not place or place.startswith("-") or address_of(place):
        return
    if is_preset_name(named) or is_regular(Path(named)):
        require_there(Path(place))


def main(arguments: list[str]) -> int:
    """Train, and print where the model is."""
    begun = time.perf_counter()
    if unnamed := _names_data(arguments):
        arguments = [QUICK, *arguments]
    named, asked, picked = _parsed(arguments)
    config: AnyRunConfig = asked.settings
    check_seeds(asked.seeds, arguments)
    if asked.data is not None:
        place: Any = replace(config.data, path=str(asked.data))
        config = replace(config, data=place)
    refuse_without_data(config)
    if named is None:
        raise UserError(f"name a configuration first: one of {', '.join(systems())}, or a YAML file")
    check_choice(named, picked, config.data.path)
    from rungwise.jobs.training import as_typed, go
    from rungwise.training.config import FitConfig
    from rungwise.training.distributed import is_first

    if isinstance(config, FitConfig):
        config = as_typed(config, arguments)
    elif is_first():
        _say_unreached(config, arguments)
    if unnamed and is_first():
        say(f"no preset is named, so this is rungwise train {QUICK}; rungwise presets lists the others")
    if picked is not None and is_first():
        say(picked.why)
    same = (
        picked is not None
        and not config.data.join_restval
        and (config.data.key, config.data.layout) == (picked.key, picked.layout)
    )
    trained = go(config, asked, picked.data if picked is not None and same else None)
    run = trained.run
    if not is_first():
        return 0 if run.finished else 130
    ours = program()
    if not run.finished:
        if asked.seeds:
            place = shlex.quote(str(asked.out / f"seed-{asked.seeds[0]}" / "config.yaml"))
            more = f" --seeds {' '.join(map(str, asked.seeds))}"
        else:
            place, more = str(asked.out / "config.yaml"), ""
        say(f"stopped; go on with: {ours} train {place} --out {shlex.quote(str(asked.out))}{more} --resume")
        return 130
    if asked.seeds:
        return 0
    commands = _next(config, trained.data, run.folder / MODEL, asked.out, trained.choice)
    said = f"model: {run.folder / MODEL}"
    _say_end(
        said if isinstance(config, FitConfig) else f"best epoch {run.best_epoch}, {_best(run)}; {said}", begun, commands
    )
    return 0


def _names_data(arguments: list[str]) -> bool:
    """Whether the first word names data and not a configuration; a file is data where no other word can be."""
    if not arguments or arguments[0].startswith("-") or not is_data(arguments[0]):
        return False
    alone = len(arguments) == 1 or arguments[1].startswith("-")
    return alone or os.path.isdir(arguments[0])  # noqa: PTH112 - as in is_data


def _say_end(said: str, begun: float, commands: Sequence[str]) -> None:
    say(said)
    say(f"done in {_since(begun)}; next:")
    for command in commands:
        say(f"  {command}")
    if any(command.startswith(f"{program()} calibrate ") for command in commands):
        say(
            "calibrate learns where relevance ends from the validation captions; it helps most where they say what"
            " people look for, and changes nothing where it could harm"
        )


def _say_unreached(config: TrainConfig, arguments: list[str]) -> None:
    """Print which stages a typed setting does not reach, because they have their own."""
    for word in arguments:
        if word.startswith("--"):
            flag = word.partition("=")[0]
            own = [stage.name for stage in config.stages if stage.says(flag[2:].replace("-", "_"))]
            if own:
                say(f"{flag} does not reach {', '.join(own)}: {'stages' if own[1:] else 'a stage'} with its own")


def _best(result: Run) -> str:
    """Value, for the best snapshot, of the measure that chose it."""
    from rungwise.training.config import shown

    value = "none" if result.best_value is None else shown(result.measure, result.best_value)
    return f"val {result.measure} {value}"


def _next(config: AnyRunConfig, data: ImageCaptions, model: Path, out: Path, choice: Choice) -> tuple[str, ...]:
    """Next commands after a training.

    The model is measured by the measure that chose it, a model without vectors is used as a second stage, and data
    without words are searched by a picture.
    """
    from rungwise.calibration import FEWEST_QUERIES
    from rungwise.models import DualEncoder
    from rungwise.models.io import family
    from rungwise.training.config import DataConfig

    ours, protocol = program(), "" if choice.protocol == "full" else f" --protocol {shlex.quote(choice.protocol)}"
    place, run, of_run, index = (shlex.quote(str(one)) for one in (config.data.path, out, model, out / "index"))
    if config.data.layout:
        place += f" --layout {shlex.quote(config.data.layout)}"
    if config.data.key != DataConfig.key:
        place += f" --key {config.data.key}"
    evaluate = f"{ours} evaluate {run} {place}{protocol}"
    if "test" not in data.splits or "test" in config.data.train:  # what was trained on measures nothing
        evaluate += " --split val"
    if not issubclass(family(config.model.kind), DualEncoder):
        second = f"--rerank {of_run}"
        both = f"{ours} evaluate VECTOR_MODEL {place}{protocol} {second}"
        return evaluate, both, f'{ours} search INDEX "what you look for" {second}'
    make_index = f"{ours} index {place} --model {of_run} --out {index}"
    if data.text_features is not None:
        return evaluate, make_index, f"{ours} search {index} --like {shlex.quote(data.image_ids[0])}"
    search = f'{ours} search {index} "what you look for"'
    if sum(data.splits[image] == "val" for image in data.image_of_caption.tolist()) < FEWEST_QUERIES:
        return evaluate, make_index, search
    return evaluate, f"{ours} calibrate {of_run} {place}", make_index, search


def _since(begun: float) -> str:
    return f"{time.perf_counter() - begun:.0f} s"
