"""A run of four steps, on one process or on those that torchrun started; it may kill itself before one of them.

python -m tests.training.four_steps FOLDER [STEP]
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.losses import SumOfHinges
from rungwise.models.joint import VSEConfig
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.distributed._processes import asked_for
from rungwise.training.engine import _loop as loop
from rungwise.training.steps import Plain
from rungwise.training.steps._strategies import GlobalNegativesStep


def run(folder: Path, resume: bool = False) -> None:
    """Train on eight pairs, two at a time, with a checkpoint after every step."""
    data = ImageCaptions(
        tuple("abcdefghij"),
        ("a cat", "a dog", "two cats", "a red dog", "a bird", "two birds", "red", "a tree", "one dog", "a red bird"),
        np.arange(10),
        splits=("train",) * 8 + ("val",) * 2,
        features=FeatureRows(np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)),
    )
    config = TrainConfig(
        model=VSEConfig(image=FeatureConfig(), text=GRUConfig(word_dimension=4, min_count=1), dimension=6),
        loss=config_of(SumOfHinges)(),
        step=Plain() if asked_for() == 1 else GlobalNegativesStep(),
        epochs=(1,),
        learning_rates=(1e-2,),
        batch_size=2,
        checkpoint_steps=1,
        logs=(),
    )
    loop.train(config, data, folder, device="cpu", resume=resume)


def kill_at(step: int) -> None:
    """Let the process be killed before it takes this step, counted from 0."""
    real, steps = loop._Run._step, iter(range(1000))

    def dying(run: loop._Run, *rest: Any) -> Any:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(run, *rest)

    loop._Run._step = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill_at(int(sys.argv[2]))
    run(Path(sys.argv[1]))
