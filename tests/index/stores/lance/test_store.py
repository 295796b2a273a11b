"""What the LanceDB store promises beyond the contract (see test_store.py).

Also tests rungwise.index.stores._candidates.
Also tests rungwise.index.stores._engine_rows.
Also tests rungwise.index.stores.lance._description.
Also tests rungwise.index.stores.lance._filters.
Also tests rungwise.index.stores.lance._rows.
Also tests rungwise.index.stores._approximation.
Also tests rungwise.index.stores.lance._snapshot.
Also tests rungwise.index.stores.lance._engine_search.
Also tests rungwise.index.stores.lance._table_reader.
Also tests rungwise.index.stores.lance._table_rows.
Also tests rungwise.index.stores.lance._table_writer.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.index import WORDS, Both, Condition, Either, LanceStore, Store, Where
from rungwise.index.filters import Expression
from rungwise.index.stores import ApproximateIndex, Approximation
from rungwise.index.stores._approximation import usual
from rungwise.index.stores._engine_rows import as_text, column_of, from_engine, to_engine
from rungwise.index.stores.lance import _engine_search as engine_search
from rungwise.index.stores.lance import _snapshot as snapshot
from rungwise.index.stores.lance import _table_writer as table_writer
from rungwise.index.stores.lance import store as lance
from rungwise.index.stores.lance._rows import as_list
from rungwise.similarity import Cosine, Inner
from tests.index.filter_expressions import EXPRESSIONS, RECORDS, TEXTS
from tests.index.toy_store import ToyStore


@pytest.fixture
def store(tmp_path: Path) -> LanceStore:
    store = LanceStore.create(tmp_path, "store", 2, Cosine())
    store.upsert(list("abcdehijkl"), rows(10), [{"n": n} for n in range(10)])
    store.upsert(["f", "g"], rows(2))
    return store


def rows(count: int, dimension: int = 2) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, dimension)).astype(np.float32)


def reopened(store: LanceStore) -> LanceStore:
    return LanceStore.open(store.place, store.name)


def state(store: Any) -> list[tuple[str, dict, list[float]]]:
    """Everything a store holds, in order."""
    records = list(store.records())
    found = store.get([one for one, _ in records])
    return [(one, dict(record), found[one].vector.tolist()) for one, record in records]


NAMES = st.lists(st.sampled_from("abcdefghij"), max_size=8, unique=True)
CHANGES = st.lists(st.tuples(st.sampled_from(["upsert", "delete", "compact", "reopen"]), NAMES), max_size=6)


@given(changes=CHANGES, query=st.lists(st.integers(-2, 2), min_size=2, max_size=2), k=st.integers(1, 12))
@settings(max_examples=5)
@pytest.mark.parametrize("at_hand", ["nothing", "memory", "files", "lists", "lists, brought up to date"])
def test_any_sequence_of_changes_equals_a_dictionary(
    at_hand: str, changes: list[tuple[str, list[str]]], query: list[int], k: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "HELD_BYTES", 10**6 if at_hand == "memory" else 0)
        patch.setattr(lance, "MAPPED_FROM_ROWS", 10**6 if at_hand in ("nothing", "memory") else 1)
        patch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1 if "lists" in at_hand else 10**6)
        patch.setattr(table_writer, "_CHANGED", 0 if "date" in at_hand else 100)
        store, model = LanceStore.create(Path(folder), "store", 2, Inner()), ToyStore(2, Inner())
        for step, (change, names) in enumerate(changes):
            vectors = np.array([[(step + place) % 3 - 1, place % 2] for place in range(len(names))], np.float32)
            if change == "upsert":
                for one in (store, model):
                    one.upsert(names, vectors.reshape(-1, 2), [{"step": step}] * len(names))
            elif change == "delete":
                assert store.delete(names) == model.delete(names)
            elif change == "compact":
                store.compact()
            else:
                store = reopened(store)
            assert state(store) == state(model)
        where = Where((Condition("step", "<", 3),), without=frozenset("a"))
        for metric in (None, "cosine"):
            for answer in (None, where):
                ours, theirs = (one.search([query], k, answer, metric=metric) for one in (store, model))  # type: ignore[arg-type]
                assert ours.ids == theirs.ids
                np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-6)
                assert store.count(answer) == model.count(answer)
                assert store.newest(3, 1, answer) == model.newest(3, 1, answer)
                several = np.array([query, [1, 0], [0, 1], [-1, 2]])
                assert (
                    store.search(several, k, answer, metric=metric).ids[1:]
                    == tuple(  # type: ignore[arg-type]
                        model.search(one[None], k, answer, metric=metric).ids[0]  # type: ignore[arg-type]
                        for one in several[1:]
                    )
                )
        assert state(reopened(store)) == state(model)


@given(records=RECORDS, later=RECORDS, filters=st.lists(EXPRESSIONS, min_size=4, max_size=8))
@settings(max_examples=8)
def test_filters_hold_for_the_rows_for_which_they_hold_in_python(
    records: list[dict], later: list[dict], filters: list[Expression]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, model = LanceStore.create(Path(folder), "store", 1, Inner()), ToyStore(1, Inner())
        for prefix, some in (("a", records), ("b", later)):
            names = [f"{prefix}{number}" for number in range(len(some))]
            for one in (store, model):
                one.upsert(names, np.ones((len(some), 1)), some)
        for expression in filters:
            where = Where((expression,))
            fit = [one for one, _ in model.records(where)]
            assert [one for one, _ in store.records(where)] == fit, expression
            assert store.count(where) == len(fit)
            assert list(store.search([[1.0]], 20, where).ids[0]) == fit
            left = Where((expression,), without=frozenset(fit[:1]))
            assert list(store.search([[1.0]], 20, left).ids[0]) == fit[1:]


@pytest.mark.parametrize("whole", [Both, Either])
def test_thousands_of_conditions_are_one_filter(tmp_path: Path, whole: type[Both | Either]) -> None:
    store = LanceStore.create(tmp_path, "store", 1, Inner())
    store.upsert(["a", "b"], np.ones((2, 1)), [{"tags": ["x"], "n": 1}, {"n": -1}])
    many = tuple(Condition("n", ">", -1 - number) for number in range(2000))
    assert store.count(Where((whole(of=many),))) == (1 if whole is Both else 2)
    assert store.count(Where((whole(of=tuple(Condition("tags", "has", f"{n}") for n in range(2000))),))) == 0


@given(texts=st.lists(st.text(), max_size=5))
def test_texts_keep_their_order_and_identity_in_the_engine(texts: list[str]) -> None:
    assert [from_engine(to_engine(one)) for one in texts] == texts
    assert sorted(texts, key=to_engine) == sorted(texts)
    assert all(to_engine(one).encode() is not None for one in texts)
    assert all(as_text(one) != "" for one in texts)


@given(held=st.lists(TEXTS, max_size=4), sought=TEXTS)
def test_a_list_holds_a_text_exactly(held: list[str], sought: str) -> None:
    assert (as_list([sought]) in as_list(held)) == (sought in held)


def test_entries_have_columns_of_their_own() -> None:
    names = ["year", "Year", "y_ear", "y__ear", "_59_ear", "é", "e", "x" * 500, "x" * 501, "", " "]
    assert len({column_of("text", one) for one in names}) == len(names)


def test_the_set_of_rows_with_a_word_is_that_of_the_plain_implementation(tmp_path: Path) -> None:
    store, model = LanceStore.create(tmp_path, "store", 1, Inner()), ToyStore(1, Inner())
    texts = ["A CAFÉ by the sea", "cafe", "the the the dog", "犬 dog", "", "don't-stop", "x" * 100]
    for one in (store, model):
        one.upsert([f"{number}" for number in range(len(texts))], np.ones((len(texts), 1)),
                   [{"rungwise.words": text, "n": len(text)} for text in texts])  # fmt: skip
        one.upsert(["none"], np.ones((1, 1)))
    for compacted in (False, True):
        for words in ("café", "the", "dog sea", "犬", "stop", "x" * 100, "nothing", "", "'"):
            ours, theirs = store.find_words(words, 10), model.find_words(words, 10)
            assert sorted(ours.ids[0]) == sorted(theirs.ids[0]), (words, compacted)
            assert (np.diff(ours.scores[0]) <= 0).all()
        assert store.find_words("the", 1).ids == (("2",),)
        assert store.find_words("dog", 5, Where((Condition("n", ">", 10),), frozenset("9"))).ids == (("2",),)
        store.compact()


def test_a_store_is_made_once_and_opened_where_it_is(tmp_path: Path, store: LanceStore) -> None:
    with pytest.raises(UserError, match=r"store\.lance: a store stands here already"):
        LanceStore.create(tmp_path, "store", 2, Cosine())
    with pytest.raises(UserError, match=r"nowhere.*no store here"):
        LanceStore.open(tmp_path / "nowhere", "store")
    assert not (tmp_path / "nowhere").exists()


def test_what_another_writes_is_seen_after_a_refresh(store: LanceStore) -> None:
    other = reopened(store)
    store.upsert(["new"], [[1, 0]])
    store.delete(["a"])
    reopened(store).compact()
    store.refresh()
    assert (other.count(), "new" in other.get(["new"]), "a" in other.get(["a"])) == (12, False, True)
    other.refresh()
    assert state(other) == state(store)
    other.upsert(["late"], [[0, 1]])
    assert [one for one, _ in other.records()][-2:] == ["new", "late"]


def test_rows_that_are_added_are_not_copied_with_all_others(tmp_path: Path) -> None:
    store, model = LanceStore.create(tmp_path, "store", 4, Inner()), ToyStore(4, Inner())
    for one in (store, model):
        one.upsert([str(n) for n in range(50)], rows(50, 4))
    first, other = store._reader.snapshot._held, reopened(store)
    for one in (store, model):
        one.upsert(["new"], rows(1, 4))
    assert store.search(rows(3, 4), 5).ids == model.search(rows(3, 4), 5).ids
    assert np.shares_memory(store._reader.snapshot._held[0:1], first[0:1])
    assert (
        other.search(rows(3, 4), 5).ids[0]
        == tuple(one for one in model.search(rows(3, 4), 6).ids[0] if one != "new")[:5]
    )
    for one in (store, model):
        one.delete(["new"])
        one.upsert(["newer", "3"], rows(2, 4))
    assert store.search(rows(3, 4), 60).ids == model.search(rows(3, 4), 60).ids
    assert len(first) == 50


@pytest.mark.parametrize("at_hand", ["memory", "files", "lists"])
def test_any_number_of_ids_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_hand: str) -> None:
    monkeypatch.setattr(lance, "MAPPED_FROM_ROWS", 10**6 if at_hand == "memory" else 1)
    monkeypatch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1 if at_hand == "lists" else 10**9)
    store = LanceStore.create(tmp_path, "many", 4, Cosine())
    names = [f"r{row}" for row in range(2000)]
    store.upsert(names, rows(2000, 4), [{WORDS: "dog"}] * 2000)
    store.compact()
    for count in (999, 1001, 1995):
        left = Where(without=frozenset(names[:count]))
        assert set(store.search(rows(1, 4), 3, left).ids[0]) <= set(names[count:])
        assert set(store.find_words("dog", 3, left).ids[0]) <= set(names[count:])


def test_settings_of_the_approximate_index_are_stored(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.approximate_index is None
    monkeypatch.setattr(lance, "MAPPED_FROM_ROWS", 1)
    monkeypatch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1)
    store.compact()
    other, settings = reopened(store), Approximation(probes=2, refine=5, kind="lists")
    index = approximate(store)
    assert approximate(index.trying(settings)).settings == settings
    assert approximate(store).settings == index.settings == index.alternatives[0] == usual(12, "lists")
    index.keep(settings)
    assert approximate(store).settings == settings
    store.upsert(["x"], [[1, 0]])
    store.compact()
    assert approximate(reopened(store)).settings == settings
    assert approximate(other).settings == usual(12, "lists")
    other.refresh()
    assert approximate(other).settings == settings


def test_a_store_with_other_settings_writes_as_the_store_itself(
    store: LanceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance, "MAPPED_FROM_ROWS", 1)
    monkeypatch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1)
    store.compact()
    tried = approximate(store).trying(Approximation(probes=7, kind="lists"))
    tried.upsert(["x"], [[1, 0]])
    assert "x" in tried.get(["x"])
    assert "x" not in store.get(["x"])
    store.upsert(["y"], [[1, 0]])
    tried.refresh()
    assert state(tried) == state(store) == state(reopened(store))


def test_a_setting_for_another_kind_of_index_is_left_aside(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "PAYS_FROM_BYTES", 1)
    by_engine(store)
    assert "HNSW" in store.about().why
    approximate(store).keep(Approximation(probes=1, ef=9))
    assert approximate(reopened(store)).settings.ef == 9
    whole = state(store)
    monkeypatch.setattr(lance, "MAPPED_FROM_ROWS", 1)
    monkeypatch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1)
    store.compact()
    assert "inverted lists" in store.about().why
    assert approximate(reopened(store)).settings == usual(12, "lists")
    assert state(reopened(store)) == whole
    assert not [one for one in store._reader.snapshot.rows.table.list_indices() if one.columns == ["vector"]]


def by_engine(store: LanceStore) -> None:
    """Compact a store as one in an object store is: with LanceDB's own approximate index."""
    wanted = partial(lance._indexes_that_pay, by_engine=True)
    store._writer.compact(timedelta(milliseconds=1), wanted, lambda rows, dimension: "none")


def approximate(store: Store) -> ApproximateIndex:
    """The approximate index of a store that has one."""
    index = store.approximate_index
    assert index is not None
    return index


def test_an_approximate_index_answers_with_exact_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "PAYS_FROM_BYTES", 1000)
    monkeypatch.setattr(lance, "SCALARS_PAY_FROM", 10)
    store = LanceStore.create(tmp_path, "store", 16, Cosine())
    vectors = rows(600, 16)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.upsert([str(n) for n in range(600)], vectors, [{"n": n % 10, "tag": str(n % 3)} for n in range(600)])
    assert store.about().exact
    by_engine(store)
    assert not store.about().exact
    assert "HNSW" in store.about().why
    store.upsert(["new"], vectors[:1])
    where = Where((Condition("n", "==", 3),), frozenset({"3"}))
    tuned = approximate(store).trying(Approximation(flat=1))
    for one in (store, tuned):
        for answer in (None, where, Where(without=frozenset({"0"}))):
            found, exact = one.search(vectors[:3], 10, answer), one.search(vectors[:3], 10, answer, exact=True)
            for query in range(3):
                assert len(set(found.ids[query]) & set(exact.ids[query])) >= 8
                known = dict(zip(exact.ids[query], exact.scores[query].tolist(), strict=True))
                for name, score in zip(found.ids[query], found.scores[query].tolist(), strict=True):
                    assert known.get(name, score) == score
    assert store.search(vectors[:1], 2).ids == (("0", "new"),)
    assert store.search(vectors[:1], 2, metric="cosine").ids == (("0", "new"),)


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_damaged_files_are_refused_in_one_line(store: LanceStore, damage: str) -> None:
    files = sorted(
        path for path in (Path(store.place) / "store.lance").rglob("*") if path.suffix in (".lance", ".manifest")
    )
    refused, whole = 0, state(store)
    for path in files:
        before = path.read_bytes()
        if damage == "cut":
            path.write_bytes(before[: len(before) // 2])
        elif damage == "flip":
            path.write_bytes(bytes(255 - one for one in before))
        else:
            path.unlink()
        said = refusal(store, whole)
        path.write_bytes(before)
        refused += bool(said)
        assert not said or ("store.lance" in said and "\n" not in said)
    assert refused >= 3


def refusal(store: LanceStore, whole: list) -> str:
    """What opening and reading everything says; empty if it is all there."""
    try:
        assert state(reopened(store)) == whole
    except UserError as error:
        return str(error)
    return ""


def test_a_vector_or_record_that_was_altered_is_refused(tmp_path: Path) -> None:
    import lancedb

    store = LanceStore.create(tmp_path, "store", 2, Cosine())
    store.upsert(["a", "b"], np.eye(2), [{"x": 1}, {"x": 2}])
    assert "2 rows of 2 in version" in store.verified()
    table = lancedb.connect(str(tmp_path)).open_table("store")
    for values in ({"vector": [0.5, 0.5]}, {"record": json.dumps({"x": 3})}):
        table.update(where="id = 'a'", values=values)
        store._tables.acknowledge(table)
        with pytest.raises(UserError, match="'a' is not as it was written"):
            reopened(store).get(["a"])
        with pytest.raises(UserError, match="'a' is not as it was written"):
            reopened(store).verified()


def test_many_rows_are_found_by_codes_and_more_of_them_are_looked_at_under_a_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lance, "PAYS_FROM_BYTES", 1000)
    monkeypatch.setattr(lance, "GRAPH_UP_TO_ROWS", 1000)
    store = LanceStore.create(tmp_path, "many", 64, Cosine())
    vectors = rows(4000, 64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.upsert([str(n) for n in range(4000)], vectors, [{"year": n % 4} for n in range(4000)])
    by_engine(store)
    assert "IVF_RQ" in store.about().why
    index = approximate(store)
    assert index.settings.refine > 4
    tried = index.trying(replace(index.settings, probes=1, flat=10))
    year = Where((Condition("year", "==", 1),))
    under = [tried._reader.snapshot._settings_under(where) for where in (None, year)]  # type: ignore[attr-defined]
    assert [settings.probes for settings in under] == [1, 4]
    exact, near = (tried.search(vectors[:50], 10, year, exact=exact) for exact in (True, False))
    found = [len(set(one) & set(other)) for one, other in zip(exact.ids, near.ids, strict=True)]
    assert np.mean(found) > 8
    for query in range(50):
        known = dict(zip(exact.ids[query], exact.scores[query].tolist(), strict=True))
        for name, score in zip(near.ids[query], near.scores[query].tolist(), strict=True):
            assert known.get(name, score) == pytest.approx(score, abs=1e-6)
    exact = store.search(vectors[:50], 10, exact=True)
    recalled = []
    for most in (engine_search.COMPARED, 30, 1):  # candidates by whole vectors: as many as are set, then fewer
        monkeypatch.setattr(engine_search, "COMPARED", most)
        near = store.search(vectors[:50], 10)
        assert {len(one) for one in near.ids} == {10}
        recalled.append(np.mean([len(set(one) & set(other)) for one, other in zip(exact.ids, near.ids, strict=True)]))
    assert recalled[0] > recalled[1] > recalled[2] > 2


@pytest.mark.parametrize("in_memory", [True, False])
def test_vectors_and_hashes_are_read_without_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    if not in_memory:
        monkeypatch.setattr("rungwise.index.stores.lance._snapshot.HELD_BYTES", 0)
    store = LanceStore.create(tmp_path, "rows", 2, Cosine())
    rows = [f"r{row}" for row in range(60)]
    records = [{"hash": f"h{row // 2}"} if row % 3 else {} for row in range(60)]
    store.upsert(rows, np.random.default_rng(0).normal(size=(60, 2)), records)
    store.delete(["r7"])
    whole = store.get(rows)

    def refused(*_: object) -> None:
        raise AssertionError("a record is read")

    monkeypatch.setattr("rungwise.index.stores.lance._table_rows.json", SimpleNamespace(loads=refused))
    found = store.labelled(rows, "hash")
    assert {one: (row.vector.tolist(), row.label) for one, row in found.items()} == {
        one: (row.vector.tolist(), row.record.get("hash")) for one, row in whole.items()
    }
    if in_memory:  # and then nothing more of the table
        monkeypatch.setattr("rungwise.index.stores.lance._table_rows.TableRows.of", refused)
        assert store.labelled(["r9"], "hash")["r9"].label is None
    monkeypatch.undo()
    assert store.columns_beside(()) == {"hash"}
