"""What another program's search over the same pictures misses, what that costs, and where its lists should end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import BEYOND, QueryJudgement
from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.index import Index
from rungwise.index.stores import StoreHits, Vectors
from rungwise.metrics import Recall
from rungwise.quality._check import (
    DegreeLoss,
    Latency,
    Number,
    Progress,
    answered,
    as_plain,
    losses_of,
    mean_of,
    recalls_of,
)
from rungwise.quality._degrees import DegreeRows, Grading
from rungwise.quality._queries import Queries

JudgeList = Callable[[Vectors, Sequence[str]], QueryJudgement]
"""From the (D,) vector of a query and ids of the index, nearest first, to their judgement."""


class Engine(Protocol):
    """A search program that holds vectors of the same pictures; it is only read."""

    @property
    def name(self) -> str:
        """What it is, for people."""
        ...

    def count(self) -> int:
        """Number of vectors that it holds."""
        ...

    def search(self, vector: Vectors, k: int) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Ids and falling scores of the first k hits of a (D,) query, as the engine ranks them."""
        ...


@dataclass(frozen=True)
class ListsEnd:
    """Where the lists of an engine should have ended.

    Attributes:
        judged_by: One line on what judged.
        shown: Mean number of hits before the end.
        after: Percent of the engine's hits that stand after the end.
        empty: Number of queries whose list should have no hit.
        whole: Number of queries whose list stands before the end with all of its hits, so that more may follow.
        degree_before: Mean degree of relevance of the hits before the end; NaN where there are none.
        degree_after: Mean degree of relevance of the hits after the end; NaN where there are none.
    """

    judged_by: str
    shown: float
    after: float
    empty: int
    whole: int
    degree_before: float
    degree_after: float


@dataclass(frozen=True)
class EngineCheck:
    """Results of :func:`check_against`.

    Attributes:
        engine: What the engine is.
        rows: Number of vectors that it holds.
        pictures: Number of pictures of the index.
        queries: Number of queries.
        kind: Captions or pictures of the index, or texts.
        k: Length of the lists.
        grades: Description of the degrees of relevance.
        latency: Milliseconds of the engine for one query.
        recall: Percent of the exact first k that the engine gives.
        incomplete: Number of queries that miss one of the exact first k.
        ungraded: Number of queries to which no picture is relevant; they count 0 in nDCG.
        unknown: Number of hits that the index does not hold; they are left out.
        losses: Losses of graded measures.
        ends: Where the lists should have ended; None where nothing judges.
    """

    engine: str
    rows: int
    pictures: int
    queries: int
    kind: str
    k: int
    grades: str
    latency: Latency
    recall: Number
    incomplete: int
    ungraded: int
    unknown: int
    losses: tuple[DegreeLoss, ...]
    ends: ListsEnd | None

    __repr__ = short_repr

    def plain(self) -> dict[str, Any]:
        """The results as JSON can hold them; NaN becomes None."""
        found: dict[str, Any] = as_plain(asdict(self))
        return found


def check_against(
    engine: Engine,
    index: Index,
    queries: Queries,
    grading: Grading,
    *,
    k: int = 10,
    judge: JudgeList | None = None,
    judged_by: str = "",
    progress: Progress | None = None,
) -> EngineCheck:
    """Compare the lists of another engine with the exact lists of an index of the same pictures.

    Args:
        engine: Engine that holds the pictures under the ids of the index.
        index: Index with vectors of the same model.
        queries: Queries to ask both.
        grading: Gives the relevance of pictures to the queries.
        k: Length of the lists.
        judge: Judges where a list ends; nothing does if None.
        judged_by: One line on what judges.
        progress: Called with 1 after each of two searches a query.

    Raises:
        UserError: If the engine's ids are not those of the index, or k is less than 1.
    """
    exact = answered(index.picture_store, queries, k, exact=True, progress=progress).found
    served, latency, unknown = _asked(engine, index, queries, k, progress)
    if unknown and not any(served.ids):
        (stranger, *_), _ = engine.search(queries.vectors[0], 1)
        raise UserError(
            f"{engine.name}: none of its hits is in the index: it calls one {stranger!r}, the index one"
            f" {next(iter(index.picture_store.ids()))!r}; name the field of the ids with id=FIELD in the address"
        )
    graded = grading.grade((served, exact), exact, None, k)
    recalls = recalls_of(served, exact, k)
    return EngineCheck(
        engine.name,
        engine.count(),
        len(index),
        len(queries),
        queries.kind,
        k,
        grading.title,
        latency,
        mean_of(Recall(k), recalls, queries.clusters),
        int((recalls < 100).sum()),
        int((graded.ideal.sum(axis=1) == 0).sum()),
        unknown,
        losses_of((served, exact), graded, queries.clusters, k),
        None if judge is None else _ends(served, graded.found[0], queries, judge, judged_by),
    )


def _asked(
    engine: Engine, index: Index, queries: Queries, k: int, progress: Progress | None
) -> tuple[StoreHits, Latency, int]:
    """Lists of the engine without what the index does not hold, its latency, and the number of hits left out."""
    ids, scores, seconds, unknown = [], [], [], 0
    for name, vector in zip(queries.names, queries.vectors, strict=True):
        itself = name if queries.kind == "pictures" else None
        start = time.perf_counter()
        found, values = engine.search(vector, k + (itself is not None))
        seconds.append(time.perf_counter() - start)
        own = index.picture_store.get(found)
        places = [place for place, one in enumerate(found) if one in own and one != itself][:k]
        unknown += sum(one not in own for one in found)
        ids.append(tuple(found[place] for place in places))
        scores.append(np.asarray(values, np.float32)[places])
        if progress:
            progress(1)
    return StoreHits(tuple(ids), tuple(scores)), Latency.of(seconds), unknown


def _ends(served: StoreHits, degrees: DegreeRows, queries: Queries, judge: JudgeList, judged_by: str) -> ListsEnd:
    shown = [judge(vector, ids).rungs < BEYOND for vector, ids in zip(queries.vectors, served.ids, strict=True)]
    flags, values = np.concatenate(shown), np.concatenate(degrees)
    counts = np.array([one.sum() for one in shown])
    return ListsEnd(
        judged_by,
        float(counts.mean()),
        float(100 * (~flags).mean()) if len(flags) else 0.0,
        int((counts == 0).sum()),
        int(sum(len(one) > 0 and bool(one.all()) for one in shown)),
        float(values[flags].mean()) if flags.any() else float("nan"),
        float(values[~flags].mean()) if (~flags).any() else float("nan"),
    )
