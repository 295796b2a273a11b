"""Measuring a part of the queries: its values are, to the bit, those that the same queries have among all.

A value belongs to one query alone, so parts are put together by writing values at their queries' positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import short_repr
from rungwise.metrics._blocks import Positions
from rungwise.metrics._counting import RunningRanks
from rungwise.metrics._measures import Measure, taken
from rungwise.metrics._rankings import DIRECTIONS, Direction, Rankings
from rungwise.metrics._sources import Divisible, Run
from rungwise.metrics._streaming import CaptionQueryLists, MeasureRequest, QueryValues, no_values

_BLOCK_VALUES = 1 << 22
"""Number of scores measured at a time, unless one query has more: measuring needs some hundred MB for them."""

_LONGEST_LIST = 1000
"""Longest list of a caption query that is kept during a pass; for longer ones whole rows are read."""


@dataclass(frozen=True)
class QueryShard:
    """Some queries of one direction: a range in the order in which the source counts them."""

    direction: Direction
    run: Run


@dataclass
class ShardValues:
    """Values of the measures for the queries of a shard.

    Attributes:
        direction: Direction of the queries.
        queries: (queries,) positions of the queries.
        values: (queries,) or (queries, parts) values by measure.
        remarks: Number of queries that were left out or counted 0, by measure and reason.
    """

    direction: Direction
    queries: Positions
    values: dict[Measure, NDArray[np.float64]]
    remarks: dict[Measure, Counter[str]] = field(default_factory=dict)

    __repr__ = short_repr

    def record(self, part: slice, measures: Sequence[Measure], rankings: Rankings) -> None:
        """Store the values of measures for a part of the queries."""
        for measure in measures:
            self.values[measure][part] = taken(measure, rankings)
            if remarks := measure.remarks(rankings):
                self.remarks.setdefault(measure, Counter()).update(remarks)


def shards_of(source: Divisible, count: int) -> list[QueryShard]:
    """Cut the queries of each direction into at most ``count`` shards.

    >>> from rungwise.metrics._sources import MatrixSource
    >>> [shard.run for shard in shards_of(MatrixSource(np.eye(3)), 2)]
    [(0, 1), (1, 3), (0, 1), (1, 3)]
    """
    return [QueryShard(way, run) for way in DIRECTIONS for run in source.runs(way, count)]


def measure_shard(source: Divisible, asked: MeasureRequest, shard: QueryShard, chunk: int | None = None) -> ShardValues:
    """Take every measure of the queries of a shard, ``chunk`` at a time; no number depends on that.

    >>> from rungwise.metrics._classic import R
    >>> from rungwise.metrics._sources import MatrixSource
    >>> source = MatrixSource(np.array([[0.9, 0.1, 0.2], [0.3, 0.2, 0.8]]))
    >>> found = measure_shard(source, MeasureRequest.of((2, 3), np.array([0, 1, 1]), [R(1)]), QueryShard("t2i", (1, 3)))
    >>> found.queries, found.values[R(1)]
    (array([1, 2]), array([100., 100.]))
    """
    way, (start, stop) = shard.direction, shard.run
    found = ShardValues(
        way,
        np.empty(stop - start, dtype=np.int64),
        {measure: no_values(stop - start, measure) for measure in asked.measures},
    )
    measures = list(asked.measures)
    if way == "t2i" and asked.own_images:
        measures = _in_passing(source, asked, shard.run, found)
    if not measures:
        return found
    candidates = asked.shape[way == "i2t"]
    done = 0
    for which, scores in source.queries(way, shard.run, chunk or max(1, _BLOCK_VALUES // max(1, candidates))):
        part = slice(done, done := done + len(which))
        found.queries[part] = which
        found.record(part, measures, asked.rankings(way, which, scores, asked.degrees(way, which), measures))
    return found


def _in_passing(source: Divisible, asked: MeasureRequest, run: Run, found: ShardValues) -> list[Measure]:
    """Measure caption queries while blocks of images pass; returns the measures that need whole rows."""
    captions = source.captions_of(run)
    found.queries[:] = captions
    right = asked.right["t2i"].select(captions)
    images, ungraded = asked.shape[0], asked.ungraded
    in_lists = [measure for measure in asked.graded if not measure.reads_rows]
    lists = CaptionQueryLists.of(in_lists, right, images, _LONGEST_LIST)
    ranks = RunningRanks(right.candidate, source.pairs(right.candidate, captions), images) if ungraded else None
    if lists is None and ranks is None:
        return list(asked.measures)
    for which, scores in source.passing(run):
        if ranks is not None:
            ranks.add(int(which[0]), scores)
        if lists is not None and asked.relevance is not None:
            lists.add(int(which[0]), scores, asked.relevance.block(which, captions))
    everything = slice(None)
    if ranks is not None:
        found.record(everything, ungraded, Rankings(right, direction="t2i", ranks=ranks.ranks))
    if lists is not None:
        sets = {measure: whole.select(captions) for measure, whole in asked.sets["t2i"].items()}
        kept = Rankings(right, direction="t2i", lists=lists.kept(images), sets=sets)
        found.record(everything, in_lists, kept)
    return [one for one in asked.graded if lists is None or one.reads_rows]


def put_together(into: QueryValues, part: ShardValues) -> None:
    """Write the values of a shard, which is added once, into those of all queries."""
    for measure, values in part.values.items():
        into.values[part.direction, measure][part.queries] = values
    for measure, remarks in part.remarks.items():
        into.remarks.setdefault((part.direction, measure), Counter()).update(remarks)
