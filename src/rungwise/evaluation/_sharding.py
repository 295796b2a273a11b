"""Evaluation shard by shard, here or by workers of Ray: for galleries that no memory holds.

A shard is some queries of one direction. Its worker reads the vectors of these queries and goes through those of the
gallery tile by tile, in the same tiles as an evaluation in one piece. So a shard gives the same values, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from rungwise.core import UserError
from rungwise.core.compute import OnWorkers, Share, cluster, in_turn
from rungwise.metrics import (
    CheckedDegrees,
    Direction,
    Divisible,
    EmbeddingSource,
    Ends,
    MatrixSource,
    Measure,
    MeasureRequest,
    Positives,
    QueryShard,
    QueryValues,
    ShardValues,
    SimilaritySource,
    measure_all,
    measure_shard,
    put_together,
    shards_of,
)

Progress = Callable[[int, int], None]
"""Callback with the number of finished shards and of all shards."""


class MeasureAll(Protocol):
    """Function that measures all queries of a gallery, such as :func:`rungwise.metrics.measure_all`."""

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
        """Values of every measure for every query, in both directions."""
        ...


@dataclass(frozen=True)
class Shards:
    """Number of shards of an evaluation, and the workers that measure them.

    Attributes:
        count: Largest number of shards of the queries of each direction; a shard is at least one row of tiles.
        address: Address of a Ray cluster, or ``"local"`` for workers on this machine. None measures the shards one
            after another in this process.
        workers: Number of workers on this machine; None takes all of its cores.
        progress: Callback for each finished shard.

    >>> from rungwise.evaluation import EvaluationSettings, evaluate
    >>> vectors = np.eye(3)
    >>> given = {"image_embeddings": vectors, "text_embeddings": vectors, "image_of_caption": [0, 1, 2]}
    >>> evaluate(**given) == evaluate(**given, settings=EvaluationSettings(shards=Shards(2)))
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
    """Context with the function that measures all queries of a gallery; None measures in one piece.

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
    """Refuse scores that cannot be cut into shards: only embeddings and matrices can."""
    if not isinstance(source, EmbeddingSource | MatrixSource):
        raise UserError(
            "shards are cut from embeddings or from a similarity matrix; these scores come as ranked lists, from two"
            " models or pair by pair: evaluate them without shards"
        )


class _InShards:
    """Measures all queries shard by shard."""

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
    """Measure a shard with a given number of threads for products, since the last bit of a product depends on it."""
    source, asked, threads = common
    with threadpool_limits(threads, user_api="blas"):
        return measure_shard(source, asked, part)


def threads_of_products() -> int:
    """Number of threads that matrix products use in this process."""
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
