"""What a row costs in each store, for the rates of ``rungwise plan``: seconds, disk, memory, milliseconds a query.

    python benchmarks/scaling.py exact --rows 100000
    python benchmarks/scaling.py lance --rows 100000 --half
    python benchmarks/scaling.py milvus --rows 100000    # a server of its own, from the package milvus
    python benchmarks/scaling.py pictures PHOTOS         # facts, full text and thumbnails of real photos
    python benchmarks/scaling.py encode --network NAME   # photos to features in the cache; the best of three turns

Vectors are generated (see ``search_data.py``). Each store is measured in a process of its own. A line of JSON is
printed for each, with the load of the machine before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import search_data
from measuring import alone, status

K = 10
_QUERIES = 60
_REPEATS = 3
_PHOTOS = 64
_MILVUS_ROWS_AT_ONCE = 2000
_COLLECTION = "measured"
_M, _EF_CONSTRUCTION, _EF = 16, 200, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", choices=("exact", "lance", "milvus", "pictures", "encode"))
    parser.add_argument("photos", type=Path, nargs="?", help="a collection, for pictures")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--network", default="vit_base_patch32_siglip_256", help="of timm, for encode")
    parser.add_argument("--half", action="store_true", help="vectors in half precision; LanceDB's only")
    parser.add_argument("--folder", type=Path, help="where to work; default the system's temporary folder")
    asked = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(os.cpu_count() or 1)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        work = Path(folder)
        if asked.store == "pictures":
            found = alone(pictures, work, asked.photos)
        elif asked.store == "encode":
            found = {"network": asked.network} | alone(encode, work, asked.network)
        else:
            made = alone(search_data.make, work / "made", asked.rows, _QUERIES, 0)
            jobs = {"exact": exact, "lance": partial(lance, half=asked.half), "milvus": milvus}
            found = alone(jobs[asked.store], made)
            if asked.store != "milvus":
                found |= alone(searching, made, asked.store)
    found |= {"load before": before, "load after": os.getloadavg()[0], "cores": os.cpu_count()}
    rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in found.items()}
    said = {} if asked.store in ("pictures", "encode") else {"rows": asked.rows, "half": asked.half}
    print(json.dumps({"measured": asked.store} | said | rounded), flush=True)


def bytes_below(folder: Path) -> int:
    """Of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def batches(made: search_data.Made) -> Iterator[Any]:
    """Vectors with the shortest record that a picture has: where its file is."""
    from rungwise.index.store import Batch

    for block, vectors in made.blocks():
        numbers = range(block.start, block.stop)
        records = [{"file": f"{number}.jpg"} for number in numbers]
        yield Batch([f"picture-{number}" for number in numbers], vectors, records)


def exact(made: search_data.Made) -> dict[str, Any]:
    """Building the exact store."""
    from rungwise.index.exact import ExactStore
    from rungwise.similarity import Cosine

    folder = made.folder / "exact"
    start = time.perf_counter()
    with ExactStore.create(folder, search_data.DIMENSION, Cosine()) as store:
        store.upsert_batches(batches(made))
        inserted = time.perf_counter() - start
        store.compact()
    took = time.perf_counter() - start
    return {"insert s": inserted, "build s": took, "disk": bytes_below(folder), "building memory": status("VmHWM")}


def lance(made: search_data.Made, *, half: bool) -> dict[str, Any]:
    """Building LanceDB's store."""
    from rungwise.index.lance import LanceStore
    from rungwise.similarity import Cosine

    folder = made.folder / "lance"
    start = time.perf_counter()
    with LanceStore.create(folder, "pictures", search_data.DIMENSION, Cosine(), half=half) as store:
        store.upsert_batches(batches(made))
        inserted, plain = time.perf_counter() - start, bytes_below(folder)
        start = time.perf_counter()
        store.compact()
        took = time.perf_counter() - start
    indexes = sum(bytes_below(found) for found in folder.rglob("_indices"))
    return {
        "insert s": inserted,
        "compact s": took,
        "disk before compacting": plain,
        "disk": bytes_below(folder),
        "disk of indexes": indexes,
        "building memory": status("VmHWM"),
    }


def searching(made: search_data.Made, kind: str) -> dict[str, Any]:
    """A process that opens a store and searches it, one query after the other."""
    from rungwise.index.exact import ExactStore
    from rungwise.index.lance import LanceStore

    bare = status("VmHWM")
    store: Any = (
        LanceStore.open(made.folder / "lance", "pictures")
        if kind == "lance"
        else ExactStore.open(made.folder / "exact")
    )
    start = time.perf_counter()
    store.search(made.asked()[:1], K)
    first = time.perf_counter() - start
    times, right = asked_by_turns(
        made, lambda query: [name.rpartition("-")[2] for name in store.search(query, K).ids[0]]
    )
    return {
        "first search s": first,
        "ms a query": 1000 * statistics.median(times),
        "recall": right,
        "searching memory": status("VmHWM"),
        "memory before": bare,
        "exact": store.about().exact,
    }


def asked_by_turns(made: search_data.Made, search: Any) -> tuple[list[float], float]:
    """Seconds of each query after some for warming up, the least of three rounds, and recall@10."""
    queries, right = made.asked(), made.right(0)
    rounds = []
    hits = 0
    for turn in range(_REPEATS):
        times = []
        for number, query in enumerate(queries):
            start = time.perf_counter()
            found = search(query[None])
            times.append(time.perf_counter() - start)
            if turn == 0 and number >= search_data.WARM_UP:
                hits += len({int(one) for one in found} & set(right[number][:K].tolist()))
        rounds.append(times[search_data.WARM_UP :])
    asked = len(queries) - search_data.WARM_UP
    return np.min(rounds, axis=0).tolist(), hits / (asked * K)


def milvus(made: search_data.Made) -> dict[str, Any]:
    """A Milvus server on this machine, with a graph (HNSW)."""
    from milvus import MilvusServer
    from pymilvus import DataType, MilvusClient

    folder = made.folder / "milvus"
    server = MilvusServer()
    server.set_base_dir(str(folder))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server.listen_port = free.getsockname()[1]
    start = time.perf_counter()
    server.start()
    try:
        started = time.perf_counter() - start
        client = MilvusClient(uri=f"http://127.0.0.1:{server.listen_port}")
        process = server.server_proc.pid
        bare_memory, bare_disk = status("VmRSS", process), bytes_below(folder)
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=512)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=search_data.DIMENSION)
        schema.add_field("file", DataType.VARCHAR, max_length=512)
        client.create_collection(_COLLECTION, schema=schema)
        start = time.perf_counter()
        for ids, vectors, records in batches(made):
            rows = [
                {"id": name, "vector": vector, "file": record["file"]}
                for name, vector, record in zip(ids, vectors, records, strict=True)
            ]
            for at in range(0, len(rows), _MILVUS_ROWS_AT_ONCE):
                client.insert(_COLLECTION, rows[at : at + _MILVUS_ROWS_AT_ONCE])
        inserted = time.perf_counter() - start
        client.flush(_COLLECTION)
        flushed, plain = time.perf_counter() - start, bytes_below(folder)
        index = client.prepare_index_params()
        index.add_index(
            "vector", index_type="HNSW", metric_type="IP", params={"M": _M, "efConstruction": _EF_CONSTRUCTION}
        )
        start = time.perf_counter()
        client.create_index(_COLLECTION, index, timeout=None)
        while client.describe_index(_COLLECTION, "vector").get("pending_index_rows", 0):
            time.sleep(0.5)
        indexed = time.perf_counter() - start
        start = time.perf_counter()
        client.load_collection(_COLLECTION)
        loaded = time.perf_counter() - start
        usage = status("VmRSS", process)

        def search(query: Any, consistency: str) -> list[str]:
            found = client.search(
                _COLLECTION, query, limit=K, search_params={"params": {"ef": _EF}}, consistency_level=consistency
            )
            return [hit["id"].rpartition("-")[2] for hit in found[0]]

        times, right = asked_by_turns(made, partial(search, consistency="Bounded"))
        strong, _ = asked_by_turns(made, partial(search, consistency="Strong"))
        return {
            "start s": started,
            "insert s": inserted,
            "insert and flush s": flushed,
            "index s": indexed,
            "load s": loaded,
            "disk before": bare_disk,
            "disk before indexing": plain,
            "disk": bytes_below(folder),
            "memory before": bare_memory,
            "loaded memory": usage,
            "memory after searching": status("VmRSS", process),
            "memory at most": status("VmHWM", process),
            "ms a query": 1000 * statistics.median(times),
            "ms a query, strong": 1000 * statistics.median(strong),
            "recall": right,
        }
    finally:
        server.stop()


def pictures(work: Path, photos: Path) -> dict[str, Any]:
    """What real photos take besides their vectors: facts, captions with theirs, full text, thumbnails.

    No network computes: vectors of 8 numbers are drawn, so that the seconds are those of everything else.
    """
    from rungwise.data.readers import read
    from rungwise.index import Index
    from rungwise.models.contracts import DualEncoder, EncodedImages
    from rungwise.similarity import Cosine

    class Drawn(DualEncoder):
        dimension, similarity, fingerprint = 8, Cosine(), "d1ce" * 16

        def _rows(self, count: int) -> Any:
            rows = np.random.default_rng(count).standard_normal((count, self.dimension), np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        def encode_image(self, pictures: Any, *, progress: Any = None, cache: Any = None) -> EncodedImages:
            return EncodedImages(self._rows(len(pictures)), np.arange(len(pictures)))

        def encode_text(self, texts: Any) -> Any:
            return self._rows(len(texts))

    data = read(photos)
    found: dict[str, Any] = {"pictures": len(data), "captions": len(data.captions)}
    for thumbnails in (False, True):
        folder = work / f"index-{thumbnails}"
        start = time.perf_counter()
        index = Index.build(data, Drawn(), folder, store="lance", thumbnails=thumbnails)
        named = "with thumbnails" if thumbnails else "without thumbnails"
        found[f"build s {named}"] = time.perf_counter() - start
        parts = {part.name: bytes_below(part) for part in folder.iterdir() if part.is_dir()}
        found |= {f"disk {named}": bytes_below(folder), f"parts {named}": parts}
        found["store"] = index.picture_store.about().kind
    return found


def encode(work: Path, network: str) -> dict[str, Any]:
    """Pictures a second from files of 224 x 224 to features in an empty cache, in both precisions."""
    import torch

    import encoding
    from rungwise.encoders.image import load_backbone
    from rungwise.encoders.inference import computed_in
    from rungwise.encoders.picture_rows import feature_rows

    torch.manual_seed(0)
    photos = encoding.make_photos(work, (224, 224), _PHOTOS)
    backbone = load_backbone(encoding.config_of(network)).eval().to(encoding.device())
    found: dict[str, Any] = {"device": str(encoding.device()), "photos": len(photos)}
    for precision in ("float32", "bfloat16"):
        taken = []
        for turn in range(1 + _REPEATS):
            start = time.perf_counter()
            with computed_in(precision):
                feature_rows(backbone, photos, work / f"{precision}-{turn}", batch=_PHOTOS)
            taken.append(time.perf_counter() - start)
        found[precision] = len(photos) / min(taken[1:])
    return found


if __name__ == "__main__":
    main()
