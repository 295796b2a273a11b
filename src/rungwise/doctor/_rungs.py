"""Check for thresholds that leave a rung of a ladder empty, measured on batches as the run draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, to_plain
from rungwise.core.text import evenly_spread
from rungwise.data import ImageCaptions
from rungwise.doctor._finding import Finding, share
from rungwise.models import captions_of
from rungwise.relevance import Relevance
from rungwise.relevance.config import Building
from rungwise.training.batches import BatchDegrees, Drawn, rung_counts
from rungwise.training.config import TrainConfig
from rungwise.training.engine import training_degrees, with_training_thresholds

EMPTY = 0.95
"""Share of queries without a candidate on a rung from which the rung teaches nothing."""

BATCHES = 8
"""Number of batches that are examined, spread over the first epoch."""

Positions = NDArray[np.int64]


def empty_rungs(
    config: TrainConfig,
    data: ImageCaptions,
    lengths: Callable[[list[str]], list[int]],
    say: Callable[[str], None],
) -> Iterator[Finding]:
    """Findings of rungs of a run's losses that hold nothing in nearly all batches.

    Args:
        config: Configuration of the run.
        data: Collection of the run, with splits.
        lengths: Function that gives the lengths of captions as the model reads them, by which some samplers sort.
        say: Callback with a sentence about degrees that are made.

    Raises:
        UserError: If the degrees of the run are missing.
    """
    if not (list(_thresholds(to_plain(config.loss))) or config.loss.needs_thresholds) or config.sampler.draws_lists:
        return
    source = training_degrees(config.data, data, Building(train=config.data.train, say=say))
    if source is None:
        raise UserError(f"{data.name}: no degrees for the loss {config.loss.kind}; name data.relevance")
    config, _ = with_training_thresholds(config, data, source)
    degrees = BatchDegrees(source, config.data.reference == "batch")
    images = np.flatnonzero([split in config.data.train for split in data.splits]).astype(np.int64)
    captions = captions_of(data, images)
    image = np.searchsorted(images, data.image_of_caption[captions])
    labels = [data.labels[one] for one in images.tolist()] if data.labels else []
    long = np.array(lengths([data.captions[one] for one in captions.tolist()]), np.int64)
    drawn = Drawn(long, image, labels, _OfPairs(source, images, captions), config.batch_size, config.seed)
    batches = config.sampler.epochs(drawn)(0)
    chosen = evenly_spread(len(batches), BATCHES).tolist()
    for thresholds in sorted(set(_thresholds(to_plain(config.loss)))):
        counts = np.concatenate(
            [_counts(degrees, thresholds, captions[batches[at]], images[image[batches[at]]]) for at in chosen]
        )
        yield from _told(thresholds, counts, len(chosen))


def _counts(degrees: BatchDegrees, thresholds: tuple[float, ...], captions: Positions, images: Positions) -> Positions:
    """(queries of both directions, rungs) number of candidates besides a query's own."""
    block = degrees.block(captions if degrees.by_caption else images, captions)
    own = images[:, None] == images[None, :]
    return np.concatenate([rung_counts(block, thresholds, own), rung_counts(block.T, thresholds, own.T)])


def _told(thresholds: tuple[float, ...], counts: Positions, batches: int) -> Iterator[Finding]:
    empty = (counts == 0).mean(axis=0)
    for rung in np.flatnonzero(empty >= EMPTY).tolist():
        bounds = [*(f"{cut:g}" for cut in thresholds)]
        place = (
            f"at least {bounds[0]}"
            if rung == 0
            else f"below {bounds[-1]}"
            if rung == len(thresholds)
            else f"from {bounds[rung]} to {bounds[rung - 1]}"
        )
        yield Finding(
            "empty rung",
            "fault",
            f"Rung {rung + 1} of {len(thresholds) + 1} (degrees {place}) is empty for {share(empty[rung], 1)} of"
            f" {len(counts)} queries in {batches} batches as the run draws them; it holds {counts[:, rung].mean():.2g}"
            " candidates on average.",
            "Set loss.shares in place of loss.thresholds, take sampler relevance_aware, or larger batches.",
        )


def _thresholds(settings: Any) -> Iterator[tuple[float, ...]]:
    """Thresholds of a loss and of its members."""
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            if name == "thresholds" and value:
                yield tuple(float(one) for one in value)
            else:
                yield from _thresholds(value)
    elif isinstance(settings, list | tuple):
        for one in settings:
            yield from _thresholds(one)


class _OfPairs:
    """Degrees by positions among the training images and captions."""

    def __init__(self, source: Relevance, images: Positions, captions: Positions) -> None:
        self.source, self.images, self.captions = source, images, captions

    def block(self, images: Any, captions: Any) -> NDArray[np.float32]:
        return self.source.block(self.images[np.asarray(images)], self.captions[np.asarray(captions)])

    def dense(self) -> NDArray[np.float32]:
        return self.block(np.arange(len(self.images)), np.arange(len(self.captions)))
