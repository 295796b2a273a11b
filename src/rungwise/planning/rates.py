"""What each thing took where it was measured: the numbers that every plan is reckoned from, and nothing else.

``benchmarks/scaling.py``, ``benchmarks/search.py``, ``benchmarks/encoding.py`` and ``benchmarks/serving.py`` printed
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MACHINE = "2 x86-64 cores (AMD EPYC, AVX-512), 24 GiB"
"""Where the stored rates were measured."""
_MB = 1e6
HERE = "this machine"
"""Where ``--measure`` measures."""


@dataclass(frozen=True)
class Rate:
    """One number that was measured, or that nobody measured and is assumed.

    Attributes:
        what: Was measured.
        value: The number.
        unit: Of it, such as ``"rows/s"``; empty for a factor.
        source: Where it was printed; of what is assumed, why.
        rows: In a store of so many rows; beyond them a plan extrapolates. None where rows do not matter.
        dimension: With vectors of so many numbers; None where they do not matter.
        machine: On which; empty for what no machine changes.
        assumed: Whether nobody measured it.

    >>> Rate("vectors read", 31.9, "GB/s", "docs").said
    '31.9 GB/s'
    """

    what: str
    value: float
    unit: str
    source: str
    rows: int | None = None
    dimension: int | None = None
    machine: str = MACHINE
    assumed: bool = False

    @property
    def said(self) -> str:
        """The number with its unit; of a factor, the number alone."""
        if self.unit == "B" and self.value >= _MB:
            return f"{number(self.value / _MB)} MB"
        return f"{number(self.value)} {self.unit}".strip()

    @property
    def about(self) -> str:
        """What it is, what it was measured with and where, in a line."""
        sizes = [f"{self.rows:,} rows" if self.rows else "", f"D = {self.dimension}" if self.dimension else ""]
        return "; ".join(filter(None, (self.what, ", ".join(filter(None, sizes)), self.source)))


def number(value: float) -> str:
    """A number with three digits, or all of a large one.

    >>> number(31.92), number(1554.2), number(0.00761), number(2)
    ('31.9', '1,554', '0.00761', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


@dataclass(frozen=True)
class Rates:
    """Everything that a plan is reckoned from; see each :class:`Rate`.

    Attributes:
        facts: What an index keeps of a picture besides its vector: facts of its file, five captions, their words.
        caption: What it keeps of a caption besides its vector.
        thumbnail: Of one small copy.
        twice: Places that a compacted LanceDB table takes at most, times its size.
        exact_speed: The exact store compares so many gigabytes of vectors a second.
        exact_process: Memory of a process with it, besides the vectors.
        exact_insert: Rows that it takes in a second.
        held_speed: LanceDB's store, while vectors are held in memory, likewise.
        held_memory: What it takes of memory for each byte of vectors, at most, while it opens.
        lance_process: Memory of a process with it, besides that.
        lance_insert: Rows that it takes in a second.
        graph_disk: Its graph (IVF_HNSW_SQ), on disk.
        graph_memory: What it takes of memory while it is searched.
        graph_build: Making it.
        graph_search: One search in it.
        codes_disk: Its codes (IVF_RQ), on disk; memory is reckoned with as much.
        codes_build: Making them.
        codes_search: One search in them.
        indexing_memory: Of the process that indexes, for each picture: id, path and what tells whether it changed.
        indexing_process: The same process without pictures, its model left out.
        milvus_disk: Of a row in Milvus, times the bytes of its vector: rows, log and graph (HNSW).
        milvus_memory: Of a row, times the bytes of its vector and its links.
        milvus_process: Memory of the server without rows.
        milvus_insert: Rows that it takes in a second, from one client.
        milvus_build: Making its graph.
        milvus_search: One search.
        milvus_share: That rows are shared out evenly over machines, and each builds and searches its own.
        spare: Share of a machine's memory that is reckoned with.
        serving: Searches a second of ``rungwise serve`` alone, with little to search in.
        sharing_encoding: That pictures are shared out evenly over machines that encode.
        encoders: Pictures a second, by model and device.
    """

    facts: Rate
    caption: Rate
    thumbnail: Rate
    twice: Rate
    exact_speed: Rate
    exact_process: Rate
    exact_insert: Rate
    held_speed: Rate
    held_memory: Rate
    lance_process: Rate
    lance_insert: Rate
    graph_disk: Rate
    graph_memory: Rate
    graph_build: Rate
    graph_search: Rate
    codes_disk: Rate
    codes_build: Rate
    codes_search: Rate
    indexing_memory: Rate
    indexing_process: Rate
    milvus_disk: Rate
    milvus_memory: Rate
    milvus_process: Rate
    milvus_insert: Rate
    milvus_build: Rate
    milvus_search: Rate
    milvus_share: Rate
    spare: Rate
    serving: Rate
    sharing_encoding: Rate
    encoders: Mapping[tuple[str, str], Rate]
