"""Where relevance ends in a ranking: the best hits of the whole index judged, and other hits by their scores.

What a filter lets through is judged as it would be without the filter: how a score compares with those of all pictures
says how relevant a picture is, and a filter changes neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration.judgement import BEYOND, Background, Judgement, Known
from rungwise.index.unknown_words import UnknownWord

MOST_JUDGED = 1000
"""Hits of the whole index that are judged where all of the first ones are relevant: as many as a calibration shows."""
_ROUNDING = 1e-6
"""How far the score of a hit may be from the same one computed in another way."""


class Judge(Protocol):
    """What judges hits: a :class:`rungwise.calibration.Calibration`."""

    @property
    def source(self) -> str:
        """By what it was fitted, in a line."""
        ...

    @property
    def relevant_from(self) -> float:
        """The least degree that counts as relevant."""
        ...

    def judge_hits(self, scores: NDArray[np.floating], background: Background, known: Known | None = None) -> Judgement:
        """Of the best hits of one query, whose (k,) scores fall."""
        ...


@dataclass(frozen=True)
class Judged:
    """The best hits of the whole index, judged.

    Attributes:
        scores: (hits,) falling.
        judgement: Of these hits.
        relevant_from: The least degree that counts as relevant.
        source: By what, in a line.

    >>> judgement = Judgement(np.array([0.9, 0.6, 0.1]), np.array([1, 3, 4]), cut=2, belief=0.9)
    >>> judged = Judged(np.array([0.5, 0.4, 0.2]), judgement, 0.5, "an example")
    >>> rungs, degrees = judged.at([0.45, 0.4, 0.1])
    >>> rungs.tolist(), degrees.tolist()
    ([3, 3, 4], [0.6, 0.6, 0.1])
    """

    scores: NDArray[np.floating]
    judgement: Judgement
    relevant_from: float
    source: str

    @property
    def cut(self) -> int:
        """How many of the best of the whole index are relevant."""
        return self.judgement.cut

    def at(self, scores: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rungs and degrees of hits with these scores, (hits,) each: those of the best hit that scores no higher.

        Equal scores are judged alike. Whatever scores less than all that was judged stands beyond the end.
        """
        given = np.asarray(scores, np.float64)
        if not len(self.scores):
            return np.full(len(given), BEYOND, np.int64), np.zeros(len(given))
        near = given + _ROUNDING * np.maximum(1.0, np.abs(given))
        places = np.searchsorted(-self.scores.astype(np.float64), -near, side="left")
        within = np.minimum(places, len(self.scores) - 1)
        rungs = np.where(places < len(self.scores), self.judgement.rungs[within], BEYOND)
        return rungs.astype(np.int64), np.asarray(self.judgement.degrees[within], np.float64)


class Looked(Protocol):
    """The whole index as a query sees it; see :class:`rungwise.index.ranking.Candidates`."""

    def nearest_scores(self, depth: int) -> NDArray[np.float32]:
        """Scores of so many pictures, best first; fewer where there are fewer."""
        ...


def judged(
    whole: Looked, depth: int, judge: Judge, background: Background, known: Known | None, *, deeper: bool
) -> Judged:
    """Judge the best hits of the whole index; more of them where all are relevant.

    Args:
        whole: Without any filter.
        depth: How many are judged at first.
        judge: By what.
        background: The query's scores with the sample of the index.
        known: What else is known of the query, and of the first hits.
        deeper: Ask for all that may be judged at once, where that costs no more than asking for the first ones.
    """
    scores = whole.nearest_scores(MOST_JUDGED if deeper else depth)[:depth]
    found = _judgement(judge, scores, background, known)
    if found.cut == len(scores) == depth:
        scores = whole.nearest_scores(MOST_JUDGED)
        found = _judgement(judge, scores, background, known)
    return Judged(scores, found, judge.relevant_from, judge.source)


def _judgement(judge: Judge, scores: NDArray[np.float32], background: Background, known: Known | None) -> Judgement:
    if not len(scores):
        return Judgement(np.zeros(0), np.zeros(0, np.int64), cut=0, belief=0.0)
    if known is not None and known.caption_scores is not None:
        of_all = np.full(len(scores), np.nan)
        of_all[: len(known.caption_scores)] = known.caption_scores
        known = replace(known, caption_scores=of_all)
    return judge.judge_hits(scores, background, known)


def advice(
    *, relevant_without_filter: int | None, unknown: Sequence[UnknownWord], by_words: int, has_words: bool
) -> tuple[str, ...]:
    """What to try where nothing relevant was found, a line each.

    Args:
        relevant_without_filter: How many pictures of the whole index are relevant; None where there is no filter.
        unknown: Words that the model does not know.
        by_words: How many pictures full text brought.
        has_words: Whether the query has words.

    >>> print(*advice(relevant_without_filter=7, unknown=(), by_words=0, has_words=True), sep="; ")
    the filter leaves out all 7 pictures that are relevant: try fewer conditions; try other words, or more general ones
    """
    lines = []
    if relevant_without_filter:
        many = f"{MOST_JUDGED:,} or more" if relevant_without_filter >= MOST_JUDGED else f"{relevant_without_filter}"
        which = f"all {many} pictures that are" if relevant_without_filter > 1 else "the one picture that is"
        lines.append(f"the filter leaves out {which} relevant: try fewer conditions")
    for word in unknown:
        if word.near:
            lines.append(f"in place of {word.word!r} try: {', '.join(word.near)}")
        else:
            lines.append(f"leave out {word.word!r}, which the model does not know")
    if by_words:
        have = "picture has" if by_words == 1 else "pictures have"
        lines.append(f"{by_words} {have} words of the query in captions or columns: look among the less related ones")
    if has_words:
        lines.append("try other words, or more general ones")
    return tuple(lines)
