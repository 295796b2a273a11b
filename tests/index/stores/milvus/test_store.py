"""What is Milvus's own: its server, large rows, filters that look at records, and indexes under an address of it.

What every store does is tested in test_store.py.

Also tests rungwise.index.stores.milvus._collection.
Also tests rungwise.index.stores.milvus._filters.
Also tests rungwise.index.stores.milvus._filtered_rows.
Also tests rungwise.index.stores.milvus._rows.
Also tests rungwise.index.stores.milvus._search.
Also tests rungwise.index.stores.milvus.full_text.
Also tests rungwise.index.stores.milvus._description.
Also tests rungwise.index.stores.milvus._order.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError, limited
from rungwise.data import read
from rungwise.index import WORDS, Condition, Index, Not, Where, parse_where
from rungwise.index.filters import Expression
from rungwise.index.layout import location, manifest
from rungwise.index.stores import Approximation, WordIndex
from rungwise.index.stores._id_sampling import smallest_keys
from rungwise.index.stores.milvus import MilvusStore, full_text
from rungwise.index.stores.milvus import _filtered_rows as filtered_rows
from rungwise.index.stores.milvus import _store as milvus_store
from rungwise.index.stores.milvus._collection import Collection
from rungwise.index.stores.milvus._filtered_rows import FilteredRows
from rungwise.index.stores.milvus._order import first_places, in_order, last_places
from rungwise.index.stores.milvus._search import parts_of
from rungwise.index.stores.milvus._server import Server
from rungwise.index.stores.milvus.catalog import address_in, read_file, write_file
from rungwise.similarity import Cosine, Inner
from tests.colour_model import COLOURS, ColourModel, colour_pictures
from tests.index.filter_expressions import EXPRESSIONS, RECORDS
from tests.milvus_server import LocalMilvus
from tests.tls import self_signed, tls_before


@pytest.fixture
def place(either_milvus: str) -> Iterator[str]:
    """Where nothing is; what is made there is removed, since a server works for all that it has loaded."""
    name = f"made_{uuid4().hex}"
    yield f"{either_milvus}/{name}"
    with closing(Server(address_in(f"{either_milvus}/{name}"))) as server:
        if server.behind(name) is not None:
            server.call(lambda client, _: client.drop_alias(name))
        for one in server.call(lambda client, _: client.list_collections()):
            if one.startswith(name):
                server.drop(one)


def unit(rows: int, dimension: int, seed: int = 0) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((rows, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_what_is_no_store_is_said(place: str) -> None:
    with pytest.raises(UserError, match="not found .*build the index"):
        MilvusStore.open(place, "store")
    with MilvusStore.create(place, "store", 2, Cosine()) as store:
        with pytest.raises(UserError, match="a store stands here already"):
            MilvusStore.create(place, "store", 2, Cosine())
        store._server.call(
            lambda client, _: client.alter_collection_properties(store.collection, {"rungwise": '{"dimension": 0}'})
        )
        with pytest.raises(UserError, match="damaged|dimension"):
            MilvusStore.open(place, "store")


def test_rows_that_are_altered_in_the_server_are_noticed(place: str) -> None:
    with MilvusStore.create(place, "store", 2, Cosine()) as store:
        store.upsert(["dog"], [[1.0, 0.0]], [{"legs": 4}])
        (row,) = store._kept.rows('id == "dog"', ["*"])
        for name, value in (("vector", [0.0, 1.0]), ("record", '{"legs": 5}')):
            store._kept.write([{**row, name: value}])
            with pytest.raises(UserError, match="'dog' is not as it was written"):
                store.verified()
        store._kept.write([row])
        assert store.verified().startswith("1 rows of 2")


def test_a_record_that_is_too_large_is_refused_and_columns_that_are_too_large_are_looked_at(place: str) -> None:
    with MilvusStore.create(place, "store", 2, Cosine(), columns={"title": "text"}) as store:
        with pytest.raises(UserError, match="'huge'.*65,535 bytes"):
            store.upsert(["huge"], [[1.0, 0.0]], [{"title": "x" * 70_000}])
        # As UTF-8 a list of these letters is larger than as JSON without them, and too large for the JSON field.
        large = {"title": "a boat", "tags": ["犬" * 9_000, "sea"]}
        store.upsert(["large", "small"], [[1.0, 0.0], [0.0, 1.0]], [large, {"title": "a boat", "tags": ["sea"]}])
        for text, fit in (
            ("tags has 'sea'", ["large", "small"]),
            ("not tags has 'sea'", []),
            ("title == 'a boat'", ["large", "small"]),
            ("tags contains '犬犬'", ["large"]),
            ("not tags contains '犬'", ["small"]),
        ):
            where = parse_where(text)
            assert [one for one, _ in store.records(where)] == fit
            assert store.count(where) == len(fit)
            assert sorted(store.search([[1.0, 0.0]], 5, where).ids[0]) == fit
            assert store.newest(1, where=where) == tuple(fit[-1:])


@pytest.mark.slow
def test_more_rows_than_one_answer_of_the_server_holds(place: str) -> None:
    vectors = unit(9000, 8)
    names = [f"p{n}" for n in range(len(vectors))]
    with MilvusStore.create(place, "store", 8, Cosine(), columns={"n": "number"}) as store:
        store.upsert(names, vectors, [{"n": n, "even": n % 2 == 0} for n in range(len(names))])
        assert list(store.ids()) == names
        assert store.count() == 9000
        where = Where((Condition("even", "==", True),))
        assert [one for one, _ in store.records(where)] == names[::2]
        assert store.newest(2, offset=1, where=where) == ("p8996", "p8994")
        truth = np.argsort(-(vectors[:3] @ vectors.T), axis=1, kind="stable")[:, :10]
        wanted = tuple(tuple(names[at] for at in row) for row in truth)
        assert store.search(vectors[:3], 10, exact=True).ids == wanted
        assert len(store.search(vectors[:1], 9000).ids[0]) == 9000
        many = frozenset(names[:3000])
        assert store.search(vectors[:1], 5, Where(without=many)).ids[0][0] not in many
        assert store.delete(names[:3000]) == 3000
        assert store.count() == 6000


def test_of_more_rows_than_are_to_be_read_some_are_counted_that_chance_drew(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus_store, "_COUNTED", 40)
    names = [f"p{n}" for n in range(200)]
    with MilvusStore.create(place, "store", 2, Cosine(), columns={"name": "text"}) as store:
        records = [{"name": "bob" if n < 50 else "eve", "n": n} for n in range(200)]
        store.upsert(names, [[1.0, 0.0]] * 200, records)
        with limited(counted_rows=199):
            found = store.counts(30)
        assert (found.rows, found.of, found.exact) == (40, 200, False)
        by_name = {one.name: one for one in found.columns}
        drawn = [records[int(one[1:])] for one in smallest_keys(names, 40)]
        assert by_name["name"].values == Counter(one["name"] for one in drawn)
        assert (by_name["n"].least, by_name["n"].complete) == (min(one["n"] for one in drawn), False)
        with limited(counted_rows=200):
            assert store.counts(200).exact


@pytest.mark.slow
def test_whoever_wants_some_rows_does_not_read_all(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered_rows, "_FIRST", 16)
    monkeypatch.setattr(filtered_rows, "ROWS_AT_ONCE", 16)
    names = [f"p{n}" for n in range(3000)]
    with MilvusStore.create(place, "store", 2, Cosine(), columns={"n": "number"}) as store:
        for start in range(0, len(names), 500):
            some = range(start, start + 500)
            store.upsert([names[n] for n in some], [[1.0, 0.0]] * 500, [{"n": n, "title": f"{n}"} for n in some])
        kept, read = store._kept, []
        each = Collection.rows

        def rows(self: Collection, only: str, names: list[str], limit: int | None = None) -> list[dict[str, Any]]:
            found = each(self, only, names, limit)
            read.append(0 if names == ["count(*)"] else len(found))
            return found

        monkeypatch.setattr(Collection, "rows", rows)

        def costs(ask: Callable[[], Any]) -> tuple[Any, int]:
            read.clear()
            return ask(), sum(read)

        assert [one for one, _ in store.records()] == names
        for ask, wanted in (
            (lambda: [one for one, _ in islice(store.records(), 10)], names[:10]),
            (lambda: list(store.newest(5)), names[:-6:-1]),
            (lambda: list(store.newest(5, offset=30)), names[-31:-36:-1]),
            (lambda: list(store.newest(3, where=parse_where("n < 1000"))), names[999:996:-1]),
            (lambda: list(store.newest(2, where=parse_where("title contains '299'"))), ["p2999", "p2998"]),
            (lambda: store.drawn(20), smallest_keys(names, 20)),
        ):
            found, number = costs(ask)
            assert found == wanted
            assert number < 400, "of 3,000 rows"
        assert list(store.newest(2, where=parse_where("title contains 'none'"))) == []
        location = in_order(kept, True)
        for count in (1, 5, 100, 2999, 3000, 5000):
            for found, rest in (
                (first := first_places(kept, True, count), location[: len(first)]),
                (last := last_places(kept, True, count), location[-len(last) :]),
            ):
                assert found.tolist() == rest.tolist()
                assert min(count, 3000) <= len(found) <= max(4 * count, 4)
        assert not len(first_places(kept, False, 3))


def test_words_that_many_rows_hold(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few texts are read, and they have nearly the scores of those that full text over all texts puts first."""
    monkeypatch.setattr(full_text, "LOOKED_AT", 60)
    rng = np.random.default_rng(3)
    vocabulary = np.array([f"word{n}" for n in range(300)])
    share = 1 / np.arange(1, 301) ** 1.1
    texts = [" ".join(rng.choice(vocabulary, size=8, p=share / share.sum())) for _ in range(1500)]
    names = [f"p{n}" for n in range(len(texts))]
    everything = WordIndex(zip(names, texts, strict=True))
    with MilvusStore.create(place, "store", 2, Cosine(), columns={"n": "number"}) as store:
        records = [{"n": n, WORDS: text} for n, text in enumerate(texts)]
        store.upsert(names, [[1.0, 0.0]] * len(names), records)
        read: list[int] = []
        parsed = Collection.parsed
        monkeypatch.setattr(
            Collection, "parsed", lambda self, rows: (read.append(len(rows)), parsed(self, rows))[1]
        )  # fmt: skip
        kept = []
        for number in range(60):
            words = " ".join(rng.choice(texts[rng.integers(len(texts))].split(), size=rng.integers(1, 6)))
            read.clear()
            found = store.find_words(words, 10).ids[0]
            assert sum(read) <= 3 * 60, words
            scores = dict(zip(*everything.best(words, len(names)), strict=True))
            best = sorted(scores.values(), reverse=True)[:10]
            assert len(found) == len(best), words
            assert all(set(words.split()) & set(texts[int(one[1:])].split()) for one in found)
            kept.append(sum(scores[one] for one in found) / sum(best))
            if number < 10:  # a filter that few rows pass has all of them ranked
                filtered = store.find_words(words, 10, parse_where("n < 50")).ids[0]
                holding = [n for n in range(50) if set(words.split()) & set(texts[n].split())]
                assert len(filtered) == min(10, len(holding))
                assert {int(one[1:]) for one in filtered} <= set(holding)
        assert np.mean(kept) > 0.95
        assert min(kept) > 0.75
        assert store.find_words("word0", 3).ids[0] == store.find_words("word0", 3).ids[0]
        assert store.find_words("unheard", 3).ids == ((),)


def test_equal_rows_stand_in_order_however_many_there_are(place: str) -> None:
    with MilvusStore.create(place, "store", 2, Inner()) as store:
        names = [f"{n}" for n in range(300)]
        store.upsert(names, [[1.0, 0.0]] * 300)
        assert store.search([[1.0, 0.0], [0.0, 0.0]], 5).ids == (tuple(names[:5]),) * 2
        store.upsert(["long"], [[3.0, 4.0]])
        assert store.search([[1.0, 0.0]], 2, metric="cosine").ids == (("0", "1"),)
        assert store.search([[1.0, 0.0]], 2).ids == (("long", "0"),)


def test_how_hard_to_look_is_kept(place: str) -> None:
    with MilvusStore.create(place, "store", 2, Cosine()) as store:
        harder = Approximation(probes=1, ef=321, refine=1)
        index = store.approximate_index
        assert index.settings == index.alternatives[0] != harder
        assert harder not in index.alternatives
        tried = index.trying(harder).approximate_index
        assert tried is not None
        assert tried.settings == harder
        assert store.approximate_index.settings == index.settings
        index.keep(harder)
        assert store.approximate_index.settings == harder
        with MilvusStore.open(place, "store") as other:
            assert other.approximate_index.settings == harder
            assert "ef 321" in other.about().why


FILTERED = {"year": "number", "tags": "text", "Year": "truth"}
"""Columns with fields of their own."""
FILTERS = st.lists(EXPRESSIONS, min_size=3, max_size=6)


@settings(max_examples=20)
@given(records=RECORDS, expressions=FILTERS)
def test_filters_are_what_python_says(records: list, expressions: list[Expression]) -> None:
    pytest.importorskip("pymilvus")
    from tests.index.milvus_in_memory import Kept, client_of

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pymilvus.MilvusClient", client_of(Kept()))
        check_filters(
            MilvusStore.create("milvus://memory/drawn", "store", 2, Cosine(), columns=FILTERED), records, expressions
        )


@pytest.fixture(scope="module")
def drawn(milvus: str) -> MilvusStore:
    """One store for all examples; its rows are replaced."""
    return MilvusStore.create(f"{milvus}/drawn_{uuid4().hex}", "store", 2, Cosine(), columns=FILTERED)


@pytest.mark.slow
@settings(max_examples=25)
@given(records=RECORDS, expressions=FILTERS)
def test_a_server_says_so_too(drawn: MilvusStore, records: list, expressions: list[Expression]) -> None:
    drawn.delete(list(drawn.ids()))
    check_filters(drawn, records, expressions)


def check_filters(store: MilvusStore, records: list, expressions: list[Expression]) -> None:
    names = [str(n) for n in range(len(records))]
    store.upsert(names, [[1.0, 0.0]] * len(records), records)
    kept = [record for _, record in store.records()]
    for expression in [one for given_one in expressions for one in (given_one, Not(given_one))]:
        where = Where((expression,))
        fit = [one for one, record in zip(names, kept, strict=True) if where.holds(one, record)]
        assert sorted(store.search([[1.0, 0.0]], 10, where).ids[0]) == sorted(fit), expression
        assert store.count(where) == len(fit), expression


def test_rows_are_parted_by_a_column(either_milvus: str) -> None:
    place = f"{either_milvus}/made_{uuid4().hex}?partition=album&shards=2"
    with MilvusStore.create(place, "store", 2, Cosine()) as store:
        assert store._server.described(store.collection)["num_shards"] == 2
        store.upsert(["a", "b", "c"], [[1.0, 0.0]] * 3, [{"album": "rome"}, {"album": "oslo"}, {}])
        assert store.search([[1.0, 0.0]], 5, parse_where("album == 'rome'")).ids == (("a",),)
        store.upsert(["a"], [[1.0, 0.0]], [{"album": "oslo"}])
        assert store.count() == 3
        assert store.search([[1.0, 0.0]], 5, parse_where("album == 'oslo'")).ids == (("b", "a"),)
        assert store.search([[1.0, 0.0]], 5, parse_where("album in ('oslo', 'rome')")).ids == (("b", "a"),)
        assert store.search([[1.0, 0.0]], 5, parse_where("not album == 'oslo'")).ids == (("c",),)


def test_small_and_large_files_are_replaced_whole(place: str) -> None:
    with manifest.replacing_folder(Path(place), overwrite=False) as draft:
        assert read_file(draft, "a.json") is None
        write_file(draft, "a.json", b"one")
    assert read_file(place, "a.json") == b"one"
    for content in (b"", bytes(range(256)) * 700, b"two", b"x" * 100_000):
        write_file(place, "a.json", content)
        assert read_file(place, "a.json") == content
    assert read_file(place, "b.json") is None
    manifest.discard(Path(place))
    assert read_file(place, "a.json") is None
    with pytest.raises(UserError, match="no index here"):
        write_file(place, "a.json", b"one")


KILLED = """
import os, signal, sys
from pathlib import Path
from rungwise.data import read
from rungwise.index import Index
from rungwise.index.stores.milvus._collection import Collection
from rungwise.index.stores.milvus._filtered_rows import FilteredRows
from rungwise.index.stores.milvus._order import first_places, in_order, last_places
from tests.colour_model import ColourModel

place, photos, calls = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
write, written = Collection.write, []

def writing(self, rows):
    if len(written) == calls:
        os.kill(os.getpid(), signal.SIGKILL)
    written.append(rows)
    write(self, rows)

Collection.write = writing
Index.open(place).update(read(photos), ColourModel())
"""


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 3])
def test_what_a_killed_update_left_is_made_good_by_the_next(calls: int, milvus: str, tmp_path: Path) -> None:
    """It dies before it writes pictures whose captions are written: those of the first batch, or of the second."""
    data, model = colour_pictures(tmp_path / "photos", list(COLOURS) * 20), ColourModel()
    with (tmp_path / "photos" / "captions.csv").open("w") as table:
        table.write("picture,caption\n")
        table.writelines(
            f"{one}.png,{caption} {one}\n" for one, caption in zip(data.image_ids, data.captions, strict=True)
        )
    data = read(tmp_path / "photos")
    assert len(data) > 64, "more than one batch"
    killed, whole = Path(f"{milvus}/made_{uuid4().hex}"), Path(f"{milvus}/made_{uuid4().hex}")
    Index.create(killed, model, store="auto")
    script = [sys.executable, "-c", KILLED, str(killed), str(tmp_path / "photos"), str(calls)]
    assert subprocess.run(script, cwd=Path(__file__).parents[4], check=False).returncode == -signal.SIGKILL
    found = Index.open(killed)
    assert len(found) == (0 if calls < 2 else 64)
    changes = found.update(data, model)
    assert (changes.added, changes.changed) == (len(data) - (0 if calls < 2 else 64), 0)
    rows = contents(found)
    assert rows == contents(Index.build(data, model, whole, store="auto"))
    assert len(rows) == len(data)


def contents(index: Index) -> list[tuple[str, Any, bytes]]:
    """Ids in order, what is said of each picture, and the bits of its vector."""
    rows = index.picture_store.get(list(index.picture_store.ids()))
    return [(one, row.record, row.vector.tobytes()) for one, row in rows.items()]


def test_a_new_index_takes_the_place_of_the_old_one_in_one_step(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "_SECONDS", -1.0)
    where, model = Path(place), ColourModel()
    red, blue = (colour_pictures(tmp_path / colour, [colour]) for colour in ("red", "blue"))
    old = Index.build(red, model, where, store="auto")

    def die(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(blue, model, where, store="auto", overwrite=True, progress=die)
    assert [item.id for item in Index.open(where).items()] == list(red.image_ids)
    new = Index.build(blue, model, where, store="auto", overwrite=True)
    assert [item.id for item in new.items()] == list(blue.image_ids)
    assert old.is_replaced()
    assert [hits[0].id for hits in old.search(np.ones((1, model.dimension)), 1)] == list(red.image_ids)
    new.compact()
    assert [item.id for item in Index.open(where).items()] == list(blue.image_ids)


def test_collections_of_somebody_else_stay_whatever_they_are_called(place: str, tmp_path: Path) -> None:
    where, model = Path(place), ColourModel()
    server = Server(address_in(place))
    name = server.address.name
    dated, below = f"{name}_20261125", f"{name}_20261125_pictures"
    with closing(server):
        for theirs in (dated, below):
            server.call(lambda client, _, theirs=theirs: client.create_collection(theirs, dimension=2))
        for colour in ("red", "green"):
            Index.build(colour_pictures(tmp_path / colour, [colour]), model, where, store="auto", overwrite=True)
        assert (server.has(dated), server.has(below)) == (True, True)
        generations = [one for one in server.call(lambda client, _: client.list_collections()) if one.startswith(name)]
        assert len(generations) == 2 + 2 * 3, "theirs, and three collections of each of two generations"
        Index.open(where).compact()
        manifest.discard(where)
        left = {one for one in server.call(lambda client, _: client.list_collections()) if one.startswith(name)}
        assert left == {dated, below}

        alias = address_in(f"{place}_alias")
        server.call(lambda client, _: client.create_alias(dated, alias.name))
        with pytest.raises(UserError, match="a collection of somebody else stands here; choose another name"):
            Index.build(colour_pictures(tmp_path / "red", ["red"]), model, Path(str(alias)), overwrite=True)
        assert server.behind(alias.name) == dated
        server.call(lambda client, _: client.drop_alias(alias.name))
        for theirs in (dated, below):
            server.drop(theirs)


@pytest.mark.slow
def test_a_server_that_goes_and_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are on its disk, a call waits for it, and whoever asks too early is told so."""
    pytest.importorskip("milvus")
    monkeypatch.setenv("MILVUS_PATIENCE", "2")
    server = LocalMilvus(tmp_path / "server", authorization_enabled=True)
    server.start()
    try:
        place = f"{server.address}/pets"
        with pytest.raises(UserError, match="does not answer .*MILVUS_TOKEN"):
            MilvusStore.create(place, "store", 2, Cosine())
        monkeypatch.setenv("MILVUS_TOKEN", "root:Milvus")
        monkeypatch.setenv("MILVUS_PATIENCE", "100000")  # it says that it is there before it answers
        store = MilvusStore.create(place, "store", 2, Cosine())
        store.upsert(["dog", "cat"], [[1.0, 0.0], [0.0, 1.0]], [{"legs": 4}] * 2)
        server.stop()
        with monkeypatch.context() as patch:
            patch.setattr(store._server, "_patience", 1.0)
            with pytest.raises(UserError, match="the server does not answer"):
                store.search([[1.0, 0.0]], 1)
        server.start()
        with MilvusStore.open(place, "store") as again:
            while True:  # while it begins, the server may refuse to load what it will load soon
                with suppress(UserError):
                    assert again.search([[1.0, 0.0]], 2).ids == (("dog", "cat"),)
                    break
                time.sleep(0.1)
            assert again.verified().startswith("2 rows of 2")
        assert store.search([[1.0, 0.0]], 1).ids == (("dog",),), "who had it open goes on"
    finally:
        server.stop()


@pytest.mark.slow
def test_few_rows_that_pass_a_filter_are_all_found(place: str) -> None:
    """Sealed rows with a graph, of which a tenth passes: the walk alone misses some."""
    vectors, names = unit(12_000, 32), [f"p{n}" for n in range(12_000)]
    chance = np.random.default_rng(1).random(len(names))
    with MilvusStore.create(place, "store", 32, Cosine(), columns={"chance": "number"}) as store:
        store.upsert(names, vectors, [{"chance": float(one)} for one in chance])
        store.compact()
        for share, parts in ((0.1, 2), (0.2, 4), (0.5, 1)):
            where = Where((Condition("chance", "<", share),))
            rows, index = FilteredRows(store._kept, where), store.approximate_index
            assert parts_of(rows, index.settings) == (9 if share == 0.5 else parts)
            fewer = replace(index.settings, flat=1)
            assert parts_of(rows, fewer) == parts
            tried = index.trying(fewer)
            assert store.count(where) == (chance < share).sum()
            found = tried.search(vectors[:20], 10, where).ids
            scores = np.where(chance < share, vectors[:20] @ vectors.T, -2)
            truth = [{names[at] for at in np.argsort(-row)[:10]} for row in scores]
            missed = sum(len(right - set(ids)) for right, ids in zip(truth, found, strict=True))
            assert missed <= (0 if parts > 1 else 10)


@pytest.mark.slow
def test_over_tls(milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path, "localhost")
    port, name = int(milvus.rpartition(":")[2]), f"made_{uuid4().hex}"
    with tls_before(port, certificate) as secured:
        there = f"milvus://localhost:{secured}/{name}"
        monkeypatch.setenv("MILVUS_TLS", "1")
        monkeypatch.setenv("MILVUS_CA_FILE", str(certificate))
        with MilvusStore.create(there, "store", 2, Cosine()) as store:
            store.upsert(["dog"], [[1.0, 0.0]])
            assert store.search([[1.0, 0.0]], 1).ids == (("dog",),)
    with tls_before(port, certificate) as secured:
        there = f"milvus://localhost:{secured}/{name}"
        monkeypatch.delenv("MILVUS_CA_FILE")
        monkeypatch.setenv("MILVUS_PATIENCE", "1")
        with pytest.raises(UserError, match="does not answer .*MILVUS_TLS"):
            MilvusStore.open(there, "store")
