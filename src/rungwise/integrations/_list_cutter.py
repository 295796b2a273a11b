"""Lists of another program's retriever, cut where relevance ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rungwise.calibration import BEYOND, UNRELATED, Calibration, ListEnds
from rungwise.core import UserError
from rungwise.core.output import short_repr

Thing = TypeVar("Thing")
Found = Sequence[tuple[Thing, float | None]]
"""Things that were found, each with its score."""
Judge = ListEnds | Calibration | Path | str | None
"""What judges lists: ends, a calibration or its file, or what lists of unrelated texts look like (None)."""


@dataclass(frozen=True)
class CutHit(Generic[Thing]):
    """A thing before the end of relevance, with its degree, its rung from 1 to 3, and the name of the rung."""

    thing: Thing
    score: float
    degree: float
    rung: int
    name: str

    __repr__ = short_repr

    @property
    def metadata(self) -> dict[str, Any]:
        """Degree and rung, by the names that every adapter uses."""
        return {"degree": self.degree, "rung": self.rung, "rung_name": self.name}


class ListCutter(Generic[Thing]):
    """Cuts the lists of one retriever.

    Where lists of unrelated texts are what it judges by, it asks the retriever for them once, before the first cut.

    Args:
        ask: Gives what the retriever finds for a text; None where it cannot be asked.
        judge: Ends; a calibration or its file, learnt from judged lists of such a retriever; None for lists of
            unrelated texts.
        embed: Gives the vector of a text, for ends that were made of vectors.
        depth: Number of hits of the lists of unrelated texts.
        texts: Unrelated texts.
        negated: Whether scores are distances, of which less is nearer.

    Raises:
        UserError: If lists would have to be asked for and cannot be, or the ends take vectors and none can be had.
    """

    def __init__(
        self,
        ask: Callable[[str], Found[Thing]] | None,
        judge: Judge = None,
        *,
        embed: Callable[[str], ArrayLike] | None = None,
        depth: int = 100,
        texts: Sequence[str] = UNRELATED,
        negated: bool = False,
    ) -> None:
        calibration = Calibration.load(judge) if isinstance(judge, str | Path) else judge
        self._ends = ListEnds(calibration, depth) if isinstance(calibration, Calibration) else calibration
        if self._ends is None and ask is None:
            raise UserError("ends: there is no retriever to ask for lists of unrelated texts; give ListEnds")
        if self._ends is not None and self._ends.sample is not None and embed is None:
            raise UserError("ends: they were made of vectors; give what encodes a query, too")
        self._ask, self._embed, self._depth, self._texts, self._negated = ask, embed, depth, tuple(texts), negated
        self._lock = Lock()

    @property
    def ends(self) -> ListEnds:
        """What judges; the lists of unrelated texts are asked for when it is first needed."""
        with self._lock:
            if self._ends is None:
                assert self._ask is not None  # or it would have been refused
                ask = self._ask
                self._ends = ListEnds.of_lists(
                    lambda text: -np.sort(-self._scores(ask(text))), texts=self._texts, depth=self._depth
                )
            return self._ends

    def cut(self, query: str, found: Found[Thing], most: int | None = None) -> list[CutHit[Thing]]:
        """What stands before the end, in the order of the retriever, ``most`` at most."""
        if not found:
            return []
        ends, scores = self.ends, self._scores(found)
        order = np.argsort(-scores, kind="stable")
        vector = None if ends.sample is None or self._embed is None else self._embed(query)
        judged = ends.judge(scores[order], vector)
        degrees, rungs = np.empty(len(found)), np.empty(len(found), np.int64)
        degrees[order], rungs[order] = judged.degrees, judged.rungs
        hits = [
            CutHit(thing, float(score or 0), float(degree), int(rung), ends.names[rung - 1])
            for (thing, score), degree, rung in zip(found, degrees, rungs.tolist(), strict=True)
            if rung < BEYOND
        ]
        return hits[:most]

    def _scores(self, found: Found[Thing]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(found,) similarities."""
        if any(score is None for _, score in found):
            raise UserError("a document has no score; name the entry of its metadata that has it, or give embeddings")
        values = np.array([score for _, score in found], np.float64)
        return -values if self._negated else values
