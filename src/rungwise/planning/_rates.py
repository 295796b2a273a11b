"""Measured rates, from which every plan is computed.

They are output of ``benchmarks/scaling.py``, ``benchmarks/search.py``, ``benchmarks/encoding.py`` and
``benchmarks/serving.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MACHINE = "2 x86-64 cores (AMD EPYC, AVX-512), 24 GiB"
"""Machine of the stored rates."""
HERE = "this machine"
"""Name of the machine on which ``--measure`` measures."""
DEFAULT_ENCODER = "siglip2-base-patch32-256"
"""Model that ``rungwise index`` takes by default."""
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

    @property
    def about(self) -> str:
        """What was measured, with which sizes and where, in one line."""
        sizes = [f"{self.rows:,} rows" if self.rows else "", f"D = {self.dimension}" if self.dimension else ""]
        return "; ".join(filter(None, (self.what, ", ".join(filter(None, sizes)), self.source)))


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
    '32.4 pictures/s'
    """
    return f"{model} on {device}"


def encoders(rates: Rates) -> list[str]:
    """Models whose number of pictures per second is known, on any device.

    >>> encoders(STORED)
    ['quick', 'resnet50', 'siglip2-base-patch32-256']
    """
    return sorted({name.partition(" on ")[0] for name in rates if " on " in name})


_PRINTED: Mapping[str, tuple[tuple[str, float, str, int | None, int | None, str], ...]] = {
    # name, number, unit, in a store of so many rows, with vectors of so many numbers, what was measured
    "docs/costs.md, What a row costs": (
        # An index keeps of a picture besides its vector; of a caption; of a small copy.
        ("facts", 1_554, "B", None, None, "facts, five captions and their words of a photo of Flickr8K"),
        ("caption", 82, "B", None, None, "what stands beside a caption's vector"),
        ("thumbnail", 15_087, "B", None, None, "small copies of photos of 224 x 224"),
        # The exact store.
        ("exact_speed", 45.4, "GB/s", 1_000_000, None, "the exact store compares all vectors, both cores"),
        ("exact_process", 270e6, "B", 100_000, None, "a process with the exact store, without its vectors"),
        ("exact_insert", 80_803, "rows/s", 1_000_000, 512, "rows into the exact store"),
        # LanceDB's store: while vectors are held in memory, with a graph, and with codes.
        ("held_speed", 40.2, "GB/s", 100_000, None, "LanceDB's store compares all vectors in memory"),
        ("held_memory", 3.05, "", 100_000, None, "memory while they are read, of the bytes of vectors"),
        ("lance_process", 325e6, "B", 100_000, None, "a process with LanceDB's store, without vectors"),
        ("lance_insert", 32_926, "rows/s", 100_000, 512, "rows into LanceDB's store"),
        ("graph_disk", 752, "B", 200_000, 512, "indexes of a table with a graph (IVF_HNSW_SQ)"),
        ("graph_memory", 1_410, "B", 200_000, 512, "memory for a row while the graph is searched"),
        ("graph_build", 335, "us a row", 200_000, 512, "making the graph"),
        ("graph_search", 4.02, "ms", 200_000, 512, "one search in the graph"),
        ("codes_disk", 190, "B", 400_000, 512, "indexes of a table with codes (IVF_RQ)"),
        # The process that indexes: of each picture, and besides.
        ("indexing_memory", 1_896, "B", 200_000, None,
         "memory of the process that indexes, for a picture without captions"),
        ("indexing_process", 400e6, "B", None, None, "the process that indexes, without pictures and model"),
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
    "docs/costs.md, Searching": (
        ("codes_build", 98, "us a row", 1_000_000, 512, "building with codes"),
        ("codes_search", 10.8, "ms", 1_000_000, 512, "one search in the codes"),
    ),
    "docs/costs.md, Encoding pictures": (
        (encoder("quick", "cpu"), 69.1, "pictures/s", None, None,
         "MobileNetV2, float32, photos of 224 x 224 from files"),
        (encoder("resnet50", "cpu"), 32.4, "pictures/s", None, None,
         "ResNet50, bfloat16, photos of 224 x 224 from files"),
    ),
    "docs/costs.md, Serving": (
        ("serving", 154, "searches/s", None, None, "rungwise serve, 50 clients, 400 pictures and a small model"),
    ),
}  # fmt: skip
"""Output of the benchmarks, by the section of the page that shows it."""

_ALONE, _REST = "only one machine was at hand", "the rest is left for everything else"
_FACTORS: Mapping[str, tuple[float, str, str, bool]] = {
    # name: number, what it is, where it is from, whether it is assumed
    "twice": (2, "places that a compacted table takes at most", "docs/stores.md", False),
    "spare": (0.75, "share of a machine's memory that rows may take, 0.75", _REST, True),
    "milvus_share": (1, "each machine of Milvus holds, builds and searches an even part of the rows", _ALONE, True),
    "sharing_encoding": (1, "machines share pictures out evenly", _ALONE, True),
}  # fmt: skip
"""Factors that no machine changes."""

STORED: Rates = MappingProxyType(
    {
        name: Rate(what, value, unit, source, rows, dimension)
        for source, lines in _PRINTED.items()
        for name, value, unit, rows, dimension, what in lines
    }
    | {
        name: Rate(what, value, "", source, machine="", assumed=assumed)
        for name, (value, what, source, assumed) in _FACTORS.items()
    }
)
"""Rates of ``rungwise plan``, unless ``--measure`` replaces some."""
