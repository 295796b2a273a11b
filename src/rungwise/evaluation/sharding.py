"""Evaluation shard by shard, here or by workers of Ray: for galleries that no memory holds.

A shard is some queries of one direction. Whoever measures it reads the vectors of these queries and goes through those
of the gallery tile by tile, in the same tiles as an evaluation in one piece. So a shard gives the same values, to the
bit, and the values of all shards together are those of the evaluation in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from rungwise.core.compute.cluster import cluster
from rungwise.core.compute.executors import OnWorkers, Share, in_turn
from rungwise.core.errors import UserError
from rungwise.metrics.blocks import CheckedDegrees
from rungwise.metrics.ends import Ends
from rungwise.metrics.measures import Measure
from rungwise.metrics.rankings import Direction, Positives
from rungwise.metrics.shards import QueryShard, ShardValues, measure_shard, put_together, shards_of
from rungwise.metrics.sources import Divisible, EmbeddingSource, MatrixSource, SimilaritySource
from rungwise.metrics.streaming import MeasureRequest, QueryValues, measure_all

Progress = Callable[[int, int], None]
"""Told how many shards are done, of how many."""


class MeasureAll(Protocol):
    """What measures all queries of a gallery; see :func:`rungwise.metrics.streaming.measure_all`."""

    def __call__(
        self,
        similarity: SimilaritySource,
        image_of_caption: NDArray[np.int64],
        measures: list[Measure] | tuple[Measure, ...],
        relevance: CheckedDegrees | None = None,
        chunk: int | None = None,
        positives: Mapping[Direction, Positives] | None = None,
        ends: Ends | None = None,
    ) -> QueryValues:
        """Every measure of every query, both directions."""
        ...


@dataclass(frozen=True)
class Shards:
    """How an evaluation is cut, and who measures the parts.

    Attributes:
        count: Shards of the queries of each direction, at most: a shard is at least one row of tiles.
        address: Of a Ray cluster, or ``"local"`` for workers on this machine; None measures one shard after another
            here.
        workers: On this machine; all of its cores if not given.
        progress: Told when a shard is done.

    Raises:
        UserError: If there is no shard.

    >>> from rungwise.evaluation import evaluate
    >>> vectors = np.eye(3)
    >>> given = {"image_embeddings": vectors, "text_embeddings": vectors, "image_of_caption": [0, 1, 2]}
    >>> evaluate(**given) == evaluate(**given, shards=Shards(2))
    True
    """

    count: int
    address: str | None = None
    workers: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"shards must be at least 1, got {self.count}")


@contextmanager
def measuring(shards: Shards | None) -> Iterator[MeasureAll]:
    """What measures the queries of a gallery, for as long as the block lasts.

    Args:
        shards: None measures all in one piece.

    Raises:
        UserError: If Ray does not answer.
    """
    if shards is None:
        yield measure_all
    elif shards.address is None:
        yield _InShards(shards, in_turn)
    else:
        with cluster(shards.address, workers=shards.workers) as ray:
            yield _InShards(shards, OnWorkers(ray, cores=threads_of_products()))


def check_divisible(source: SimilaritySource) -> None:
    """Refuse scores of which no part can be had by itself.

    Raises:
        UserError: Naming what can be.

    >>> check_divisible(MatrixSource(np.eye(2)))
    """
    if not isinstance(source, EmbeddingSource | MatrixSource):
        raise UserError(
            "shards are cut from embeddings or from a similarity matrix; these scores come as ranked lists, from two"
            " models or pair by pair: evaluate them without shards"
        )


class _InShards:
    """Measures shard by shard."""

    def __init__(self, shards: Shards, share: Share) -> None:
        self._shards = shards
        self._share = share

    def __call__(
        self,
        similarity: SimilaritySource,
        image_of_caption: NDArray[np.int64],
        measures: list[Measure] | tuple[Measure, ...],
        relevance: CheckedDegrees | None = None,
        chunk: int | None = None,
        positives: Mapping[Direction, Positives] | None = None,
        ends: Ends | None = None,
    ) -> QueryValues:
        """See :class:`MeasureAll`."""
        assert _is_divisible(similarity)
        asked = MeasureRequest.of(similarity.shape, image_of_caption, measures, relevance, positives, ends)
        parts = shards_of(similarity, self._shards.count)
        found = QueryValues.nothing(similarity.shape, measures)
        common = (similarity, asked, threads_of_products())
        for done, (_, values) in enumerate(self._share(measured_with, common, parts), 1):
            put_together(found, values)
            if self._shards.progress is not None:
                self._shards.progress(done, len(parts))
        return found


def _is_divisible(source: SimilaritySource) -> TypeGuard[Divisible]:
    return hasattr(source, "queries")


def measured_with(common: tuple[Divisible, MeasureRequest, int], part: QueryShard) -> ShardValues:
    """A shard, whose products are computed by so many threads.

    The last bit of a product depends on how many there are.

    >>> from rungwise.metrics import R
    >>> asked = MeasureRequest.of((2, 2), np.array([0, 1]), [R(1)])
    >>> measured_with((MatrixSource(np.eye(2)), asked, 1), QueryShard("i2t", (0, 1))).values[R(1)]
    array([100.])
    """
    source, asked, threads = common
    with threadpool_limits(threads, user_api="blas"):
        return measure_shard(source, asked, part)


def threads_of_products() -> int:
    """Threads that a product of matrices takes in this process.

    >>> threads_of_products() >= 1
    True
    """
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
