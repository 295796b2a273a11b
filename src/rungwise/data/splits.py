"""Splits for collections that come without any."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from rungwise.core.errors import UserError
from rungwise.data.collection import NO_SPLIT, ImageCaptions

_VALIDATES = ("val", "valid", "validation", "dev")
"""What collections call the split that validates."""


def with_splits(data: ImageCaptions, *, validation: float = 0.1, test: float = 0.1) -> ImageCaptions:
    """Give ``train``, ``val`` and ``test`` to a collection without splits; one that has splits stays as it is.

    The split of a picture depends on its id alone, so that it is the same in every command and after pictures were
    added.

    Args:
        data: The collection.
        validation: Share of the pictures for ``val``.
        test: Share of the pictures for ``test``.

    >>> data = ImageCaptions(("a", "b", "c"), (), [])
    >>> with_splits(data).splits
    ('train', 'train', 'val')
    >>> with_splits(with_splits(data), test=1.0).splits
    ('train', 'train', 'val')
    """
    if any(split != NO_SPLIT for split in data.splits):
        return data

    def split(image_id: str) -> str:
        place = _place(image_id)
        return "test" if place < test else "val" if place < test + validation else "train"

    return replace(data, splits=tuple(split(image_id) for image_id in data.image_ids))


def with_validation(
    data: ImageCaptions, train: Sequence[str] = ("train",), validation: str = "val", *, share: float = 0.1
) -> ImageCaptions:
    """Hold training pictures out where no split is there to validate; other collections stay as they are.

    Args:
        data: The collection.
        train: Splits that are trained on.
        validation: The split that chooses the snapshot.
        share: Of the training pictures; the ids alone decide which, and it is at least one of them, if there are two.

    Raises:
        UserError: If a split is there that seems to be meant under another name.

    >>> data = ImageCaptions(("a", "b", "c"), (), [], splits=("train", "train", "test"))
    >>> with_validation(data).splits
    ('train', 'val', 'test')
    """
    pool = sorted((_place(one), one) for one, split in zip(data.image_ids, data.splits, strict=False) if split in train)
    if validation in data.splits or len(pool) < 2:
        return data
    others = [one for one in data.split_names if one not in train and one != NO_SPLIT]
    meant = [one for one in others if one in _VALIDATES] or get_close_matches(validation, others, 1)
    if meant:
        raise UserError(
            f"{data.name}: no picture is in split {validation!r}, which validates; did you mean {meant[0]}? It has"
            f" {', '.join(data.split_names)}; set data.validation"
        )
    held = {one for place, one in pool if place < share} or {pool[0][1]}
    splits = (validation if one in held else split for one, split in zip(data.image_ids, data.splits, strict=True))
    return replace(data, splits=tuple(splits))


def _place(image_id: str) -> float:
    """In 0..1, by the id alone."""
    digest = hashlib.sha256(image_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) / 2**64
