"""Reranking: the first hits put in a new order by a model that reads picture and text together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rungwise.core import UserError
from rungwise.data.files import Picture

if TYPE_CHECKING:
    from rungwise.models import PairScorer


@dataclass(frozen=True)
class RerankedOrder:
    """Positions of pictures in a new order, best first, and a line for a person; those without a score come last."""

    order: list[int]
    note: str


def reranked(
    scorer: PairScorer, pictures: Sequence[Picture | None], texts: Sequence[str], weights: Sequence[float]
) -> RerankedOrder:
    """Rank pictures, None where there is no file, by the weighted sum of a pair scorer's scores with some texts.

    >>> from types import SimpleNamespace
    >>> longest = SimpleNamespace(kind="longest", block=lambda pictures, texts: np.array([[len(p)] for p in pictures]))
    >>> reranked(longest, [b"ab", None, b"abc"], ["a dog"], [1.0]).order
    [2, 0, 1]
    """
    begun = time.perf_counter()
    scores = np.full(len(pictures), -np.inf)
    files = [position for position, picture in enumerate(pictures) if picture is not None]

    def score(positions: list[int]) -> None:
        chosen = [picture for position in positions if (picture := pictures[position]) is not None]
        scores[positions] = np.asarray(scorer.block(chosen, list(texts)), np.float64) @ np.asarray(weights)

    try:
        score(files)
    except UserError:  # one of them cannot be read
        for position in files:
            try:
                score([position])
            except UserError:
                continue
    seconds = time.perf_counter() - begun
    scored = int(np.isfinite(scores).sum())
    rate = f"{scored * len(texts) / max(seconds, 1e-9):,.0f} pairs/s"
    note = f"reranked the first {scored} by {scorer.kind or type(scorer).__name__}: {seconds:.2f} s, {rate}"
    if left := len(pictures) - scored:
        note += f"; {left} without a file that can be read stand after them"
    return RerankedOrder(np.argsort(-scores, kind="stable").tolist(), note)
