"""Which classes stand first for the queries of a class: where a model takes one class for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.core.text import natural_key
from rungwise.evaluation.analysis._top_candidates import TopCandidates
from rungwise.metrics import Direction
from rungwise.relevance.human import labels_of

if TYPE_CHECKING:
    from scipy import sparse

MOST_CLASSES = 2000
"""Largest number of classes that is tabulated: a table of n classes takes n x n numbers, and nobody reads more."""

FIRST = 10
"""Number of results looked at for each query by default."""
_NEAREST = 3


@dataclass(frozen=True)
class Confusion:
    """Shares of the first results of the queries of each class, in percent.

    A query with several labels counts in each of its classes. A result with several labels counts in each of its
    classes by a fraction: one over their number. So each row of ``shares`` adds up to 100, less what results without a
    label take.

    Attributes:
        direction: Direction of the queries.
        k: Number of results looked at for each query.
        classes: Class names, in the order of all arrays below.
        queries: (classes,) number of queries that have each class.
        shares: (classes, classes) rows are the queries' classes, columns those of the results; NaN in the row of a
            class without queries, or whose queries have no result.
        wrong: (classes, classes) like ``shares``, but only of results that share no label with their query; the rest is
            0.
        chance: (classes,) the share that each class has of all candidates, which a random order would show.

    >>> from rungwise.evaluation.analysis._top_candidates import top_candidates_of
    >>> lists = top_candidates_of([[0.9, 0.8, 0.1], [0.2, 0.3, 0.1], [0.1, 0.2, 0.7]], [0, 1, 2])["i2t"]
    >>> found = confusion(lists, ["art", "sport", "art"], [0, 1, 2], k=2)
    >>> found.shares.tolist(), found.nearest_wrong("art")
    ([[50.0, 50.0], [50.0, 50.0]], [('sport', 50.0)])
    """

    direction: Direction
    k: int
    classes: tuple[str, ...]
    queries: NDArray[np.int64]
    shares: NDArray[np.float64]
    wrong: NDArray[np.float64]
    chance: NDArray[np.float64]

    __repr__ = short_repr

    def nearest_wrong(self, label: str) -> list[tuple[str, float]]:
        """Up to three classes that take most of the first results wrongly, best first, with their shares in percent."""
        row = np.nan_to_num(self.wrong[self.classes.index(label)])
        best = np.argsort(-row, kind="stable")[:_NEAREST].tolist()
        return [(self.classes[at], float(row[at])) for at in best if row[at] > 0]


def confusion(
    lists: TopCandidates,
    labels: Sequence[str | int | Sequence[str | int]],
    image_of_caption: ArrayLike,
    k: int = FIRST,
) -> Confusion:
    """Classes of the first K results of the queries of each class.

    Args:
        lists: The first candidates of every query, K or more, as :func:`~rungwise.evaluation.diagnose` or
            :func:`~rungwise.evaluation.analysis._top_candidates.top_candidates_of` returns them. A query with fewer
            candidates is taken with those that it has.
        labels: (images,) the label of each image, or its several labels, or none.
        image_of_caption: (captions,) the position of each caption's image, whose labels it has.
        k: Number of results to look at for each query.

    Raises:
        UserError: If lists and labels do not fit, the lists are shorter than K, or there are too many classes.
    """
    of_images = [labels_of(one) for one in labels]
    owners = np.asarray(image_of_caption, dtype=np.int64)
    if owners.size and not 0 <= owners.min() <= owners.max() < len(of_images):
        raise UserError(f"confusion: there are labels of {len(of_images)} images, not of each; give one list an image")
    of_captions = [of_images[image] for image in owners.tolist()]
    asking, answering = (of_images, of_captions) if lists.direction == "i2t" else (of_captions, of_images)
    if len(lists.candidates) != len(asking) or len(lists.occurrences) != len(answering):
        raise UserError(
            f"confusion: the lists are of {len(lists.candidates)} queries and {len(lists.occurrences)} candidates, the"
            f" labels of {len(asking)} and {len(answering)}; give the labels of what was ranked"
        )
    kept = lists.candidates.shape[1]
    if not k >= 1 or (k > kept and kept < len(answering)):
        raise UserError(f"confusion: the lists hold {kept} candidates of each query; ask for k of 1 to {kept}, not {k}")
    classes = tuple(sorted({label for own in of_images for label in own}, key=natural_key))
    if len(classes) > MOST_CLASSES:
        raise UserError(f"confusion: {len(classes)} classes are too many for a table; give at most {MOST_CLASSES}")
    column = {label: at for at, label in enumerate(classes)}
    members, candidates = _incidence(asking, column), _incidence(answering, column)
    counted = _each_row_adds_up_to_one(candidates)
    results = _listed(lists.candidates[:, :k], len(answering)) @ counted  # (queries, classes)
    wrong = results - results.multiply(members)
    has_results = (lists.candidates[:, :k] >= 0).any(axis=1)
    queries = members.T @ has_results.astype(np.float64)
    return Confusion(
        direction=lists.direction,
        k=k,
        classes=classes,
        queries=np.asarray(members.sum(axis=0)).astype(np.int64),
        shares=_percent((members.T @ results).toarray(), queries),
        wrong=_percent((members.T @ wrong).toarray(), queries),
        chance=100.0 * np.asarray(counted.sum(axis=0)) / max(1, len(answering)),
    )


def _incidence(labels: Sequence[tuple[str, ...]], column: dict[str, int]) -> sparse.csr_array:
    """(items, classes) matrix with 1 where an item has the class."""
    from scipy import sparse  # takes half a second, which other reports do not need

    ends = np.cumsum([0, *map(len, labels)])
    columns = np.array([column[label] for own in labels for label in own], dtype=np.int64)
    return sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(labels), len(column)))


def _each_row_adds_up_to_one(incidence: sparse.csr_array) -> sparse.csr_array:
    """Divide each row by its number of labels; a row without labels stays 0."""
    weighted = incidence.copy()
    sizes = np.diff(incidence.indptr)
    weighted.data = weighted.data / np.repeat(sizes, sizes)
    return weighted


def _listed(candidates: NDArray[np.int64], gallery: int) -> sparse.csr_array:
    """(queries, gallery) share of each listed candidate in its list; -1 stands for no candidate."""
    from scipy import sparse

    there = candidates >= 0
    sizes = there.sum(axis=1)
    values = np.repeat(1 / np.maximum(1, sizes), sizes)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_array((values, candidates[there], ends), shape=(len(candidates), gallery))


def _percent(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    nothing = np.full(sums.shape, np.nan)
    return np.asarray(100.0 * np.divide(sums, counts[:, None], out=nothing, where=counts[:, None] > 0))
