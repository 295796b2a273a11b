"""Relevance degrees of a training run: where they come from, and the thresholds that are measured on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.models.pairs import captions_of
from rungwise.relevance import describe
from rungwise.relevance.base import Degrees, Relevance, hash_of_captions
from rungwise.relevance.caption_pairs import answers_caption_pairs, caption_pairs
from rungwise.relevance.config import Building, degrees_of, names_source
from rungwise.relevance.stored import load
from rungwise.scenes.relevance import own_degrees
from rungwise.training.config import DataConfig, TrainConfig
from rungwise.training.loss_config import with_thresholds

Positions = NDArray[np.int64]


class TrainingPart(Degrees):
    """Degrees of the training split alone, asked by positions in the whole collection.

    Args:
        source: Of the training split.
        whole: The collection.
        part: Its training split.

    Attributes:
        of_caption_pairs: The source compares captions with captions.
    """

    complete = False

    def __init__(self, source: Degrees, whole: ImageCaptions, part: ImageCaptions) -> None:
        super().__init__((len(whole), len(whole.captions)))
        self.source = source
        self.image_of_caption = whole.image_of_caption
        self.of_caption_pairs = answers_caption_pairs(source)
        self._image = _places(whole.image_ids, part.image_ids)
        self._caption = _places(whole.caption_ids, part.caption_ids)

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) degrees; positions outside the training split are refused."""
        rows, columns = self.positions(images, captions)
        return self.source.block(self._image[rows], self._caption[columns])

    def dense(self) -> NDArray[np.float32]:
        """(images, captions) degrees, NaN outside the training split."""
        matrix = np.full(self.shape, np.nan, np.float32)
        images, captions = (
            np.flatnonzero(place < count)
            for place, count in zip((self._image, self._caption), self.source.shape, strict=True)
        )
        matrix[np.ix_(images, captions)] = self.block(images, captions)
        return matrix

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """(len(first), len(second)) degrees of captions with captions."""
        pairs = caption_pairs(self.source)
        return pairs.pair_block(self._caption[np.asarray(first)], self._caption[np.asarray(second)])

    def options(self) -> Mapping[str, Any]:
        """Those of the source."""
        return self.source.options()

    def title(self) -> str:
        """That of the source."""
        return self.source.title()


def _places(whole: Sequence[str], part: Sequence[str]) -> Positions:
    """(whole,) where each item stands in the part; a position that no source has for the others."""
    place = {one: position for position, one in enumerate(part)}
    return np.array([place.get(one, len(part)) for one in whole], dtype=np.int64)


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
        UserError: If the degrees cannot be had, belong to other data, know captions outside the training split, or
            cannot be asked by caption where ``reference`` is the batch.
    """
    found = _found(config, data, building)
    if found is not None and config.reference == "batch":
        try:
            caption_pairs(found)
        except UserError as error:
            named = config.relevance or "the degrees that the data bring along"
            raise UserError(f"data.reference: batch, with data.relevance: {named}: {error}") from None
    return found


def _found(config: DataConfig, data: ImageCaptions, building: Building | None) -> Degrees | None:
    if not config.relevance:
        return own_degrees(config.path or None, data)
    training = data.split(*config.train)
    if names_source(config.relevance):
        return TrainingPart(degrees_of(config.relevance, training, building=building), data, training)
    if _captions_hash(config.relevance) == hash_of_captions(training.captions, training.image_of_caption):
        return TrainingPart(degrees_of(config.relevance, training), data, training)
    stored = degrees_of(config.relevance, data)
    if stored.frequencies_from not in (None, "train"):
        raise UserError(
            f"{config.relevance}: its words were counted in all captions, those of the test split included; save the"
            " degrees again with document frequencies of the training split"
        )
    return stored


def _captions_hash(folder: str) -> str | None:
    path = Path(folder).expanduser()
    return load(path).captions_hash if path.is_dir() else None


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
        raise UserError(
            "loss.shares are measured on a relevance source; name one in data.relevance, or give thresholds"
        )
    source, images = relevance, np.flatnonzero([split in config.data.train for split in data.splits])
    measured: list[float] = []

    def turn(shares: tuple[float, ...]) -> tuple[float, ...]:
        cuts = describe.thresholds(source, shares, images=images, captions=captions_of(data, images))
        measured.extend(cuts)
        return cuts

    return replace(config, loss=with_thresholds(config.loss, turn)), tuple(measured)
