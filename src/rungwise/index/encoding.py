"""What a model makes of a collection, batch by batch, on its way into the stores of an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.data.features import FeatureRows
from rungwise.index.items import items_at, to_record
from rungwise.index.store import Batch

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder

_PICTURES_AT_ONCE = 4096
_TEXTS_AT_ONCE = 4096

Progress = Callable[[int], None]


def encoded_pictures(
    data: ImageCaptions, model: DualEncoder, folder: Path | None, progress: Progress | None, issues: list[Issue]
) -> Iterator[Batch]:
    """A row for each picture that can be read.

    Args:
        data: The collection.
        model: Encodes them.
        folder: Of the index, which paths of pictures are relative to where they can be.
        progress: Called with how many more pictures are done.
        issues: Takes one issue for each picture that cannot be read.

    Raises:
        UserError: If the model gives NaN or infinity.
    """
    for start in range(0, len(data), _PICTURES_AT_ONCE):
        some = data.select(range(start, min(start + _PICTURES_AT_ONCE, len(data))))
        encoded = model.encode_image(some.pictures, progress=progress)
        items = items_at(some, encoded.kept.tolist())
        _require_finite(encoded.vectors, [str(item.path or item.id) for item in items])
        issues.extend(encoded.issues)
        yield Batch([item.id for item in items], encoded.vectors, [to_record(item, folder) for item in items])


def encoded_texts(texts: Sequence[str], model: DualEncoder, rows: FeatureRows | None = None) -> Iterator[Batch]:
    """A row for each text, under the text itself.

    Args:
        texts: Captions.
        model: Encodes them.
        rows: (texts, D) what the model reads of each in place of words.

    Raises:
        UserError: If the model gives NaN or infinity.
    """
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        read = some if rows is None else rows.take(range(start, start + len(some)))
        _require_finite(vectors := model.encode_captions(read), some)
        yield Batch(some, vectors)


def require_pictures(data: ImageCaptions) -> None:
    """Refuse a collection of captions alone.

    Raises:
        UserError: If it has neither picture files nor features.

    >>> require_pictures(ImageCaptions(("a",), (), np.empty(0), name="words"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: words: no picture files and no features to index; name a collection that has them
    """
    if not data.has_pictures:
        raise UserError(f"{data.name}: no picture files and no features to index; name a collection that has them")


def _require_finite(vectors: NDArray[np.float32], names: Sequence[str]) -> None:
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if odd.size:
        raise UserError(f"{names[odd[0]]}: the model gives NaN or infinity for it; the model's weights are damaged")


def one_line(issue: Issue) -> str:
    """Why a picture could not be read.

    >>> one_line(Issue("cut off", "a.jpg"))
    'a.jpg: cut off'
    """
    return ": ".join(part for part in (issue.where, issue.kind, issue.detail) if part)
