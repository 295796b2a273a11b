"""What a model makes of captions, batch by batch, and what an index asks of a collection and of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.core.limits import limits, too_large
from rungwise.core.output.printable import quoted
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.data.files.feature_rows import FeatureRows
from rungwise.index.stores.base import StoreBatch

if TYPE_CHECKING:
    from rungwise.models.contracts import EncodedImages, IndexEncoder

_TEXTS_AT_ONCE = 4096

Progress = Callable[[int], None]


def encoded_texts(texts: Sequence[str], model: IndexEncoder, rows: FeatureRows | None = None) -> Iterator[StoreBatch]:
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
        require_finite(vectors := model.encode_captions(read), some)
        yield StoreBatch(some, vectors)


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


def require_ids(data: ImageCaptions) -> None:
    """Refuse ids by which no picture could be asked for over HTTP: empty ones, and those longer than a head may be.

    Any other text is an id: names of files hold line breaks, marks of direction, and bytes that are no text.

    Raises:
        UserError: If an id is empty, or longer than the limit ``id_bytes``.

    >>> require_ids(ImageCaptions(("",), (), np.empty(0), name="pets"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: pets: the id of a picture is empty; give it one
    """
    for one in data.image_ids:
        size = len(one.encode("utf-8", "surrogatepass"))
        if not size:
            raise UserError(f"{data.name}: the id of a picture is empty; give it one")
        if size > limits().id_bytes:
            raise too_large(f"{data.name}: the id {quoted(one)}", size, "id_bytes")


def require_finite(vectors: NDArray[np.float32], names: Sequence[str]) -> None:
    """Refuse vectors that are none.

    Raises:
        UserError: If one of (n, D) holds NaN or infinity; the message names it.

    >>> require_finite(np.zeros((1, 2), np.float32), ["a.jpg"])
    """
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if odd.size:
        raise UserError(f"{names[odd[0]]}: the model gives NaN or infinity for it; the model's weights are damaged")


def results_of(encoded: EncodedImages, count: int) -> list[NDArray[np.float32] | Issue]:
    """(count,) what a model made of each of the pictures that it was asked for: a (D,) vector, or why there is none."""
    issues, kept = iter(encoded.issues), dict(zip(encoded.kept.tolist(), encoded.vectors, strict=True))
    return [kept[at] if at in kept else next(issues) for at in range(count)]


def one_line(issue: Issue) -> str:
    """Why a picture could not be read.

    >>> one_line(Issue("cut off", "a.jpg"))
    'a.jpg: cut off'
    """
    return ": ".join(part for part in (issue.where, issue.kind, issue.detail) if part)
