"""Encoding of captions, and checks of the collection and of the vectors that go into an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, limits, too_large
from rungwise.core.output import quoted
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows
from rungwise.index.stores import StoreBatch

if TYPE_CHECKING:
    from rungwise.models import EncodedImages, IndexEncoder

_TEXTS_AT_ONCE = 4096

Progress = Callable[[int], None]


def encoded_texts(texts: Sequence[str], model: IndexEncoder, rows: FeatureRows | None = None) -> Iterator[StoreBatch]:
    """Batches with a row for each caption, whose id is the text itself; vectors with NaN or infinity are refused.

    ``rows``, (texts, D), are features that the model reads in place of words.
    """
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        read = some if rows is None else rows.take(range(start, start + len(some)))
        require_finite(vectors := model.encode_captions(read), some)
        yield StoreBatch(some, vectors)


def require_pictures(data: ImageCaptions) -> None:
    """Refuse a collection of captions alone, without picture files and features."""
    if not data.has_pictures:
        raise UserError(f"{data.name}: no picture files and no features to index; name a collection that has them")


def require_ids(data: ImageCaptions) -> None:
    """Refuse ids by which no picture could be asked for over HTTP: empty ones, and those above the limit ``id_bytes``.

    Any other text is an id: names of files hold line breaks, marks of direction, and bytes that are no text.
    """
    for one in data.image_ids:
        size = len(one.encode("utf-8", "surrogatepass"))
        if not size:
            raise UserError(f"{data.name}: the id of a picture is empty; give it one")
        if size > limits().id_bytes:
            raise too_large(f"{data.name}: the id {quoted(one)}", size, "id_bytes")


def require_finite(vectors: NDArray[np.float32], names: Sequence[str]) -> None:
    """Refuse vectors, (n, D), with NaN or infinity; the message names the first."""
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if odd.size:
        raise UserError(f"{names[odd[0]]}: the model gives NaN or infinity for it; the model's weights are damaged")


def results_of(encoded: EncodedImages, count: int) -> list[NDArray[np.float32] | Issue]:
    """(count,) results of encoding: the (D,) vector of each picture, or why there is none."""
    issues, kept = iter(encoded.issues), dict(zip(encoded.kept.tolist(), encoded.vectors, strict=True))
    return [kept[at] if at in kept else next(issues) for at in range(count)]


def one_line(issue: Issue) -> str:
    """Why a picture could not be read, in one line."""
    return ": ".join(part for part in (issue.where, issue.kind, issue.detail) if part)
