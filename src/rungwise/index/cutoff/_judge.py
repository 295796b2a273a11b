"""Where relevance ends in a ranking: the best hits of the whole index are judged, and other hits by their scores.

Pictures that pass a filter are judged as they would be without it: relevance follows from how a score compares with
those of all pictures, which a filter does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import BEYOND, Background, Known, QueryJudgement
from rungwise.index._ranking import JudgedRanking
from rungwise.index.query import UnknownWord

MOST_JUDGED = 1000
"""Number of hits that are judged where all of the first ones are relevant; as many as a calibration shows."""


class Judge(Protocol):
    """Judges hits, as a :class:`rungwise.calibration.Calibration` does."""

    @property
    def source(self) -> str:
        """One line that says what it was fitted by."""
        ...

    @property
    def names(self) -> tuple[str, str, str]:
        """Names of the rungs 1, 2 and 3."""
        ...

    @property
    def relevant_from(self) -> float:
        """The least degree that counts as relevant."""
        ...

    def judge_hits(
        self, scores: NDArray[np.floating], background: Background, known: Known | None = None
    ) -> QueryJudgement:
        """Judge the best hits of one query, whose (k,) scores fall."""
        ...


class IndexScores(Protocol):
    """Scores of the whole index for a query, as :class:`rungwise.index._ranking.PictureCandidates` gives them."""

    def nearest(self, depth: int) -> tuple[str, ...]:
        """Ids of the ``depth`` nearest pictures, best first; fewer where there are fewer."""
        ...

    def nearest_scores(self, depth: int) -> NDArray[np.float32]:
        """Scores of the ``depth`` nearest pictures, best first; fewer where there are fewer."""
        ...

    def scores(self, ids: Sequence[str]) -> list[float]:
        """Scores of these pictures."""
        ...


def judged(
    whole: IndexScores,
    depth: int,
    judge: Judge,
    background: Background,
    known_of: Callable[[Sequence[str]], Known | None],
    *,
    deeper: bool,
    by_words: Sequence[str] = (),
) -> JudgedRanking:
    """Judge the best hits of the whole index, without any filter; more of them where all are relevant.

    Args:
        whole: Scores of the index.
        depth: Number of hits that are judged at first.
        judge: Judges the hits.
        background: The query's scores with the sample of the index.
        known_of: Gives what else is known of the query and of these hits.
        deeper: Ask for all that may be judged at once, where that costs no more than asking for the first ones.
        by_words: Further pictures that are judged: those whose texts hold words of the query.
    """

    def among(ids: Sequence[str], scores: NDArray[np.float32]) -> JudgedRanking:
        near = set(ids)
        others = [one for one in by_words if one not in near]
        of_all = np.append(scores, np.array(whole.scores(others), np.float32)) if others else scores
        order = np.argsort(-of_all, kind="stable")
        every, falling = [*ids, *others], of_all[order]
        judged_ids = tuple(every[place] for place in order.tolist())
        known = known_of(judged_ids)
        if known is not None:
            known = replace(known, nearest=len(ids))
        found = _judgement(judge, falling, background, known)
        by_hit = known is not None and known.stated is not None
        return JudgedRanking(judged_ids, falling, found, judge.relevant_from, judge.source, judge.names, by_hit)

    if deeper:
        whole.nearest(MOST_JUDGED)
    ids = whole.nearest(depth)
    found = among(ids, whole.nearest_scores(depth))
    if len(ids) == depth and (found.judgement.rungs < BEYOND).all():
        found = among(whole.nearest(MOST_JUDGED), whole.nearest_scores(MOST_JUDGED))
    return found


def _judgement(
    judge: Judge, scores: NDArray[np.float32], background: Background, known: Known | None
) -> QueryJudgement:
    if not len(scores):
        return QueryJudgement(np.zeros(0), np.zeros(0, np.int64), cut=0, belief=0.0)
    return judge.judge_hits(scores, background, known)


def advice(
    *, relevant_without_filter: int | None, unknown: Sequence[UnknownWord], by_words: int, has_words: bool
) -> tuple[str, ...]:
    """Lines that say what to try where nothing relevant was found.

    ``relevant_without_filter`` counts relevant pictures of the whole index, None without a filter; ``by_words`` counts
    pictures that full text brought.

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
