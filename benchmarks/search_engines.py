"""What ``search.py`` compares: each engine builds its index and answers the same queries, in a process of its own.

Each row is printed and kept as soon as it is measured.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1]))  # servers to try come from the tests
from measuring import Rows, status
from search_data import FILTERS, WARM_UP, Filter, K, Made

if TYPE_CHECKING:
    from rungwise.index import Store, StoreBatch, Where

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
        a_second: Queries a second, one after the other.
        usual: Whether this is what one gets without asking.
    """

    setting: str
    filtered: str
    recall: float
    p50: float
    p99: float
    a_second: float
    usual: bool = True


@dataclass(frozen=True)
class Engine:
    """What an engine took, and how it answered.

    Attributes:
        name: Of the engine.
        build: Seconds to take in all rows and to make its index.
        searchable: Seconds after which all rows were found, by comparing all of them.
        disk: Bytes of its files; 0 where it has none.
        memory: Highest resident bytes of its process while building; mapped files count as far as they were read.
        measured: Settings and filters.
        fixed: Milliseconds of a call that compares hardly anything; nan where it was not measured.
        filtering: Milliseconds to find out which rows pass, by name of the filter, where it was not asked before.
        why: What the store says of itself; empty for faiss.
        batch: Queries a second in batches of a thousand; nan where it was not measured.
    """

    name: str
    build: float
    searchable: float
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


def exact_store(made: Made, rows: Rows) -> Engine:
    """Our memory map."""
    from rungwise.index import ExactStore
    from rungwise.similarity import Cosine

    folder = made.folder / "exact"
    start = time.perf_counter()
    with ExactStore.create(folder, made.dimension, Cosine()) as store:
        store.upsert_batches(_batches(made))
    took = time.perf_counter() - start
    return _of_store("ours, exact", made, rows, folder, ExactStore.open(folder), took, took)


def lance_store(made: Made, rows: Rows, sweep: Sequence[Mapping[str, int]], *, half: bool = False) -> Engine:
    """Our LanceDB store in a folder, where it gets inverted lists, with its own setting and with others.

    Args:
        made: The data.
        rows: Where each row is printed and kept.
        sweep: What of the usual setting is changed.
        half: Keep vectors in half precision.
    """
    from rungwise.index.stores.lance.store import LanceStore
    from rungwise.similarity import Cosine

    folder = made.folder / "lance"
    start = time.perf_counter()
    with LanceStore.create(folder, "pictures", made.dimension, Cosine(), half=half) as store:
        store.upsert_batches(_batches(made))
        searchable = time.perf_counter() - start
        store.compact()
    took, memory = time.perf_counter() - start, status("VmHWM")
    opened = LanceStore.open(folder, "pictures")
    found = _of_store("ours, inverted lists", made, rows, folder, opened, took, searchable)
    return replace(_swept(found, opened, made, rows, sweep), memory=memory)


def lance_engine(made: Made, rows: Rows, sweep: Sequence[Mapping[str, int]]) -> Engine:
    """Our LanceDB store with LanceDB's own approximate index, which tables in object stores have; here in a folder.

    Args:
        made: The data.
        rows: Where each row is printed and kept.
        sweep: What of the usual setting is changed.
    """
    from rungwise.index.stores.lance import store as lance
    from rungwise.similarity import Cosine

    lance.PAYS_FROM_BYTES = 0
    folder = made.folder / "engine"
    start = time.perf_counter()
    with lance.LanceStore.create(folder, "pictures", made.dimension, Cosine()) as store:
        store.upsert_batches(_batches(made))
        searchable = time.perf_counter() - start
        wanted = partial(lance._indexes_that_pay, by_engine=True)
        store._writer.compact(timedelta(milliseconds=1), wanted, lambda rows, dimension: "none")
    took, memory = time.perf_counter() - start, status("VmHWM")
    opened = lance.LanceStore.open(folder, "pictures")
    found = _of_store("ours, LanceDB's index", made, rows, folder, opened, took, searchable)
    return replace(_swept(found, opened, made, rows, sweep), memory=memory)


def lance_over_s3(made: Made, rows: Rows) -> Engine:
    """Our LanceDB store in an object store on this machine."""
    from tests.object_store import local_object_store

    from rungwise.index.stores.lance.store import LanceStore
    from rungwise.similarity import Cosine

    with local_object_store("rungwise"):
        start = time.perf_counter()
        with LanceStore.create("s3://rungwise/made", "pictures", made.dimension, Cosine()) as store:
            store.upsert_batches(_batches(made))
            store.compact()
        took = time.perf_counter() - start
        with LanceStore.open("s3://rungwise/made", "pictures") as opened:
            return _of_store("ours, LanceDB over S3", made, rows, made.folder / "nowhere", opened, took, took)


def milvus_store(made: Made, rows: Rows, sweep: Sequence[Mapping[str, int]]) -> Engine:
    """Our Milvus store with a server on this machine, with its own setting and with others.

    Args:
        made: The data.
        rows: Where each row is printed and kept.
        sweep: What of the usual setting is changed.
    """
    from tests.milvus_server import local_milvus

    from rungwise.index.stores.milvus import MilvusStore
    from rungwise.similarity import Cosine

    folder = made.folder / "milvus"
    with local_milvus(folder) as server:
        place = f"{server.address}/made"
        start = time.perf_counter()
        known = {"chance": "number", "topic_share": "number", "tag": "text"}
        store = MilvusStore.create(place, "pictures", made.dimension, Cosine(), columns=known)
        store.upsert_batches(_batches(made))
        store.compact()
        took = time.perf_counter() - start
        with store:
            found = _of_store("ours, Milvus", made, rows, folder, store, took, took)
            return replace(_swept(found, store, made, rows, sweep), memory=status("VmHWM", server.process))


def _swept(found: Engine, store: Store, made: Made, rows: Rows, sweep: Sequence[Mapping[str, int]]) -> Engine:
    """The engine with the figures of other settings of its approximate index, if it has one."""
    index = store.approximate_index
    for changes in sweep if index is not None else ():
        tried = index.trying(replace(index.settings, **changes))
        others = measured(made, rows, found.name, _searching(tried), _said(changes), usual=False)
        found = replace(found, measured=(*found.measured, *others))
    return found


def _said(settings: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def faiss_flat(made: Made, rows: Rows) -> Engine:
    """An exact scan by faiss."""
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    start = time.perf_counter()
    index = faiss.IndexFlatIP(made.dimension)
    for _, vectors in made.blocks():
        index.add(vectors)
    took, memory = time.perf_counter() - start, status("VmHWM")
    found = measured(made, rows, "faiss flat", _in_faiss(made, index, faiss.SearchParameters), "")
    queries = np.resize(made.asked(), (_BATCH, made.dimension))
    batch = _BATCH / (_median(lambda: index.search(queries, K), 3) / 1000)
    return Engine("faiss flat", took, took, 0, memory, tuple(found), batch=batch)


def faiss_hnsw(made: Made, rows: Rows, sweep: Sequence[int]) -> Engine:
    """A graph of near neighbours over whole vectors by faiss, M = 32.

    Args:
        made: The data.
        rows: Where each row is printed and kept.
        sweep: Values of efSearch.
    """
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    start = time.perf_counter()
    index = faiss.IndexHNSWFlat(made.dimension, 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    for _, vectors in made.blocks():
        index.add(vectors)
    return _of_faiss("faiss HNSW", made, rows, index, start, faiss.SearchParametersHNSW, "efSearch", sweep)


def faiss_lists(made: Made, rows: Rows, sweep: Sequence[int]) -> Engine:
    """Inverted lists over codes of one byte a number by faiss, in memory, four lists for each root of the rows.

    Args:
        made: The data.
        rows: Where each row is printed and kept.
        sweep: Values of nprobe.
    """
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    start = time.perf_counter()
    lists = 4 * int(made.rows**0.5)
    index = faiss.index_factory(made.dimension, f"IVF{lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    index.cp.niter, index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = 8, 20, 1
    chosen = np.unique(np.linspace(0, made.rows - 1, min(made.rows, 20 * lists)).astype(np.int64))
    index.train(np.array(made.vectors()[chosen]))
    for _, vectors in made.blocks():
        index.add(vectors)
    return _of_faiss("faiss IVF,SQ8", made, rows, index, start, faiss.IVFSearchParameters, "nprobe", sweep)


def _of_faiss(
    name: str,
    made: Made,
    rows: Rows,
    index: Any,
    start: float,
    parameters: Callable[..., Any],
    setting: str,
    sweep: Sequence[int],
) -> Engine:
    """An index of faiss that was begun at ``start`` and is whole, measured with each value of a setting."""
    took, memory = time.perf_counter() - start, status("VmHWM")
    found = []
    for value in sweep:
        search = _in_faiss(made, index, partial(parameters, **{setting: value}))
        found += measured(made, rows, name, search, f"{setting} {value}", usual=False)
    return Engine(name, took, took, _written(index, made), memory, tuple(found))


def _in_faiss(made: Made, index: Any, parameters: Callable[..., Any]) -> Search:
    """Searches in an index of faiss, with a selector under a filter."""
    selectors = _selectors(made)

    def search(query: NDArray[np.float32], which: Filter) -> Sequence[Any]:
        sel = selectors[which.name]
        return list(index.search(query[None], K, params=parameters(**({} if sel is None else {"sel": sel})))[1][0])

    return search


def _written(index: Any, made: Made) -> int:
    """Bytes of an index of faiss in a file."""
    import faiss

    file = made.folder / "index.faiss"
    faiss.write_index(index, str(file))
    size = file.stat().st_size
    file.unlink()
    return size


def _selectors(made: Made) -> dict[str, Any]:
    import faiss

    found: dict[str, Any] = {}
    for one in FILTERS:
        bits = np.packbits(made.allowed(one), bitorder="little")
        found[one.name] = faiss.IDSelectorBitmap(bits) if one.column else None
    return found


def measured(
    made: Made, rows: Rows, engine: str, search: Search, setting: str, *, usual: bool = True
) -> list[Measured]:
    """Every query alone, one after the other, under every filter."""
    queries, found = made.asked(), []
    for number, which in enumerate(FILTERS):
        right, seconds, hits, wanted = made.right(number), [], 0, 0
        for place, query in enumerate(queries):
            start = time.perf_counter()
            answer = search(query, which)
            if place >= WARM_UP:
                seconds.append(time.perf_counter() - start)
                hits += len({int(row) for row in answer} & set(right[place].tolist()))
                wanted += len(right[place])
        p50, p99 = (1000 * float(one) for one in np.quantile(seconds, [0.5, 0.99]))
        one = Measured(setting, which.name, hits / wanted, p50, p99, len(seconds) / sum(seconds), usual)
        rows.add(
            rows=made.rows, engine=engine, setting=setting or "usual", filter=which.name, recall=one.recall,
            p50_ms=p50, p99_ms=p99, a_second=one.a_second,
        )  # fmt: skip
        found.append(one)
    return found


def _of_store(name: str, made: Made, rows: Rows, folder: Path, store: Store, took: float, searchable: float) -> Engine:
    memory = status("VmHWM")
    found = measured(made, rows, name, _searching(store), "usual")
    one = store.search(made.asked()[:1], 1).ids[0][0]
    fixed = _median(lambda: store.get([one]))
    batch = float("nan")
    if store.about().exact:
        queries = np.resize(made.asked(), (_BATCH, made.dimension))
        batch = _BATCH / (_median(lambda: store.search(queries, K), 3) / 1000)
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    filtering, why = _filtering(store), store.about().why
    rows.add(
        rows=made.rows, engine=name, build_s=took, searchable_s=searchable, disk_MB=disk / MB, building_MB=memory / MB,
        one_row_ms=fixed, first_time_of_a_filter_ms=max(filtering.values()),
    )  # fmt: skip
    return Engine(name, took, searchable, disk, memory, tuple(found), fixed, batch, filtering, why)


def _filtering(store: Store) -> dict[str, float]:
    """Milliseconds to find out which rows pass a filter of numbers that was not asked before, by its name."""
    from rungwise.index import Condition, Where

    # Stores remember filters, so each is a little different.
    new = (1 + place * 1e-9 for place in range(1000))
    return {
        one.name: _median(lambda one=one: store.count(Where((Condition(one.column, "<", one.below * next(new)),))), 5)
        for one in FILTERS
        if one.column and not one.tag
    }


def _searching(store: Store) -> Search:
    filters = {one.name: _where(one) for one in FILTERS}
    return lambda query, which: store.search(query[None], K, filters[which.name]).ids[0]


def _where(which: Filter) -> Where | None:
    from rungwise.index import Condition, Where

    if not which.column:
        return None
    condition = Condition(which.column, "==", which.tag) if which.tag else Condition(which.column, "<", which.below)
    return Where((condition,))


def _batches(made: Made) -> Iterator[StoreBatch]:
    from rungwise.index import StoreBatch

    chance, topic, tags = (made.column(name) for name in ("chance", "topic_share", "tag"))
    for block, vectors in made.blocks():
        columns = chance[block].tolist(), topic[block].tolist(), tags[block].tolist()
        records = [{"chance": one, "topic_share": share, "tag": tag} for one, share, tag in zip(*columns, strict=True)]
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
