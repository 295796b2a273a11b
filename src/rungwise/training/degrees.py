"""Relevance degrees of a training run: where they come from, and those of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.models.pairs import captions_of
from rungwise.relevance import describe
from rungwise.relevance.base import CaptionPairs, Degrees, Relevance
from rungwise.relevance.config import Building, degrees_of, names_source
from rungwise.scenes.relevance import own_degrees
from rungwise.training.config import DataConfig, TrainConfig
from rungwise.training.loss_config import with_thresholds

Positions = NDArray[np.int64]


def training_degrees(config: DataConfig, data: ImageCaptions, building: Building | None = None) -> Relevance | None:
    """The degrees that a run reads: of a source that knows the training split alone, saved ones, or the data's own.

    Args:
        config: Names them in ``relevance``.
        data: The whole collection, with splits.
        building: Where a source says what it does.

    Returns:
        Degrees by positions in ``data``, answered for the training split; None where the configuration names none and
        the data bring none along.

    Raises:
        UserError: If the degrees cannot be had, belong to other data, or know captions outside the training split.
    """
    if not config.relevance:
        return own_degrees(config.path or None, data)
    training = data.split(*config.train)
    if names_source(config.relevance):
        return _PartOf(degrees_of(config.relevance, training, building=building), data, training)
    whole = None
    try:
        stored = degrees_of(config.relevance, training)
    except UserError as refused:
        whole = refused
    if whole is None:
        return _PartOf(stored, data, training)
    stored = degrees_of(config.relevance, data)
    counted = stored.options().get("frequencies_from", "") or "the whole collection"
    if "document_frequencies" in stored.options() and counted != "train":
        raise UserError(
            f"{config.relevance}: its words were counted in {counted}, captions of other splits included; make the"
            f" degrees again with `rungwise relevance SOURCE {config.path} --frequencies train --out FOLDER`"
        )
    return stored


def with_training_thresholds(
    config: TrainConfig, data: ImageCaptions, relevance: Relevance | None
) -> tuple[TrainConfig, tuple[float, ...]]:
    """Shares of candidates turned into thresholds, measured on the training split alone.

    Args:
        config: A run, whose loss may have ``shares``.
        data: The whole collection, with splits.
        relevance: Degrees by positions in ``data``.

    Returns:
        The run with thresholds, and those that were measured; none where there are no shares.

    Raises:
        UserError: If the shares cannot be met, or there are no degrees to measure.
    """
    if not config.loss.needs_thresholds:
        return config, ()
    if not isinstance(relevance, Degrees):
        raise UserError("loss.shares are measured on a relevance source; name one with data.relevance, or give thresholds")
    images = np.flatnonzero([split in config.data.train for split in data.splits])
    captions = captions_of(data, images)
    measured: list[float] = []

    def turn(shares: tuple[float, ...]) -> tuple[float, ...]:
        cuts = describe.thresholds(relevance, shares, images=images, captions=captions)
        measured.extend(cuts)
        return cuts

    from dataclasses import replace

    return replace(config, loss=with_thresholds(config.loss, turn)), tuple(measured)
