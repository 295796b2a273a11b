"""Rows that an engine found in a search: exact scores, and equal ones in the order of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.index.stores._base import Vectors


@dataclass(frozen=True)
class EngineCandidates:
    """Rows that an engine found, with their exact scores.

    Attributes:
        ids: Ids in the engine's form.
        order: (rows,) places in the order of rows.
        scores: (rows,) float32.
    """

    ids: list[str]
    order: NDArray[np.int64]
    scores: Vectors

    def best(self, k: int, without: frozenset[str]) -> tuple[list[str], Vectors]:
        """The k best without those left out, equal ones in the order of rows."""
        places = [at for at in np.lexsort((self.order, -self.scores)) if self.ids[at] not in without][:k]
        return [self.ids[at] for at in places], self.scores[places]

    def whole(self, k: int, without: frozenset[str], reached: float) -> bool:
        """Whether the k best of all rows are among these, if rows not found have scores of at most ``reached``."""
        _, scores = self.best(k, without)
        return len(scores) == k and float(scores[-1]) > reached

    def and_those(self, others: EngineCandidates) -> EngineCandidates:
        """Union of two sets of candidates, each row once."""
        known = set(self.ids)
        new = [at for at, one in enumerate(others.ids) if one not in known]
        return EngineCandidates(
            self.ids + [others.ids[at] for at in new],
            np.concatenate([self.order, others.order[new]]),
            np.concatenate([self.scores, others.scores[new]]),
        )


def exact_scores(vectors: NDArray[np.floating[Any]], query: Vectors, *, cosine: bool) -> Vectors:
    """(rows,) float32 scores of a (D,) query, computed in double precision: of equal vectors they are equal.

    They are cosines, 0 for a vector of zeros, or inner products.
    """
    rows, sought = vectors.astype(np.float64), query.astype(np.float64)
    scores = (rows * sought).sum(axis=1)
    if cosine:
        lengths = np.sqrt((rows * rows).sum(axis=1)) * np.linalg.norm(sought)
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    # Adding zero turns -0.0 into 0.0.
    return np.asarray(scores.astype(np.float32) + np.float32(0))
