"""People's judgements as values: rated pairs of a collection, preferences between candidates, rated candidate texts.

:mod:`rungwise.relevance.human._files` reads them, and :mod:`rungwise.relevance.agreement._protocols` compares degrees
with them. Single ratings are kept where a file has them, since some protocols count each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.data import Issue

Between = Literal["image-caption", "caption-caption", "image-image"]
"""Kinds of the two sides of a judged pair."""

Layout = Literal["table", "flickr8k-expert", "flickr8k-crowd"]
"""Origin of the judgements, which decides the protocol."""

Ratings = NDArray[np.float64]
"""(items, raters) grades, NaN for none; the order within a row means nothing unless a reader says so."""

MOST_RATERS = 1000
"""Most ratings of one item; a file with more of one item is no file of judgements."""


class _Rated:
    """Base of what has grades in ``ratings``: (items, raters), NaN for none."""

    ratings: Ratings

    @property
    def raters(self) -> int:
        """The most ratings that one item has."""
        return int(self.ratings.shape[1])

    @property
    def means(self) -> NDArray[np.float64]:
        """(items,) mean grade; NaN where nobody voted."""
        return means_of(self.ratings)


@dataclass(frozen=True)
class RatedPairs(_Rated):
    """Pairs of a collection that people rated.

    Attributes:
        between: Kinds of the two sides.
        layout: Origin of the ratings.
        first: (pairs,) ids of the first side; images for image-caption pairs.
        second: (pairs,) ids of the second side.
        ratings: (pairs, raters) grades, NaN for none.
        places: (pairs,) place of each pair in its file.
        name: Name of the file.
        text_hashes: (pairs,) SHA-256 of the caption that was read; empty where the file does not say.
        issues: Damaged lines of the file.
    """

    between: Between
    layout: Layout
    first: tuple[str, ...]
    second: tuple[str, ...]
    ratings: Ratings
    places: tuple[str, ...]
    name: str = "judgements"
    text_hashes: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.first)


@dataclass(frozen=True)
class Preferences:
    """Which of two candidate captions people find nearer to a picture, as in Pascal-50S (Vedantam et al. 2015).

    Attributes:
        items: (pairs,) ids of the pictures.
        first: (pairs,) first candidate.
        second: (pairs,) second candidate.
        votes: (pairs, 2) number of people who chose the first, and the second.
        categories: (pairs,) category, such as HC (two captions of the picture by people), HI (one of them of another
            picture), HM (one by a machine), MM (both by machines); empty texts where the file has none.
        references: (pairs,) other captions of each picture; none where the file has none.
        places: (pairs,) place of each pair in its file.
        name: Name of the file.

    >>> both = Preferences(("a",), ("a dog",), ("a cat",), np.array([[40.0, 8.0]]), ("HI",), (("dogs",),), ("line 2",))
    >>> both.preferred
    array([1.])
    """

    items: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    votes: NDArray[np.float64]
    categories: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    places: tuple[str, ...]
    name: str = "judgements"

    __repr__ = short_repr

    def __len__(self) -> int:
        """Number of pairs of candidates."""
        return len(self.items)

    @property
    def preferred(self) -> NDArray[np.float64]:
        """(pairs,) 1 where most people chose the first candidate, -1 the second, 0 where votes are equal."""
        return np.sign(self.votes[:, 0] - self.votes[:, 1])


@dataclass(frozen=True)
class RatedTexts(_Rated):
    """Candidate captions that come with their own references and ratings, as in VATEX-EVAL (Shi et al. 2022).

    Attributes:
        items: (candidates,) ids of the videos or pictures.
        candidates: (candidates,) texts.
        references: (candidates,) captions by people of each item; none where the file has none.
        ratings: (candidates, raters) grades, NaN for none; a column is a rater.
        places: (candidates,) place of each candidate in its file.
        name: Name of the file.
    """

    items: tuple[str, ...]
    candidates: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    ratings: Ratings
    places: tuple[str, ...]
    name: str = "judgements"

    __repr__ = short_repr

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.items)


Judged = RatedPairs | Preferences | RatedTexts
"""The content of any file of judgements."""


def means_of(ratings: Ratings) -> NDArray[np.float64]:
    """(items,) mean over the raters who gave a grade; NaN where none did."""
    given = ~np.isnan(ratings)
    counts = given.sum(axis=1)
    sums = np.where(given, ratings, 0).sum(axis=1)
    return np.asarray(np.divide(sums, counts, out=np.full(len(ratings), np.nan), where=counts > 0), np.float64)


def in_columns(rows: Sequence[Sequence[float]], places: Sequence[str]) -> Ratings:
    """(items, raters) ratings from rows of different lengths, filled up with NaN.

    ``places`` are the places of the items in their file; a UserError names one that has more than :data:`MOST_RATERS`.
    """
    most = max(map(len, rows), default=0)
    if most > MOST_RATERS:
        where = next(place for row, place in zip(rows, places, strict=True) if len(row) == most)
        raise UserError(f"{where}: {most} ratings of one item, more than {MOST_RATERS}; give a file of judgements")
    table = np.full((len(rows), most), np.nan)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table
