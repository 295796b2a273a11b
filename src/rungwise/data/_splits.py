"""Splits for collections without any, and training on a share of the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from rungwise.core import UserError, digest_of_parts
from rungwise.core.text import near_names
from rungwise.data._collection import NO_SPLIT, ImageCaptions

_VALIDATES = ("val", "valid", "validation", "dev")
"""Usual names of the validation split."""

UNDRAWN = "undrawn"
"""Split of a training picture that a smaller share leaves out."""


def with_splits(data: ImageCaptions, *, validation: float = 0.1, test: float = 0.1) -> ImageCaptions:
    """Give ``train``, ``val`` and ``test`` to a collection without splits; one that has splits stays as it is.

    The split of a picture depends on its id alone, so that it is the same in every command and after pictures were
    added. ``validation`` and ``test`` are shares of the pictures.

    >>> data = ImageCaptions(("a", "b", "c"), (), [])
    >>> with_splits(data).splits
    ('train', 'train', 'val')
    """
    if any(split != NO_SPLIT for split in data.splits):
        return data

    def split(image_id: str) -> str:
        place = _place(image_id)
        return "test" if place < test else "val" if place < test + validation else "train"

    return replace(data, splits=tuple(split(image_id) for image_id in data.image_ids))


def with_validation(data: ImageCaptions, train: Sequence[str] = ("train",), validation: str = "val") -> ImageCaptions:
    """Hold out a tenth of the training pictures where there is no validation split.

    Other collections stay as they are. The ids alone decide which pictures are held out, at least one of two.

    Args:
        data: The collection.
        train: Names of the training splits.
        validation: Name of the split that chooses the snapshot.

    Raises:
        UserError: If a split is there that seems to be meant for validation under another name.

    >>> data = ImageCaptions(("a", "b", "c"), (), [], splits=("train", "train", "test"))
    >>> with_validation(data).splits
    ('train', 'val', 'test')
    """
    pool = sorted((_place(one), one) for one, split in zip(data.image_ids, data.splits, strict=False) if split in train)
    if validation in data.splits or len(pool) < 2:
        return data
    others = [one for one in data.split_names if one not in train and one != NO_SPLIT]
    meant = [one for one in others if one in _VALIDATES] or near_names(validation, others)
    if meant:
        raise UserError(
            f"{data.name}: no picture is in split {validation!r}, which validates; did you mean {meant[0]}? It has"
            f" {', '.join(data.split_names)}; set data.validation"
        )
    held = {one for place, one in pool if place < 0.1} or {pool[0][1]}
    splits = (validation if one in held else split for one, split in zip(data.image_ids, data.splits, strict=True))
    return replace(data, splits=tuple(splits))


def why_untrained(data: ImageCaptions, train: Sequence[str] = ("train",), validation: str = "val") -> str:
    """Why a collection cannot be trained on; empty where it can.

    Args:
        data: The collection; where it has no splits, or none to validate, they are drawn.
        train: Names of the training splits.
        validation: Name of the split that chooses the snapshot.

    >>> why_untrained(ImageCaptions(("a", "b"), ("A dog.", "A cat."), [0, 1], splits=("test", "test")))
    "no picture is in split 'train'; it has test"
    """
    try:
        split = with_validation(with_splits(data), train, validation)
    except UserError as error:
        return str(error).removeprefix(f"{data.name}: ")
    captioned = {split.splits[image] for image in split.image_of_caption.tolist()}
    for name, wanted in (("train", train), ("validation", (validation,))):
        there = [one for one in wanted if one in split.splits]
        if not there:
            known = ", ".join(data.split_names) or "no splits at all"
            if any(split != NO_SPLIT for split in data.splits):
                return f"no picture is in split {' or '.join(map(repr, wanted))}; it has {known}"
            return f"{len(data)} pictures are too few to hold some out to validate"
        if not captioned.intersection(there):
            return f"the {name} pictures have no captions; training needs some in both"
    return ""


def with_share(data: ImageCaptions, train: Sequence[str], share: float, seed: int) -> ImageCaptions:
    """Keep a share of the training pictures; the others move to the split :data:`UNDRAWN`.

    floor(share x pictures) are kept, with all their captions. They come first in an order that seed and ids alone
    decide: the order of the collection does not matter, and a smaller share lies within a larger one of the same seed.

    Args:
        data: The collection, with splits.
        train: Names of the training splits.
        share: Share of the training pictures, above 0 and at most 1, which leaves the collection as it is.
        seed: Seed of the draw.

    >>> data = ImageCaptions(("a", "b", "c", "d"), (), [], splits=("train", "train", "val", "train"))
    >>> with_share(data, ("train",), 0.7, seed=0).splits
    ('undrawn', 'train', 'val', 'train')
    """
    pool = [one for one, split in zip(data.image_ids, data.splits, strict=False) if split in train]
    if share == 1 or not pool:
        return data
    # In decimal: as a float, 0.29 x 100 is less than 29.
    count = int(Decimal(str(share)) * len(pool))
    if not count:
        raise UserError(
            f"{data.name}: a share of {share:g} of {len(pool):,} training pictures leaves none; take at least"
            f" {-(-10_000 // len(pool)) / 10_000:g}"
        )
    kept = set(sorted(pool, key=lambda one: digest_of_parts([f"{seed}/{one}"]))[:count])
    splits = (
        UNDRAWN if split in train and one not in kept else split
        for one, split in zip(data.image_ids, data.splits, strict=True)
    )
    return replace(data, splits=tuple(splits))


def _place(image_id: str) -> float:
    """A number in 0..1 that depends on the id alone."""
    return int(digest_of_parts([image_id])[:16], 16) / 2**64
