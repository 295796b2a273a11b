"""Also tests rungwise.encoders.images._pipeline: what the cache stores was read by it."""

import errno
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core import UserError
from rungwise.data import Issue
from rungwise.encoders import Preprocessing
from rungwise.encoders.images import Backbone, ImageConfig, feature_rows, pixel_rows
from rungwise.encoders.row_cache import RowStore, verify

CONFIG = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    draw = np.random.default_rng(0)
    paths = []
    for number in range(7):
        path = tmp_path / f"{number}.png"
        Image.fromarray(draw.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
        paths.append(path)
    return paths


def test_second_run_reads_the_cache_and_gives_the_same(pictures: list[Path], tmp_path: Path) -> None:
    backbone = Backbone(CONFIG)
    first = feature_rows(backbone, pictures, tmp_path / "cache", batch=3)
    second = feature_rows(backbone, pictures[::-1], tmp_path / "cache", batch=2)
    assert (first.computed, second.computed) == (7, 0)
    everything = np.arange(7)
    assert torch.equal(first.take(everything), second.take(everything[::-1]))


def test_features_are_those_of_the_network(pictures: list[Path], tmp_path: Path) -> None:
    backbone = Backbone(CONFIG).eval()
    rows = feature_rows(backbone, pictures, tmp_path / "cache", batch=3)
    pixels = pixel_rows(backbone.preprocessing, pictures, tmp_path / "cache")
    assert pixels.take(np.arange(7)).dtype == torch.uint8
    with torch.inference_mode():
        expected = backbone(pixels.take(np.arange(7)))
    torch.testing.assert_close(rows.take(np.arange(7)), expected, rtol=1e-4, atol=1e-5)


def test_other_weights_or_preprocessing_have_other_rows(pictures: list[Path], tmp_path: Path) -> None:
    torch.manual_seed(1)
    one = Backbone(CONFIG)
    other = Backbone(CONFIG)
    assert one.fingerprint() != other.fingerprint()
    other.load_state_dict(one.state_dict())
    assert one.fingerprint() == other.fingerprint()
    other.preprocessing = Preprocessing(size=32, crop=0.5)
    assert one.fingerprint() != other.fingerprint()
    assert feature_rows(one, pictures, tmp_path).computed == 7
    assert feature_rows(other, pictures, tmp_path).computed == 7


def test_unreadable_missing_and_equal_pictures_are_accounted_for(pictures: list[Path], tmp_path: Path) -> None:
    broken, copy = tmp_path / "broken.jpg", tmp_path / "copy.png"
    broken.write_bytes(b"no picture")
    twin = tmp_path / "broken too.jpg"
    twin.write_bytes(b"no picture")
    copy.write_bytes(pictures[0].read_bytes())
    paths = [broken, *pictures, tmp_path / "absent.jpg", copy, twin]
    seen: list[int] = []
    rows = feature_rows(Backbone(CONFIG), paths, tmp_path / "cache", batch=2, progress=seen.append)
    assert rows.kept.tolist() == [1, 2, 3, 4, 5, 6, 7, 9]
    assert [Path(issue.where).name for issue in rows.issues] == ["broken.jpg", "absent.jpg", "broken too.jpg"]
    assert [issue.kind for issue in rows.issues] == ["unreadable picture", "missing picture", "unreadable picture"]
    assert sum(seen) <= len(paths)
    assert torch.equal(rows.take(np.array([0])), rows.take(np.array([7])))


def test_a_half_written_row_is_forgotten(tmp_path: Path) -> None:
    store = RowStore(tmp_path / "s", (3,), np.float32)
    store.append([b"a" * 32], np.ones((1, 3)))
    with (tmp_path / "s" / "rows.bin").open("ab") as file:
        file.write(b"half a row")
    again = RowStore(tmp_path / "s", (3,), np.float32)
    again.append([b"b" * 32], np.full((1, 3), 2.0))
    assert again.find([b"a" * 32, b"b" * 32, b"c" * 32]).tolist() == [0, 1, -1]
    assert again.rows().tolist() == [[1, 1, 1], [2, 2, 2]]


def test_two_stores_of_one_folder_see_each_other(tmp_path: Path) -> None:
    one, other = (RowStore(tmp_path / "s", (1,), np.uint8) for _ in range(2))
    one.append([b"a" * 32], np.array([[1]]))
    other.append([b"b" * 32], np.array([[2]]))
    assert one.find([b"b" * 32]).tolist() == [1]
    assert one.rows().tolist() == [[1], [2]]


def test_full_disk_is_one_line_and_keeps_what_was_there(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = Backbone(CONFIG)
    feature_rows(backbone, pictures[:2], tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr("rungwise.encoders.row_cache.writing_alone", _FullDisk)
        with pytest.raises(UserError, match=r"features.*the disk is full; free some space"):
            feature_rows(backbone, pictures, tmp_path / "cache")
    assert feature_rows(backbone, pictures, tmp_path / "cache").computed == 5


class _FullDisk:
    def __init__(self, path: Path) -> None:
        pass

    def __enter__(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def __exit__(self, *_: object) -> None:
        pass


def store_of(tmp_path: Path, count: int = 20) -> RowStore:
    store = RowStore(tmp_path / "s", (3,), np.float32)
    for start in range(0, count, 5):
        store.append([key(n) for n in range(start, start + 5)], np.arange(start, start + 5)[:, None] + np.ones((5, 3)))
    return store


def key(number: int) -> bytes:
    return bytes([number]) * 32


def zero(path: Path, start: int, size: int) -> None:
    data = bytearray(path.read_bytes())
    data[start : start + size] = bytes(size)
    path.write_bytes(data)


def wrong(folder: Path) -> list[str]:
    return [check.wrong for check in verify(folder) if check.wrong]


def test_rows_that_a_power_cut_zeroed_are_noticed(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    assert store.sound(np.arange(20)).all()
    zero(store.folder / "rows.bin", 12 * 4, 12 * 3)
    again = RowStore(store.folder, (3,), np.float32)
    assert np.flatnonzero(~again.sound(np.arange(20))).tolist() == [4, 5, 6]
    assert again.sound([19, 5, 5, 0]).tolist() == [True, False, False, True]
    assert wrong(store.folder) == [f"{store.folder}: 3 of 20 rows are damaged; whoever needs them computes them again"]
    again.append([key(5)], np.full((1, 3), 6.0))
    assert again.find([key(5)]).tolist() == [20]
    assert "2 of 21 rows are damaged" in wrong(store.folder)[0], "what was computed again is not missed"
    again.append([key(4), key(6)], np.array([[5.0] * 3, [7.0] * 3]))
    assert wrong(store.folder) == []


def test_records_that_a_power_cut_zeroed_are_passed_over(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    zero(store.folder / "keys.bin", 40 * 8, 40 * 2)
    again = RowStore(store.folder, (3,), np.float32)
    assert np.flatnonzero(again.find([key(n) for n in range(20)]) < 0).tolist() == [7, 8]
    assert again.damaged == 2
    assert "2 of 20 rows are damaged" in wrong(store.folder)[0]


@pytest.mark.parametrize("size", [0, 17, 40, 41, 95, 40 * 6])
def test_keys_that_were_cut_off_keep_their_whole_records(tmp_path: Path, size: int) -> None:
    store = store_of(tmp_path)
    (store.folder / "keys.bin").write_bytes((store.folder / "keys.bin").read_bytes()[:size])
    again = RowStore(store.folder, (3,), np.float32)
    kept = max(0, size // 40 - 1)
    assert (again.find([key(n) for n in range(20)]) >= 0).sum() == kept
    again.append([b"z" * 32], np.full((1, 3), 7.0))
    last = RowStore(store.folder, (3,), np.float32)
    assert last.find([b"z" * 32]).tolist() == [kept]
    assert last.sound(np.arange(kept + 1)).all()
    assert last.rows()[kept].tolist() == [7, 7, 7]


def test_rows_that_hold_no_number_are_counted(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    store.append([b"n" * 32], np.array([[1, np.nan, 2]]))
    assert "1 rows hold NaN or infinity" in wrong(store.folder)[0]


def test_a_file_of_something_else_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "keys.bin").write_bytes(b"the keys of the house" * 10)
    before = (tmp_path / "s" / "keys.bin").read_bytes()
    store = RowStore(tmp_path / "s", (3,), np.float32)
    assert store.find([key(1)]).tolist() == [-1]
    with pytest.raises(UserError, match=r"keys\.bin: is no cache of such rows"):
        store.append([key(1)], np.ones((1, 3)))
    with pytest.raises(UserError, match="is no cache of such rows"):
        RowStore.open(tmp_path / "s")
    assert (tmp_path / "s" / "keys.bin").read_bytes() == before


@pytest.mark.parametrize("name", ["rows.bin", "keys.bin", "lock", "turn.lock"])
def test_a_planted_link_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "s").mkdir()
    victim = tmp_path / "thesis.txt"
    victim.write_text("years of work")
    (tmp_path / "s" / name).symlink_to(victim)
    with pytest.raises((UserError, OSError)):
        RowStore(tmp_path / "s", (3,), np.float32).append([key(1)], np.ones((1, 3)))
    assert victim.read_text() == "years of work"


def test_rows_are_on_the_disk_before_anything_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync = os.fsync

    def synced(handle: int) -> None:
        done.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    store_of(tmp_path, 10)
    assert [one for one in done if one.endswith(".bin")] == ["sync rows.bin", "sync keys.bin"] * 2
    assert done.index("sync s") > done.index("sync rows.bin")


def test_damaged_rows_are_said_and_computed_again(pictures: list[Path], tmp_path: Path) -> None:
    backbone = Backbone(CONFIG)
    first = feature_rows(backbone, pictures, tmp_path / "cache")
    expected = first.take(np.arange(7))
    (rows,) = (tmp_path / "cache").rglob("rows.bin")
    zero(rows, 5 * rows.stat().st_size // 7, rows.stat().st_size // 7)
    with pytest.warns(UserWarning, match=r"features.*: 1 cached rows are damaged and are computed again"):
        again = feature_rows(backbone, pictures, tmp_path / "cache")
    assert (again.computed, again.damaged) == (1, 1)
    torch.testing.assert_close(again.take(np.arange(7)), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        last = feature_rows(backbone, pictures, tmp_path / "cache")
    assert (last.computed, last.damaged) == (0, 0)


def test_a_damaged_row_whose_picture_is_unreadable_by_now_is_not_used(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = Backbone(CONFIG)
    feature_rows(backbone, pictures, tmp_path / "cache")
    (rows,) = (tmp_path / "cache").rglob("rows.bin")
    zero(rows, 0, 8)

    monkeypatch.setattr(
        "rungwise.encoders.images._image_rows.prepared",
        lambda data, name, *_: Issue("unreadable picture", name, "no memory"),
    )
    with pytest.warns(UserWarning, match="damaged"):
        left = feature_rows(backbone, pictures, tmp_path / "cache")
    assert left.kept.tolist() == [1, 2, 3, 4, 5, 6]
    assert [issue.detail for issue in left.issues] == ["no memory"]


def test_a_pipe_among_the_pictures_holds_nobody_up(pictures: list[Path], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    rows = feature_rows(Backbone(CONFIG), [*pictures, tmp_path / "pipe.png"], tmp_path / "cache")
    assert rows.kept.tolist() == list(range(7))
    assert "is a pipe" in rows.issues[0].detail


def test_keys_that_were_never_written_are_no_older_version(tmp_path: Path) -> None:
    """After a power cut a file may be as long as it was to be, and zero throughout."""
    (tmp_path / "keys.bin").write_bytes(bytes(64))
    [check] = verify(tmp_path)
    assert check.wrong
    assert "earlier version" not in check.wrong


def test_a_whole_cache_is_looked_through_and_old_stores_are_told_apart(pictures: list[Path], tmp_path: Path) -> None:
    backbone = Backbone(CONFIG)
    feature_rows(backbone, pictures, tmp_path / "cache")
    pixel_rows(backbone.preprocessing, pictures, tmp_path / "cache")
    old = tmp_path / "cache" / "features" / ("0" * 32)
    old.mkdir()
    (old / "keys.bin").write_bytes(bytes(range(64)))
    (old / "rows.bin").write_bytes(bytes(16))
    lines = [str(check) for check in verify(tmp_path / "cache")]
    assert len(lines) == 3
    assert sum("of an earlier version, without checksums" in line for line in lines) == 1
    assert sum(line.startswith("not checked: ") for line in lines) == 1
    assert sum(line.startswith("ok: ") and "7 rows of" in line for line in lines) == 2
