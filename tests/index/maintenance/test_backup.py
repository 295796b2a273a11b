"""Backup and restoration of an index: nothing that a person would miss is lost.

Also tests rungwise.index.maintenance._restore.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk import locks, write_seal
from rungwise.data import read
from rungwise.index import Index, Searcher
from rungwise.index.layout import add_queries, keep_favourite, read_favourites
from rungwise.index.layout import manifest as storage
from rungwise.index.maintenance import _backup as backups
from rungwise.index.maintenance import backup_index, restore_index, verify_backup, verify_index
from rungwise.index.stores import StoreBatch
from tests.colour_model import ColourModel, colour_pictures
from tests.index.cutoff.test_cutoff import CALIBRATION

COLOURS = ["red", "green", "blue", "red", "yellow", "red"]


def made(tmp_path: Path, where: Path | None = None, **options: Any) -> Index:
    """An index with all that people keep in it, of a collection that is read from a folder."""
    colour_pictures(tmp_path / "photos", COLOURS)
    (tmp_path / "photos" / "broken.png").write_bytes(b"no picture")
    data, model = read(tmp_path / "photos"), ColourModel()
    index = Index.create(where or tmp_path / "index", model, name=data.name, data=data, **options)
    index.update(data, model)
    index.keep_calibration(replace(CALIBRATION, model_fingerprint=model.fingerprint))
    index.grade("a red square", data.image_ids[0], "right", "Ada")
    return index


def rows(index: Index) -> list[tuple[str, bytes, Any]]:
    found = []
    for store in (index.picture_store, index.caption_store):
        for batch in store.rows():
            vectors = np.asarray(batch.vectors, np.float32)
            found += [
                (one, vector.tobytes(), record)
                for one, vector, record in zip(batch.ids, vectors, batch.records or (), strict=True)
            ]
    return found


def hits(index: Index) -> list[list[tuple[str, float]]]:
    """Hits with equal scores among them, whose order is that of the rows."""
    searcher = Searcher(index, ColourModel())
    return [[(hit.id, hit.score) for hit in searcher.search(text, 6).hits] for text in ("red", "blue", "green red")]


@pytest.mark.parametrize("kind", ["lance", "exact"])
def test_what_is_lost_comes_back_and_an_update_has_nothing_to_do(kind: Any, tmp_path: Path) -> None:
    index = made(tmp_path, store=kind, thumbnails=True)
    storage.write_manifest(tmp_path / "index", replace(index.manifest, listing="what stood there"))
    keep_favourite(tmp_path / "index", "1-green.png")
    add_queries(tmp_path / "index", ["a red boat"], days=7, most=10)
    before = rows(index), hits(index), list(index.grades()), read_favourites(index.folder), index.asked_queries()
    small = index.thumbnail(rows(index)[0][0])
    calibration = (tmp_path / "index" / storage.CALIBRATION).read_bytes()
    said = backup_index(tmp_path / "index", tmp_path / "backup")
    assert (said.pictures, said.thumbnails) == (len(index), len(set(COLOURS)))
    assert all(not check.wrong for check in verify_backup(tmp_path / "backup"))
    shutil.rmtree(tmp_path / "index")

    done = restore_index(tmp_path / "backup", tmp_path / "index")
    assert (done.pictures, done.store, done.left, done.moved) == (len(index), kind, (), False)
    again = Index.open(tmp_path / "index")
    assert (rows(again), hits(again), list(again.grades())) == before[:3]
    assert (read_favourites(again.folder), again.asked_queries()) == before[3:]
    assert (tmp_path / "index" / storage.CALIBRATION).read_bytes() == calibration
    assert again.calibration is not None
    assert again.thumbnail(before[0][0][0]) == small is not None
    assert again.left_out == index.left_out != ()
    assert again.source == index.source
    assert not again.manifest.listing  # the next update reads the collection
    assert [check.wrong for check in verify_index(tmp_path / "index") if check.wrong] == []
    changes = again.update(read(tmp_path / "photos"), ColourModel())
    assert (changes.added, changes.changed, changes.removed, changes.encoded) == (0, 0, 0, 0)
    assert changes.unchanged == len(again)


@pytest.mark.parametrize(("kind", "other"), [("lance", "exact"), ("exact", "lance")])
def test_into_a_store_of_another_kind(kind: Any, other: Any, tmp_path: Path) -> None:
    index = made(tmp_path, store=kind)
    backup_index(tmp_path / "index", tmp_path / "backup")
    assert restore_index(tmp_path / "backup", tmp_path / "second", store=other).store == other
    again = Index.open(tmp_path / "second")
    assert (rows(again), again.manifest.store) == (rows(index), other)
    assert [[one for one, _ in some] for some in hits(again)] == [[one for one, _ in some] for some in hits(index)]


def into_and_out_of_milvus(address: str, tmp_path: Path) -> None:
    where = Path(f"{address}/kept_{uuid4().hex}")
    index = made(tmp_path, store="lance", thumbnails=True)
    keep_favourite(tmp_path / "index", "1-green.png")
    backup_index(tmp_path / "index", tmp_path / "backup")
    done = restore_index(tmp_path / "backup", where)
    assert (done.store, done.left, done.moved) == ("milvus", ("favourites.jsonl", "thumbnails.parquet"), True)
    there = Index.open(where)
    assert [one[:2] for one in rows(there)] == [one[:2] for one in rows(index)]
    assert [item.path for item in there.items()] == [item.path for item in index.items()]
    assert list(there.grades()) == list(index.grades())
    assert there.calibration is not None
    found = hits(there)
    assert [[one for one, _ in some] for some in found] == [[one for one, _ in some] for some in hits(index)]
    with pytest.raises(UserError, match=r"milvus://.*an index stands here already"):
        restore_index(tmp_path / "backup", where)
    changes = there.update(read(tmp_path / "photos"), ColourModel())
    assert (changes.added, changes.removed, changes.encoded) == (0, 0, 0)

    backup_index(where, tmp_path / "of Milvus")
    restore_index(tmp_path / "of Milvus", where, overwrite=True)
    back = Index.open(where)
    assert (rows(back), hits(back), list(back.grades())) == (rows(there), found, list(there.grades()))
    changes = back.update(read(tmp_path / "photos"), ColourModel())
    assert (changes.added, changes.changed, changes.removed) == (0, 0, 0)
    restore_index(tmp_path / "of Milvus", tmp_path / "third", store="lance")
    assert rows(Index.open(tmp_path / "third")) == rows(there)


def test_into_milvus_and_back(milvus_in_memory: str, tmp_path: Path) -> None:
    into_and_out_of_milvus(milvus_in_memory, tmp_path)


@pytest.mark.slow
def test_into_a_real_milvus_and_back(milvus: str, tmp_path: Path) -> None:
    into_and_out_of_milvus(milvus, tmp_path)


def test_milvus_is_read_again_where_somebody_writes_meanwhile(
    milvus_in_memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = Path(f"{milvus_in_memory}/busy")
    index = made(tmp_path, where)
    write, times = backups._write_rows, [0]

    def disturbed(most: int) -> None:
        def written(*words: Any) -> Any:
            found = write(*words)
            times[0] += 1
            if times[0] <= most:
                Index.open(where).remove([next(iter(index.picture_store.ids()))])
            return found

        monkeypatch.setattr(backups, "_write_rows", written)

    disturbed(1)
    said = backup_index(where, tmp_path / "backup")
    assert (times[0], said.pictures) == (2, len(COLOURS) - 1), "without the row that went meanwhile"
    times[0] = 0
    disturbed(9)
    with pytest.raises(UserError, match=r"^milvus://.*others wrote here while its rows were read, 3 times; run it"):
        backup_index(where, tmp_path / "another")
    assert not (tmp_path / "another").exists()


@pytest.mark.parametrize("kind", ["lance", "exact"])
def test_an_update_that_runs_meanwhile_is_not_in_it(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = made(tmp_path, store=kind)
    before, write = rows(index), backups._write_parquet

    def meanwhile(path: Path, dimension: int, batches: Iterator[StoreBatch]) -> int:
        if path.name == backups.PICTURES:
            other = Index.open(tmp_path / "index")
            other.remove([before[0][0]])
            other.compact()
        return write(path, dimension, batches)

    monkeypatch.setattr(backups, "_write_parquet", meanwhile)
    backup_index(tmp_path / "index", tmp_path / "backup")
    assert len(Index.open(tmp_path / "index")) == len(index) - 1
    restore_index(tmp_path / "backup", tmp_path / "index", overwrite=True)
    assert rows(Index.open(tmp_path / "index")) == before


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    made(tmp_path, store="exact")
    backup_index(tmp_path / "index", tmp_path / "backup")
    return tmp_path / "backup"


def test_what_stands_there_is_replaced_only_where_asked(backup: Path, tmp_path: Path) -> None:
    for again in (
        lambda: backup_index(tmp_path / "index", backup),
        lambda: restore_index(backup, tmp_path / "index"),
    ):
        with pytest.raises(UserError, match="stands here already; name another folder, or replace it with overwrite"):
            again()
    with pytest.raises(UserError, match=r"holds '.*', which is no part of a backup"):
        backup_index(tmp_path / "index", tmp_path / "photos", overwrite=True)
    with pytest.raises(UserError, match=r"s3://bucket/kept: a backup is a folder"):
        backup_index(tmp_path / "index", Path("s3://bucket/kept"))
    with pytest.raises(UserError, match=r"photos: no backup here"):
        restore_index(tmp_path / "photos", tmp_path / "new")
    backup_index(tmp_path / "index", backup, overwrite=True)
    restore_index(backup, tmp_path / "index", overwrite=True)


@pytest.mark.parametrize("name", ["pictures.parquet", "captions.parquet", "grades.jsonl", "backup.json", "SHA256SUMS"])
def test_a_flipped_bit_is_named_and_leaves_nothing(name: str, backup: Path, tmp_path: Path) -> None:
    content = bytearray((backup / name).read_bytes())
    content[len(content) // 2] ^= 1
    (backup / name).write_bytes(content)
    with pytest.raises(UserError, match=r"backup/.*(altered or damaged|damaged|missing|was put here)"):
        restore_index(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert any(check.wrong for check in verify_backup(backup))


@pytest.mark.parametrize("name", ["pictures.parquet", "issues.jsonl"])
def test_a_missing_file_is_named(name: str, backup: Path, tmp_path: Path) -> None:
    (backup / name).unlink()
    with pytest.raises(UserError, match=rf"backup/{name}: missing"):
        restore_index(backup, tmp_path / "new")
    (backup / name).write_text("")
    (backup / "more.txt").write_text("")
    write_seal(backup)
    with pytest.raises(UserError, match=r"more.txt"):
        restore_index(backup, tmp_path / "new")


def forged(backup: Path, file: str = "pictures.parquet", **columns: Any) -> None:
    """Rows of a file that somebody wrote, with checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(backup / file)
    for name, change in columns.items():
        values = change(table[name].to_pylist())
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, backup / file)
    write_seal(backup)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"record": lambda all: ["{}", *all[1:]]}, r"the picture '.*' lacks path or captions"),
        ({"record": lambda all: ["[" * 100_000, *all[1:]]}, r"pictures.parquet, row 1"),
        ({"record": lambda all: ["[]", *all[1:]]}, "row 1 holds no record"),
        ({"record": lambda all: [None, *all[1:]]}, "a value is missing after row 0"),
        ({"id": lambda all: [all[1], *all[1:]]}, "stands twice"),
        ({"vector": lambda all: [[float("nan")] * 3, *all[1:]]}, "NaN or infinity"),
    ],
)
def test_rows_of_strangers_are_checked(columns: Any, message: str, backup: Path, tmp_path: Path) -> None:
    forged(backup, **columns)
    with pytest.raises(UserError, match=message):
        restore_index(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert any(check.wrong for check in verify_backup(backup))


def test_captions_without_vectors_and_a_damaged_calibration_are_found(backup: Path, tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "more", ["red"])
    data = replace(data, captions=("a dog",), image_of_caption=np.zeros(1, np.int64), caption_ids=())
    Index.build(data, ColourModel(), tmp_path / "captioned")
    backup_index(tmp_path / "captioned", backup, overwrite=True)
    forged(backup, "captions.parquet", id=lambda _: ["a cat"])
    (backup / storage.CALIBRATION).write_text("nothing")
    write_seal(backup)
    wrong = [check.wrong for check in verify_backup(backup) if check.wrong]
    assert len(wrong) == 2
    assert "captions.parquet: damaged (no vector of the caption 'a dog')" in wrong[0]
    assert "calibration.json: not valid JSON" in wrong[1]


def test_small_copies_of_strangers_are_checked(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made(tmp_path, store="exact", thumbnails=True)
    backup_index(tmp_path / "index", tmp_path / "backup")
    path = tmp_path / "backup" / "thumbnails.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "content", pa.array(["../../other"] * len(table))), path)
    write_seal(tmp_path / "backup")
    with pytest.raises(
        UserError, match=r"thumbnails.parquet: damaged \('../../other' of [0-9]+ bytes is no small copy"
    ):
        restore_index(tmp_path / "backup", tmp_path / "new")
    assert any("no small copy" in check.wrong for check in verify_backup(tmp_path / "backup"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "of an index of version 99"),
        ({"dimension": 2**70}, "vectors of [0-9]+ numbers"),
        ({"dimension": 0}, "vectors of 0 numbers"),
        ({"mounts": ["a\0b"]}, "a path holds a character that none can have"),
        ({"layouts": []}, "as many folders as layouts"),
    ],
)
def test_an_index_that_cannot_be_is_refused(change: Any, message: str, backup: Path, tmp_path: Path) -> None:
    said = json.loads((backup / "backup.json").read_text())
    del said["checksum"]
    said["manifest"] |= {name: value for name, value in change.items() if name != "layouts"}
    said["manifest"]["source"] |= {name: value for name, value in change.items() if name == "layouts"}
    backups.write_description(backup / "backup.json", said)
    write_seal(backup)
    before = rows(Index.open(tmp_path / "index"))
    with pytest.raises(UserError, match=rf"backup/backup.json: damaged \({message}"):
        restore_index(backup, tmp_path / "index", overwrite=True)
    assert rows(Index.open(tmp_path / "index")) == before
    assert any(check.wrong for check in verify_backup(backup))


def test_nobody_writes_to_an_index_that_is_replaced(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refused = storage.write_issues, []

    def meanwhile(*what: Any) -> storage.Manifest:
        with (
            pytest.raises(UserError, match="another process has been writing here") as raised,
            locks.writing_alone(tmp_path / "index", 0),
        ):
            pass
        refused.append(raised)
        return write(*what)

    monkeypatch.setattr(storage, "write_issues", meanwhile)
    restore_index(backup, tmp_path / "index", overwrite=True)
    assert refused


def test_other_numbers_than_the_description_says_are_refused(backup: Path, tmp_path: Path) -> None:
    said = json.loads((backup / "backup.json").read_text())
    for change in ({"pictures": 3}, {"manifest": {**said["manifest"], "dimension": 4}}, {"columns": 7}):
        plain = {name: value for name, value in {**said, **change}.items() if name != "checksum"}
        backups.write_description(backup / "backup.json", plain)
        write_seal(backup)
        with pytest.raises(UserError, match=r"backup/(pictures.parquet|backup.json): "):
            restore_index(backup, tmp_path / "new")


def test_a_restoration_that_dies_leaves_what_stood_there(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(Index.open(tmp_path / "index"))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "write_issues", dies)
    with pytest.raises(KeyboardInterrupt):
        restore_index(backup, tmp_path / "index", overwrite=True)
    assert rows(Index.open(tmp_path / "index")) == before
    with pytest.raises(KeyboardInterrupt):
        restore_index(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_pictures_are_found_where_they_are(backup: Path, tmp_path: Path) -> None:
    """Beside the index where they lie there too, and else where they were."""
    (tmp_path / "elsewhere").mkdir()
    assert restore_index(backup, tmp_path / "elsewhere" / "index").moved
    index = Index.open(tmp_path / "elsewhere" / "index")
    assert all(item.path is not None and os.path.exists(item.path) for item in index.items())  # noqa: PTH110
    changes = index.update(read(tmp_path / "photos"), ColourModel())
    assert (changes.added, changes.removed, changes.encoded) == (0, 0, 0)
    (tmp_path / "moved").mkdir()
    (tmp_path / "photos").rename(tmp_path / "moved" / "photos")
    assert not restore_index(backup, tmp_path / "moved" / "index").moved
    index = Index.open(tmp_path / "moved" / "index")
    changes = index.update(read(tmp_path / "moved" / "photos"), ColourModel())
    assert (changes.added, changes.changed, changes.removed) == (0, 0, 0)
