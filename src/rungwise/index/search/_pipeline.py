"""The ranking of a search: vectors, full text, reranking, folding and diversity, one after the other.

Every step looks at a part of the ranking whose length does not depend on how much is asked for. So the ranking of a
longer answer begins with that of a shorter one, and pages follow each other without doubles.

Where relevance ends is part of the ranking: what stands before the end comes first, rung by rung. A calibration that
was learnt from judgements knows the texts of the hits, and says for each picture on which rung it stands. Without one,
and where a reranker read the pictures, the judgement says how many pictures of each rung there are, and the ranking
which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import BEYOND
from rungwise.index._ranking import POOL, JudgedRanking, PictureCandidates, RankedGroup, vectors_of
from rungwise.index.search._diversity import Folding, diversified
from rungwise.index.search._fusion import fused

_FOLDED_AT_MOST = 400
"""Number of pictures of the ranking among which near-duplicates are looked for."""


def groups_of(
    candidates: PictureCandidates,
    needed: int,
    *,
    by_words: Sequence[str],
    reorder: Callable[[Sequence[str]], list[str]] | None,
    fold: bool,
    diversity: float,
    judged: JudgedRanking | None = None,
    certain: Collection[str] = (),
) -> list[RankedGroup]:
    """At least ``needed`` groups of the ranking, fewer where there are fewer: pictures with what is folded under them.

    Where they are judged, all that stand before the end are among them.

    Args:
        candidates: The pictures that the query may find, by their vectors.
        needed: Number of groups.
        by_words: Ids that full text found, best first.
        reorder: Puts the first ids in a new order.
        fold: Whether near-duplicates are folded.
        diversity: 0..1, as :func:`~rungwise.index.search._diversity.diversified` takes it.
        judged: Judgement of the best of the whole index; None puts nothing after an end.
        certain: Ids of ``by_words`` that stand before the end, whatever their vectors say.
    """
    head: list[str] = []
    if judged is not None:
        candidates.nearest(max(POOL, judged.cut))  # once: what is asked for below is among them
    if by_words or reorder:
        head = fused([candidates.nearest(POOL), by_words])
        head = reorder(head) if reorder else head
    before = 0
    if judged is not None:
        head, before = _ended(candidates, head, judged, certain)
    known = set(head)

    def ordered(depth: int) -> list[str]:
        if len(head) >= depth:
            return head[:depth]
        rest = candidates.nearest(depth + len(by_words) if head else depth)
        return (head + [one for one in rest if one not in known])[:depth]

    if not fold:
        ids = ordered(max(needed, before, POOL if diversity else 0))
        groups = [[place] for place in range(len(ids))]
    else:
        ids, groups = _folded(candidates, ordered, needed, max(before, POOL if diversity else 0))
    if diversity and groups:
        groups = _diversified(candidates, ids, groups, diversity)
    if judged is None:
        return [RankedGroup(ids[first], tuple(ids[place] for place in others)) for first, *others in groups]
    rungs, degrees = _judgements(candidates, ids, before, judged, certain, by_hit=judged.by_hit and reorder is None)
    groups.sort(key=lambda group: int(rungs[group[0]]))  # variety within each rung
    return [
        RankedGroup(ids[first], tuple(ids[place] for place in others), int(rungs[first]), float(degrees[first]))
        for first, *others in groups
    ]


def _ended(
    candidates: PictureCandidates, head: Sequence[str], judged: JudgedRanking, certain: Collection[str]
) -> tuple[list[str], int]:
    """The ranking with pictures before the end first, and their number; the rest may be left to the vectors."""
    # No more pass a filter than are relevant in the whole index.
    nearest = candidates.nearest(max(POOL, judged.cut))
    given = list(dict.fromkeys([*head, *nearest]))
    rungs, _ = judged.of(given, candidates.scores(given))
    is_before = [rung < BEYOND or one in certain for one, rung in zip(given, rungs.tolist(), strict=True)]
    before = [one for one, is_in in zip(given, is_before, strict=True) if is_in]
    after = [one for one, is_in in zip(given, is_before, strict=True) if not is_in]
    return before + after if head else before, len(before)


def _judgements(
    candidates: PictureCandidates,
    ids: Sequence[str],
    before: int,
    judged: JudgedRanking,
    certain: Collection[str],
    *,
    by_hit: bool,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(ids,) rungs and degrees: of each hit itself, or handed out in the order of the ranking."""
    rungs, degrees = judged.of(ids, candidates.scores(ids))
    sure = np.array([one in certain for one in ids], bool)
    rungs[sure] = np.minimum(rungs[sure], BEYOND - 1)
    degrees[sure] = np.maximum(degrees[sure], judged.relevant_from)
    rungs[before:] = BEYOND
    if not by_hit:
        rungs[:before].sort()
        degrees[:before] = -np.sort(-degrees[:before])
    return rungs, degrees


def _diversified(
    candidates: PictureCandidates, ids: Sequence[str], groups: list[list[int]], diversity: float
) -> list[list[int]]:
    first = [group for group in groups if group[0] < POOL]
    firsts = [ids[group[0]] for group in first]
    scores = np.array(candidates.scores(firsts))
    if (np.diff(scores) > 0).any():  # not in the order of scores: their ranks say what is relevant
        scores = -np.arange(len(first), dtype=np.float64)
    rows = candidates.labelled(firsts)
    vectors = vectors_of(rows[one] for one in firsts)
    return [first[place] for place in diversified(scores, vectors, diversity)] + groups[len(first) :]


def _folded(
    candidates: PictureCandidates, ordered: Callable[[int], Sequence[str]], needed: int, least: int
) -> tuple[list[str], list[list[int]]]:
    """The ranking, and positions in it grouped; from some depth on every picture stands by itself."""
    folding, ids = Folding(), list[str]()
    depth = max(needed + needed // 4 + 8, least)
    while True:
        some = ordered(depth)
        new = some[len(ids) : _FOLDED_AT_MOST]
        if new:
            rows = candidates.labelled(new)
            if rows:  # others were removed meanwhile
                folding.add(vectors_of(rows.values()), [row.label or None for row in rows.values()])
                ids += rows
        after = list(some[_FOLDED_AT_MOST:])
        if len(folding.groups) + len(after) >= needed or len(some) < depth:
            places = range(len(ids), len(ids) + len(after))
            return ids + after, folding.groups + [[place] for place in places]
        depth *= 2
