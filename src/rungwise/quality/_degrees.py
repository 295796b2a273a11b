"""Relevance of the pictures of an index to the queries of a check: by their captions, or by the model itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation.inputs import checked_degrees, read_relevance, split_key
from rungwise.index import Index
from rungwise.index.filters import Where
from rungwise.index.stores import StoreHits
from rungwise.metrics import RunningLists
from rungwise.quality._queries import Queries
from rungwise.relevance import CHUNK_BYTES
from rungwise.relevance.config import names_source, source_config

DegreeRows = list[NDArray[np.float64]]
"""(queries,) arrays of degrees, one for each picture that was found."""


@dataclass(frozen=True)
class GradedHits:
    """Degrees of the hits of several searches with the same queries.

    Attributes:
        found: (searches,) each with (queries,) degrees of its hits, in their order.
        ideal: (queries, k) the largest degrees of the pictures that may be found, falling; 0 where there are fewer
            pictures.
    """

    found: tuple[DegreeRows, ...]
    ideal: NDArray[np.float64]


class Grading(ABC):
    """Gives the degrees of relevance of pictures to queries; ``title`` describes them for people."""

    title: str

    @abstractmethod
    def grade(self, searches: Sequence[StoreHits], exact: StoreHits, where: Where | None, k: int) -> GradedHits:
        """Degrees of the hits of searches.

        Args:
            searches: Answers to the queries of the check, of k hits at most.
            exact: Answer of the exact search.
            where: Filter of the pictures that might be found.
            k: Length of the ideal list.
        """


class CaptionGrading(Grading):
    """Degrees between a query and the captions of each picture, by a source of relevance; 0 without a caption.

    Args:
        index: Index whose pictures and captions are graded; all are read once.
        queries: Queries of the check. A picture that is a query stands for the mean of its captions.
        source: Name of a source such as ``"cider-d"``, options in braces, or stored degrees as
            :func:`rungwise.evaluation.inputs.read_relevance` takes them.

    Raises:
        UserError: If the index has no captions, the source cannot be made of them, or stored degrees are of others.
    """

    def __init__(self, index: Index, queries: Queries, source: str) -> None:
        self._index = index
        self._queries = queries
        data, columns = _with_queries(index, queries)
        if queries.kind == "texts" and not names_source(source):
            raise UserError(
                f"{source}: stored degrees are of the captions of the collection, not of other texts; name a source,"
                " such as cider-d, or take the captions as queries"
            )
        if names_source(source):
            degrees = source_config(source, "the degrees").build(data)
            self.title = f"the query beside the captions of each picture, by {degrees.title()}"
        else:
            path, key = split_key(source)
            degrees = read_relevance(path, (len(data), len(data.captions)), key, data=data)
            self.title = f"stored in {source}"
        checked = checked_degrees(degrees, (len(data), len(data.captions)))
        assert checked is not None  # only where no degrees are given
        self._degrees = checked
        self._columns = columns
        self._ids = data.image_ids[: len(index)]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {one: position for position, one in enumerate(self._ids)}

    def grade(self, searches: Sequence[StoreHits], exact: StoreHits, where: Where | None, k: int) -> GradedHits:
        """Degrees of the hits and of the ideal list, in one pass over the captions of all pictures."""
        asked, positions = len(self._queries), self._positions
        hits = [[np.array([positions[i] for i in ids], np.int64) for ids in found.ids] for found in searches]
        graded = tuple([np.zeros(len(row)) for row in rows] for rows in hits)
        best = RunningLists(asked, min(k, len(self._ids)))
        allowed = np.ones(len(self._ids), dtype=bool)
        if where is not None:
            allowed[:] = False
            allowed[[positions[one] for one, _ in self._index.picture_store.records(where)]] = True
        itself = [positions[one] if self._queries.kind == "pictures" else -1 for one in self._queries.names]
        step = max(1, CHUNK_BYTES // (4 * max(1, sum(map(len, self._columns)))))
        for start in range(0, len(self._ids), step):
            rows = np.arange(start, min(start + step, len(self._ids)))
            block = self._block(rows)
            for queries, values in zip(hits, graded, strict=True):
                for query, at in enumerate(queries):
                    here = (at >= start) & (at < start + len(rows))
                    values[query][here] = block[at[here] - start, query]
            block[~allowed[rows]] = 0
            for query, position in enumerate(itself):
                if start <= position < start + len(rows):
                    block[position - start, query] = 0
            best.add(start, block, block)
        ideal = np.zeros((asked, k))
        ideal[:, : best.scores.shape[1]] = best.scores
        return GradedHits(graded, ideal)

    def _block(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """(rows, queries) degrees."""
        every = self._degrees.block(rows, np.concatenate(self._columns)).astype(np.float32)
        if every.size and every.min() < 0:
            raise UserError(f"{self.title}: degrees are negative, which gains cannot be; name another source")
        if all(len(own) == 1 for own in self._columns):
            return every
        ends = np.cumsum([len(own) for own in self._columns])
        block: NDArray[np.float32] = np.zeros((len(rows), len(self._columns)), np.float32)
        for query, (end, own) in enumerate(zip(ends, self._columns, strict=True)):
            if len(own):
                block[:, query] = every[:, end - len(own) : end].mean(axis=1)
        return block


class ModelGrading(Grading):
    """The model's own exact similarity as the degree, 0 where it is negative: what an approximate index loses of it.

    It says nothing of whether the model is right.
    """

    title = "the model's own exact similarity (negative ones count 0)"

    def __init__(self, index: Index, queries: Queries) -> None:
        self._store = index.picture_store
        self._queries = queries

    def grade(self, searches: Sequence[StoreHits], exact: StoreHits, where: Where | None, k: int) -> GradedHits:
        """Degrees of the hits, with those of the exact list as the ideal."""
        graded = tuple([self._similarities(query, ids) for query, ids in enumerate(found.ids)] for found in searches)
        ideal = np.zeros((len(self._queries), k))
        for query, ids in enumerate(exact.ids):
            ideal[query, : len(ids)] = np.sort(self._similarities(query, ids))[::-1]
        return GradedHits(graded, ideal)

    def _similarities(self, query: int, ids: Sequence[str]) -> NDArray[np.float64]:
        if not ids:
            return np.zeros(0)
        rows = self._store.get(ids)
        vectors, asked = np.stack([rows[one].vector for one in ids]), self._queries.vectors[query : query + 1]
        if self._queries.kind == "pictures":
            norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
            scores = np.divide(vectors @ asked[0], norms, out=np.zeros(len(ids), np.float32), where=norms > 0)
        else:
            scores = self._store.similarity.array(vectors, asked)[:, 0]
        return np.asarray(np.maximum(scores, 0), np.float64)


def _with_queries(index: Index, queries: Queries) -> tuple[ImageCaptions, list[NDArray[np.int64]]]:
    """The captions of the index, and the columns of each query; texts from outside belong to one more picture."""
    ids: list[str] = []
    captions: list[str] = []
    owners: list[int] = []
    of_text: dict[str, int] = {}
    of_picture: dict[str, range] = {}
    for item in index.items():
        of_picture[item.id] = range(len(captions), len(captions) + len(item.captions))
        for text in item.captions:
            of_text.setdefault(text, len(captions))
            captions.append(text)
            owners.append(len(ids))
        ids.append(item.id)
    if not captions:
        raise UserError("no picture of the index has a caption, so that none can be graded by captions; grade by model")
    name = index.manifest.name
    if queries.kind == "texts":
        first = len(captions)
        captions += queries.names
        owners += [len(ids)] * len(queries)
        columns = [np.array([first + number]) for number in range(len(queries))]
        data = ImageCaptions((*ids, _unused(of_picture)), tuple(captions), np.array(owners), name=name)
        return data, columns
    data = ImageCaptions(tuple(ids), tuple(captions), np.array(owners), name=name)
    if queries.kind == "captions":
        return data, [np.array([of_text[text]]) for text in queries.names]
    return data, [np.array(of_picture[one], np.int64) for one in queries.names]


def _unused(ids: dict[str, range]) -> str:
    name = "queries"
    while name in ids:
        name += "'"
    return name
