"""``rungwise train``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from rungwise.cli.terminal import console, say, say_issues
from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.data.readers import read
from rungwise.data.splits import with_splits
from rungwise.relevance import load
from rungwise.relevance.base import Degrees
from rungwise.relevance.describe import thresholds
from rungwise.scenes.relevance import SceneRelevance
from rungwise.training.config import TrainConfig
from rungwise.training.loop import train
from rungwise.training.loss_config import with_thresholds
from rungwise.training.recipes import load_config, preset_names
from rungwise.training.reports import TerminalWatcher


@dataclass
class Train:
    """Train a joint embedding; every setting of the configuration can be overridden here.

    Attributes:
        config: A preset (vsepp, vse0, cvsepp, scenes) or a YAML file.
        data: Folder or caption file; overrides the configuration's data.path.
        out: Folder of the run: model/, checkpoint, history, configuration.
        resume: Go on with the run that stands in --out.
        device: Where to compute, such as cpu or cuda.
        cache: Folder of the feature cache; default RUNGWISE_CACHE or the system's.
    """

    config: tyro.conf.Positional[str]
    data: tyro.conf.Positional[Path | None] = None
    out: Path = Path("run")
    resume: bool = False
    device: str = "cpu"
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
    data = read(config.data.path, join_restval=config.data.join_restval)
    say_issues(data.issues)
    split = with_splits(data)
    if split is not data:
        say(f"{data.name} has no splits: 80 % of the pictures train, 10 % validate, 10 % test, drawn by their ids")
    relevance = _relevance(config, split)
    result = train(
        _with_thresholds(config, relevance),
        split,
        asked.out,
        relevance=relevance,
        cache=asked.cache,
        resume=asked.resume,
        device=asked.device,
        watcher=TerminalWatcher(console),
    )
    if not result.finished:
        say(f"stopped; go on with: rungwise train {asked.out / 'config.yaml'} --out {asked.out} --resume")
        return 130
    say(f"best epoch {result.best_epoch}, val rsum {result.best_rsum:.1f}; model: {result.model_folder}")
    return 0


def _relevance(config: TrainConfig, data: ImageCaptions) -> Degrees | None:
    """Saved degrees, or those that generated scenes bring along; None where the loss wants none.

    Raises:
        UserError: If there are none, or they belong to other data.
    """
    if not config.needs_relevance:
        return None
    if config.data.relevance:
        stored = load(config.data.relevance, data=data)
        if stored.shape != (len(data), len(data.captions)) or (
            stored.image_of_caption is not None and not np.array_equal(stored.image_of_caption, data.image_of_caption)
        ):
            raise UserError(
                f"{config.data.relevance}: degrees of {stored.shape[0]} images and {stored.shape[1]} captions, but"
                f" {config.data.path} has {len(data)} and {len(data.captions)}, or in another order; make them again:"
                f" rungwise relevance {config.data.path} --out FOLDER"
            )
        return stored
    if data.layout != "scenes":
        raise UserError(
            f"{config.data.path}: the loss needs relevance degrees as it is set; make some with"
            " `rungwise relevance DATA --out FOLDER` and name the folder with --data.relevance FOLDER"
        )
    return SceneRelevance.load(Path(config.data.path), data)


def _with_thresholds(config: TrainConfig, relevance: Degrees | None) -> TrainConfig:
    """Shares of candidates per rung turned into degrees of this source, and printed."""
    if relevance is None:
        return config

    def turn(shares: tuple[float, ...]) -> tuple[float, ...]:
        cuts = thresholds(relevance, shares)
        say(f"thresholds for shares {shares}: {', '.join(f'{cut:.4g}' for cut in cuts)}")
        return cuts

    return replace(config, loss=with_thresholds(config.loss, turn))
