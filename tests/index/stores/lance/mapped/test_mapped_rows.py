"""Rows that are mapped from files with inverted lists: what is found, what is written later, and what is damaged.

Also tests rungwise.index.stores.lance.mapped._inverted_lists.
Also tests rungwise.index.stores.lance.mapped._mapped_files.
Also tests rungwise.index.stores.lance.mapped._memory.
Also tests rungwise.index.stores.lance.mapped._word_lists.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import WORDS, Condition, LanceStore, Where
from rungwise.index.stores.lance import store as lance
from rungwise.index.stores.lance.mapped import _inverted_lists as inverted_lists
from rungwise.similarity import Cosine, Inner, Similarity

ROWS, DIMENSION = 3000, 16
NAMES = [f"r{row}\udcff" if row % 100 == 0 else f"r{row}" for row in range(ROWS)]


@pytest.fixture(autouse=True)
def _lists_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "MAPPED_FROM_ROWS", 1)
    monkeypatch.setattr(lance, "LISTS_PAY_FROM_BYTES", 1)


def vectors(seed: int = 0, rows: int = ROWS) -> np.ndarray:
    draw = np.random.default_rng(seed)
    centres = np.random.default_rng(9).standard_normal((20, DIMENSION))
    found = centres[draw.integers(0, 20, rows)] + 0.6 * draw.standard_normal((rows, DIMENSION))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def made(place: Path, similarity: Similarity | None = None, *, half: bool = False, length: float = 1) -> LanceStore:
    store = LanceStore.create(place, "store", DIMENSION, similarity or Cosine(), half=half)
    rows = vectors() * np.linspace(1, length, ROWS, dtype=np.float32)[:, None]
    store.upsert(NAMES, rows, [record(row) for row in range(ROWS)])
    store.compact()
    return store


def record(row: int) -> dict[str, object]:
    return {"n": row % 7, "hash": f"h{row}", WORDS: f"{'dog' if row % 3 else 'cat'} number{row % 50}"}


@pytest.fixture
def store(tmp_path: Path) -> LanceStore:
    return made(tmp_path)


def setting(store: LanceStore, **changes: int) -> LanceStore:
    """The same store, searched with another setting."""
    index = store.approximate_index
    assert index is not None
    tried = index.trying(replace(index.settings, **changes))
    assert isinstance(tried, LanceStore)
    return tried


def recall(store: LanceStore, where: Where | None = None, **how: str) -> float:
    """Share of the exact hits that are found; scores must be exact, and rows must pass."""
    queries = vectors(1, 40)
    found, exact = (store.search(queries, 10, where, exact=one, **how) for one in (False, True))  # type: ignore[arg-type]
    shares = []
    for query in range(len(queries)):
        assert len(found.ids[query]) == len(exact.ids[query])
        right = dict(zip(exact.ids[query], exact.scores[query].tolist(), strict=True))
        for one, score in zip(found.ids[query], found.scores[query].tolist(), strict=True):
            assert score == pytest.approx(right.get(one, score), abs=1e-6)
        assert (np.diff(found.scores[query]) <= 0).all()
        shares.append(len(set(found.ids[query]) & set(right)) / len(right))
    return float(np.mean(shares))


FILTERS = {
    "none": None,
    "some": Where((Condition("n", "==", 3),)),
    "without": Where(without=frozenset(NAMES[:40])),
    "both": Where((Condition("n", "<", 5),), frozenset(NAMES[:40])),
}


@pytest.mark.parametrize("where", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("half", [False, True])
def test_nearly_all_is_found_with_exact_scores(tmp_path: Path, half: bool, where: Where | None) -> None:
    store = made(tmp_path, half=half)
    assert recall(setting(store, probes=12, flat=10), where) > 0.98
    assert recall(setting(store, probes=10**6, refine=100, flat=10), where) == 1
    assert recall(setting(store, probes=1, refine=1, flat=10)) < 0.9
    assert recall(setting(store, flat=10**6), FILTERS["some"]) == 1  # all that pass are compared


@pytest.mark.parametrize("metric", [None, "cosine", "inner"])
def test_vectors_of_any_length_are_found(tmp_path: Path, metric: str | None) -> None:
    store = setting(made(tmp_path, Inner(), length=3), probes=12, flat=10)
    assert recall(store, **({} if metric is None else {"metric": metric})) > 0.97


def test_a_query_of_zeros_is_as_near_to_all(store: LanceStore) -> None:
    found = store.search(np.zeros((1, DIMENSION)), 3)
    assert found.ids[0] == tuple(NAMES[:3])
    assert not found.scores[0].any()


def test_more_rows_than_the_lists_looked_into_hold(store: LanceStore) -> None:
    tried = setting(store, probes=1, flat=1)
    assert len(tried.search(vectors(1, 1), ROWS).ids[0]) == ROWS
    assert len(tried.search(vectors(1, 1), 1500).ids[0]) == 1500
    assert len(tried.search(vectors(1, 1), 400, FILTERS["some"]).ids[0]) == 400
    assert len(tried.search(vectors(1, 1), 1000, FILTERS["some"]).ids[0]) == len(range(3, ROWS, 7))


def test_what_is_written_later_is_compared_beside_the_lists(store: LanceStore, tmp_path: Path) -> None:
    query = vectors(1, 1)
    first, second, third = store.search(query, 3).ids[0]
    reader = LanceStore.open(tmp_path, "store")
    assert reader.search(query, 1).ids[0] == (first,)
    store.delete([first])
    store.upsert([second, "new"], np.stack([-query[0], query[0]]), [{"n": 3, "hash": "changed"}, {"n": 9}])
    assert store.search(query, 2).ids[0] == ("new", third)
    assert store.search(query, 5, Where((Condition("n", "==", 9),))).ids[0] == ("new",)
    assert store.search(query, 1, Where(without=frozenset({"new"}))).ids[0] == (third,)
    assert store.search(-query, 1, FILTERS["some"]).ids[0] == (second,)
    found = store.labelled(["new", first, second, third, "nobody"], "hash")
    assert {one: row.label for one, row in found.items()} == {
        "new": None, second: "changed", third: f"h{NAMES.index(third)}",
    }  # fmt: skip
    np.testing.assert_array_equal(found["new"].vector, store.get(["new"])["new"].vector)
    assert recall(setting(store, probes=20, flat=10)) > 0.98
    assert reader.search(query, 1).ids[0] == (first,)  # a reader holds one version
    reader.refresh()
    assert reader.search(query, 2).ids == store.search(query, 2).ids


def test_rows_in_memory_are_taken_over(store: LanceStore) -> None:
    store.upsert(["a"], vectors(2, 1))
    before = store._reader.snapshot.mapped
    assert before is not None
    assert before.changed == 1
    store.upsert(["b"], vectors(3, 1))
    after = store._reader.snapshot.mapped
    assert after is not None
    assert after.files is before.files
    assert np.shares_memory(after._later[:1], before._later[:1])
    assert after.changed == 2
    assert store.search(vectors(3, 1), 1).ids[0] == ("b",)


def test_a_place_that_is_taken_anew_is_no_row_of_the_files(store: LanceStore) -> None:
    store.delete([NAMES[-1]])
    reopened = LanceStore.open(store.place, "store")
    reopened.upsert(["other"], -vectors()[-1:])  # in the place of the last row
    assert NAMES[-1] not in reopened.search(vectors()[-1:], 5).ids[0]
    assert reopened.search(-vectors()[-1:], 1).ids[0] == ("other",)


def test_lists_are_made_anew_once_many_rows_have_changed(store: LanceStore) -> None:
    before = folders(store)
    store.upsert(["a"], vectors(2, 1))
    store.compact()
    assert folders(store) == before
    store.delete(NAMES[: ROWS // 50])
    store.compact()
    (folder,) = folders(store)
    assert [folder] != before
    assert setting(store, probes=10**6).search(vectors(2, 1), 1).ids[0] == ("a",)
    mapped = store._reader.snapshot.mapped
    assert mapped is not None
    assert mapped.changed == 0
    store.delete([*NAMES[:-1], "a"])
    store.delete([NAMES[-1]])
    store.compact()
    assert folders(store) == []
    assert store.about().exact
    assert store.search(vectors(2, 1), 1).ids == ((),)


def folders(store: LanceStore) -> list[str]:
    return sorted(one.name for one in (Path(store.place) / "store.lance/rungwise.mapped").glob("*"))


def test_a_reader_of_lists_that_are_gone_goes_on(store: LanceStore) -> None:
    opened, other = (LanceStore.open(store.place, "store") for _ in range(2))
    query = vectors(1, 1)
    first = opened.search(query, 5).ids  # other has not mapped anything yet
    store.delete(NAMES[: ROWS // 50])
    store.compact(readers_may_lag=timedelta(milliseconds=1))
    assert len(folders(store)) == 1
    assert opened.search(query, 5).ids == first
    assert other.search(query, 5).ids == store.search(query, 5).ids


def test_searches_are_answered_while_lists_are_made(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, answers = LanceStore.open(store.place, "store"), []
    store.delete(NAMES[: ROWS // 50])
    made_lists = inverted_lists.make_lists

    def watched(*arguments: object, **named: object) -> object:
        reader.refresh()
        answers.append(reader.search(vectors(1, 1), 5).ids)
        return made_lists(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("rungwise.index.stores.lance.mapped._mapped_files.make_lists", watched)
    store.compact()
    assert answers == [store.search(vectors(1, 1), 5).ids]


def test_lists_that_cannot_be_made_lose_nothing(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.delete(NAMES[: ROWS // 50])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rungwise.index.stores.lance.mapped._mapped_files.make_lists", full)
        with pytest.raises(UserError, match="the disk is full"):
            store.compact()
    for one in (store, LanceStore.open(store.place, "store")):
        assert one.count() == ROWS - ROWS // 50
        assert recall(setting(one, probes=10**6, refine=100)) == 1
    store.compact()
    assert len(folders(store)) == 1


def files(store: LanceStore) -> Iterator[Path]:
    yield from sorted((Path(store.place) / "store.lance/rungwise.mapped").rglob("*.*"))


def asked(store: LanceStore) -> str:
    """What is said of searches in a store with damaged files; empty if nothing is. Answers must be right."""
    queries, place = vectors(1, 3), {name: at for at, name in enumerate(NAMES)}
    rows = vectors()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            opened = LanceStore.open(store.place, "store")
            if opened.approximate_index is not None:
                opened = setting(opened, flat=10)
            answers = [opened.search(queries, 10, where) for where in (None, FILTERS["both"])]
            known = opened.get(answers[0].ids[0])
            words = opened.find_words("cat number9", 5)
        except UserError as error:
            return str(error)
    for found in answers:
        for query, ids, scores in zip(queries, found.ids, found.scores, strict=True):
            np.testing.assert_allclose(scores, [rows[place[one]] @ query for one in ids], atol=1e-5)
    assert {one: row.record for one, row in known.items()} == {one: record(place[one]) for one in answers[0].ids[0]}
    assert len(words.ids[0]) == len(words.words)
    return " ".join(str(one.message) for one in caught)


@pytest.mark.parametrize("damage", ["cut", "longer", "flip", "gone"])
def test_damaged_files_are_refused_or_find_rows_with_their_own_scores(store: LanceStore, damage: str) -> None:
    refused, paths = [], list(files(store))
    for path in paths:
        before = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            flipped = before[:200] + bytes(255 - one for one in before[200:])
            path.write_bytes({"cut": before[:-2], "longer": before + b"x", "flip": flipped}[damage])
        if said := asked(store):
            refused.append(path.name)
            assert "rungwise index compact" in said
            assert "\n" not in said
        with pytest.raises(UserError), warnings.catch_warnings(action="ignore"):
            LanceStore.open(store.place, "store").verified_files()
        path.write_bytes(before)
    answered = {path.name for path in paths} - set(refused)
    numbers = {"lengths.npy", "places.npy", "hashes.npy", "by_hash.npy", "codes.bin", "list_of_row.npy"}
    numbers |= {"texts.npy", "text_ends.npy"} | {f"word_{name}.npy" for name in ("hashes", "ends", "rows", "weights")}
    more = {path.name for path in paths if path.suffix == ".npy"}
    assert answered <= {"flip": numbers, "longer": more}.get(damage, set()), answered


def test_damaged_lists_are_made_anew(store: LanceStore) -> None:
    for name in ("vectors.npy", "rows.json", "sizes.npy"):
        (folder,) = folders(store)
        path = Path(store.place) / "store.lance/rungwise.mapped" / folder / name
        path.write_bytes(bytes(255 - one for one in path.read_bytes()))
        assert asked(store)
        with warnings.catch_warnings(action="ignore"):
            LanceStore.open(store.place, "store").compact(readers_may_lag=timedelta(milliseconds=1))
        assert asked(store) == ""
        assert folders(store) != [folder]
        LanceStore.open(store.place, "store").verified_files()
