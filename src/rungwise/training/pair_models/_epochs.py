"""Epochs of cross-encoders and bi-encoders: steps over pairs, of which the best epoch is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.training.batches import epoch_batches
from rungwise.training.pair_models._correlations import Correlations
from rungwise.training.pair_models._settings import PairTraining, TrainingObserver
from rungwise.training.steps import AdamW, OptimizerStep

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Epoch:
    """The result of an epoch.

    Attributes:
        number: Number of the epoch, from 1.
        loss: Mean loss over its pairs.
        dev: Agreement with people on the pairs that choose the epoch.
        pairs_per_second: Speed of training.
    """

    number: int
    loss: float
    dev: Correlations
    pairs_per_second: float


def run_epochs(
    network: nn.Module,
    lengths: Positions,
    loss_of: Callable[[Positions, NDArray[np.bool_]], Tensor],
    dev: Callable[[], Correlations],
    settings: PairTraining,
    watching: TrainingObserver,
) -> tuple[Epoch, ...]:
    """Train a network on pairs, and give it the weights of the best epoch.

    Args:
        network: The network, trained in place.
        lengths: (pairs,) length of the texts of each pair.
        loss_of: Function from (B,) positions of pairs, and whether each is swapped, so that its second text comes
            first, to the mean of their losses.
        dev: Function that measures the present network on the pairs that choose the epoch.
        settings: Settings of the training.
        watching: Receives progress.

    Returns:
        The results of all epochs.

    Raises:
        UserError: If a loss or a gradient is not finite.
    """
    parameters = [(name, one) for name, one in network.named_parameters() if one.requires_grad]
    optimizer = AdamW(weight_decay=settings.weight_decay).build(
        _groups(parameters, settings.weight_decay), settings.learning_rate
    )
    updates = OptimizerStep(optimizer, parameters, settings.clip_norm)
    epochs: list[Epoch] = []
    best: dict[str, Tensor] = {}
    for epoch in range(settings.epochs):
        batches = epoch_batches(lengths, settings.batch_size, seed=settings.seed, epoch=epoch)
        turned = np.random.default_rng([settings.seed, epoch, 1]).random(len(lengths)) < 0.5
        total, begun = 0.0, time.perf_counter()
        network.train()
        with watching.bar(f"epoch {epoch + 1}", len(lengths)) as advance:
            for step, batch in enumerate(batches):
                place = (epoch + (step + 0.5) / len(batches)) / settings.epochs
                updates.begin(settings.rate(place))
                loss = loss_of(batch, turned[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                updates.finish(loss.detach(), epoch + 1, step + 1)
                total += float(loss.detach()) * len(batch)
                advance(len(batch))
        updates.check()
        rate = len(lengths) / (time.perf_counter() - begun)
        network.eval()
        found = Epoch(epoch + 1, total / len(lengths), dev(), rate)
        if not best or found.dev.together > max(one.dev.together for one in epochs):
            best = {name: weight.detach().clone() for name, weight in network.state_dict().items()}
        epochs.append(found)
        watching.say(f"epoch {found.number}: loss {found.loss:.4f}, dev {found.dev.numbers}, {rate:.0f} pairs/s")
    network.load_state_dict(best)
    return tuple(epochs)


def best_of(epochs: tuple[Epoch, ...]) -> Epoch:
    """The epoch whose weights are kept: the earliest of those with the best agreement."""
    return max(epochs, key=lambda one: (one.dev.together, -one.number))


def _groups(parameters: list[tuple[str, nn.Parameter]], decay: float) -> list[dict[str, Any]]:
    """Parameter groups: matrices with decay, biases and norms without."""
    matrices = [one for _, one in parameters if one.ndim > 1]
    others = [one for _, one in parameters if one.ndim <= 1]
    groups = ({"params": matrices, "weight_decay": decay, "factor": 1.0}, {"params": others, "factor": 1.0})
    return [group for group in groups if group["params"]]


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Context in which torch draws by the seed; its earlier state is restored afterwards."""
    kind = torch.device(device).type
    with torch.random.fork_rng([] if kind == "cpu" else None, device_type="cuda" if kind == "cpu" else kind):
        torch.manual_seed(seed)
        yield


@contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """Context in which torch uses this number of threads; None leaves it alone."""
    usual = torch.get_num_threads()
    torch.set_num_threads(threads or usual)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
