"""Also tests rungwise.encoders.reading: what the cache stores was read by it."""

import errno
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rungwise.core.errors import UserError
from rungwise.encoders.cache import RowStore, feature_rows, pixel_rows
from rungwise.encoders.image import Backbone, ImageConfig
from rungwise.encoders.preprocessing import Preprocessing

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
        patch.setattr("rungwise.encoders.cache.FileLock", _FullDisk)
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
