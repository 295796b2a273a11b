"""What every store must do. A new kind of store joins `STORES` and is put through all of it.

Also tests rungwise.index.stores._column_counts.
Also tests rungwise.index.stores.lance._column_counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.data import is_date
from rungwise.index import WORDS, Condition, ExactStore, Store, Where, parse_where, write_where
from rungwise.index.filters import understood
from rungwise.index.stores import Approximation, StoreBatch, words_of
from rungwise.index.stores._base import Side
from rungwise.index.stores._id_sampling import smallest_keys
from rungwise.index.stores.lance.store import LanceStore
from rungwise.index.stores.milvus import MilvusStore
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine, Similarity
from tests.index.toy_store import ToyStore

Make = Callable[..., Store]


def exact(folder: Path) -> Make:
    def make(dimension: int = 2, similarity: Similarity | None = None, side: Side = "image") -> Store:
        return ExactStore.create(folder / "store", dimension, similarity or Cosine(), side)

    return make


def toy(_: Path) -> Make:
    def make(dimension: int = 2, similarity: Similarity | None = None, side: Side = "image") -> Store:
        return ToyStore(dimension, similarity or Cosine(), side)

    return make


def lance(folder: Path) -> Make:
    def make(dimension: int = 2, similarity: Similarity | None = None, side: Side = "image") -> Store:
        return LanceStore.create(folder, "store", dimension, similarity or Cosine(), side)

    return make


class Listing(LanceStore):
    """A LanceDB store whose first rows get inverted lists, beside which all later ones are compared."""

    def upsert(self, *arguments: Any, **named: Any) -> None:
        super().upsert(*arguments, **named)
        if self.approximate_index is None:
            self.compact()


def lance_lists(folder: Path) -> Make:
    def make(dimension: int = 2, similarity: Similarity | None = None, side: Side = "image") -> Store:
        return Listing.create(folder, "store", dimension, similarity or Cosine(), side)

    return make


def lance_s3(address: str) -> Make:
    def make(dimension: int = 2, similarity: Similarity | None = None, side: Side = "image") -> Store:
        return LanceStore.create(f"{address}/{uuid4().hex}", "store", dimension, similarity or Cosine(), side)

    return make


_in_milvus: dict[tuple[str, int, Similarity, Side], list[str]] = {}
"""Stores that earlier tests made: Milvus takes two seconds until a new one can be searched."""


def milvus(address: str) -> Make:
    given: set[str] = set()

    def make(dimension: int = 2, similarity: Similarity | None = None, side: Side = "image") -> Store:
        similarity = similarity or Cosine()
        places = _in_milvus.setdefault((address, dimension, similarity, side), [])
        if free := [one for one in places if one not in given]:
            store = MilvusStore.open(free[0], "store")
            store.delete(list(store.ids()))
        else:
            known = {"legs": "number", "name": "text", "indoors": "truth"}
            places.append(f"{address}/made_{uuid4().hex}")
            store = MilvusStore.create(places[-1], "store", dimension, similarity, side, columns=known)
        given.add(str(store.address))
        return store

    return make


STORES = {"exact": exact, "lance": lance, "lance_lists": lance_lists, "toy": toy}
SERVED = {
    "milvus_in_memory": (milvus, "milvus_in_memory"),
    "lance_s3": (lance_s3, "bucket"),
    "milvus": (milvus, "milvus"),
}
"""Stores on a server or on a double of one, and the fixture that runs it."""
SLOW = ("lance_s3", "milvus")


@pytest.fixture(params=[pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in (*STORES, *SERVED)])
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    if request.param == "lance_lists":
        monkeypatch.setattr("rungwise.index.stores.lance.store.MAPPED_FROM_ROWS", 1)
        monkeypatch.setattr("rungwise.index.stores.lance.store.LISTS_PAY_FROM_BYTES", 1)
        few = Approximation(probes=1, flat=1, kind="lists")
        monkeypatch.setattr("rungwise.index.stores.lance._snapshot.usual", lambda rows, kind: replace(few, kind=kind))
    if request.param in SERVED:
        made, fixture = SERVED[request.param]
        return made(request.getfixturevalue(fixture))
    return STORES[request.param](tmp_path)


def opened_again(store: Store) -> Store:
    """The same store, as another process opens it."""
    match store:
        case ExactStore():
            return ExactStore.open(store.folder)
        case LanceStore():
            return LanceStore.open(store.place, store.name)
        case MilvusStore():
            return MilvusStore.open(str(store.address), store.name)
    pytest.skip("a store in memory alone is gone with its process")


PETS = {
    "dog": ([1.0, 0.0], {"legs": 4, "name": "Rex"}),
    "cat": ([0.0, 1.0], {"legs": 4, "name": "Tom", "indoors": True}),
    "bird": ([0.6, 0.8], {"legs": 2, "name": "Tweety", "indoors": False}),
    "fish": ([0.6, 0.8], {"legs": 0}),
}


@pytest.fixture
def pets(make: Make) -> Store:
    store = make()
    store.upsert(list(PETS), [vector for vector, _ in PETS.values()], [record for _, record in PETS.values()])
    return store


def slowly_counted(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, Any, Any, Any]]:
    """Rows, least, most and rows of each value by the name and type of columns, one value after the other."""
    found: dict[tuple[str, str], list[Any]] = {}
    for record in records:
        for name, value in record.items():
            match value:
                case bool():
                    found.setdefault((name, "truth"), []).append(value)
                case int() | float():
                    found.setdefault((name, "number"), []).append(float(value))
                case str():
                    found.setdefault((name, "text"), []).append(value)
                case [_, *_]:
                    found.setdefault((name, "list"), []).append(value)
    counts = {}
    for (name, type_), values in found.items():
        in_order = type_ == "number" or (type_ == "text" and all(map(is_date, values)))
        each: dict[Any, int] = {}
        for value in values:
            for one in set(value) if type_ == "list" else [value]:
                each[one] = each.get(one, 0) + 1
        ends = (min(values), max(values)) if in_order else (None, None)
        counts[name, type_] = (len(values), *ends, each)
    return counts


def counted(store: Store, most: int = 1000) -> dict[tuple[str, str], tuple[int, Any, Any, Any]]:
    counts = store.counts(most)
    assert counts.exact
    assert counts.rows == counts.of == store.count()
    return {
        (one.name, one.type): (one.rows, one.least, one.most, dict(one.values) if one.complete else None)
        for one in counts.columns
    }


NAMES = ("name", "legs", "indoors", "K\u00e4se", "an entry with a long name " * 8)
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda one: one + 0.0),
    st.sampled_from(
        ["", "a", "A", "2020-05-31", "2021-01-01T10:00:00Z", "\udcff", "\ue000\U0010fffe", "\U0010ffff", '"\\\n']
    ),
    st.lists(st.sampled_from(["", "sea", "sun", "\U0010ffff", "\ue000", "\ue000\U0010fffe"]), max_size=4),
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(records=st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), min_size=1, max_size=12))
def test_columns_are_counted_as_one_row_after_the_other_would_be(make: Make, records: list[dict[str, Any]]) -> None:
    store = _emptied(make)
    store.upsert([str(row) for row in range(len(records))], [[1.0, 0.0]] * len(records), records)
    assert counted(store) == slowly_counted(records)
    store.delete(["0"])
    assert counted(store) == slowly_counted(records[1:])


_made: dict[int, Store] = {}


def _emptied(make: Make) -> Store:
    """A store without rows; each test makes one."""
    if id(make) not in _made:
        _made.clear()
        _made[id(make)] = make()
    store = _made[id(make)]
    store.delete(list(store.ids()))
    return store


def test_of_a_column_with_more_values_than_are_kept_none_is_counted(make: Make) -> None:
    store = make()
    records = [{"name": f"pet {row}", "legs": row % 3, "met": f"2020-05-{1 + row:02}"} for row in range(9)]
    records[4]["tags"] = ["x" * 1000]
    store.upsert([str(row) for row in range(9)], [[1.0, 0.0]] * 9, records)
    found = counted(store, most=5)
    assert found["name", "text"] == (9, None, None, None)
    assert found["met", "text"] == (9, "2020-05-01", "2020-05-09", None)
    assert found["legs", "number"] == (9, 0, 2, {0: 3, 1: 3, 2: 3})
    assert found["tags", "list"] == (1, None, None, None)  # it is too long


def test_zero_is_one_number_whatever_its_sign(make: Make) -> None:
    store = make()
    store.upsert(["a", "b", "c", "d"], [[1.0, 0.0]] * 4, [{"east": one} for one in (0.0, -0.0, 0, -0.0)])
    assert counted(store) == {("east", "number"): (4, 0, 0, {0: 4})}


def test_an_empty_store_has_no_columns(make: Make) -> None:
    assert counted(make()) == {}


def ids(store: Store) -> list[str]:
    return [one for one, _ in store.records()]


def test_rows_come_back_in_order(pets: Store) -> None:
    assert dict(pets.records()) == {one: record for one, (_, record) in PETS.items()}
    assert ids(pets) == list(PETS)
    assert pets.count() == 4
    rows = pets.get(["fish", "unicorn", "dog"])
    assert list(rows) == ["fish", "dog"]
    assert rows["fish"].record == {"legs": 0}
    np.testing.assert_array_equal(rows["dog"].vector, np.array([1, 0], np.float32))


def test_search_gives_the_best_first_and_ties_in_order_of_rows(pets: Store) -> None:
    found = pets.search([[0.0, 1.0], [1.0, 0.0]], k=3)
    assert found.ids == (("cat", "bird", "fish"), ("dog", "bird", "fish"))
    np.testing.assert_allclose(found.scores, [[1, 0.8, 0.8], [1, 0.6, 0.6]], rtol=1e-6)
    assert all(len(row) == 4 for row in pets.search([[0.0, 1.0]], k=100).ids)


def test_the_newest_rows_are_those_written_last(pets: Store) -> None:
    assert pets.newest(2) == ("fish", "bird")
    assert pets.newest(2, offset=1) == ("bird", "cat")
    assert pets.newest(9, where=Where((Condition("legs", "==", 4),))) == ("cat", "dog")
    assert pets.newest(9, offset=9) == ()
    pets.upsert(["dog"], [[1.0, 0.0]])
    assert pets.newest(1) == ("dog",)


def test_the_same_rows_are_drawn_in_every_store(make: Make) -> None:
    names = [f"pet {number}" for number in range(200)] + ["犬", "\udcff"]
    store = make()
    store.upsert(names, [[1.0, 0.0]] * len(names))
    for count in (1, 7, 200, 1000):
        assert store.drawn(count) == smallest_keys(names, count)
    store.delete(names[1:])
    assert (store.drawn(0), store.drawn(3)) == ([], names[:1])


def test_a_row_that_is_written_again_is_replaced_and_stands_last(pets: Store) -> None:
    pets.upsert(["dog", "worm"], [[0.6, 0.8], [0.6, 0.8]], [{"legs": 3}, {}])
    assert ids(pets) == ["cat", "bird", "fish", "dog", "worm"]
    assert pets.get(["dog"])["dog"].record == {"legs": 3}
    assert pets.search([[0.0, 1.0]], k=10).ids[0] == ("cat", "bird", "fish", "dog", "worm")
    pets.upsert(["bird"], [[0.6, 0.8]])
    assert pets.search([[0.0, 1.0]], k=10).ids[0] == ("cat", "fish", "dog", "worm", "bird")
    assert pets.get(["bird"])["bird"].record == {}


def test_deleted_rows_are_gone_and_unknown_ids_do_not_matter(pets: Store) -> None:
    assert pets.delete(["bird", "unicorn", "bird"]) == 1
    assert ids(pets) == ["dog", "cat", "fish"]
    assert pets.search([[0.6, 0.8]], k=1).ids == (("fish",),)
    assert pets.delete(["bird"]) == 0
    assert pets.delete(["dog", "cat", "fish"]) == 3
    assert (pets.count(), ids(pets), pets.get(["dog"])) == (0, [], {})
    assert pets.search([[0.6, 0.8]], k=1).ids == ((),)
    pets.upsert(["dog"], [[1.0, 0.0]])
    assert pets.search([[0.6, 0.8]], k=1).ids == (("dog",),)


FILTERS = [
    (Where(), ["dog", "cat", "bird", "fish"]),
    (Where((Condition("legs", "==", 4),)), ["dog", "cat"]),
    (Where((Condition("legs", "<", 4), Condition("legs", ">=", 1.5))), ["bird"]),
    (Where((Condition("name", "!=", "Rex"),)), ["cat", "bird"]),
    (Where((Condition("name", "in", ("Rex", "Tom", 4)),)), ["dog", "cat"]),
    (Where((Condition("name", ">", "S"),)), ["cat", "bird"]),
    (Where((Condition("indoors", "==", True),)), ["cat"]),
    (Where((Condition("legs", "==", "4"),)), []),
    (Where((Condition("wings", "!=", 1),)), []),
    (Where((Condition("legs", "<=", 4),), without=frozenset({"dog", "unicorn"})), ["cat", "bird", "fish"]),
    (Where(without=frozenset({"cat"})), ["dog", "bird", "fish"]),
]


def test_filters_decide_what_is_found_and_counted(pets: Store) -> None:
    for where, fit in FILTERS:
        assert pets.count(where) == len(fit), where
        assert sorted(pets.search([[0.6, 0.8]], 10, where).ids[0]) == sorted(fit), where
    pets.delete(["cat"])
    pets.upsert(["dog"], [[1.0, 0.0]], [{"legs": 4, "name": "Rex"}])
    for where, fit in FILTERS:
        assert pets.count(where) == len(set(fit) - {"cat"}), where
        assert sorted(pets.search([[0.6, 0.8]], 10, where).ids[0]) == sorted(set(fit) - {"cat"}), where


@pytest.mark.parametrize("side", ["image", "text"])
@pytest.mark.parametrize("similarity", [Cosine(), Inner(), ShiftedCosine(), Order(), Order(root=True, absolute=True)])
def test_scores_are_the_similarity(
    make: Make, similarity: Similarity, side: Side, request: pytest.FixtureRequest
) -> None:
    generator = np.random.default_rng(0)
    rows, queries = (generator.standard_normal((n, 5)).astype(np.float32) for n in (7, 2))
    if similarity.metric is None and request.node.callspec.params["make"] in ("lance", "lance_lists", *SERVED):
        with pytest.raises(UserError, match=f"'{similarity.kind}'.*exact store"):
            make(5, similarity, side)
        return
    store = make(5, similarity, side)
    assert (store.dimension, store.similarity, store.side) == (5, similarity, side)
    store.upsert([str(n) for n in range(7)], rows)
    found = store.search(queries, 7)
    wanted = similarity.array(rows, queries).T if side == "image" else similarity.array(queries, rows)
    for query in range(2):
        order = np.argsort(-wanted[query], kind="stable")
        assert found.ids[query] == tuple(str(n) for n in order)
        np.testing.assert_allclose(found.scores[query], wanted[query][order], rtol=1e-5, atol=1e-6)


def test_metrics_compare_vectors_of_any_length(make: Make) -> None:
    store = make(2, Inner())
    store.upsert(["short", "long", "none"], [[0.1, 0.0], [3.0, 4.0], [0.0, 0.0]])
    cosine = store.search([[2.0, 0.0]], 3, metric="cosine")
    assert cosine.ids == (("short", "long", "none"),)
    np.testing.assert_allclose(cosine.scores[0], [1, 0.6, 0], rtol=1e-6)
    inner = store.search([[2.0, 0.0]], 3, metric="inner")
    assert inner.ids == (("long", "short", "none"),)
    np.testing.assert_allclose(inner.scores[0], [6, 0.2, 0], rtol=1e-6)
    assert list(store.search([[0.0, 0.0]], 3, metric="cosine").scores[0]) == [0, 0, 0]


def test_rows_that_do_not_fit_are_refused_and_change_nothing(pets: Store) -> None:
    for batch, message in (
        (StoreBatch(["a", "a"], np.zeros((2, 2))), "'a' stands twice"),
        (StoreBatch(["a"], np.zeros((1, 3))), "dimension 2"),
        (StoreBatch(["a", "b"], np.zeros((1, 2))), "one of each"),
        (StoreBatch(["a"], np.zeros((1, 2)), []), "one of each"),
        (StoreBatch(["a"], [[np.nan, 0]]), "NaN"),
        (StoreBatch([1], np.zeros((1, 2))), "id 1 is no text"),  # type: ignore[list-item]
    ):
        with pytest.raises(UserError, match=message):
            pets.upsert(*batch)
        assert ids(pets) == list(PETS)


def test_queries_that_do_not_fit_are_refused(pets: Store) -> None:
    queries: list
    for queries, k, message in (
        ([[1.0]], 1, "dimension 2"),
        ([1.0, 0.0], 1, "dimension 2"),
        ([[np.inf, 0]], 1, "NaN"),
        ([[1, 0]], 0, "at least"),
    ):
        with pytest.raises(UserError, match=message):
            pets.search(queries, k)


def test_batches_are_inserted_one_after_the_other(pets: Store) -> None:
    pets.upsert_batches(StoreBatch([name, "dog" if name == "a" else "cat"], np.eye(2)) for name in "ab")
    assert ids(pets) == ["bird", "fish", "a", "dog", "b", "cat"]


def test_any_text_is_an_id_and_any_json_a_record(make: Make) -> None:
    names = ["", " ", "a\nb", "犬", "\udcff", "'; drop table--", "../..", "x" * 5000]
    records = [{"tags": ["a", "b"], "place": {"x": 1.5, "y": None}, "犬": "\udcff"}] * len(names)
    store = make()
    store.upsert(names, np.ones((len(names), 2)), records)
    assert list(store.search(np.ones((1, 2)), 100).ids[0]) == names
    assert [row.record for row in store.get(names).values()] == records


def test_nothing_is_written_by_nothing(make: Make) -> None:
    with make() as store:
        store.upsert([], np.empty((0, 2)))
        assert (store.count(), store.delete([]), store.get([])) == (0, 0, {})
        store.refresh()
        assert store.search(np.ones((3, 2)), 5).ids == ((), (), ())
        assert store.search(np.empty((0, 2)), 5).ids == ()


TAGGED = {
    "a": {"year": 2021, "tags": ["beach", "Sea"], "title": "A red boat", WORDS: "a red boat on the beach"},
    "b": {"year": 2020, "tags": ["sea side"], "title": "Boats", WORDS: "two boats, one red one blue, and a red sail"},
    "c": {"tags": [], "title": "Café", WORDS: "a CAFÉ by the sea"},
    "d": {"tags": "beach", "year": "2021"},
    "e": {},
}


@pytest.fixture
def tagged(make: Make) -> Store:
    store = make()
    store.upsert(list(TAGGED), [[1.0, 0.0]] * len(TAGGED), list(TAGGED.values()))
    return store


def test_filters_on_lists_and_parts_of_texts(tagged: Store) -> None:
    for text, fit in (
        ("tags has 'beach'", ["a"]),
        ("tags has 'sea'", []),
        ("not tags has 'beach'", ["b", "c", "d", "e"]),
        ("tags contains 'SEA'", ["a", "b"]),
        ("tags contains 'beach'", ["a", "d"]),
        ("title contains 'boat'", ["a", "b"]),
        ("not title contains 'boat'", ["c", "d", "e"]),
        ("year == 2021 or tags has 'sea side'", ["a", "b"]),
        ("not (year == 2021 or tags has 'sea side')", ["c", "d", "e"]),
        ("not (year >= 2020 and title contains 'red')", ["b", "c", "d", "e"]),
        ("title in ('Boats', 'Café') and not year == 2020", ["c"]),
        ("not title == 'x' and not title != 'x'", ["d", "e"]),
        ("nowhere == 1", []),
        ("not nowhere == 1", ["a", "b", "c", "d", "e"]),
    ):
        where = parse_where(text)
        assert sorted(tagged.search([[1.0, 0.0]], k=9, where=where).ids[0]) == fit, text
        assert [one for one, _ in tagged.records(where)] == fit, text
        assert tagged.count(where) == len(fit), text


def test_words_are_found_without_case_and_accents(tagged: Store) -> None:
    for words, text, fit in (
        ("RED", None, ["a", "b"]),
        ("red", "year == 2020", ["b"]),
        ("cafe", None, ["c"]),
        ("Café, sail!", None, ["b", "c"]),
        ("beac", None, []),
        ("'; DROP TABLE", None, []),
        ("", None, []),
    ):
        where = None if text is None else parse_where(text)
        found = tagged.find_words(words, 9, where)
        assert sorted(found.ids[0]) == fit, words
        assert len(found.scores[0]) == len(fit)
        assert all(np.diff(found.scores[0]) <= 0)
        assert tagged.find_words(words, 1, where).ids[0] == found.ids[0][:1]


def test_what_words_find_says_the_words_of_each_row(tagged: Store) -> None:
    found = tagged.find_words("red café sail", 9)
    texts = {one: str(record.get(WORDS, "")) for one, record in tagged.records()}
    assert len(found.ids[0]) == 3
    assert found.words == tuple(frozenset(words_of(texts[one])) for one in found.ids[0])
    assert tagged.find_words("unheard", 9).words == ()


def test_vectors_come_with_a_text_of_the_record(make: Make) -> None:
    store = make()
    labels = ["e3", "", None, 5, "Käse \udcff", ["e3"]]
    records = [{} if one is None else {"hash": one, "other": "x"} for one in labels]
    rows = {f"p{at}": [float(at), 1.0] for at in range(len(labels))}
    assert store.labelled(["p0"], "hash") == {}
    store.upsert(list(rows), list(rows.values()), records)
    found = store.labelled(["p4", "gone", "p1", "p0", "p2", "p3", "p5"], "hash")
    assert [*found] == ["p4", "p1", "p0", "p2", "p3", "p5"]
    for at, label in enumerate(labels):
        assert found[f"p{at}"].label == (label if isinstance(label, str) else None)
        assert found[f"p{at}"].vector.tolist() == rows[f"p{at}"]
    assert store.labelled(["p0"], "nowhere")["p0"].label is None
    store.upsert(["p0"], [[9.0, 9.0]], [{"hash": "new"}])
    assert store.labelled(["p0"], "hash")["p0"].label == "new"
    assert store.labelled(["p0"], "hash")["p0"].vector.tolist() == [9.0, 9.0]


def test_columns_and_their_values_are_those_of_the_records(make: Make) -> None:
    store = make()
    long = "x" * 200
    records: list[dict] = [
        {"year": 2020, "title": "a", "seen": True, "tags": ["sea", "sun"], "rungwise.item": {}},
        {"year": 0.5, "title": "", "seen": False, long: "far", "Käse ": "b"},
        {"year": "unknown", "gone": 1},
    ]
    store.upsert(["a", "b", "c"], [[1.0, 0.0]] * 3, records)
    store.delete(["c"])
    store.upsert(["c"], [[1.0, 0.0]], [{"year": "unknown"}])
    assert store.columns_beside(()) == {"year", "title", "seen", "tags", long, "Käse "}, "no row has gone"
    assert store.columns_beside({"year", "tags"}) == {"title", "seen", long, "Käse "}
    for name, values in (
        ("year", {2020, 0.5, "unknown"}),
        ("title", {"a", ""}),
        ("seen", {True, False}),
        (long, {"far"}),
        ("gone", set()),
        ("yaer", set()),
    ):
        assert set(store.values(name)) == values, name
    assert list(map(list, store.values("tags"))) == [["sea", "sun"]]


def test_what_was_written_is_there_when_the_store_is_opened_again(pets: Store) -> None:
    pets.delete(["cat"])
    pets.upsert(["dog"], [[0.6, 0.8]], [{"legs": 3}])
    pets.close()
    with opened_again(pets) as again:
        assert (again.dimension, again.similarity, again.side) == (pets.dimension, pets.similarity, pets.side)
        assert again.identity == pets.identity != ""
        assert dict(again.records()) == {"bird": PETS["bird"][1], "fish": PETS["fish"][1], "dog": {"legs": 3}}
        assert again.search([[0.6, 0.8]], 9).ids == (("bird", "fish", "dog"),)
        assert again.verified().startswith("3 rows of 2")


def test_two_clients_see_what_the_other_wrote(pets: Store) -> None:
    with opened_again(pets) as other:
        assert ids(other) == list(PETS)
        pets.upsert(["worm"], [[1.0, 0.0]], [{"legs": 0}])
        pets.delete(["dog"])
        other.refresh()
        assert ids(other) == ["cat", "bird", "fish", "worm"]
        assert other.search([[1.0, 0.0]], 1).ids == (("worm",),)
        other.upsert(["cat"], [[1.0, 0.0]], [{"legs": 4}])
        pets.refresh()
        assert ids(pets) == ["bird", "fish", "worm", "cat"]
        assert pets.search([[1.0, 0.0]], 2).ids == (("worm", "cat"),)
        assert pets.count(Where((Condition("legs", "==", 0),))) == 2


@pytest.mark.slow  # whoever finds another one writing sleeps
def test_two_clients_that_write_at_once_lose_nothing(make: Make) -> None:
    store = make()
    names = {client: [f"{client}{n}" for n in range(40)] for client in "ab"}
    store.upsert([*names["a"], *names["b"]], np.zeros((80, 2)))

    def write(client: str) -> None:
        with opened_again(store) as mine:
            for start in range(0, 40, 10):
                mine.upsert(names[client][start : start + 10], np.ones((10, 2)), [{"client": client}] * 10)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, names))
    store.refresh()
    assert sorted(ids(store)) == sorted([*names["a"], *names["b"]])
    assert all(record["client"] == one[0] for one, record in store.records())
    assert store.count(Where((Condition("client", "==", "a"),))) == 40


DATED = {
    "early": {"taken": "2020-05-01T09:00:00", "modified": "2024-01-01T00:00:00Z", "folder": "Holidays/2020"},
    "last": {"taken": "2020-05-31T23:59:59.5+02:00", "folder": "Holidays"},
    "day": {"taken": "2020-05-31", "folder": "holidays"},
    "june": {"taken": "2020-06-01 00:00:00", "modified": "2020-06-02T00:00:00Z", "folder": "Holidays 2"},
    "copied": {"modified": "2020-05-31T10:20:30Z", "folder": "100%_a/b"},
    "again": {"modified": "2020-05-31T10:20:30Z", "folder": "100x_a/b"},
    "odd": {"taken": 7, "modified": "yesterday", "folder": ["Holidays"]},
    "none": {},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("taken between '2020-05-01' and '2020-05-31'", ["early", "last", "day"]),
        ("not taken between '2020-05-01' and '2020-05-31'", ["june", "copied", "again", "odd", "none"]),
        ("taken == '2020-05-31'", ["last", "day"]),
        ("taken != 'May 2020'", ["june"]),
        ("taken > '2020-05-31' or taken < '2020-05-02 10:00'", ["early", "june"]),
        ("taken >= '2020-05-31T23:59:59.5' and taken < '2020-06-01 00:00:00.001'", ["last", "june"]),
        ("taken in ('2020-05-01', '2020-06')", ["early", "june"]),
        ("modified == 2020", ["june", "copied", "again"]),
        ("modified == '2020-05-31T12:20:30+02:00'", ["copied", "again"]),
        ("folder == 'Holidays'", ["early", "last"]),
        ("folder != 'Holidays/'", ["day", "june", "copied", "again"]),
        ("not folder in ('Holidays', '100%_a')", ["day", "june", "again", "odd", "none"]),
        ("folder == 'Holidays/.'", ["last"]),
    ],
)
def test_dates_and_folders_mean_the_same_in_every_store(make: Make, text: str, found: list[str]) -> None:
    store = make()
    store.upsert(list(DATED), [[1.0, 0.0]] * len(DATED), list(DATED.values()))
    where = understood(parse_where(text), {"taken": "dates", "modified": "dates in UTC"})
    assert [one for one, _ in store.records(where)] == found
    assert store.count(where) == len(found)
    assert list(store.search([[1.0, 0.0]], 9, where).ids[0]) == found


def test_a_thousand_days_and_folders_in_one_filter(make: Make) -> None:
    store = make()
    store.upsert(["a", "b"], [[1.0, 0.0]] * 2, [{"taken": "2020-05-31", "folder": "f7/x"}, {"taken": "2020-05-30"}])
    months = [f"{year}-{month:02}" for year in range(2017, 2022) for month in range(1, 13)]
    days = [f"{month}-{day:02}" for month in months for day in range(1, 29, 2)]
    folders = [f"f{number}" for number in range(1000)]
    for column, values in (("taken", [*days, "2020-05-31"]), ("folder", folders)):
        where = understood(Where((Condition(column, "in", tuple(values)),)), {"taken": "dates"})
        assert store.count(where) == 1


@pytest.mark.parametrize(
    "name", ["attrs.articleType", "my column", "a-b", "größe", "and", "2020", "a`b\"'", "犬", "a\nb", "."]
)
def test_columns_of_any_name_can_be_filtered_by(make: Make, name: str) -> None:
    store = make()
    store.upsert(["a", "b"], [[1.0, 0.0]] * 2, [{name: "Shirt", f"{name} ": 2}, {f"{name} ": "Shirt"}])
    for condition, found in ((Condition(name, "==", "Shirt"), ["a"]), (Condition(f"{name} ", ">=", 2), ["a"])):
        where = parse_where(write_where(Where((condition,))))
        assert where == Where((condition,))
        assert [one for one, _ in store.records(where)] == found
        assert list(store.search([[1.0, 0.0]], 9, where).ids[0]) == found


def test_the_newest_rows_by_their_dates(make: Make) -> None:
    store, by = make(), ("taken", "modified")
    store.upsert(list(DATED), [[1.0, 0.0]] * len(DATED), list(DATED.values()))
    order = ["june", "last", "again", "copied", "day", "early", "none", "odd"]
    for offset in range(len(order) + 1):
        assert store.newest(3, offset, by=by) == tuple(order[offset : offset + 3])
    assert store.newest(9, where=parse_where("not folder contains 'a'"), by=by) == ("none",)
    assert store.newest(9, 1, parse_where("folder contains '100'"), by=by) == ("copied",)
    assert store.newest(9, where=Where(without=frozenset(["june", "none"])), by=by) == tuple(
        one for one in order if one not in ("june", "none")
    )
    assert store.newest(2, by=("modified",)) == ("early", "june")
    assert store.newest(2, by=("nothing",)) == store.newest(2) == ("none", "odd")
    store.delete(["june"])
    store.upsert(["late"], [[1.0, 0.0]], [{"modified": "2025-01-01T00:00:00Z"}])
    assert store.newest(2, by=by) == ("late", "last")
