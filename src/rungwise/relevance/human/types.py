"""What people judged, as it stands in a file: pairs of a collection, two candidates of one picture, candidate texts.

These are values; :mod:`rungwise.relevance.human.files` reads them, and :mod:`rungwise.relevance.agreement.protocols`
says how well degrees agree with them. Single ratings are kept where a file has them, since some protocols count each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.data.collection import Issue

Between = Literal["image-caption", "caption-caption", "image-image"]
"""What the two sides of a judged pair are."""

Layout = Literal["table", "flickr8k-expert", "flickr8k-crowd"]
"""Where the judgements come from, which decides the protocol."""

Ratings = NDArray[np.float64]
"""(items, raters) grades, NaN for none; a row's order says nothing unless a reader says so."""

MOST_RATERS = 1000
"""Ratings of one item; a file that has more of one is no file of judgements."""


class _Rated:
    """What people gave grades has them in ``ratings``: (items, raters), NaN for none."""

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
        between: What the sides are.
        layout: Where they come from.
        first: (pairs,) ids of the first side; images for image-caption pairs.
        second: (pairs,) ids of the second side.
        ratings: (pairs, raters) grades, NaN for none.
        places: (pairs,) where each stands in its file.
        name: Of the file.
        text_hashes: (pairs,) SHA-256 of the caption that was read; empty where the file does not say.
        issues: Lines of the file that are damaged.

    >>> pairs = RatedPairs("image-caption", "table", ("a",), ("a#0",), np.array([[4.0, 5.0, np.nan]]), ("line 2",))
    >>> len(pairs), pairs.raters, pairs.means
    (1, 3, array([4.5]))
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

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.first)


@dataclass(frozen=True)
class Preferences:
    """Which of two candidate captions people find nearer to a picture, as in Pascal-50S (Vedantam et al. 2015).

    Attributes:
        items: (pairs,) ids of the pictures.
        first: (pairs,) the one candidate.
        second: (pairs,) the other.
        votes: (pairs, 2) how many people chose the first, and the second.
        categories: (pairs,) such as HC (two captions of the picture by people), HI (one of them of another picture),
            HM (one by a machine), MM (both by machines); empty texts where the file has none.
        references: (pairs,) other captions of each picture; none where the file has none.
        places: (pairs,) where each stands in its file.
        name: Of the file.

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

    def __len__(self) -> int:
        """Number of pairs of candidates."""
        return len(self.items)

    @property
    def preferred(self) -> NDArray[np.float64]:
        """(pairs,) 1 where most people chose the first, -1 the second, 0 as many one as the other."""
        return np.sign(self.votes[:, 0] - self.votes[:, 1])


@dataclass(frozen=True)
class RatedTexts(_Rated):
    """Candidate captions that come with their own references and ratings, as in VATEX-EVAL (Shi et al. 2022).

    Attributes:
        items: (candidates,) ids of the videos or pictures.
        candidates: (candidates,) texts.
        references: (candidates,) captions by people of each item; none where the file has none.
        ratings: (candidates, raters) grades, NaN for none; a column is a rater.
        places: (candidates,) where each stands in its file.
        name: Of the file.

    >>> texts = RatedTexts(("v1",), ("a dog",), (("dogs",),), np.array([[3.0, 4.0, 5.0]]), ("entry 1",))
    >>> texts.means
    array([4.])
    """

    items: tuple[str, ...]
    candidates: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    ratings: Ratings
    places: tuple[str, ...]
    name: str = "judgements"

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.items)


Judged = RatedPairs | Preferences | RatedTexts
"""Any file of judgements."""


def means_of(ratings: Ratings) -> NDArray[np.float64]:
    """(items,) mean over the raters who gave a grade; NaN where none did.

    >>> means_of(np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan]]))
    array([1.5, 3. , nan])
    """
    given = ~np.isnan(ratings)
    counts = given.sum(axis=1)
    sums = np.where(given, ratings, 0).sum(axis=1)
    return np.asarray(np.divide(sums, counts, out=np.full(len(ratings), np.nan), where=counts > 0), np.float64)


def in_columns(rows: Sequence[Sequence[float]], places: Sequence[str]) -> Ratings:
    """(items, raters) ratings of rows of different lengths, filled up with NaN.

    Args:
        rows: The ratings of each item.
        places: Where each stands.

    Raises:
        UserError: If one item has more ratings than a file of judgements would have.

    >>> in_columns([[1, 2], [3]], ["line 2", "line 3"])
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    most = max(map(len, rows), default=0)
    if most > MOST_RATERS:
        where = next(place for row, place in zip(rows, places, strict=True) if len(row) == most)
        raise UserError(f"{where}: {most} ratings of one item, more than {MOST_RATERS}; give a file of judgements")
    table = np.full((len(rows), most), np.nan)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table
