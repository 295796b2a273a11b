"""Candidates that a model ranks first, the annotation calls wrong and a relevance source calls right."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rungwise.core.disk import replacing
from rungwise.data import ImageCaptions
from rungwise.evaluation.analysis._top_candidates import TopCandidates
from rungwise.metrics import Direction


@dataclass(frozen=True)
class FalseNegative:
    """A candidate ranked high that the annotation calls wrong and the relevance source right.

    Attributes:
        direction: Direction of the query.
        query: Position of the query.
        candidate: Position of the candidate.
        rank: Rank of the candidate, from 1.
        similarity: Similarity that the model gives the pair; NaN where rankings came as lists.
        degree: Degree of relevance of the pair.
        needed: The degree from which a candidate counts as right for this query.
    """

    direction: Direction
    query: int
    candidate: int
    rank: int
    similarity: float
    degree: float
    needed: float


def find_false_negatives(
    lists: TopCandidates, *, top: int = 10, right_from: float | None = None
) -> list[FalseNegative]:
    """Find false negatives among the first candidates of every query.

    Args:
        lists: The model's first candidates, with degrees; without degrees nothing is found.
        top: Number of candidates of each query to look at.
        right_from: The degree from which a candidate is right. By default it must be as relevant as the least relevant
            candidate that the annotation calls right for the same query, and that degree must be above 0.

    Returns:
        False negatives by falling excess over the needed degree, then by rank. A pair without a degree (NaN) is never
        right.

    >>> from rungwise.evaluation.analysis._top_candidates import top_candidates_of
    >>> scores, degrees = np.array([[0.9, 0.8], [0.7, 0.1]]), np.array([[1.0, 0.2], [1.0, 1.0]])
    >>> [both] = find_false_negatives(top_candidates_of(scores, [0, 1], degrees)["i2t"], top=1)
    >>> both.query, both.candidate, both.rank, both.degree
    (1, 0, 1, 1.0)
    """
    if lists.degrees is None or lists.own_degrees is None:
        return []
    needed = np.full(len(lists.candidates), np.nan if right_from is None else right_from)
    if right_from is None:
        needed = np.where(lists.own_degrees > 0, lists.own_degrees, np.nan)
    degrees = lists.degrees[:, :top]
    right = ~lists.annotated[:, :top] & (degrees >= needed[:, None])
    queries, places = np.nonzero(right)
    excess = degrees[queries, places] - needed[queries]
    return [
        FalseNegative(
            lists.direction,
            int(query),
            int(lists.candidates[query, place]),
            int(place) + 1,
            float(lists.scores[query, place]),
            float(lists.degrees[query, place]),
            float(needed[query]),
        )
        for query, place in ((queries[at], places[at]) for at in np.lexsort((queries, places, -excess)))
    ]


def write_false_negatives(path: Path, found: Sequence[FalseNegative], data: ImageCaptions) -> None:
    r"""Write a CSV with ids and texts, or no file at all. An unknown similarity is left empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it: captions may be a stranger's.

    >>> import tempfile
    >>> data = ImageCaptions(("a", "b"), ("a dog", "a pup"), np.array([0, 1]))
    >>> file = Path(tempfile.mkdtemp()) / "wrong.csv"
    >>> write_false_negatives(file, [FalseNegative("i2t", 0, 1, 1, 0.75, 1.0, 0.5)], data)
    >>> print(file.read_text().replace("\r", ""))
    direction,image,caption,rank,similarity,degree,needed,text
    i2t,a,b#0,1,0.75,1,0.5,a pup
    <BLANKLINE>
    """
    with replacing(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("direction", "image", "caption", "rank", "similarity", "degree", "needed", "text"))
        for one in found:
            image, caption = (one.query, one.candidate) if one.direction == "i2t" else (one.candidate, one.query)
            similarity = "" if math.isnan(one.similarity) else f"{one.similarity:.6g}"
            rows.writerow(
                (
                    one.direction, _no_formula(data.image_ids[image]), _no_formula(data.caption_ids[caption]), one.rank,
                    similarity, f"{one.degree:.6g}", f"{one.needed:.6g}", _no_formula(data.captions[caption]),
                )
            )  # fmt: skip


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
