"""Splits for collections that come without any."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from rungwise.data.collection import NO_SPLIT, ImageCaptions


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
        place = int.from_bytes(hashlib.sha256(image_id.encode("utf-8", "surrogatepass")).digest()[:8]) / 2**64
        return "test" if place < test else "val" if place < test + validation else "train"

    return replace(data, splits=tuple(split(image_id) for image_id in data.image_ids))
