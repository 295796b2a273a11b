"""The epochs that a cross-encoder and a bi-encoder have in common: steps over pairs, the best epoch kept."""

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

from rungwise.training.batches.epochs import epoch_batches
from rungwise.training.pair_models.correlations import Correlations
from rungwise.training.pair_models.settings import PairTraining, TrainingObserver
from rungwise.training.steps.optimizer_step import OptimizerStep
from rungwise.training.steps.optimizers import AdamW

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Epoch:
    """What an epoch came to.

    Attributes:
        number: From 1.
        loss: Mean over its pairs.
        dev: Agreement with people on the pairs that choose the epoch.
        pairs_per_second: Of training.
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
    """Train a network on pairs; it has the weights of the best epoch in the end.

    Args:
        network: What is trained.
        lengths: (pairs,) how long the texts of each pair are.
        loss_of: From (B,) positions of pairs, and whether each is turned, so that its second text comes first, to the
            mean of their losses.
        dev: Scores the pairs that choose the epoch, with the network as it is then.
        settings: See :class:`PairTraining`.
        watching: Is told of every epoch.

    Returns:
        All epochs.

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
    """The epoch whose weights were kept: the earliest of those with the best agreement."""
    return max(epochs, key=lambda one: (one.dev.together, -one.number))


def _groups(parameters: list[tuple[str, nn.Parameter]], decay: float) -> list[dict[str, Any]]:
    """Matrices, which shrink, apart from biases and norms, which do not."""
    matrices = [one for _, one in parameters if one.ndim > 1]
    others = [one for _, one in parameters if one.ndim <= 1]
    groups = ({"params": matrices, "weight_decay": decay, "factor": 1.0}, {"params": others, "factor": 1.0})
    return [group for group in groups if group["params"]]


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Torch draws by the seed within it, and afterwards as if nothing had been drawn."""
    kind = torch.device(device).type
    with torch.random.fork_rng([] if kind == "cpu" else None, device_type="cuda" if kind == "cpu" else kind):
        torch.manual_seed(seed)
        yield


@contextmanager
def on_threads(threads: int | None) -> Iterator[None]:
    """Torch computes on so many threads within it; None leaves it as it is."""
    usual = torch.get_num_threads()
    torch.set_num_threads(threads or usual)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
