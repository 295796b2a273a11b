"""Sources restored from what another run computed and kept: they answer to the bit what the source itself would.

Arrays from a file are checked before they are used: compiled loops over sparse rows check no bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.relevance._base import Frequencies
from rungwise.relevance._captions import CaptionPairSource
from rungwise.relevance.embedding import VectorSource
from rungwise.relevance.lexical import PairRows, RowsSource, SparseCaptions
from rungwise.relevance.storage import CachedSource

_COUNTS: tuple[Frequencies | None, ...] = ("train", "collection", "unknown", None)
_ROWS = {
    "starts": np.int64,
    "columns": np.int32,
    "asked": np.float32,
    "answers": np.float32,
    "lengths": np.int32,
    "penalty": np.float32,
}

_MOST_COLUMNS = 1 << 28
"""Largest number of different n-grams; each costs four bytes whenever a block is asked for."""


def kept_vectors(source: VectorSource) -> CachedSource:
    """What :class:`CachedVectors` needs; which captions stand for an image is not part of it."""
    shared = CaptionPairSource.options(source)
    return CachedSource(
        {
            "source": source.source_name,
            "options": {name: value for name, value in source.options().items() if name not in shared},
            "fingerprint": source.fingerprint,
            "symmetric": source.symmetric,
        },
        {"vectors": np.ascontiguousarray(source.vectors, np.float32)},
    )


def kept_rows(source: RowsSource | PairRows) -> CachedSource:
    """What :class:`CachedConsensus` and :class:`CachedPairRows` need."""
    rows = source.weights
    facts = {
        "source": source.source_name,
        "options": dict(source.options()),
        "called": source.called,
        "content_hash": source.content_hash(),
        "frequencies_from": source.frequencies_from,
    }
    return CachedSource(
        facts, {name: np.ascontiguousarray(getattr(rows, name), dtype) for name, dtype in _ROWS.items()}
    )


class CachedVectors(VectorSource):
    """The vectors of a bi-encoder or of averaged words.

    Args:
        kept: Result of :func:`kept_vectors`.
        captions: (captions,) texts; None where only ranking is needed.
        image_of_caption: (captions,) the position of each caption's image.
        **choices: The choices of a :class:`~rungwise.relevance.CaptionPairSource`, as the source had them.
    """

    def __init__(
        self,
        kept: CachedSource,
        captions: Sequence[str] | None,
        image_of_caption: Sequence[int] | ArrayLike,
        **choices: Any,
    ) -> None:
        super().__init__(captions, image_of_caption, **choices)
        vectors, options = kept.arrays.get("vectors"), kept.facts.get("options")
        self._source, self._fingerprint = _texts(kept, "source", "fingerprint")
        self.symmetric = kept.facts.get("symmetric") is not False
        if vectors is None or vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != self.shape[1]:
            raise _unfit(f"no vectors of {self.shape[1]} captions")
        if not isinstance(options, dict) or not np.isfinite(vectors).all():
            raise _unfit("a vector is not finite, or options are missing")
        self._vectors, self._options = vectors, options

    @property
    def source_name(self) -> str:
        """Name of the original source."""
        return self._source

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(captions, dimension) vectors of length 1, or 0 where a caption has no vector."""
        return self._vectors

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the original source."""
        return self._fingerprint

    def options(self) -> Mapping[str, Any]:
        """Options of the original source, with the choice of references of this one."""
        return {**super().options(), **self._options}


class _Facts:
    """Name, options and hash of a restored source of rows, which are those of the original."""

    def _take(self, kept: CachedSource, captions: int) -> None:
        self._source, self._hash, self._called = _texts(kept, "source", "content_hash", "called")
        options, counted = kept.facts.get("options"), kept.facts.get("frequencies_from")
        if not isinstance(options, dict) or counted not in _COUNTS:
            raise _unfit("options or frequencies are missing")
        self._options: Mapping[str, Any] = options
        self._frequencies: Frequencies | None = counted
        self._rows = _rows_of(kept, captions)

    @property
    def source_name(self) -> str:
        """Name of the original source."""
        return self._source

    @property
    def called(self) -> str:
        """Name and choices of the original source."""
        return self._called

    @property
    def frequencies_from(self) -> Frequencies | None:
        """Whose captions the original source counted words in."""
        return self._frequencies

    def options(self) -> Mapping[str, Any]:
        """Options of the original source."""
        return self._options

    def content_hash(self) -> str:
        """Content hash of the original source."""
        return self._hash


class CachedConsensus(_Facts, RowsSource):
    """CIDEr or CIDEr-D restored from the counts of another run.

    Args:
        kept: Result of :func:`kept_rows`.
        captions: (captions,) texts; None where only ranking is needed.
        image_of_caption: (captions,) the position of each caption's image.
        leave_one_out: Choice of the original source.
        images: Number of images.
    """

    def __init__(
        self,
        kept: CachedSource,
        captions: Sequence[str] | None,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        leave_one_out: bool = False,
        images: int | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, leave_one_out=leave_one_out, images=images)
        self._take(kept, self.shape[1])


class CachedPairRows(_Facts, PairRows):
    """Tf-idf restored from the counts of another run.

    Args:
        kept: Result of :func:`kept_rows`.
        captions: (captions,) texts; None where only ranking is needed.
        image_of_caption: (captions,) the position of each caption's image.
        **choices: The choices of a :class:`~rungwise.relevance.CaptionPairSource`, as the source had them.
    """

    def __init__(
        self,
        kept: CachedSource,
        captions: Sequence[str] | None,
        image_of_caption: Sequence[int] | ArrayLike,
        **choices: Any,
    ) -> None:
        super().__init__(captions, image_of_caption, **choices)
        self._take(kept, self.shape[1])


def _rows_of(kept: CachedSource, captions: int) -> SparseCaptions:
    """Rows in which every number is within its bounds; else a UserError."""
    arrays = kept.arrays
    for name, dtype in _ROWS.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise _unfit(f"no {name}")
    starts, columns, lengths, penalty = (arrays[name] for name in ("starts", "columns", "lengths", "penalty"))
    entries = len(columns)
    fits = (
        len(starts) == captions + 1
        and starts[0] == 0
        and starts[-1] == entries
        and bool((np.diff(starts) >= 0).all())
        and len(arrays["asked"]) == len(arrays["answers"]) == entries
        and len(lengths) == captions
        and (not entries or (columns.min() >= 0 and columns.max() < _MOST_COLUMNS))
        and (not captions or (lengths.min() >= 0 and lengths.max() < len(penalty)))
        and all(bool(np.isfinite(arrays[name]).all()) for name in ("asked", "answers", "penalty"))
    )
    if not fits:
        raise _unfit("a number lies beyond its bounds")
    return SparseCaptions(
        starts, columns, arrays["asked"], arrays["answers"], lengths, penalty, int(columns.max(initial=-1)) + 1
    )


def _texts(kept: CachedSource, *names: str) -> list[str]:
    found = [kept.facts.get(name) for name in names]
    if not all(isinstance(one, str) for one in found):
        raise _unfit(f"{' or '.join(names)} is missing")
    return [str(one) for one in found]


def _unfit(what: str) -> UserError:
    return UserError(f"kept relevance: does not fit the captions ({what}); remove it")
