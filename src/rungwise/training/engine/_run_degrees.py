"""Relevance degrees of a run, for training and validation, and thresholds measured on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.data import UNDRAWN, ImageCaptions
from rungwise.models import captions_of
from rungwise.relevance import (
    Degrees,
    Relevance,
    answers_caption_pairs,
    as_degrees,
    caption_pairs,
    hash_of_captions,
    refuse_odd,
)
from rungwise.relevance.config import Building, degrees_of, names_source
from rungwise.relevance.description import describe
from rungwise.relevance.precomputed import load
from rungwise.scenes import own_degrees
from rungwise.training.config import DataConfig, TrainConfig, with_thresholds

Positions = NDArray[np.int64]


class OfPart(Degrees):
    """Degrees of some splits, asked by positions in the whole collection.

    Args:
        source: Degrees of these splits.
        whole: The whole collection.
        part: The images of these splits.

    Attributes:
        of_caption_pairs: Whether the source compares captions with captions.
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
        """(len(images), len(captions)) degrees; positions outside the splits raise an error."""
        rows, columns = self.positions(images, captions)
        degrees = self.source.block(self._image[rows], self._caption[columns])
        refuse_odd(self.source, degrees)
        return degrees

    def dense(self) -> NDArray[np.float32]:
        """(images, captions) degrees, NaN outside the splits."""
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
        """Options of the source."""
        return self.source.options()

    def title(self) -> str:
        """Title of the source."""
        return self.source.title()


def _places(whole: Sequence[str], part: Sequence[str]) -> Positions:
    """(whole,) position of each item in the part; one past its end for the others."""
    place = {one: position for position, one in enumerate(part)}
    return np.array([place.get(one, len(part)) for one in whole], dtype=np.int64)


def training_degrees(config: DataConfig, data: ImageCaptions, building: Building | None = None) -> Degrees | None:
    """The degrees that a run trains with: of a source built on the training split alone, saved ones, or the data's own.

    Args:
        config: Configuration that names them in ``relevance``.
        data: The whole collection, with splits.
        building: Messages and cache of the building of a source.

    Returns:
        Degrees by positions in ``data``, known for the training split; None where neither the configuration nor the
        data have any.

    Raises:
        UserError: If the degrees cannot be loaded, belong to other data, know captions outside the training split, or
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
        return OfPart(degrees_of(config.relevance, training, building=building), data, training)
    # Of what is trained on, or of the training split that a share was drawn from.
    for part in (training, data.split(*config.train, *({UNDRAWN} & set(data.splits)))):
        if _captions_hash(config.relevance) == hash_of_captions(part.captions, part.image_of_caption):
            return OfPart(degrees_of(config.relevance, part), data, part)
    stored = degrees_of(config.relevance, data)
    if stored.frequencies_from not in (None, "train"):
        raise UserError(
            f"{config.relevance}: its words were counted in all captions, those of the test split included; save the"
            " degrees again with document frequencies of the training split"
        )
    return stored


def validation_degrees(
    config: TrainConfig,
    data: ImageCaptions,
    given: Relevance | None = None,
    building: Building | None = None,
) -> Degrees | None:
    """Degrees of the validation split, for a measure that chooses the best epoch.

    Words are counted in the training split, so that a number does not depend on the validation pictures.

    Args:
        config: Configuration that names them in ``snapshot.relevance``, or in ``data.relevance`` where that is empty.
        data: The whole collection, with splits.
        given: Degrees by positions in ``data``, used where ``snapshot.relevance`` is empty.
        building: Messages and cache of the building of a source.

    Returns:
        Degrees by positions in ``data``, known for the validation split; None where there are none.

    Raises:
        UserError: If they cannot be loaded, belong to other data, or cover only the training split.
    """
    setting = "snapshot.relevance" if config.snapshot.relevance else "data.relevance"
    named = config.snapshot.relevance or config.data.relevance
    if given is not None and not config.snapshot.relevance:
        return as_degrees(given, data, "relevance=")
    if not named:
        return own_degrees(config.data.path or None, data)
    part = data.split(config.data.validation)
    if names_source(named):
        told = replace(building or Building(), train=config.data.train, whole=data, frequencies="train")
        return OfPart(degrees_of(named, part, building=told, where=setting), data, part)
    hashed = _captions_hash(named)
    if hashed == hash_of_captions(part.captions, part.image_of_caption):
        return OfPart(degrees_of(named, part, where=setting), data, part)
    training = data.split(*config.data.train)
    if hashed == hash_of_captions(training.captions, training.image_of_caption):
        raise UserError(
            f"{setting}: {named} has degrees of the training pictures alone, and snapshot.measure"
            f" {config.snapshot.measure} needs those of the validation pictures; name a source or another folder in"
            " snapshot.relevance"
        )
    return degrees_of(named, data, where=setting)


def _captions_hash(folder: str) -> str | None:
    path = Path(folder).expanduser()
    return load(path).captions_hash if path.is_dir() else None


def with_training_thresholds(
    config: TrainConfig, data: ImageCaptions, relevance: Relevance | None, say: Callable[[str], None] = lambda _: None
) -> tuple[TrainConfig, tuple[float, ...]]:
    """Turn shares of candidates into thresholds, measured on the training split alone.

    Args:
        config: Configuration of a run, whose loss may have ``shares``.
        data: The whole collection, with splits.
        relevance: Degrees by positions in ``data``: a source, saved degrees, an array, or anything with ``block``.
        say: Called with a line on each rung that stays empty.

    Returns:
        The configuration with thresholds, and the thresholds; these are empty where there are no shares.

    Raises:
        UserError: If the shares cannot be met, or there are no degrees to measure.
    """
    if not config.loss.needs_thresholds:
        return config, ()
    if relevance is None:
        raise UserError(
            "loss.shares are measured on degrees of relevance, and there are none; name a source in data.relevance,"
            " pass relevance=, or give thresholds instead",
            parameters={"relevance=": "data.relevance"},
        )
    source: Degrees = as_degrees(relevance, data, "relevance=")
    if config.data.reference == "batch":
        source = by_one_caption(source, data)
    images = np.flatnonzero([split in config.data.train for split in data.splits])
    captions = captions_of(data, images)
    measured: list[float] = []

    def turn(shares: tuple[float, ...]) -> tuple[float, ...]:
        cuts = describe.thresholds(source, shares, images=images, captions=captions)
        reached = describe.rung_shares(source, cuts, images=images, captions=captions)
        for line in _empty_rungs(cuts, reached, config.batch_size):
            say(line)
        measured.extend(cuts)
        return cuts

    return replace(config, loss=with_thresholds(config.loss, turn)), tuple(measured)


def by_one_caption(source: Degrees, data: ImageCaptions) -> Degrees:
    """Degrees of captions for one caption of each image of a collection, as a batch asks for them by caption."""
    return _ByOneCaption(source, data)


class _ByOneCaption(Degrees):
    """Degrees of captions for one caption of each image, as a batch asks for them by caption.

    The first image is asked by its first caption, the second by its second, and so on in a cycle, since the captions of
    an image may be in a meaningful order.
    """

    complete = False

    def __init__(self, source: Degrees, data: ImageCaptions) -> None:
        super().__init__(source.shape)
        self.source = caption_pairs(source)
        self.image_of_caption = data.image_of_caption
        self._one = np.array(
            [some[image % len(some)] if len(some) else -1 for image, some in enumerate(data.captions_of_image)],
            np.int64,
        )

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) degrees; NaN for an image without a caption."""
        one = self._one[np.asarray(images)]
        found = np.full((len(one), len(np.asarray(captions))), np.nan, np.float32)
        found[one >= 0] = self.source.pair_block(one[one >= 0], captions)
        return found

    def options(self) -> Mapping[str, Any]:
        """Empty."""
        return {}


def _empty_rungs(cuts: Sequence[float], reached: Sequence[float], batch: int) -> list[str]:
    """Remarks on rungs without candidates, or with less than one in a batch."""
    lines = []
    for rung, (cut, share) in enumerate(zip(cuts, reached, strict=True), start=1):
        where = f"rung {rung} of the loss (degrees from {cut:.4g})"
        if share == 0:
            lines.append(f"{where} stays empty: none of the sampled training pairs is on it; lower its threshold")
        elif share * batch * (batch - 1) < 1:
            lines.append(
                f"{where} is empty in most batches: {share:.2g} of the candidates are on it; give it a larger share,"
                " or take sampler relevance_aware"
            )
    return lines
