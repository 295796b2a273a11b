"""What ``search.py`` compares: each engine builds its index and answers the same queries, in a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1]))  # servers to try come from the tests
from measuring import status
from search_data import DIMENSION, FILTERS, WARM_UP, Filter, K, Made

if TYPE_CHECKING:
    from rungwise.index import Store, StoreBatch

MB = 1e6
_BATCH = 1000
_READS = 15

Search = Callable[[NDArray[np.float32], Filter], Sequence[Any]]
"""From a query (D,) and a filter to the rows that were found, best first."""


@dataclass(frozen=True)
class Measured:
    """One setting under one filter.

    Attributes:
        setting: Of the engine.
        filtered: Name of the filter.
        recall: Share of the right rows that were found.
        p50: Milliseconds.
        p99: Milliseconds.
        usual: Whether this is what one gets without asking.
    """

    setting: str
    filtered: str
    recall: float
    p50: float
    p99: float
    usual: bool = True


@dataclass(frozen=True)
class Engine:
    """What an engine took, and how it answered.

    Attributes:
        name: Of the engine.
        build: Seconds to take in all rows and to make its index.
        disk: Bytes of its files; 0 where it has none.
        memory: Highest resident bytes of its process while building.
        measured: Settings and filters.
        fixed: Milliseconds of a call that compares hardly anything; nan where it was not measured.
        filtering: Milliseconds to find out which rows pass, by name of the filter, where it was not asked before.
        why: What the store says of itself; empty for faiss.
        batch: Queries a second in batches of a thousand; nan where it was not measured.
    """

    name: str
    build: float
    disk: int
    memory: int
    measured: tuple[Measured, ...] = field(default=())
    fixed: float = float("nan")
    batch: float = float("nan")
    filtering: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True)
class Bandwidth:
    """Milliseconds to read as many bytes as an exact scan must, by one thread and by all of them.

    Attributes:
        read: A sum of all numbers, one thread.
        read_threads: The same on all threads, each a part.
        product: A matrix times a vector as numpy does it.
        own: The same as our exact store does it.
        bytes: How many.
    """

    read: float
    read_threads: float
    product: float
    own: float
    bytes: int

    @property
    def least(self) -> float:
        """The bound of an exact scan."""
        return min(self.read, self.read_threads)


def bandwidth(made: Made) -> Bandwidth:
    """How fast memory gives away the vectors."""
    from rungwise.core.compute import products

    vectors = np.array(made.vectors())
    query, threads = made.asked()[0], os.cpu_count() or 1
    parts = np.array_split(vectors, threads)
    with ThreadPoolExecutor(threads) as pool:
        return Bandwidth(
            _median(lambda: vectors.sum()),
            _median(lambda: list(pool.map(np.sum, parts))),
            _median(lambda: vectors @ query),
            _median(lambda: products(query[None], vectors)),
            vectors.nbytes,
        )


def exact_store(made: Made) -> Engine:
    """Our memory map."""
    from rungwise.index import ExactStore
    from rungwise.similarity import Cosine

    folder = made.folder / "exact"
    start = time.perf_counter()
    with ExactStore.create(folder, DIMENSION, Cosine()) as store:
        store.upsert_batches(_batches(made))
    return _of_store("ours, exact", made, folder, ExactStore.open(folder), time.perf_counter() - start)


def lance_store(made: Made, sweep: Sequence[Mapping[str, int]], *, approximate: bool = False) -> Engine:
    """Our LanceDB store, with its own setting and with others.

    Args:
        made: The data.
        sweep: What of the usual setting is changed.
        approximate: Make an approximate index also of so few rows that the store would rather compare them all.
    """
    from rungwise.index.stores.lance import store as lance
    from rungwise.index.stores.lance.store import LanceStore
    from rungwise.similarity import Cosine

    if approximate:
        lance.PAYS_FROM_BYTES = 0
    folder = made.folder / ("approximate" if approximate else "lance")
    name = "ours, LanceDB index" if approximate else "ours, LanceDB"
    start = time.perf_counter()
    with LanceStore.create(folder, "pictures", DIMENSION, Cosine()) as store:
        store.upsert_batches(_batches(made))
        store.compact()
    took, memory = time.perf_counter() - start, status("VmHWM")
    opened = LanceStore.open(folder, "pictures")
    index = opened.approximate_index
    found = _of_store(name, made, folder, opened, took)
    if index is not None:
        for changes in sweep:
            tried = index.trying(replace(index.settings, **changes))
            rows = measured(made, _searching(tried), _said(changes), usual=False)
            found = replace(found, measured=(*found.measured, *rows))
    return replace(found, memory=memory)


def lance_over_s3(made: Made) -> Engine:
    """Our LanceDB store in an object store on this machine."""
    from tests.object_store import local_object_store

    from rungwise.index.stores.lance.store import LanceStore
    from rungwise.similarity import Cosine

    with local_object_store("rungwise"):
        start = time.perf_counter()
        with LanceStore.create("s3://rungwise/made", "pictures", DIMENSION, Cosine()) as store:
            store.upsert_batches(_batches(made))
            store.compact()
        took = time.perf_counter() - start
        with LanceStore.open("s3://rungwise/made", "pictures") as opened:
            return _of_store("ours, LanceDB over S3", made, made.folder / "nowhere", opened, took)


def milvus_store(made: Made, sweep: Sequence[Mapping[str, int]]) -> Engine:
    """Our Milvus store with a server on this machine, with its own setting and with others.

    Args:
        made: The data.
        sweep: What of the usual setting is changed.
    """
    from tests.milvus_server import local_milvus

    from rungwise.index.stores.milvus import MilvusStore
    from rungwise.similarity import Cosine

    folder = made.folder / "milvus"
    with local_milvus(folder) as server:
        place = f"{server.address}/made"
        start = time.perf_counter()
        known = {"chance": "number", "topic_share": "number"}
        store = MilvusStore.create(place, "pictures", DIMENSION, Cosine(), columns=known)
        store.upsert_batches(_batches(made))
        store.compact()
        took = time.perf_counter() - start
        with store:
            found, index = _of_store("ours, Milvus", made, folder, store, took), store.approximate_index
            for changes in sweep:
                tried = index.trying(replace(index.settings, **changes))
                rows = measured(made, _searching(tried), _said(changes), usual=False)
                found = replace(found, measured=(*found.measured, *rows))
        return replace(found, memory=status("VmHWM", server.process))


def _said(settings: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def faiss_flat(made: Made) -> Engine:
    """An exact scan by faiss."""
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    start = time.perf_counter()
    index = faiss.IndexFlatIP(DIMENSION)
    for _, vectors in made.blocks():
        index.add(vectors)
    took, memory = time.perf_counter() - start, status("VmHWM")
    selectors = _selectors(made)

    def search(query: NDArray[np.float32], which: Filter) -> Sequence[Any]:
        sel = selectors[which.name]
        parameters = None if sel is None else faiss.SearchParameters(sel=sel)
        return list(index.search(query[None], K, params=parameters)[1][0])

    rows = measured(made, search, "")
    queries = np.resize(made.asked(), (_BATCH, DIMENSION))
    batch = _BATCH / (_median(lambda: index.search(queries, K), 3) / 1000)
    return Engine("faiss flat", took, 0, memory, tuple(rows), batch=batch)


def faiss_hnsw(made: Made, sweep: Sequence[int]) -> Engine:
    """A graph of near neighbours over whole vectors by faiss, M = 32.

    Args:
        made: The data.
        sweep: Values of efSearch.
    """
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    start = time.perf_counter()
    index = faiss.IndexHNSWFlat(DIMENSION, 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    for _, vectors in made.blocks():
        index.add(vectors)
    took, memory = time.perf_counter() - start, status("VmHWM")
    selectors = _selectors(made)

    def searching(ef: int) -> Search:
        def search(query: NDArray[np.float32], which: Filter) -> Sequence[Any]:
            sel = selectors[which.name]
            options = {} if sel is None else {"sel": sel}
            parameters = faiss.SearchParametersHNSW(efSearch=ef, **options)
            return list(index.search(query[None], K, params=parameters)[1][0])

        return search

    rows = [row for ef in sweep for row in measured(made, searching(ef), f"efSearch {ef}", usual=False)]
    file = made.folder / "hnsw"
    faiss.write_index(index, str(file))
    disk = file.stat().st_size
    file.unlink()
    return Engine("faiss HNSW", took, disk, memory, tuple(rows))


def _selectors(made: Made) -> dict[str, Any]:
    import faiss

    found: dict[str, Any] = {}
    for one in FILTERS:
        bits = np.packbits(made.allowed(one), bitorder="little")
        found[one.name] = faiss.IDSelectorBitmap(bits) if one.column else None
    return found


def measured(made: Made, search: Search, setting: str, *, usual: bool = True) -> list[Measured]:
    """Every query alone, one after the other, under every filter."""
    queries, found = made.asked(), []
    for number, which in enumerate(FILTERS):
        right, seconds, hits = made.right(number), [], 0
        for place, query in enumerate(queries):
            start = time.perf_counter()
            rows = search(query, which)
            if place >= WARM_UP:
                seconds.append(time.perf_counter() - start)
                hits += len({int(row) for row in rows} & set(right[place].tolist()))
        p50, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
        found.append(Measured(setting, which.name, hits / (K * len(seconds)), float(p50), float(p99), usual))
    return found


def _of_store(name: str, made: Made, folder: Path, store: Store, took: float) -> Engine:
    memory = status("VmHWM")
    rows = measured(made, _searching(store), "usual")
    one = store.search(made.asked()[:1], 1).ids[0][0]
    fixed = _median(lambda: store.get([one]))
    batch = float("nan")
    if store.about().exact:
        queries = np.resize(made.asked(), (_BATCH, DIMENSION))
        batch = _BATCH / (_median(lambda: store.search(queries, K), 3) / 1000)
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Engine(name, took, disk, memory, tuple(rows), fixed, batch, _filtering(store), store.about().why)


def _filtering(store: Store) -> dict[str, float]:
    from rungwise.index import Condition, Where

    # Stores remember filters, so each is a little different.
    new = (1 + place * 1e-9 for place in range(1000))
    return {
        one.name: _median(lambda one=one: store.count(Where((Condition(one.column, "<", one.below * next(new)),))), 5)
        for one in FILTERS
        if one.column
    }


def _searching(store: Store) -> Search:
    from rungwise.index import Condition, Where

    filters = {one.name: Where((Condition(one.column, "<", one.below),)) if one.column else None for one in FILTERS}
    return lambda query, which: store.search(query[None], K, filters[which.name]).ids[0]


def _batches(made: Made) -> Iterator[StoreBatch]:
    from rungwise.index import StoreBatch

    chance, topic = made.column("chance"), made.column("topic_share")
    for block, vectors in made.blocks():
        records = [
            {"chance": one, "topic_share": other}
            for one, other in zip(chance[block].tolist(), topic[block].tolist(), strict=True)
        ]
        yield StoreBatch([str(row) for row in range(block.start, block.stop)], vectors, records)


def _median(job: Callable[[], object], repeats: int = _READS) -> float:
    """Milliseconds."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times[1:]))


def searching_alone(made: Made) -> int:
    """Highest resident bytes of a process that opens our LanceDB store and answers every query once."""
    from rungwise.index.stores.lance.store import LanceStore

    with LanceStore.open(made.folder / "lance", "pictures") as store:
        search = _searching(store)
        for query in made.asked():
            search(query, FILTERS[0])
    return status("VmHWM")
