"""A collection small enough to train on in a second, and a run that tests share."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core.disk.locks import LOCK
from rungwise.data import ImageCaptions
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.losses import MaxOfHinges
from rungwise.models import VSEConfig
from rungwise.training.batches import ByLength
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.engine import TrainResult
from rungwise.training.engine import _loop as loop
from rungwise.training.tracking import Watcher

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 60, 230), "white": (250, 250, 250)}


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power stays on while these tests run; what must be on the disk, and when, is asserted in tests/core."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="session")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> ImageCaptions:
    """48 pictures of one colour each, with one to three captions."""
    folder = tmp_path_factory.mktemp("coloured")
    draw = np.random.default_rng(0)
    ids, paths, captions, owners, splits = [], [], [], [], []
    for number in range(48):
        name = list(COLOURS)[number % 4]
        noise = draw.integers(-20, 21, (24, 24, 3))
        path = folder / f"{number}.png"
        Image.fromarray(np.clip(np.array(COLOURS[name]) + noise, 0, 255).astype(np.uint8)).save(path)
        ids.append(path.name)
        paths.append(path)
        splits.append("val" if number >= 36 else "train")
        for phrase in ("a {} picture", "something that is all {}", "{}")[: 1 + number % 3]:
            captions.append(phrase.format(name))
            owners.append(number)
    return ImageCaptions(
        tuple(ids), tuple(captions), np.array(owners), paths=tuple(paths), splits=tuple(splits), name="coloured"
    )


def small_config() -> TrainConfig:
    """Two short phases of a small model, of 9 steps each."""
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=24)
    return TrainConfig(
        model=VSEConfig(image=image, text=GRUConfig(word_dimension=8, min_count=1), dimension=16),
        loss=config_of(MaxOfHinges)(),
        epochs=(1, 1),
        learning_rates=(1e-2, 1e-3),
        batch_size=8,
        sampler=ByLength(),
        checkpoint_steps=3,
    )


@pytest.fixture
def config() -> TrainConfig:
    return small_config()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features that all runs share; who counts what is computed has a cache of its own."""
    return tmp_path_factory.mktemp("cache")


class Said(Watcher):
    """Remembers sentences."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


@dataclass(frozen=True)
class TrainedRun:
    """A run of the small configuration, for all who only read it.

    Attributes:
        config: Of the run.
        folder: Of the run.
        result: What it gave back.
        said: What it said.
    """

    config: TrainConfig
    folder: Path
    result: TrainResult
    said: list[str]

    def copied(self, to: Path) -> Path:
        """A copy, for who changes it."""
        shutil.copytree(self.folder, to)
        return to


@pytest.fixture(scope="session")
def trained_run(coloured: ImageCaptions, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    """The run; made once."""
    config, folder, said = small_config(), tmp_path_factory.mktemp("trained") / "run", Said()
    result = loop.train(config, coloured, folder, cache=cache, watcher=said)
    return TrainedRun(config, folder, result, said.lines)


def trainable(config: TrainConfig) -> TrainConfig:
    """The same with a backbone that is trained."""
    return replace(config, model=replace(config.model, image=replace(config.model.image, frozen=False)))


def once(config: TrainConfig, rate: float = 1e-3) -> TrainConfig:
    """The same in one epoch."""
    return replace(config, epochs=(1,), learning_rates=(rate,))


def files(folder: Path) -> set[str]:
    """Names of what a run left behind, but the file whose lock it held."""
    return {path.name for path in folder.iterdir()} - {LOCK}


def dies_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Let the next run end in a ``SystemError`` instead of taking this step, counted from 0."""
    real, steps = loop._Run._step, iter(range(1000))

    def dying(run: loop._Run, *rest: object) -> torch.Tensor:
        if next(steps) == step:
            raise SystemError("killed")
        return real(run, *rest)  # type: ignore[arg-type]

    patch.setattr(loop._Run, "_step", dying)
