"""The rates that rungwise brings along, as the benchmarks printed them."""

from __future__ import annotations

from types import MappingProxyType

from rungwise.planning.rates import Rate, Rates

DEFAULT_ENCODER = "siglip2-base-patch32-256"
"""What ``rungwise index`` takes where no model is named."""

_STORES = "docs/costs.md, What a row costs"
_SEARCHING = "docs/costs.md, Searching"
_ENCODING = "docs/costs.md, Encoding pictures"


def _store(what: str, value: float, unit: str, rows: int | None = 100_000, dimension: int | None = 512) -> Rate:
    return Rate(what, value, unit, _STORES, rows, dimension)


def _photos(what: str, value: float, unit: str) -> Rate:
    return Rate(what, value, unit, _STORES)


def _assumed(what: str, value: float, unit: str, why: str) -> Rate:
    return Rate(what, value, unit, why, machine="", assumed=True)


def _encoder(network: str, value: float) -> Rate:
    return Rate(f"{network}, photos of 224 x 224 from files", value, "pictures/s", _ENCODING)


STORED = Rates(
    facts=_photos("facts, five captions and their words of a photo of Flickr8K", 1554, "B"),
    caption=_photos("what stands beside a caption's vector", 82, "B"),
    thumbnail=_photos("small copies of photos of 224 x 224", 15_087, "B"),
    twice=Rate("places that a compacted table takes at most", 2, "", "docs/stores.md", machine=""),
    exact_speed=_store(
        "the exact store compares all vectors, both cores", 45.4, "GB/s", rows=1_000_000, dimension=None
    ),
    exact_process=_store("a process with the exact store, without its vectors", 270e6, "B", dimension=None),
    exact_insert=_store("rows into the exact store", 80_803, "rows/s", 1_000_000),
    held_speed=_store("LanceDB's store compares all vectors in memory", 40.2, "GB/s", dimension=None),
    held_memory=_store("memory while they are read, of the bytes of vectors", 3.05, "", dimension=None),
    lance_process=_store("a process with LanceDB's store, without vectors", 325e6, "B", dimension=None),
    lance_insert=_store("rows into LanceDB's store", 32_926, "rows/s"),
    graph_disk=_store("indexes of a table with a graph (IVF_HNSW_SQ)", 752, "B", 200_000),
    graph_memory=_store("memory for a row while the graph is searched", 1_410, "B", 200_000),
    graph_build=_store("making the graph", 335, "us a row", 200_000),
    graph_search=_store("one search in the graph", 4.02, "ms", 200_000),
    codes_disk=_store("indexes of a table with codes (IVF_RQ)", 190, "B", 400_000),
    codes_build=Rate("building with codes", 98, "us a row", _SEARCHING, 1_000_000, 512),
    codes_search=Rate("one search in the codes", 10.8, "ms", _SEARCHING, 1_000_000, 512),
    indexing_memory=_store(
        "memory of the process that indexes, for a picture without captions", 1_896, "B", 200_000, None
    ),
    indexing_process=_photos("the process that indexes, without pictures and model", 400e6, "B"),
    milvus_disk=_store("rows, log and graph of Milvus 2.3.5, of the bytes of vectors", 4.94, "", 300_000),
    milvus_memory=_store("rows and graph of Milvus 2.3.5, of the bytes of vectors", 1.7, "", 300_000),
    milvus_process=_store("a Milvus server without rows", 224e6, "B", None, None),
    milvus_insert=_store("rows into Milvus and to its disk, one client", 12_566, "rows/s", 300_000),
    milvus_build=_store("Milvus makes its graph (HNSW, M 16, efConstruction 200)", 3_169, "rows/s", 300_000),
    milvus_search=_store("one search in Milvus (ef 200)", 4.73, "ms", 300_000),
    milvus_share=_assumed(
        "each machine of Milvus holds, builds and searches an even part of the rows",
        1,
        "",
        "only one machine was at hand",
    ),
    spare=_assumed(
        "share of a machine's memory that rows may take, 0.75", 0.75, "", "the rest is left for everything else"
    ),
    serving=Rate(
        "rungwise serve, 50 clients, 400 pictures and a small model", 154, "searches/s", "docs/costs.md, Serving"
    ),
    sharing_encoding=_assumed("machines share pictures out evenly", 1, "", "only one machine was at hand"),
    encoders=MappingProxyType(
        {
            (DEFAULT_ENCODER, "cpu"): Rate(
                f"{DEFAULT_ENCODER}, random weights, bfloat16, photos of 224 x 224 from files",
                41.6,
                "pictures/s",
                _STORES,
            ),
            ("quick", "cpu"): _encoder("MobileNetV2, float32", 69.1),
            ("resnet50", "cpu"): _encoder("ResNet50, bfloat16", 32.4),
        }
    ),
)
"""What ``rungwise plan`` reckons with unless ``--measure`` takes the place of some."""
