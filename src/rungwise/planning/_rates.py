"""Measured rates, from which every plan is computed.

They are output of ``benchmarks/planning.py``, which writes ``measured.csv``, and of ``benchmarks/scaling.py``,
``benchmarks/search.py`` and ``benchmarks/encoding.py``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType

MACHINE = "2 x86-64 cores (AMD EPYC, AVX-512), 24 GiB"
"""Machine of the stored rates, unless another one is named."""
OTHER_MACHINE = "2 x86-64 cores (Intel Xeon, AVX-512), 24 GiB"
"""Machine of the rates of ``measured.csv``, and of networks that encode pictures."""
HERE = "this machine"
"""Name of the machine on which ``--measure`` measures."""
FILES = "the files of a model"
"""In the place of the machine, for what is read from files."""
DEFAULT_ENCODER = "siglip2-base-patch32-256"
"""Model that ``rungwise index`` takes by default."""
QUERIES, WEIGHTS = "query of ", "weights of "
"""Beginnings of the names of rates of a model: encoding of one query, and bytes of its files."""
_MB = 1e6


@dataclass(frozen=True)
class Rate:
    """One measured or assumed number.

    Attributes:
        what: Description of what was measured.
        value: Value of the rate.
        unit: Unit such as ``"rows/s"``; empty for a factor.
        source: Place where the number was printed; for an assumption, its reason.
        rows: Number of rows of the measured store; beyond it a plan extrapolates. None where rows do not matter.
        dimension: Dimension of the measured vectors; None where it does not matter.
        machine: Machine of the measurement; empty where the machine does not matter.
        assumed: Whether the number was not measured.

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
        """Text of the value with its unit; of a factor, the value alone."""
        if self.unit == "B" and self.value >= _MB:
            return f"{number(self.value / _MB)} MB"
        return f"{number(self.value)} {self.unit}".strip()


def number(value: float) -> str:
    """Text of a number with three digits, or all of a large one.

    >>> number(31.92), number(1554.2), number(0.00761), number(2)
    ('31.9', '1,554', '0.00761', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


Rates = Mapping[str, Rate]
"""Rates by the names of :data:`STORED`."""


def encoder(model: str, device: str) -> str:
    """Name of the rate of a model that encodes pictures on a device.

    >>> STORED[encoder("resnet50", "cpu")].said
    '55.8 pictures/s'
    """
    return f"{model} on {device}"


def encoders(rates: Rates) -> list[str]:
    """Models whose number of pictures per second is known, on any device.

    >>> encoders(STORED)
    ['quick', 'resnet50', 'siglip2-base-patch32-256']
    """
    return sorted({name.partition(" on ")[0] for name in rates if " on " in name})


_ENCODING = "docs/reference/lookup/costs-training.md, Encoding pictures"
_PRINTED: Mapping[str, tuple[tuple[str, float, str, int | None, int | None, str], ...]] = {
    # name, number, unit, in a store of so many rows, with vectors of so many numbers, what was measured
    "docs/reference/lookup/costs-search.md, What a row costs": (
        # An index keeps of a picture besides its vector; of a caption; of a small copy.
        ("facts", 638, "B", None, None, "facts and four columns of a picture"),
        ("caption", 265, "B", None, None, "a caption besides its vector: id, text, and its words with the picture"),
        ("thumbnail", 15_087, "B", None, None, "small copies of photos of 224 x 224"),
        # The exact store.
        ("exact_speed", 45.4, "GB/s", 1_000_000, None, "the exact store compares all vectors, both cores"),
        ("exact_insert", 80_803, "rows/s", 1_000_000, 512, "rows into the exact store"),
        # LanceDB's store, and its inverted lists.
        ("lance_insert", 32_926, "rows/s", 100_000, 512, "rows into LanceDB's store"),
        ("lists_disk", 670, "B", 1_000_000, 512, "lists of near rows and of words, beside the copy of the rows"),
        ("lists_build", 61.9, "us a row", 1_000_000, 512, "merging files, copying rows, and making inverted lists"),
        # Milvus.
        ("milvus_disk", 4.94, "", 300_000, 512, "rows, log and graph of Milvus 2.3.5, of the bytes of vectors"),
        ("milvus_memory", 1.7, "", 300_000, 512, "rows and graph of Milvus 2.3.5, of the bytes of vectors"),
        ("milvus_process", 224e6, "B", None, None, "a Milvus server without rows"),
        ("milvus_insert", 12_566, "rows/s", 300_000, 512, "rows into Milvus and to its disk, one client"),
        ("milvus_build", 3_169, "rows/s", 300_000, 512, "Milvus makes its graph (HNSW, M 16, efConstruction 200)"),
        ("milvus_search", 4.73, "ms", 300_000, 512, "one search in Milvus (ef 200)"),
        # Encoding.
        (encoder(DEFAULT_ENCODER, "cpu"), 41.6, "pictures/s", None, None,
         f"{DEFAULT_ENCODER}, random weights, bfloat16, photos of 224 x 224 from files"),
    ),
    _ENCODING: (
        (encoder("quick", "cpu"), 95.7, "pictures/s", None, None,
         "MobileNetV2, float32, photos of 224 x 224 from files"),
        (encoder("resnet50", "cpu"), 55.8, "pictures/s", None, None,
         "ResNet50, bfloat16, photos of 224 x 224 from files"),
    ),
}  # fmt: skip
"""Output of the benchmarks, by the section of the page that shows it."""

_AT_SIZES = "docs/reference/lookup/costs-search.md, What grows with a collection"
_SIZED: Mapping[str, tuple[str, str]] = {
    # name: unit, what was measured; in the processor time of one search, unless it says otherwise
    "held_vectors": ("ms", "vectors of one search, all of them compared in memory"),
    "lists_vectors": ("ms", "vectors of one search, by inverted lists"),
    "words": ("ms", "full text in one search"),
    "folding": ("ms", "folding of near-duplicates in one search"),
    "end": ("ms", "where relevance ends, in one search"),
    "answer": ("ms", "the answer of a server to one search"),
    "busy": ("cores", "two cores that one server keeps busy for 8 clients on the same machine"),
    "held_search": ("ms", "one search in LanceDB's store, by the clock, all vectors compared in memory"),
    "lists_search": ("ms", "one search in LanceDB's store, by the clock, by inverted lists"),
    "held_memory": ("B", "memory of a server for its rows, vectors held"),
    "lists_memory": ("B", "memory of a server for its rows, with inverted lists"),
    "indexing_memory": ("B", "memory of the process that indexes, for its rows"),
    "preparing": ("s", "reading, hashing and full text of an index, without its vectors"),
    "update": ("s", "an update where nothing changed"),
}
"""Rates that were measured with several numbers of rows: of searches with so many pictures, else with captions too."""
_ONCE: Mapping[str, tuple[str, str]] = {
    "exact_floor": ("ms", "one search in the exact store with hardly a row"),
    "exported_process": ("B", "a server with an exported model, without model and rows"),
    "torch_process": ("B", "a server with torch, without model and rows"),
    "exported_indexing": ("B", "the process that indexes with an exported model, without model and rows"),
    "torch_indexing": ("B", "the process that indexes with torch, without model and rows"),
    "exported_weights": ("", "memory of an exported model, of the bytes of its files"),
    "torch_weights": ("", "memory of a model of torch, of the bytes of its files"),
}
"""Rates that do not depend on rows."""

_ALONE, _REST = "only one machine was at hand", "the rest is left for everything else"
_FACTORS: Mapping[str, tuple[float, str, str, bool]] = {
    # name: number, what it is, where it is from, whether it is assumed
    "twice": (2, "places that a compacted table takes at most", "docs/guide/search/stores.md", False),
    "spare": (0.75, "share of a machine's memory that rows may take, 0.75", _REST, True),
    "milvus_share": (1, "each machine of Milvus holds, builds and searches an even part of the rows", _ALONE, True),
    "sharing_encoding": (1, "machines share pictures out evenly", _ALONE, True),
}  # fmt: skip
"""Factors that no machine changes."""


def sized_name(name: str, rows: int) -> str:
    """Name of a rate that was measured with so many rows.

    >>> sized_name("words", 8000)
    'words at 8000'
    """
    return f"{name} at {rows}"


def sizes_of(rates: Rates, name: str) -> list[Rate]:
    """Rates of one name, by the rows with which they were measured."""
    found = [rate for key, rate in rates.items() if key.partition(" at ")[0] == name and rate.rows]
    return sorted(found, key=lambda rate: rate.rows or 0)


def sized_rate(name: str, rows: int, value: float, dimension: int = 512) -> Rate:
    """A measured rate of a given name and size, as ``measured.csv`` holds it."""
    unit, what = _SIZED[name]
    return Rate(what, value, unit, _AT_SIZES, rows, dimension, OTHER_MACHINE)


def _measured() -> Iterator[tuple[str, Rate]]:
    """Rates of ``measured.csv``, by their names."""
    text = resources.files("rungwise.planning").joinpath("measured.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        name, value = line["name"], float(line["value"])
        if name in _SIZED:
            rows = int(line["rows"])
            yield sized_name(name, rows), sized_rate(name, rows, value)
        elif name in _ONCE:
            unit, what = _ONCE[name]
            yield name, Rate(what, value, unit, _AT_SIZES, machine=OTHER_MACHINE)
        elif name.startswith(QUERIES):
            model = name.removeprefix(QUERIES)
            about = f"the words of one query, {model}, processor time"
            yield name, Rate(about, value, "ms", _AT_SIZES, machine=OTHER_MACHINE)
        else:
            model = name.removeprefix(WEIGHTS)
            yield name, Rate(f"weights of {model} in files", value, "B", _AT_SIZES, machine=FILES)


STORED: Rates = MappingProxyType(
    {
        name: Rate(what, value, unit, source, rows, dimension, OTHER_MACHINE if source == _ENCODING else MACHINE)
        for source, lines in _PRINTED.items()
        for name, value, unit, rows, dimension, what in lines
    }
    | {
        name: Rate(what, value, "", source, machine="", assumed=assumed)
        for name, (value, what, source, assumed) in _FACTORS.items()
    }
    | dict(_measured())
)
"""Rates of ``rungwise plan``, unless ``--measure`` replaces some."""
