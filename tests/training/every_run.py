"""Short runs with every loss, on one process or on those that torchrun started.

python -m tests.training.every_run FOLDER
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from rungwise import losses
from rungwise.data import ImageCaptions, read
from rungwise.training.batches._sampling import LabelLists, OneCaptionPerImageBatches
from rungwise.training.config import LossConfig, TrainConfig, config_of
from rungwise.training.distributed import is_first, joined
from rungwise.training.distributed._processes import asked_for
from rungwise.training.engine import train
from rungwise.training.steps import Plain
from rungwise.training.steps._optimizers import SGD
from rungwise.training.steps._strategies import GlobalNegativesStep
from rungwise.training.tracking import StepReport, Watcher
from tests.training.every_loss import NAMED
from tests.training.test_features import small

LEARNED = (losses.ContrastiveSum, losses.MultiModalNCE, losses.Sigmoid, losses.SoftContrastive)
BEYOND = config_of(losses.MaxOfHinges)(negative_set=40)  # of a batch of 16
DRAWN = config_of(losses.AdaptiveListwise)(sampled=2, irrelevant="other_item")
LISTS = {"loss": config_of(losses.AdaptiveListwise)(irrelevant="other_item"), "sampler": LabelLists(irrelevant=3)}
# Of the same picture or caption twice in a batch, the last bit decides which is taken as a negative. Where the two have
# different degrees (SAM), that is another gradient: so none is twice here.
BASE = {
    "optimizer": SGD(),
    "learning_rates": (0.02,),
    "epochs": (2,),
    "logs": (),
    "sampler": OneCaptionPerImageBatches(),
}

RUNS = {
    **{loss.kind: {"loss": loss} for loss in NAMED},
    **{f"{loss.kind}, learned": {"loss": loss} for loss in (config_of(one)(learnable=True) for one in LEARNED)},
    "negative set beyond the batch": {"loss": BEYOND},
    "the same in chunks": {"loss": BEYOND, "chunk": 5},
    "the same, weighted, drawn": {"loss": config_of(losses.Weighted)(losses=(BEYOND, DRAWN), weights=(1.0, 0.5))},
    "lists": LISTS,
    "lists in chunks": {**LISTS, "chunk": 5},
    "average of the weights": {"loss": BEYOND, "ema": 0.9},
    "warm-up of the loss": {"loss": config_of(losses.MaxOfHinges)(), "warm_up_epochs": 1},
}
"""What is changed in a small configuration, by the names of the runs."""


class Degrees:
    """Degrees of all images and captions of a collection, some of them not above 0."""

    def __init__(self, data: ImageCaptions) -> None:
        self.all = np.random.default_rng(3).random((len(data), len(data.captions)), np.float32) - 0.2

    def block(self, images, captions):
        return self.all[np.ix_(images, captions)]

    def dense(self):
        return self.all


class Norms(Watcher):
    """Remembers the norm of the gradients at each report."""

    def __init__(self) -> None:
        self.norms: list[float] = []

    def step(self, report: StepReport) -> None:
        self.norms.append(report.gradient_norm)


def configured(loss: LossConfig, chunk: int | None = None, **changes) -> TrainConfig:
    """Batches of 16 and fewer of 63 pairs."""
    step = Plain() if asked_for() == 1 else GlobalNegativesStep(chunk=chunk)
    return small(**{**BASE, "loss": loss, "step": step, **changes})


def run_all(folder: Path) -> dict[str, list[float]]:
    """Train them all; gives the norms of the gradients."""
    data = read(folder / "data")
    captions = tuple(f"{caption} {number}" for number, caption in enumerate(data.captions))
    data = replace(data, captions=captions, labels=tuple((label,) for label in "rgbw" * (len(data) // 4)))
    norms = {}
    with joined("cpu"):
        for name, changes in RUNS.items():
            seen = Norms()
            out = folder / f"{asked_for()}" / name
            train(configured(**changes), data, out, relevance=Degrees(data), device="cpu", watcher=seen)
            norms[name] = seen.norms
    return norms


if __name__ == "__main__":
    torch.set_num_threads(1)
    norms = run_all(Path(sys.argv[1]))
    if is_first():
        np.savez(Path(sys.argv[1]) / "norms.npz", **norms)
