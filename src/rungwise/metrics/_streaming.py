"""One pass over S (and R) in blocks, for any measures and both directions, in memory for a block and the values.

Blocks of images hold complete rows, so image queries are measured as blocks pass. In the same pass the ranks that
caption queries need are counted column by column, and their lists are kept while they are short. Measures that read
long lists of caption queries, or whole rows of them, need a second reading by blocks of captions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.metrics._blocks import CheckedDegrees, Positions
from rungwise.metrics._counting import RunningLists, RunningRanks
from rungwise.metrics._ends import Ends, judged_by
from rungwise.metrics._measures import Measure, taken
from rungwise.metrics._rankings import DIRECTIONS, Direction, KeptLists, Positives, Rankings, Scores, positives_of
from rungwise.metrics._sources import SimilaritySource

_BLOCK_VALUES = 1 << 18
"""Default number of values in a block: 1 MB of float32, so that work on a block stays in caches and reused memory."""

_BLOCK_QUERIES = 32
"""Smallest default number of queries in a block, since each block has a fixed cost."""

_KEPT = 64
"""Longest list of a caption query that is kept during the pass; for longer ones columns are read again."""


@dataclass
class QueryValues:
    """Values of a pass: one per query and measure.

    Attributes:
        values: (queries,) values by direction and measure; (queries, parts) for a measure with several parts.
        remarks: Number of queries that were left out or counted 0, by direction, measure and reason.
    """

    values: dict[tuple[Direction, Measure], NDArray[np.float64]]
    remarks: dict[tuple[Direction, Measure], Counter[str]] = field(default_factory=dict)

    __repr__ = short_repr

    @classmethod
    def nothing(cls, shape: tuple[int, int], measures: Sequence[Measure]) -> QueryValues:
        """Arrays of NaN for the values of all queries; ``shape`` is (images, captions)."""
        queries: dict[Direction, int] = {"i2t": shape[0], "t2i": shape[1]}
        return cls({(way, one): no_values(queries[way], one) for way in DIRECTIONS for one in measures})

    def record(self, direction: Direction, queries: Positions, measures: Sequence[Measure], rankings: Rankings) -> None:
        """Store the values of measures for a block of queries."""
        for measure in measures:
            self.values[direction, measure][queries] = taken(measure, rankings)
            if remarks := measure.remarks(rankings):
                self.remarks.setdefault((direction, measure), Counter()).update(remarks)


def measure_all(
    similarity: SimilaritySource,
    image_of_caption: NDArray[np.int64],
    measures: Sequence[Measure],
    relevance: CheckedDegrees | None = None,
    chunk: int | None = None,
    positives: Mapping[Direction, Positives] | None = None,
    ends: Ends | None = None,
) -> QueryValues:
    """Take every measure of every query, in both directions.

    Args:
        similarity: Similarities of all images with all captions. Where a source gives only an order, caption queries
            are measured in a second reading.
        image_of_caption: (captions,) position of each caption's image.
        measures: Measures to take.
        relevance: Degrees, which graded measures need.
        chunk: Number of queries measured at a time; no number depends on it. Default: about 1 MB of scores, and at
            least 32 queries.
        positives: Right candidates per direction, where they differ from what ``image_of_caption`` says; caption
            queries are then measured in a second reading.
        ends: Method of where relevance ends, for measures that read it.

    Raises:
        UserError: If a graded measure is asked for without relevance, a measure of where relevance ends without
            ``ends``, or a value is not finite.

    >>> from rungwise.metrics._classic import R
    >>> from rungwise.metrics._sources import MatrixSource
    >>> source = MatrixSource(np.array([[0.9, 0.1, 0.2], [0.3, 0.2, 0.8]]))
    >>> measure_all(source, np.array([0, 1, 1]), [R(1)]).values["t2i", R(1)]
    array([100., 100., 100.])
    """
    images, captions = similarity.shape
    asked = MeasureRequest.of(similarity.shape, image_of_caption, measures, relevance, positives, ends)
    right, graded, ungraded = asked.right, asked.graded, asked.ungraded
    apart = positives is not None or similarity.rank_only
    found = QueryValues.nothing(similarity.shape, measures)
    in_lists = [measure for measure in graded if not measure.reads_rows]
    ranks = None
    by_columns: list[Measure] = []
    if apart:
        by_columns += ungraded
    elif ungraded:
        own = similarity.pairs(image_of_caption, np.arange(captions))
        ranks = RunningRanks(image_of_caption, own, images)
    # With positives of their own, or lists that were ranked elsewhere, columns are read in any case.
    lists = CaptionQueryLists.of(in_lists, right["t2i"], images) if not apart else None
    by_columns += graded if lists is None else [measure for measure in graded if measure.reads_rows]
    for which, scores in similarity.rows(chunk or max(_BLOCK_QUERIES, _BLOCK_VALUES // max(1, captions))):
        degrees = asked.degrees("i2t", which)
        found.record("i2t", which, measures, asked.rankings("i2t", which, scores, degrees, measures))
        if lists is not None and degrees is not None:
            lists.add(int(which[0]), scores, degrees)
        if ranks is not None:
            ranks.add(int(which[0]), scores)
    if ranks is not None:
        rankings = Rankings(right["t2i"], direction="t2i", ranks=ranks.ranks)
        found.record("t2i", np.arange(captions), ungraded, rankings)
    if lists is not None:
        rankings = Rankings(right["t2i"], direction="t2i", lists=lists.kept(images), sets=asked.sets["t2i"])
        found.record("t2i", np.arange(captions), in_lists, rankings)
    if by_columns:
        for which, scores in similarity.columns(chunk or max(_BLOCK_QUERIES, _BLOCK_VALUES // max(1, images))):
            degrees = asked.degrees("t2i", which)
            found.record("t2i", which, by_columns, asked.rankings("t2i", which, scores, degrees, by_columns))
    return found


@dataclass(frozen=True)
class MeasureRequest:
    """Measures to take of some scores, with everything that they read besides these.

    Attributes:
        shape: Number of images and captions.
        measures: Measures to take.
        relevance: Degrees of all pairs; None where no measure reads them.
        right: Right candidates of every query, per direction.
        sets: Right candidates for single measures, per direction.
        ends: Method of where relevance ends, for measures that read it.
        own_images: Whether the only right candidate of a caption is its image.
    """

    shape: tuple[int, int]
    measures: Sequence[Measure]
    relevance: CheckedDegrees | None
    right: Mapping[Direction, Positives]
    sets: Mapping[Direction, Mapping[object, Positives]]
    ends: Ends | None
    own_images: bool

    __repr__ = short_repr

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        image_of_caption: NDArray[np.int64],
        measures: Sequence[Measure],
        relevance: CheckedDegrees | None = None,
        positives: Mapping[Direction, Positives] | None = None,
        ends: Ends | None = None,
    ) -> MeasureRequest:
        """Check the arguments of :func:`measure_all` and prepare positives and sets.

        Raises:
            UserError: If a measure needs something that is not given.
        """
        for measure in measures:
            if measure.graded and relevance is None:
                raise UserError(f"{measure} needs relevance degrees; give relevance=, or ask for other measures")
            if measure.reads_ends and ends is None:
                raise UserError(f"{measure} needs a method that says where relevance ends; give ends=")
        if not any(measure.graded for measure in measures):
            relevance = None
        right = positives_of(image_of_caption, shape[0]) if positives is None else positives
        sets: dict[Direction, dict[object, Positives]] = {"i2t": {}, "t2i": {}}
        for measure in measures:
            if relevance is not None and (own := measure.sets(relevance, image_of_caption, shape[0])):
                for way in DIRECTIONS:
                    sets[way][measure] = own[way]
        return cls(shape, measures, relevance, right, sets, ends, positives is None)

    @property
    def graded(self) -> list[Measure]:
        """Measures that read degrees."""
        return [measure for measure in self.measures if measure.graded]

    @property
    def ungraded(self) -> list[Measure]:
        """Measures that read no degrees."""
        return [measure for measure in self.measures if not measure.graded]

    def degrees(self, direction: Direction, which: Positions) -> Scores | None:
        """(queries, candidates) degrees of these queries; None where no measure reads them."""
        if self.relevance is None:
            return None
        if direction == "i2t":
            return self.relevance.block(which, np.arange(self.shape[1]))
        return np.ascontiguousarray(self.relevance.block(np.arange(self.shape[0]), which).T)

    def rankings(
        self,
        direction: Direction,
        which: Positions,
        scores: Scores,
        degrees: Scores | None,
        measures: Sequence[Measure],
    ) -> Rankings:
        """Rankings of a block of queries for some measures, from (queries, candidates) scores and degrees."""
        own = self.right[direction].select(which)
        some = {measure: whole.select(which) for measure, whole in self.sets[direction].items()}
        depth = _longest_list(self.graded, own, scores.shape[1])
        judged = None
        if self.ends is not None and any(measure.reads_ends for measure in measures):
            judged = judged_by(self.ends, scores, direction, which)
        return Rankings(own, scores, degrees, direction, depth, sets=some, places=which, judged=judged)


def no_values(queries: int, measure: Measure) -> NDArray[np.float64]:
    """(queries,) array of NaN, or (queries, parts) for a measure of several parts."""
    return np.full(queries if measure.parts == 1 else (queries, measure.parts), np.nan)


class CaptionQueryLists:
    """What graded measures of caption queries read, collected while blocks of images pass."""

    def __init__(self, captions: int, depth: int, breadth: int) -> None:
        self._retrieved = RunningLists(captions, depth)
        self._relevant = RunningLists(captions, breadth)
        self._lowest = 0.0
        self._sums = np.zeros(captions)

    @classmethod
    def of(
        cls, graded: Sequence[Measure], positives: Positives, images: int, longest: int | None = None
    ) -> CaptionQueryLists | None:
        """Lists for these measures; None without any, or where lists would be too long to keep."""
        depth = _longest_list(graded, positives, images)
        breadth = min(images, max((m.breadth for m in graded), default=0) + _most_removed(graded, positives))
        most = _KEPT if longest is None else longest
        return cls(len(positives.counts), depth, breadth) if graded and max(depth, breadth) <= most else None

    def add(self, start: int, scores: Scores, degrees: Scores) -> None:
        """Add a block of images, the first of which stands at position ``start``."""
        self._retrieved.add(start, scores, degrees)
        if self._relevant.rows.shape[1]:
            self._relevant.add(start, degrees, degrees)
        self._lowest = min(self._lowest, float(degrees.min(initial=0)))
        for row in degrees:  # one after the other, so that no sum depends on the size of the blocks
            self._sums += row

    def kept(self, images: int) -> KeptLists:
        """The lists, after the last block."""
        one, other = self._retrieved, self._relevant
        return KeptLists(one.rows, one.scores, one.beside, other.rows, other.beside, self._lowest, images, self._sums)


def _longest_list(measures: Sequence[Measure], positives: Positives, gallery: int) -> int:
    depths = [gallery if measure.depth is None else measure.depth for measure in measures]
    return min(max(depths, default=0) + _most_removed(measures, positives), gallery)


def _most_removed(measures: Sequence[Measure], positives: Positives) -> int:
    """Largest number of a query's candidates that a measure may remove, by which lists must be longer."""
    return int(positives.counts.max(initial=0)) if any(getattr(m, "non_gt", False) for m in measures) else 0
