"""Inverted lists by faiss: vectors in lists of near ones, as codes of one byte a number.

A search compares the codes of the lists whose centres are nearest to the query (an inverted file, Jegou et al. 2011,
section IV). Its candidates are compared by their whole vectors by whoever asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import require
from rungwise.core.output import short_repr
from rungwise.index.stores._base import Vectors

_OF_ROOT = 4
"""Lists for each unit of the square root of the rows, so that centres and codes take about as long to compare."""
_LEAST_OF_LIST = 39
"""Rows of a list below which its centre is hardly learnt (what faiss asks for)."""
_LEARNT_OF_LIST, _ROUNDS = 20, 8
"""Rows for each list from which the centres are learnt, and rounds of k-means."""
_BLOCK = 1 << 16
_OF_ID = 8
"""Bytes of the position that stands beside each code."""
_UNDER_FILTER = 2
"""Under a filter so many times as many lists are looked into: near lists may hold none of the rows that pass."""


@dataclass(frozen=True)
class ListArrays:
    """Lists as arrays.

    Attributes:
        centroids: (lists, D) float32 centres.
        ranges: (2 D,) float32 least value and extent of each number, which its byte divides.
        sizes: (lists,) int64 numbers of rows.
        list_of_row: (rows,) int32 list of each row.
    """

    centroids: Vectors
    ranges: Vectors
    sizes: NDArray[np.int64]
    list_of_row: NDArray[np.int32]

    __repr__ = short_repr


@dataclass(frozen=True)
class Kept:
    """Rows that may be found.

    Attributes:
        by_list: (lists,) their numbers.
        bits: (rows / 8,) a bit for each row, as faiss takes it.
    """

    by_list: NDArray[np.int64]
    bits: NDArray[np.uint8]

    __repr__ = short_repr

    @cached_property
    def count(self) -> int:
        """Number of rows that may be found."""
        return int(self.by_list.sum())


def code_bytes(rows: int, dimension: int) -> int:
    """Bytes of the file of codes."""
    return rows * (dimension + _OF_ID)


def make_lists(vectors: NDArray[Any], codes: Path, *, unit: bool) -> ListArrays:
    """Learn centres, put each row into the list of the nearest one, and write codes and positions, list by list.

    Args:
        vectors: (rows, D) float32 or float16, at least one row; read some thousand rows at a time.
        codes: File that is written.
        unit: Whether vectors have length 1; centres have then, too.
    """
    require("faiss", "an approximate index")
    import faiss

    rows, dimension = vectors.shape
    lists = max(1, min(math.isqrt(_OF_ROOT * _OF_ROOT * rows), rows // _LEAST_OF_LIST))
    centres = faiss.IndexFlatIP(dimension) if unit else faiss.IndexFlatL2(dimension)
    index = _index(centres, lists)
    index.cp.spherical, index.cp.niter = unit, _ROUNDS
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, _LEARNT_OF_LIST
    learnt = np.unique(np.linspace(0, rows - 1, min(rows, max(1000, lists * _LEARNT_OF_LIST))).astype(np.int64))
    index.train(np.ascontiguousarray(vectors[learnt], np.float32))
    for start in range(0, rows, _BLOCK):
        index.add(np.ascontiguousarray(vectors[start : start + _BLOCK], np.float32))
    made, list_of_row = index.invlists, np.empty(rows, np.int32)
    sizes = np.array([made.list_size(one) for one in range(lists)], np.int64)
    with codes.open("wb") as file:
        for one in np.flatnonzero(sizes).tolist():
            size = int(sizes[one])
            positions = faiss.rev_swig_ptr(made.get_ids(one), size)
            list_of_row[positions] = one
            file.write(faiss.rev_swig_ptr(made.get_codes(one), size * dimension).data)
            file.write(positions.data)
    learnt_centres = np.asarray(centres.reconstruct_n(0, lists), np.float32)
    return ListArrays(learnt_centres, faiss.vector_to_array(index.sq.trained), sizes, list_of_row)


class InvertedLists:
    """Search in the lists that :func:`make_lists` has made.

    Args:
        arrays: Arrays of the lists, whose sizes add up to the rows.
        codes: File of the codes, of as many bytes as :func:`code_bytes` says; it is mapped.
    """

    def __init__(self, arrays: ListArrays, codes: Path) -> None:
        require("faiss", "an approximate index")
        import faiss

        self._arrays, (lists, dimension) = arrays, arrays.centroids.shape
        rows = int(arrays.sizes.sum())
        # Arrays and not faiss's own file, of which faiss believes everything.
        self._centres = faiss.IndexFlatIP(dimension)
        self._centres.add(np.ascontiguousarray(arrays.centroids))
        self._index = _index(self._centres, lists)
        faiss.copy_array_to_vector(np.ascontiguousarray(arrays.ranges), self._index.sq.trained)
        self._index.is_trained, self._index.ntotal = True, rows
        mapped = faiss.OnDiskInvertedLists(lists, dimension, str(codes))
        mapped.read_only, mapped.prefetch_nthread = True, 0
        sizes = arrays.sizes.astype(np.uint64)  # has a name, so that it lives as long as the call
        mapped.set_all_lists_sizes(faiss.swig_ptr(sizes))
        mapped.totsize = code_bytes(rows, dimension)
        if rows:
            mapped.do_mmap()
        self._lists = mapped
        self._index.replace_invlists(mapped, False)

    def kept(self, mask: NDArray[np.bool_]) -> Kept:
        """Rows that may be found, of a mask over all; refuses rows of lists that there are not."""
        of_row, lists = self._arrays.list_of_row[mask], len(self._arrays.sizes)
        if len(of_row) and not 0 <= of_row.min() <= of_row.max() < lists:
            raise ValueError("a row is in no inverted list; `rungwise index compact` makes them anew")
        by_list = np.bincount(of_row, minlength=lists)
        return Kept(by_list, np.packbits(mask, bitorder="little"))

    def without(self, kept: Kept | None, gone: NDArray[np.int64]) -> Kept:
        """The same rows, all if None, without those at a few positions, which stay in the numbers of their lists."""
        kept = self._all if kept is None else kept
        bits = kept.bits.copy()
        np.bitwise_and.at(bits, gone >> 3, ~(1 << (gone & 7)).astype(np.uint8))
        return replace(kept, bits=bits)

    @cached_property
    def _all(self) -> Kept:
        return self.kept(np.ones(len(self._arrays.list_of_row), bool))

    def near(self, query: Vectors, count: int, probes: int, least: int, kept: Kept | None = None) -> NDArray[np.int64]:
        """Positions of at most ``count`` rows near to a query, in rising order, by their codes.

        Args:
            query: (D,) float32.
            count: Number of rows, at least 1.
            probes: Number of lists looked into; twice as many that hold rows which pass, under a filter.
            least: Number of rows that pass which those lists hold at least, under a filter.
            kept: Rows that may be found; all if None.
        """
        import faiss

        options: dict[str, Any] = {"nprobe": self._probes(query, count, probes, least, kept)}
        if kept is not None:
            options["sel"] = faiss.IDSelectorBitmap(kept.bits)  # type: ignore[call-arg,arg-type]  # its own wrapper's form
        _, found = self._index.search(query[None], count, params=faiss.IVFSearchParameters(**options))
        rows = len(self._arrays.list_of_row)
        return np.sort(found[0][(found[0] >= 0) & (found[0] < rows)])

    def _probes(self, query: Vectors, count: int, probes: int, least: int, kept: Kept | None) -> int:
        """Number of lists to look into, the nearest first."""
        sizes = self._arrays.sizes
        if kept is None and probes * int(sizes.sum()) >= 2 * count * len(sizes):
            return min(len(sizes), probes)
        by_list, wanted, rows = (
            (sizes, probes, count) if kept is None else (kept.by_list, _UNDER_FILTER * probes, least)
        )
        held = by_list[np.argsort(-(self._arrays.centroids @ query))]
        enough = max(np.searchsorted(np.cumsum(held > 0), wanted), np.searchsorted(np.cumsum(held), max(rows, count)))
        return min(len(sizes), int(enough) + 1)


def _index(centres: Any, lists: int) -> Any:
    import faiss

    kind = faiss.ScalarQuantizer.QT_8bit
    return faiss.IndexIVFScalarQuantizer(centres, centres.d, lists, kind, faiss.METRIC_INNER_PRODUCT, False)
