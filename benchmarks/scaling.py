"""What a row costs in each store, for the rates of ``rungwise plan``: seconds, disk, memory, milliseconds a query.

    python benchmarks/scaling.py exact --rows 100000
    python benchmarks/scaling.py lance --rows 100000 --half
    python benchmarks/scaling.py lance --rows 1000000 --write    # and keep what its lists cost as rates of the plan
    python benchmarks/scaling.py milvus --rows 100000    # a server of its own, from the package milvus
    python benchmarks/scaling.py many --rows 200000      # memory of the process that indexes so many pictures
    python benchmarks/scaling.py pictures PHOTOS         # facts, full text and thumbnails of real photos
    python benchmarks/scaling.py encode --network NAME   # photos to features in the cache; the best of three turns

Vectors are generated (see ``search_data.py``). Each store is measured in a process of its own. A line of JSON is
printed for each, with the load of the machine before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import search_data
from measuring import alone, status

sys.path.append(str(Path(__file__).parents[1]))  # the server comes from the tests
K = 10
_QUERIES = 60
_REPEATS = 3
_PHOTOS = 64
_FOLDER = 1000
"""Pictures in one folder."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", choices=("exact", "lance", "milvus", "many", "pictures", "encode"))
    parser.add_argument("photos", type=Path, nargs="?", help="a collection, for pictures")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--network", default="vit_base_patch32_siglip_256", help="of timm, for encode")
    parser.add_argument("--half", action="store_true", help="vectors in half precision; LanceDB's only")
    parser.add_argument("--write", action="store_true", help="keep rates of LanceDB's inverted lists in the package")
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
        elif asked.store == "many":
            found = many(work, asked.rows)
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
    if asked.write:
        keep_lists(asked.rows, found)


def keep_lists(rows: int, found: Mapping[str, Any]) -> None:
    """Keep what a search by inverted lists takes in the rates of plans, beside those of other sizes."""
    import planning

    if found["exact"]:
        sys.exit(f"{rows:,} rows are too few for inverted lists; give --rows 100000 or more, and lance")
    memory = found["searching memory of its own"] - found["memory before"]
    rates = {
        "lists_search": found["ms a query"],
        "lists_vectors": found["processor ms a query"],
        "lists_memory": memory,
    }
    planning.write({(name, rows): float(value) for name, value in rates.items()}, {})


def bytes_below(folder: Path) -> int:
    """Of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def batches(made: search_data.Made) -> Iterator[Any]:
    """Vectors with the shortest record that a picture has: where its file is."""
    from rungwise.index.stores import StoreBatch

    for block, vectors in made.blocks():
        numbers = range(block.start, block.stop)
        records = [{"file": f"{number}.jpg"} for number in numbers]
        yield StoreBatch([f"picture-{number}" for number in numbers], vectors, records)


def exact(made: search_data.Made) -> dict[str, Any]:
    """Building the exact store."""
    from rungwise.index.stores.exact import ExactStore
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
    from rungwise.index.stores.lance.store import LanceStore
    from rungwise.similarity import Cosine

    folder = made.folder / "lance"
    start = time.perf_counter()
    with LanceStore.create(folder, "pictures", search_data.DIMENSION, Cosine(), half=half) as store:
        store.upsert_batches(batches(made))
        inserted, plain = time.perf_counter() - start, bytes_below(folder)
        start = time.perf_counter()
        store.compact()
        took = time.perf_counter() - start
    indexes = sum(bytes_below(found) for name in ("_indices", "rungwise.mapped") for found in folder.rglob(name))
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
    from rungwise.index.stores.exact import ExactStore
    from rungwise.index.stores.lance.store import LanceStore

    bare = status("RssAnon")
    store: Any = (
        LanceStore.open(made.folder / "lance", "pictures")
        if kind == "lance"
        else ExactStore.open(made.folder / "exact")
    )
    start = time.perf_counter()
    store.search(made.asked()[:1], K)
    first = time.perf_counter() - start
    begun = time.process_time()
    times, right = asked_by_turns(
        made, lambda query: [name.rpartition("-")[2] for name in store.search(query, K).ids[0]]
    )
    spent = (time.process_time() - begun) / (_REPEATS * made.queries)
    return {
        "first search s": first,
        "ms a query": 1000 * statistics.median(times),
        "processor ms a query": 1000 * spent,
        "recall": right,
        "searching memory": status("VmHWM"),
        "searching memory of its own": status("RssAnon"),
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
    """Our store in a Milvus server on this machine: rows written by one client, the graph made, then searched."""
    from tests.milvus_server import local_milvus

    from rungwise.index.stores.milvus import MilvusStore
    from rungwise.similarity import Cosine

    folder = made.folder / "milvus"
    with local_milvus(folder) as server:
        bare_memory, bare_disk = status("VmRSS", server.process), bytes_below(folder)
        start = time.perf_counter()
        with MilvusStore.create(f"{server.address}/made", "pictures", search_data.DIMENSION, Cosine()) as store:
            store.upsert_batches(batches(made))
            inserted = time.perf_counter() - start
            start = time.perf_counter()
            store.compact()
            indexed = time.perf_counter() - start
            start = time.perf_counter()
            rows = store.count()
            loaded, usage = time.perf_counter() - start, status("VmRSS", server.process)
            times, right = asked_by_turns(
                made, lambda query: [name.rpartition("-")[2] for name in store.search(query, K).ids[0]]
            )
            return {
                "stored": rows,
                "insert s": inserted,
                "graph s": indexed,
                "load s": loaded,
                "disk before": bare_disk,
                "disk": bytes_below(folder),
                "memory before": bare_memory,
                "loaded memory": usage,
                "memory after searching": status("VmRSS", server.process),
                "memory at most": status("VmHWM", server.process),
                "client memory": status("VmHWM"),
                "ms a query": 1000 * statistics.median(times),
                "recall": right,
            }


def drawn_model() -> Any:
    """A model that computes nothing: vectors of 8 numbers are drawn."""
    from rungwise.models import DualEncoder, EncodedImages
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

    return Drawn()


def many(work: Path, rows: int) -> dict[str, Any]:
    """Memory of the process that indexes a folder of many pictures, at half of them and at all of them.

    Pictures are files of some bytes without captions, so that nothing but what the process keeps of each one grows.
    """
    found: dict[str, Any] = {}
    for number, count in enumerate((rows // 2, rows)):
        photos = work / f"photos-{number}"
        for at in range(count):
            if at % _FOLDER == 0:
                (photos / f"{at // _FOLDER:05d}").mkdir(parents=True)
            numbers = at.to_bytes(6, "big")
            (photos / f"{at // _FOLDER:05d}" / f"picture-{at:08d}.ppm").write_bytes(b"P6 2 1 255\n" + numbers)
        for job in (index_anew, index_again, index_by_workers):
            found |= {
                f"{job.__name__} {count}, {name}": value
                for name, value in alone(job, photos, work / str(number)).items()
            }
    for job in ("index_anew", "index_again", "index_by_workers"):
        least, most = (found[f"{job} {count}, memory"] for count in (rows // 2, rows))
        found[f"{job}, bytes a picture"] = (most - least) / (rows - rows // 2)
    return found


def index_anew(photos: Path, folder: Path) -> dict[str, float]:
    """A new index of a folder, in LanceDB's store."""
    from rungwise.data import read
    from rungwise.index import Index

    start = time.perf_counter()
    Index.build(read(photos), drawn_model(), folder, store="lance", thumbnails=False)
    return {"memory": status("VmHWM"), "s": time.perf_counter() - start}


def index_by_workers(photos: Path, folder: Path) -> dict[str, float]:
    """A new index of the same folder that two workers of Ray make; memory of the process that writes."""
    from rungwise.core.compute import cluster
    from rungwise.data import read
    from rungwise.index import Index
    from rungwise.index.update import Workers

    start = time.perf_counter()
    with cluster(workers=2) as ray:
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a program
        files = Workers(ray, drawn_model, 2)
        Index.build(
            read(photos), drawn_model(), folder.with_name(f"{folder.name}-ray"),
            store="lance", thumbnails=False, files=files,
        )  # fmt: skip
    return {"memory": status("VmHWM"), "s": time.perf_counter() - start}


def index_again(photos: Path, folder: Path) -> dict[str, float]:
    """The same folder once more, in which nothing changed."""
    from rungwise.data import read
    from rungwise.index import Index

    start = time.perf_counter()
    changes = Index.open(folder).update(read(photos), drawn_model())
    assert not changes, changes
    return {"memory": status("VmHWM"), "s": time.perf_counter() - start}


def pictures(work: Path, photos: Path) -> dict[str, Any]:
    """What real photos take besides their vectors: facts, captions with theirs, full text, thumbnails.

    No network computes: vectors of 8 numbers are drawn, so that the seconds are those of everything else.
    """
    from rungwise.data import read
    from rungwise.index import Index

    data = read(photos)
    found: dict[str, Any] = {"pictures": len(data), "captions": len(data.captions)}
    for thumbnails in (False, True):
        folder = work / f"index-{thumbnails}"
        start = time.perf_counter()
        index = Index.build(data, drawn_model(), folder, store="lance", thumbnails=thumbnails)
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
    from rungwise.encoders import computed_in
    from rungwise.encoders.images import feature_rows, load_backbone

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
