"""Vectors, filters and right answers for ``search.py``: generated, and written to a folder block by block.

Vectors are like those of picture models rather than like noise: topics hold clusters of very unequal sizes, and the
spread at each level falls along directions that all share, so that about 130 directions matter. Two vectors have a
cosine of about 0.3; the nearest neighbours of a query are of its own cluster, at about 0.8. No query is a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIMENSION = 512
K = 10
WARM_UP = 20
"""Queries of which no time is taken."""
BLOCK = 10_000
"""Rows that are generated, written and compared at a time."""

_TOPICS, _CLUSTERS = 60, 3000
_TENTH, _HALF = 0.1, 0.5


@dataclass(frozen=True)
class Filter:
    """Which rows may be found.

    Attributes:
        name: For the tables.
        column: Of the record; empty where every row may be found.
        below: The column must be less; for a column of numbers.
        tag: The column must be this; for one of texts.
    """

    name: str
    column: str = ""
    below: float = 0.0
    tag: str = ""


FILTERS = (
    Filter("none"),
    Filter("half, by chance", "chance", _HALF),
    Filter("tenth, by chance", "chance", _TENTH),
    Filter("tenth, by topic", "topic_share", _TENTH),
    Filter("one tag", "tag", tag="topic 7"),
)
"""A topic's rows are alike: the last two filters leave most queries nothing near."""


@dataclass(frozen=True)
class Made:
    """What stands in the folder.

    Attributes:
        folder: Of everything.
        rows: How many.
        queries: How many, those for warming up among them.
        dimension: D, the length of a vector.
    """

    folder: Path
    rows: int
    queries: int
    dimension: int = DIMENSION

    def vectors(self) -> NDArray[np.float32]:
        """(rows, D), memory-mapped."""
        return np.asarray(np.load(self.folder / "vectors.npy", mmap_mode="r"))

    def column(self, name: str) -> NDArray[Any]:
        """(rows,) what filters compare: numbers, or the numbers of topics as tags."""
        values = np.asarray(np.load(self.folder / f"{name}.npy"))
        return np.array([f"topic {topic}" for topic in range(_TOPICS)])[values] if name == "tag" else values

    def asked(self) -> NDArray[np.float32]:
        """(queries, D)."""
        return np.asarray(np.load(self.folder / "queries.npy"))

    def right(self, number: int) -> NDArray[np.int64]:
        """(queries, K) the best rows under a filter, by its place in :data:`FILTERS`."""
        return np.asarray(np.load(self.folder / f"right-{number}.npy"))

    def allowed(self, which: Filter) -> NDArray[np.bool_]:
        """(rows,) which may be found."""
        if not which.column:
            return np.ones(self.rows, dtype=bool)
        values = self.column(which.column)
        return np.asarray(values == which.tag if which.tag else values < which.below)

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """Rows in order, some thousands at a time."""
        vectors = np.load(self.folder / "vectors.npy", mmap_mode="r")
        for start in range(0, self.rows, BLOCK):
            block = slice(start, min(start + BLOCK, self.rows))
            yield block, np.array(vectors[block])


def make(folder: Path, rows: int, queries: int, seed: int, dimension: int = DIMENSION) -> Made:
    """Generate everything; memory for a block of rows."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    spread = _Spread(draw, dimension)
    topics = spread.draw(1, 0.6) + spread.draw(_TOPICS, 0.5)
    topic_of_cluster = draw.integers(0, _TOPICS, _CLUSTERS)
    centres = topics[topic_of_cluster] + spread.draw(_CLUSTERS, 0.5)
    sizes = draw.permutation(np.arange(1, _CLUSTERS + 1) ** -0.6)
    # Where a topic begins when topics are laid end to end: below a tenth are the topics of a tenth of the rows.
    share = np.bincount(topic_of_cluster, weights=sizes / sizes.sum(), minlength=_TOPICS)
    begins = np.cumsum(share) - share

    def near(count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        cluster = draw.choice(_CLUSTERS, count, p=sizes / sizes.sum())
        vectors = centres[cluster] + spread.draw(count, 0.5)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), cluster

    made = Made(folder, rows, queries + WARM_UP, dimension)
    np.save(folder / "queries.npy", near(made.queries)[0])
    topic_share, tags = np.empty(rows), np.empty(rows, np.int16)
    stored = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (rows, dimension))
    for start in range(0, rows, BLOCK):
        stop = min(start + BLOCK, rows)
        stored[start:stop], clusters = near(stop - start)
        tags[start:stop] = topic_of_cluster[clusters]
        topic_share[start:stop] = begins[tags[start:stop]]
    stored.flush()
    np.save(folder / "topic_share.npy", topic_share)
    np.save(folder / "tag.npy", tags)
    np.save(folder / "chance.npy", draw.random(rows))
    _answer(made)
    return made


class _Spread:
    """Normal deviations that fall along shared directions."""

    def __init__(self, draw: np.random.Generator, dimension: int) -> None:
        self._draw = draw
        self._directions = np.linalg.qr(draw.standard_normal((dimension, dimension)))[0].astype(np.float32)
        variance = 1 / (1 + np.arange(dimension) / 16)
        self._scale = np.sqrt(variance / variance.sum()).astype(np.float32)

    def draw(self, count: int, size: float) -> NDArray[np.float32]:
        """(count, D) of expected length ``size``."""
        normal = self._draw.standard_normal((count, len(self._scale)), np.float32)
        return np.asarray((size * self._scale * normal) @ self._directions)


def _answer(made: Made) -> None:
    """The exact answers, counted here so that no engine judges itself."""
    queries = made.asked()
    best = [(np.zeros((len(queries), 0), np.int64), np.zeros((len(queries), 0), np.float32)) for _ in FILTERS]
    masks = [made.allowed(one) for one in FILTERS]
    for block, vectors in made.blocks():
        scores = queries @ vectors.T
        for number, mask in enumerate(masks):
            here = np.flatnonzero(mask[block])
            own = scores[:, here]
            places = np.argpartition(-own, min(K, len(here) - 1), axis=1)[:, :K]
            rows = np.concatenate([best[number][0], block.start + here[places]], axis=1)
            values = np.concatenate([best[number][1], np.take_along_axis(own, places, axis=1)], axis=1)
            top = np.argsort(-values, axis=1, kind="stable")[:, :K]
            best[number] = np.take_along_axis(rows, top, axis=1), np.take_along_axis(values, top, axis=1)
    for number, (rows, _) in enumerate(best):
        np.save(made.folder / f"right-{number}.npy", rows)
