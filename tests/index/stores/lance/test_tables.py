"""Which version of a LanceDB table counts: after deaths and power cuts, on full disks, and for several processes.

Also tests rungwise.index.stores.lance._version_file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import Condition, LanceStore, Where
from rungwise.index.stores import write_description
from rungwise.index.stores.lance import COUNTS, Tables
from rungwise.index.stores.lance import _tables as tables
from rungwise.index.stores.lance import store as lance
from rungwise.index.stores.lance._tables import connected
from rungwise.similarity import Cosine


@pytest.fixture
def store(tmp_path: Path) -> LanceStore:
    store = LanceStore.create(tmp_path, "store", 2, Cosine())
    store.upsert(["a", "b"], np.eye(2))
    return store


def ids(store: LanceStore) -> list[str]:
    return [one for one, _ in store.records()]


def manifests(store: LanceStore) -> list[Path]:
    return sorted((Path(store.place) / "store.lance/_versions").glob("*.manifest"))


def test_what_was_not_acknowledged_is_not_seen_and_is_cleared_away(
    store: LanceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(manifests(store))
    with monkeypatch.context() as patch:
        patch.setattr(Tables, "acknowledge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.upsert(["c"], [[1, 0]])
        with pytest.raises(KeyboardInterrupt):
            LanceStore.open(store.place, "store").delete(["a"])
    assert len(manifests(store)) == before + 1
    assert ids(store) == ids(LanceStore.open(store.place, "store")) == ["a", "b"]
    LanceStore.open(store.place, "store").upsert(["d"], [[1, 0]])
    store.refresh()
    assert ids(store) == ["a", "b", "d"]
    assert store.search([[1.0, 0.0]], 5).ids == (("a", "d", "b"),)


def flipped(path: Path) -> bytes:
    """What stood there before."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
    return data


def test_a_bit_of_any_file_of_the_version_is_found(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its indexes and its deletions among them; and a file that is missing."""
    monkeypatch.setattr(lance, "SCALARS_PAY_FROM", 1)
    store.upsert(["c", "d"], np.eye(2), [{"legs": 4, "rungwise.words": "a red dog"}] * 2)
    store.compact()
    store.upsert(["e"], [[1, 1]])
    store.delete(["c"])
    folder = Path(store.place) / "store.lance"
    listed = json.loads((folder / COUNTS).read_text())["files"]
    assert {name.split("/")[0] for name in listed} >= {"data", "_versions", "_deletions", "_indices"}
    store = LanceStore.open(store.place, "store")
    assert f" {len(listed)} files of LanceDB" in store.verified_files()
    for name in listed:
        before = flipped(folder / name)
        with pytest.raises(UserError, match=re.escape(f"{name}: damaged")):
            store.verified_files()
        (folder / name).write_bytes(before)
    for name in listed:
        if not name.startswith("_versions/"):
            before = (folder / name).read_bytes()
            (folder / name).unlink()
            with pytest.raises(UserError, match=re.escape(f"{name}: damaged (the file is missing)")):
                store.verified_files()
            (folder / name).write_bytes(before)
    assert store.verified_files()


def test_a_table_whose_description_lists_no_files_is_damaged(store: LanceStore) -> None:
    path = Path(store.place) / "store.lance" / COUNTS
    fields = json.loads(path.read_text())
    write_description(path, {name: fields[name] for name in ("format", "version", "counts")})
    with pytest.raises(UserError, match=r"rungwise\.json: damaged \(its list of files is none\)"):
        LanceStore.open(store.place, "store")


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_a_version_that_a_power_cut_left_in_pieces_does_not_count(store: LanceStore, content: bytes) -> None:
    newest = manifests(store)[0]
    (newest.parent / f"{int(newest.stem) - 1:020}.manifest").write_bytes(content)
    (newest.parent / "latest_version_hint.json").write_bytes(content)
    other = LanceStore.open(store.place, "store")
    assert ids(other) == ["a", "b"]
    other.upsert(["c"], [[1, 0]])
    assert ids(LanceStore.open(store.place, "store")) == ["a", "b", "c"]


def test_a_store_whose_making_was_cut_short_is_made_again(tmp_path: Path) -> None:
    LanceStore.create(tmp_path, "store", 3, Cosine()).upsert(["x"], np.ones((1, 3)))
    (tmp_path / "store.lance" / COUNTS).unlink()
    with pytest.raises(UserError, match="no store here"):
        LanceStore.open(tmp_path, "store")
    store = LanceStore.create(tmp_path, "store", 2, Cosine())
    assert (store.dimension, store.count()) == (2, 0)


def test_a_description_that_was_altered_is_refused(store: LanceStore) -> None:
    path = Path(store.place) / "store.lance" / COUNTS
    path.write_text(re.sub('"counts": [0-9]+', '"counts": 2', path.read_text()))
    with pytest.raises(UserError, match=r"rungwise\.json"):
        LanceStore.open(store.place, "store")


def test_files_are_on_the_disk_before_they_count(store: LanceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(store.place) / "store.lance"
    synced: set[int] = set()
    counted: list[set[Path]] = []
    replace = os.replace

    def files() -> set[Path]:
        return {path for path in folder.rglob("*") if path.is_file()}

    def replaced(draft: Path, target: Path) -> None:
        assert Path(target).name == COUNTS
        new = files() - before
        counted.append({path.parent for path in new})
        for path in (*new, folder, *(path.parent for path in new)):
            assert path.stat().st_ino in synced or path == Path(draft).parent, path
        replace(draft, target)

    monkeypatch.setattr(os, "fsync", lambda handle: synced.add(os.fstat(handle).st_ino))
    monkeypatch.setattr(os, "replace", replaced)
    before = files()
    store.upsert(["c"], [[1, 0]])
    assert len(counted) == 1
    assert {folder / "data", folder / "_versions"} <= counted[0]
    before = files()
    synced.clear()
    store.delete(["c"])
    assert len(counted) == 2
    assert not {path.stat().st_ino for path in before if path.name != COUNTS} & synced, "once is enough"


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("LanceError(IO): No space left on device (os error 28)", "disk is full"),
        ("Permission denied (os error 13)", "may not be written"),
        ("Retryable commit conflict for version 3", "others keep writing"),
        ("strange\nthing " * 100, "could not be written .*what stood there before"),
    ],
)
def test_errors_of_the_engine_become_one_line(store: LanceStore, said: str, wanted: str) -> None:
    pauses: list[float] = []

    def fail() -> None:
        raise RuntimeError(said)

    with pytest.raises(UserError, match=rf"store\.lance: .*{wanted}") as caught:
        store._tables.retried(fail, pause=pauses.append)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert len(pauses) == (7 if "conflict" in said else 0)


def test_a_conflict_is_tried_again(store: LanceStore) -> None:
    left = ["Retryable commit conflict", "conflict"]

    def change() -> str:
        if left:
            raise RuntimeError(left.pop())
        return "done"

    pauses: list[float] = []
    assert store._tables.retried(change, pause=pauses.append) == "done"
    assert (len(pauses), left) == (2, [])
    assert 0 <= pauses[0] <= 0.02
    assert 0 <= pauses[1] <= 0.04


def test_a_panic_is_a_user_error_and_an_interrupt_is_not(store: LanceStore) -> None:
    class PanicException(BaseException):
        pass

    with pytest.raises(UserError, match="damaged"), store._tables.errors_in_one_line():
        raise PanicException("index out of bounds")
    with pytest.raises(KeyboardInterrupt), store._tables.errors_in_one_line():
        raise KeyboardInterrupt


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said(store: LanceStore) -> None:
    folder = Path(store.place) / "store.lance"
    for path in (folder, folder / "data"):
        path.chmod(0o500)
    with pytest.raises(UserError, match="may not be written"):
        store.upsert(["c"], [[1, 0]])
    for path in (folder, folder / "data"):
        path.chmod(0o700)


def test_a_reader_whose_version_was_removed_answers_from_the_newest(store: LanceStore) -> None:
    store.upsert(["a", "c"], np.eye(2))
    other = LanceStore.open(store.place, "store")
    store.delete(["b"])
    store.compact(readers_may_lag=timedelta(milliseconds=1))
    assert other.search([[1.0, 0.0]], 5).ids == (("a", "c"),)
    late = LanceStore.open(store.place, "store")
    store.upsert(["a"], [[0, 1]])
    store.compact(readers_may_lag=timedelta(milliseconds=1))
    assert list(late.get(["a", "c"])) == ["a", "c"]
    assert late.newest(1) == ("a",)


def test_a_store_that_was_filled_and_compacted_takes_its_rows_place_once(tmp_path: Path) -> None:
    folder = tmp_path / "store.lance"

    def size() -> int:
        return sum(path.stat().st_size for path in (folder / "data").iterdir())

    store = LanceStore.create(tmp_path, "store", 256, Cosine())
    vectors = np.random.default_rng(0).standard_normal((100, 256))
    for number in range(4):
        store.upsert([f"{number}-{row}" for row in range(100)], vectors)
    before = size()
    store.compact()
    assert size() < 1.2 * before
    later = LanceStore.open(tmp_path, "store")
    later.upsert([f"4-{row}" for row in range(100)], vectors)
    later.compact()
    assert size() > 1.5 * before  # others may still read the files from before


def test_a_table_of_somebody_else_stays(tmp_path: Path) -> None:
    connected(tmp_path).create_table("store", [{"name": "dog"}])
    with pytest.raises(UserError, match=r"store\.lance: a table of somebody else stands here; choose another place"):
        LanceStore.create(tmp_path, "store", 2, Cosine())
    assert connected(tmp_path).open_table("store").to_arrow()["name"].to_pylist() == ["dog"]


@pytest.mark.parametrize("left", [True, False])
def test_what_one_who_died_while_making_a_store_has_left_is_replaced(store: LanceStore, left: bool) -> None:
    (Path(store.place) / "store.lance" / COUNTS).unlink()
    if not left:
        for manifest in manifests(store):
            manifest.unlink()
    made = LanceStore.create(store.place, "store", 2, Cosine())
    made.upsert(["c"], [[1, 0]])
    assert ids(LanceStore.open(store.place, "store")) == ["c"]


def test_a_damaged_table_of_nobody_knows_whom_stays(store: LanceStore) -> None:
    (Path(store.place) / "store.lance" / COUNTS).unlink()
    for manifest in manifests(store):
        manifest.write_bytes(b"")
    with pytest.raises(UserError, match=r"store\.lance: a table that cannot be read stands here; remove it"):
        LanceStore.create(store.place, "store", 2, Cosine())
    assert len(list((Path(store.place) / "store.lance/data").iterdir())) == 1


def test_a_store_can_be_moved(store: LanceStore, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "store.lance", tmp_path / "elsewhere" / "store.lance")
    moved = LanceStore.open(tmp_path / "elsewhere", "store")
    moved.upsert(["c"], [[1, 0]])
    assert ids(moved) == ["a", "b", "c"]


_WRITER = """
import sys
from pathlib import Path
import numpy as np
from rungwise.index import Condition, LanceStore, Where
from rungwise.index.stores.lance import store as lance

lance.LISTS_PAY_FROM_BYTES = lance.MAPPED_FROM_ROWS = int(sys.argv[4])
store, name = LanceStore.open(Path(sys.argv[1]), "store"), sys.argv[2]
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    ids = [f"{name}{number}-{row}" for row in range(20)]
    store.upsert(ids, np.ones((20, 2)), [{"n": number}] * 20)
    if number % 4 == 3:
        store.delete(ids[10:])
    if number % 3 == 2:
        store.compact()
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lists_from", [1, 10**9])
def test_two_writers_of_which_one_is_killed_and_a_reader(store: LanceStore, lists_from: int) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(store.place), name, count, str(lists_from)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, count in (("x", "3"), ("y", "1000"))
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    while started[0].poll() is None:
        store.refresh()
        known = ids(store)
        assert len(known) == len(set(known))
        assert store.count() == len(known)
        assert len(store.search([[1, 1]], 10**6).ids[0]) == len(known)
        time.sleep(0.05)
    started[1].send_signal(signal.SIGKILL)
    said = started[1].communicate()[0].split()
    assert started[0].returncode == 0
    store.upsert(["z"], [[1, 0]])
    known = ids(store)
    assert len(known) == len(set(known))
    assert (store.approximate_index is not None) == (lists_from == 1)
    # Of the one that was killed, everything that it said was done is there.
    for number in map(int, said):
        rows = [one for one in known if one.startswith(f"y{number}-")]
        assert len(rows) == (10 if number % 4 == 3 else 20)
    assert sum(one.startswith("x") for one in known) == 3 * 20


@pytest.mark.slow
def test_a_store_in_an_object_store_takes_two_writers_at_once(bucket: str) -> None:
    store = LanceStore.create(bucket, "store", 2, Cosine())
    store.upsert(["a", "b"], np.eye(2), [{"year": 1, "rungwise.words": "a dog"}, {"year": 2}])
    with pytest.raises(UserError, match=r"s3://pets/some/index/store\.lance: a store stands here already"):
        LanceStore.create(bucket, "store", 2, Cosine())
    with pytest.raises(UserError, match=r"s3://pets/some/index/none\.lance: .*not found"):
        LanceStore.open(bucket, "none")

    def write(name: str) -> None:
        other = LanceStore.open(bucket, "store")
        for number in range(3):
            other.upsert([f"{name}{number}", f"both{number}"], np.eye(2))

    writers = [threading.Thread(target=write, args=(name,)) for name in "xy"]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert store.count() == 2
    store.refresh()
    assert sorted(ids(store)) == sorted(
        ["a", "b", *(f"{name}{number}" for name in ("both", "x", "y") for number in range(3))]
    )
    assert store.search([[1.0, 0.0]], 1, Where((Condition("year", "<", 5),))).ids == (("a",),)
    assert store.find_words("dog").ids == (("a",),)
    assert store.delete(["a"]) == 1
    store.compact()
    assert LanceStore.open(bucket, "store").count() == 10


def test_what_the_engine_would_wait_for_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_startable", lambda: 11)
    with pytest.raises(UserError, match=r"out of memory: LanceDB needs 12 threads, and the system starts 11; allow"):
        connected(tmp_path)
