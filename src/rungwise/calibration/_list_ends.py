"""Ends of the lists that any search gives, of which only the first hits and their scores are known.

A calibration compares the hits of a query with the scores of all candidates. Another program's search tells the scores
of its first hits alone. What stands in for the others is one of two things: the lists that texts get which fit nothing,
or scores of the query's vector with a random sample of the collection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration._calibration import Calibration
from rungwise.calibration._judgement import BEYOND, Background, QueryJudgement, Values
from rungwise.calibration.unrelated import UNRELATED
from rungwise.core import UserError
from rungwise.core.output import short_repr

Metric = Literal["cosine", "inner", "l2"]

_DEPTH = 100
"""Usual number of hits of a list: its later half is far from any answer, and still cheap to ask for."""

_ALIKE = 1e-9
"""Relative difference up to which the lists of all texts count as the same list."""


@dataclass(frozen=True)
class ListEnds:
    """Judges where the list of a search ends, whatever program searched: how many of its first hits to show.

    It is made by :meth:`of_lists` from the lists that unrelated texts get, by :meth:`of_vectors` from a sample of the
    collection, or directly from a calibration. Made directly, it compares a list with its own later hits: right for a
    calibration that was learnt from such lists, and a rough guess without judgements, which shows too many.

    Attributes:
        calibration: What judges: without judgements, or learnt from judged lists or scores.
        depth: Number of hits from which on a list is compared with its own later ones.
        typical: (depth,) mean scores by rank of the lists of unrelated texts; None if they are not known.
        sample: (n, D) vectors of a random sample of the collection; None if there are none.
        total: Number of candidates in the collection that the sample is of.
        metric: What a score is: the cosine, the inner product, or minus the squared Euclidean distance.

    >>> rng = np.random.default_rng(0)
    >>> ends = ListEnds.of_lists(lambda text: np.sort(rng.normal(0.2, 0.02, 100))[::-1])
    >>> ends.judge([0.61, 0.58, 0.57, *np.linspace(0.25, 0.2, 97)]).cut
    3
    """

    calibration: Calibration
    depth: int = _DEPTH
    typical: Values | None = None
    sample: NDArray[np.float32] | None = None
    total: int = 0
    metric: Metric = "cosine"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise UserError(f"depth is {self.depth}; give at least 1, such as {_DEPTH}")

    @classmethod
    def of_lists(
        cls,
        ask: Callable[[str], ArrayLike],
        *,
        texts: Sequence[str] = UNRELATED,
        depth: int = _DEPTH,
        calibration: Calibration | None = None,
    ) -> ListEnds:
        """Ask the search for texts that fit nothing; what they get is what no answer looks like.

        Args:
            ask: Gives the falling scores of the first ``depth`` hits of a text; distances are negated. It is called
                once for each text. A list may be shorter, also empty.
            texts: Texts to which nothing of the collection is relevant; English texts about the news, the law, science
                and software if not given.
            depth: Number of hits of a list.
            calibration: What judges; if None, a hit is shown that stands higher than the best hits of nine in ten of
                these texts.

        Raises:
            UserError: If there are fewer than 10 texts, a score is not finite or higher than the one before it, no text
                gets a hit, or all get the same scores, as where scores are made of ranks.

        >>> ListEnds.of_lists(lambda text: [1 / (60 + rank) for rank in range(50)])
        Traceback (most recent call last):
        rungwise.core.UserError: scores: all texts get the same scores, as where ranks are fused; give scores of ...
        """
        lists = [_falling(ask(text), depth) for text in texts]
        longest = max((len(one) for one in lists), default=0)
        if not longest:
            raise UserError("scores: no unrelated text gets a hit, so nothing can be learnt; give the calibration")
        lowest = min(one[-1] for one in lists if len(one))
        # What is not listed scores no higher than the last that is.
        rows = np.stack(
            [np.pad(one, (0, longest - len(one)), constant_values=one[-1] if len(one) else lowest) for one in lists]
        )
        if longest > 1 and np.ptp(rows, axis=0).max() <= _ALIKE * max(1e-300, float(np.abs(rows).max())):
            raise UserError(
                "scores: all texts get the same scores, as where ranks are fused; give scores of the search before that"
            )
        # Where lists end by themselves, as those of a search by words do, their last hits are answers as well.
        ragged = any(len(one) < longest for one in lists)
        return cls(calibration or Calibration.unsupervised(rows), depth if ragged else longest, rows.mean(axis=0))

    @classmethod
    def of_vectors(
        cls,
        sample: ArrayLike,
        total: int,
        *,
        unrelated: ArrayLike | None = None,
        calibration: Calibration | None = None,
        metric: Metric = "cosine",
    ) -> ListEnds:
        """Compare the hits of a query with its scores in a random sample of the collection, as an index of ours does.

        Args:
            sample: (n, D) vectors; about 2,000 are enough.
            total: Number of candidates in the collection.
            unrelated: (texts, D) vectors of texts that fit nothing, such as ``UNRELATED``.
            calibration: What judges; if None, :meth:`Calibration.unsupervised` of the unrelated texts.
            metric: What a score is: ``"cosine"``, ``"inner"`` product, or ``"l2"``: minus the squared distance.

        Raises:
            UserError: If shapes do not fit, or a number is not finite.

        >>> rng = np.random.default_rng(0)
        >>> vectors = rng.normal(size=(500, 16))
        >>> ends = ListEnds.of_vectors(vectors, 500, unrelated=rng.normal(size=(48, 16)))
        >>> query = vectors[0] / np.linalg.norm(vectors[0])
        >>> scores = np.sort(vectors @ query / np.linalg.norm(vectors, axis=1))[::-1]
        >>> ends.judge(scores[:20], query).cut
        1
        """
        rows = np.asarray(sample, np.float32)
        if rows.ndim != 2 or len(rows) < 2 or not np.isfinite(rows).all():
            raise UserError(f"sample: shape {rows.shape}; give two or more vectors of finite numbers, (n, D)")
        if total < len(rows):
            raise UserError(f"total is {total}, but the sample has {len(rows)} vectors; give the whole number")
        if calibration is None:
            foreign = None if unrelated is None else _products(_vectors(unrelated, rows), rows, metric)
            calibration = Calibration.unsupervised(foreign)
        elif unrelated is not None:
            raise UserError("unrelated: the calibration says already what fits nothing; leave one of them out")
        return cls(calibration, sample=rows, total=total, metric=metric)

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the rungs 1, 2 and 3."""
        return self.calibration.names

    def judge(self, scores: ArrayLike, vector: ArrayLike | None = None) -> QueryJudgement:
        """Judge the list of one query.

        Args:
            scores: (hits,) falling scores of its hits: similarities, or negated distances.
            vector: (D,) vector of the query, where the collection is known by a sample of its vectors.

        Returns:
            Degrees and rungs of the hits, and how many of the first ones to show. A single hit that can be compared
            with nothing is shown, with the degree 0.

        Raises:
            UserError: If a score is not finite or higher than the one before it, a cosine is above 1, or the vector is
                missing, not needed, or of another length.
        """
        falling = _falling(scores)
        if (vector is None) != (self.sample is None):
            raise UserError(
                "vector: give the query's vector, the collection is known by vectors"
                if vector is None
                else "vector: the collection is known by lists of scores; leave the vector out"
            )
        if not len(falling):
            return QueryJudgement(np.zeros(0), np.zeros(0, np.int64), cut=0, belief=0.0)
        if vector is not None and self.sample is not None:
            if self.metric == "cosine" and falling[0] > 1.001:
                raise UserError(f"scores: {falling[0]:.4g} is no cosine; convert the scores, or name another metric")
            background = Background(
                _products(_vectors(np.asarray(vector)[None], self.sample), self.sample, self.metric)[0], self.total
            )
        elif self.typical is not None and len(falling) < self.depth:  # as where a filter shortened it
            background = Background(self.typical, len(self.typical))
        elif len(falling) > 1:
            background = Background(falling, len(falling))
        else:
            return QueryJudgement(np.zeros(1), np.full(1, BEYOND - 1), cut=1, belief=0.0)
        return self.calibration.judge_hits(falling, background)


def _falling(scores: ArrayLike, most: int | None = None) -> Values:
    try:
        values = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise UserError("scores: not all are numbers; give the falling scores of the hits") from None
    if values.ndim != 1:
        raise UserError(f"scores: {values.ndim} dimensions; give the scores of one query, (hits,)")
    if not np.isfinite(values).all():
        raise UserError("scores: one is not finite; leave hits without a score out")
    if (values[1:] > values[:-1]).any():
        raise UserError("scores: a hit scores higher than the one before it; sort them, and negate distances")
    return values[:most]


def _vectors(vectors: ArrayLike, sample: NDArray[np.float32]) -> NDArray[np.float32]:
    values = np.asarray(vectors, np.float32)
    if values.ndim != 2 or values.shape[1] != sample.shape[1] or not np.isfinite(values).all():
        raise UserError(f"vectors of shape {values.shape}: give finite numbers, (n, {sample.shape[1]}) as the sample")
    return values


def _products(queries: NDArray[np.float32], rows: NDArray[np.float32], metric: Metric) -> Values:
    """(queries, rows) scores."""
    first, second = queries.astype(np.float64), rows.astype(np.float64)
    if metric == "cosine":
        first, second = (one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-30) for one in (first, second))
    found = first @ second.T
    if metric == "l2":
        found = 2 * found - (first**2).sum(axis=1)[:, None] - (second**2).sum(axis=1)
    return np.asarray(found)
