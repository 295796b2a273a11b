"""``rungwise train``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.terminal import chosen_device, console, say, say_issues
from rungwise.core.devices import choose_device
from rungwise.core.errors import UserError
from rungwise.data.readers import read
from rungwise.data.splits import with_splits
from rungwise.training.config import TrainConfig
from rungwise.training.loop import train
from rungwise.training.processes import is_first
from rungwise.training.recipes import load_config, preset_names
from rungwise.training.reports import TerminalWatcher


@dataclass
class Train:
    """Train a joint embedding; every setting of the configuration can be overridden here.

    Attributes:
        config: A preset (vsepp, vse0, order0, orderpp, cvsepp, scenes) or a YAML file.
        data: Folder or caption file; overrides the configuration's data.path.
        out: Folder of the run: model/, checkpoint, history, configuration.
        resume: Go on with the run that stands in --out; --epochs may be longer than before.
        device: Where the model computes, such as cpu or cuda; default cuda where there is one.
        cache: Folder of the feature cache; default RUNGWISE_CACHE or the system's.
    """

    config: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="CONFIG")]
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[DATA]")] = None
    out: Path = Path("run")
    resume: bool = False
    device: str | None = None
    cache: Path | None = None
    settings: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)


def main(arguments: list[str]) -> int:
    """Train and say where the model is."""
    # The configuration file is named first: what it says becomes the default of every other option.
    named = arguments[0] if arguments and not arguments[0].startswith("-") else None
    settings = load_config(named) if named else TrainConfig()
    asked = tyro.cli(
        Train,
        args=arguments,
        prog="rungwise train",
        default=Train(config=named or tyro.MISSING, settings=settings),
        config=(tyro.conf.AvoidSubcommands,),
    )
    config = asked.settings
    if asked.data is not None:
        config = replace(config, data=replace(config.data, path=str(asked.data)))
    if not config.data.path:
        raise UserError("no data: name a folder or a caption file after the configuration, or set data.path in it")
    if named is None:
        raise UserError(f"name a configuration first: one of {', '.join(preset_names())}, or a YAML file")
    device = chosen_device(asked.device) if is_first() else choose_device(asked.device)
    data = read(config.data.path, join_restval=config.data.join_restval)
    split = with_splits(data)
    if is_first():
        say_issues(data.issues)
        if split is not data:
            say(f"{data.name} has no splits: 80 % of the pictures train, 10 % validate, 10 % test, drawn by their ids")
    result = train(
        config,
        split,
        asked.out,
        cache=asked.cache,
        resume=asked.resume,
        device=device,
        watcher=TerminalWatcher(console),
    )
    if not is_first():
        return 0 if result.finished else 130
    if not result.finished:
        say(f"stopped; go on with: rungwise train {asked.out / 'config.yaml'} --out {asked.out} --resume")
        return 130
    say(f"best epoch {result.best_epoch}, val rsum {result.best_rsum:.1f}; model: {result.model_folder}")
    return 0
