"""What the exact store promises beyond the contract (see test_store.py): deaths, full disks, readers, damage."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.disk import locks as locks_module
from rungwise.core.disk.locks import LOCKS
from rungwise.core.formats import NpyWriter
from rungwise.index import Condition, ExactStore, Where
from rungwise.index.stores import StoreBatch, write_description
from rungwise.index.stores.exact import _store as exact_module
from rungwise.similarity import Cosine, Order
from tests.index.toy_store import ToyStore


@pytest.fixture
def store(tmp_path: Path) -> ExactStore:
    store = ExactStore.create(tmp_path / "store", 2, Cosine())
    store.upsert(list("abcdehijkl"), rows(10), [{"n": n} for n in range(10)])
    store.upsert(["f", "g"], rows(2))
    assert len(store.snapshot.parts) == 2
    return store


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 2)).astype(np.float32)


def state(store: Any) -> list[tuple[str, dict, list[float]]]:
    """Everything a store holds, in order."""
    records = list(store.records())
    found = store.get([one for one, _ in records])
    return [(one, dict(record), found[one].vector.tolist()) for one, record in records]


def reopened(store: ExactStore) -> ExactStore:
    return ExactStore.open(store.folder)


NAMES = st.lists(st.sampled_from("abcdefghij"), max_size=8, unique=True)
CHANGES = st.lists(st.tuples(st.sampled_from(["upsert", "delete", "compact", "reopen"]), NAMES), max_size=12)


@given(changes=CHANGES, query=st.lists(st.integers(-2, 2), min_size=2, max_size=2), k=st.integers(1, 12))
@settings(max_examples=20)
def test_any_sequence_of_changes_equals_a_dictionary(
    changes: list[tuple[str, list[str]]], query: list[int], k: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, model = ExactStore.create(Path(folder) / "store", 2, Order()), ToyStore(2, Order())
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
        where = Where((Condition("step", "<", 5),), without=frozenset("a"))
        for answer in (None, where):
            ours, theirs = (one.search([query], k, answer) for one in (store, model))
            assert ours.ids == theirs.ids
            np.testing.assert_allclose(ours.scores, theirs.scores, atol=1e-6)
            assert store.count(answer) == model.count(answer)
        assert state(reopened(store)) == state(model)


class Killed(BaseException):
    """Stands for the end of the process: whatever it would do to files afterwards fails too."""


OPERATIONS = [(os, "fsync"), (os, "replace"), (os, "unlink"), (Path, "open"), (NpyWriter, "append")]


@contextmanager
def failing(at: int, error: BaseException, *, for_good: bool) -> Iterator[list[str]]:
    """The operation on files with this number fails, and all after it if the failure is for good; gives their names."""
    done: list[str] = []

    def counted(original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and args[1:2] in ((), ("r",), ("rb",)):
                return original(*args, **kwargs)  # reading, which changes nothing
            done.append(name)
            if len(done) - 1 == at or (for_good and len(done) > at):
                raise error
            return original(*args, **kwargs)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for place, name in OPERATIONS:
            patch.setattr(place, name, counted(getattr(place, name), name))
        yield done


CHANGE = {
    "insert": lambda store: store.upsert(["x", "y"], rows(2), [{"n": 9}] * 2),
    "update": lambda store: store.upsert(["a", "f"], rows(2), [{"n": 9}] * 2),
    "delete": lambda store: store.delete(["a", "g"]),
    "delete most": lambda store: store.delete(list("abcdehf")),
    "several batches": lambda store: store.upsert_batches(StoreBatch([one], rows(1)) for one in "axyz"),
    "compact": lambda store: store.compact(),
}


@pytest.mark.parametrize("change", CHANGE)
def test_a_death_at_any_operation_leaves_the_old_or_the_new(store: ExactStore, change: str, tmp_path: Path) -> None:
    store.delete(["b"])
    before = state(store)
    shutil.copytree(store.folder, tmp_path / "copy")
    CHANGE[change](copy := ExactStore.open(tmp_path / "copy"))
    after = state(copy)
    seen = []
    for at in range(100):
        place = tmp_path / str(at)
        shutil.copytree(store.folder, place)
        victim = ExactStore.open(place)
        with failing(at, Killed(), for_good=True) as done, suppress(Killed):
            CHANGE[change](victim)
        survivor = ExactStore.open(place)
        seen.append(state(survivor) == after)
        assert state(survivor) in (before, after)
        survivor.upsert(["late"], rows(1))
        assert state(ExactStore.open(place))[:-1] == (after if seen[-1] else before)
        assert_tidy(survivor)
        shutil.rmtree(place)
        if len(done) <= at:
            break
    assert seen == sorted(seen), "once it has happened, it stays"
    assert seen[-1]
    assert change == "compact" or not seen[0]


def assert_tidy(store: ExactStore) -> None:
    parts = json.loads((store.folder / "store.json").read_text())["parts"]
    kinds = (("vectors", "npy"), ("rows", "jsonl"))
    named = {f"{kind}-{part['number']}.{form}" for part in parts for kind, form in kinds}
    assert {file.name for file in store.folder.iterdir()} - LOCKS == named | {"store.json"}


@pytest.mark.parametrize("change", CHANGE)
def test_a_full_disk_leaves_the_old_and_is_one_line(store: ExactStore, change: str, tmp_path: Path) -> None:
    store.delete(["b"])
    before = state(store)
    for at in range(100):
        shutil.copytree(store.folder, place := tmp_path / str(at))
        victim = ExactStore.open(place)
        error: UserError | None = None
        with failing(at, OSError(errno.ENOSPC, "No space left on device"), for_good=False) as done:
            try:
                CHANGE[change](victim)
            except UserError as problem:
                error = problem
        if len(done) <= at:
            break
        # After the description was replaced, the change has happened.
        if error is not None and "replace" not in done[:at]:
            assert "disk is full" in str(error)
            assert "\n" not in str(error)
            assert state(victim) == state(ExactStore.open(place)) == before
        victim.upsert(["late"], rows(1))
        assert state(ExactStore.open(place)) == state(victim)
        assert_tidy(victim)
        shutil.rmtree(place)
    assert at > 3


def test_what_counts_is_on_the_disk_before(store: ExactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of new rows, their names in the folder, and the description, before it takes the place of the old one."""
    synced: list[int] = []
    counted: list[list[str]] = []
    replace = os.replace

    def replaced(draft: Path, target: Path) -> None:
        assert Path(draft).stat().st_ino in synced
        parts = json.loads(Path(draft).read_text())["parts"]
        new = [store.folder / f"{kind}-{parts[-1]['number']}" for kind in ("vectors", "rows")]
        files = [file for file in store.folder.iterdir() if file.with_suffix("") in new]
        counted.append(sorted(file.name for file in files))
        assert {file.stat().st_ino for file in files} <= set(synced)
        last_file = max(synced.index(file.stat().st_ino) for file in files)
        assert store.folder.stat().st_ino in synced[last_file:]
        synced.clear()
        replace(draft, target)

    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    monkeypatch.setattr(os, "replace", replaced)
    store.upsert(["x"], rows(1))
    assert store.folder.stat().st_ino in synced, "the new name of the description"
    store.compact()
    assert counted == [["rows-3.jsonl", "vectors-3.npy"], ["rows-4.jsonl", "vectors-4.npy"]]


WRITE = """
import pathlib, sys
import numpy as np
from rungwise.index import ExactStore
store = ExactStore.open(pathlib.Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    store.upsert([f"{number}-{row}" for row in range(3)], np.ones((3, 2), np.float32), [{"batch": number}] * 3)
    print(number, flush=True)
"""


def writer(store: ExactStore, first: int, end: int) -> subprocess.Popen[str]:
    """A process that writes batches of three rows and says the number of each that is written."""
    command = [sys.executable, "-c", WRITE, str(store.folder), str(first), str(end)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.smoke
def test_a_killed_process_loses_no_acknowledged_row_and_leaves_no_half_batch(tmp_path: Path) -> None:
    store = ExactStore.create(tmp_path / "store", 2, Cosine())
    draw = random.Random(0)
    sure: set[int] = set()
    for run in range(5):
        with writer(store, run * 30, run * 30 + 30) as process:
            assert process.stdout is not None
            for _ in range(draw.randrange(12)):  # then it is killed wherever it is
                sure.add(int(process.stdout.readline()))
            process.kill()
            sure.update(int(line) for line in process.stdout if line.endswith("\n"))
        found: dict[int, int] = {}
        for _, record in ExactStore.open(store.folder).records():
            found[record["batch"]] = found.get(record["batch"], 0) + 1
        assert set(found.values()) <= {3}
        assert sure <= set(found)
        assert len(set(found) - sure) <= run + 1
    assert sure, "no process got to write anything"
    store.upsert(["last"], rows(1))
    assert_tidy(store)


@pytest.mark.smoke
def test_writers_at_the_same_time_lose_nothing_of_each_other(store: ExactStore) -> None:
    before = [one for one, _ in store.records()]
    processes = [writer(store, first, first + 8) for first in (0, 8, 16)]
    said = [process.communicate()[0].split() for process in processes]
    assert said == [[str(number) for number in range(first, first + 8)] for first in (0, 8, 16)]
    store.refresh()
    after = [one for one, _ in store.records()]
    assert after[: len(before)] == before
    assert sorted(after[len(before) :]) == sorted(f"{number}-{row}" for number in range(24) for row in range(3))


def test_a_reader_keeps_its_version_until_it_asks_for_the_newest(store: ExactStore) -> None:
    reader = reopened(store)
    before, found = state(reader), reader.search([[1.0, 0.0]], 10)
    store.upsert(["a", "z"], rows(2))
    store.delete(["c"])
    store.compact()
    assert state(reader) == before
    again = reader.search([[1.0, 0.0]], 10)
    assert again.ids == found.ids
    np.testing.assert_array_equal(again.scores, found.scores)
    reader.refresh()
    assert state(reader) == state(store)


def test_a_store_that_is_being_merged_can_be_opened_at_any_time(store: ExactStore) -> None:
    stop = threading.Event()

    def write() -> None:
        mine = reopened(store)
        while not stop.is_set():
            mine.upsert(["x"], rows(1))
            mine.compact()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(60):
            assert len(state(reopened(store))) in (12, 13)
    finally:
        stop.set()
        thread.join()


def test_a_writer_sees_what_others_wrote_and_a_store_made_anew_in_its_place(store: ExactStore) -> None:
    other = reopened(store)
    other.upsert(["other"], rows(1))
    store.upsert(["mine"], rows(1))
    assert [one for one, _ in store.records()][-2:] == ["other", "mine"]
    shutil.rmtree(store.folder)
    anew = ExactStore.create(store.folder, 2, Cosine())
    anew.upsert(["v", "w", "x", "y", "z"], rows(5), [{"new": True}] * 5)
    store.upsert(["mine"], rows(1))
    assert [one for one, _ in store.records()] == ["v", "w", "x", "y", "z", "mine"]
    assert store.get(["v"])["v"].record == {"new": True}


def test_parts_stay_few_and_a_row_is_seldom_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ExactStore.create(tmp_path / "store", 2, Cosine())
    written = []
    append = NpyWriter.append
    monkeypatch.setattr(NpyWriter, "append", lambda self, some: written.append(len(some)) or append(self, some))
    for number in range(100):
        store.upsert([str(number)], rows(1))
        assert len(store.snapshot.parts) <= 8
    assert sum(written) <= 100 * 9
    store.compact()
    assert len(store.snapshot.parts) == 1


def test_deleted_rows_free_their_place_in_time(tmp_path: Path) -> None:
    store = ExactStore.create(tmp_path / "store", 2, Cosine())
    store.upsert([str(n) for n in range(100)], rows(100))
    store.delete([str(n) for n in range(50)])
    assert len(store.snapshot) == 100
    store.delete(["50"])
    assert len(store.snapshot) == store.count() == 49
    store.upsert([str(n) for n in range(1000, 1010)], rows(10))
    assert [one for one, _ in store.records()] == [*map(str, range(51, 100)), *map(str, range(1000, 1010))]


def test_scores_do_not_depend_on_how_rows_were_written(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((301, 64)).astype(np.float32)
    vectors[200] = vectors[3]
    names = [str(n) for n in range(301)]
    whole = ExactStore.create(tmp_path / "whole", 64, Cosine())
    whole.upsert(names, vectors)
    parted = ExactStore.create(tmp_path / "parted", 64, Cosine())
    for start, stop in ((0, 190), (190, 270), (270, 300), (300, 301)):
        parted.upsert(names[start:stop], vectors[start:stop])
    assert len(parted.snapshot.parts) > 1
    queries = generator.standard_normal((3, 64)).astype(np.float32)
    for metric in (None, "cosine", "inner"):
        one, other = (store.search(queries, 301, metric=metric) for store in (whole, parted))
        assert one.ids == other.ids
        np.testing.assert_array_equal(one.scores, other.scores)
    scores = dict(zip(one.ids[0], one.scores[0].tolist(), strict=True))
    assert scores["200"] == scores["3"]


def test_a_store_is_never_made_over_another(store: ExactStore) -> None:
    with pytest.raises(UserError, match="stands here already"):
        ExactStore.create(store.folder, 2, Cosine())


def test_a_record_that_json_cannot_hold_is_refused(store: ExactStore) -> None:
    before = state(store)
    for record in ({"when": object()}, {"n": float("nan")}):
        with pytest.raises(UserError, match=r"record of 'x' cannot be stored"):
            store.upsert(["w", "x"], rows(2), [{}, record])
    assert state(reopened(store)) == state(store) == before
    assert_tidy(store)


def test_an_id_in_two_batches_is_refused(store: ExactStore) -> None:
    before = state(store)
    with pytest.raises(UserError, match="'x' stands twice"):
        store.upsert_batches([StoreBatch(["x"], rows(1)), StoreBatch(["y", "x"], rows(2))])
    assert state(reopened(store)) == before


def test_a_writer_that_waits_too_long_is_told_so(store: ExactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks_module, "_SECONDS_TO_WAIT", 0)
    with locks_module.writing_alone(store.folder), pytest.raises(UserError, match="been writing here for 0 s"):
        reopened(store).delete(["a"])


def edit(folder: Path, **changes: object) -> None:
    """As somebody would who writes the checksum anew."""
    path = folder / "store.json"
    fields = json.loads(path.read_text()) | changes
    del fields["checksum"]
    write_description(path, fields)


def edit_part(folder: Path, **changes: object) -> None:
    """The same of what it says of its first part."""
    edit(folder, parts=[json.loads((folder / "store.json").read_text())["parts"][0] | changes])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "no store here"),
        (lambda folder: (folder / "store.json").write_text("{"), "not valid JSON"),
        (lambda folder: (folder / "store.json").write_text("[]"), "not the description"),
        (lambda folder: edit(folder, version=9), "version 9"),
        (lambda folder: edit(folder, dimension="wide"), "dimension"),
        (lambda folder: edit(folder, dimension=3), r"shape \(5, 3\) is expected"),
        (lambda folder: edit(folder, similarity="taste"), "similarity"),
        (lambda folder: edit_part(folder, rows=4), "5 rows where 4"),
        (lambda folder: edit_part(folder, deleted=[5]), "deletes a row"),
        (lambda folder: edit_part(folder, number=7), "missing"),
        (lambda folder: (folder / "vectors-0.npy").unlink(), "vectors-0.npy"),
        (lambda folder: (folder / "vectors-0.npy").write_bytes(b""), "vectors-0.npy"),
        (lambda folder: os.truncate(folder / "vectors-0.npy", 150), "vectors-0.npy"),
        (lambda folder: (folder / "rows-0.jsonl").unlink(), "rows-0.jsonl: damaged"),
        (
            lambda folder: (folder / "rows-0.jsonl").write_text("{}\n" * 5),
            r"rows-0.jsonl: damaged \(.*checksums differ",
        ),
        (lambda folder: (folder / "rows-0.jsonl").write_text("[]\n"), "line 1"),
        (lambda folder: (folder / "rows-0.jsonl").write_text('{"id": 1\n'), "line 1"),
    ],
)
def test_damage_is_one_line(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    store = ExactStore.create(tmp_path / "store", 2, Cosine())
    store.upsert(list("abcde"), rows(5))
    damage(store.folder)
    with pytest.raises(UserError, match=message) as error:
        reopened(store)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="this user may write everywhere")
def test_a_folder_that_may_not_be_written_can_be_read(store: ExactStore) -> None:
    store.folder.chmod(0o500)
    try:
        with pytest.raises(UserError, match="may not be written"):
            store.delete(["a"])
        assert reopened(store).count() == 12
    finally:
        store.folder.chmod(0o700)


def test_merging_keeps_rows_in_pieces(store: ExactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_module, "ROWS_AT_ONCE", 2)
    before = state(store)
    store.delete(["b"])
    store.compact()
    assert state(reopened(store)) == [row for row in before if row[0] != "b"]
