"""Rows in several numbered files are read as those of one file."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import read
from rungwise.data.files import first_parts, map_parts
from tests.training.test_features import folder_of_features


def in_parts(path: Path, sizes: tuple[int, ...]) -> None:
    """Cut a file of rows into numbered ones."""
    edges = np.cumsum(sizes)[:-1]
    parts = np.split(np.load(path), edges)
    for number, part in enumerate(parts):
        np.save(path.with_name(f"{path.stem}-{number:05}-of-{len(parts):05}.npy"), part)
    path.unlink()


@pytest.mark.parametrize("shape", [(7,), (5, 7)])
def test_features_in_parts_are_those_in_one_file(tmp_path: Path, shape: tuple[int, ...]) -> None:
    whole = read(folder_of_features(tmp_path / "whole", shape))
    shutil.copytree(tmp_path / "whole", tmp_path / "parts")
    in_parts(tmp_path / "parts" / "features.npy", (10, 1, 30, 7))
    for place in (tmp_path / "parts", tmp_path / "parts" / "features-00002-of-00004.npy"):
        data = read(place)
        assert data.image_ids == whole.image_ids
        assert data.captions == whole.captions
        assert not data.issues
        assert data.features is not None
        assert whole.features is not None
        assert data.features.content_hash() == whole.features.content_hash()
        assert all(isinstance(part, np.memmap) for part in data.features.parts), "rows stay in their files"


def test_precomputed_rows_in_parts(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((6, 4)).astype(np.float32)
    for folder in (tmp_path / "whole", tmp_path / "parts"):
        folder.mkdir()
        for split in ("train", "dev"):
            np.save(folder / f"{split}_ims.npy", rows if split == "train" else rows[:2])
            captions = 12 if split == "train" else 4
            (folder / f"{split}_caps.txt").write_text("".join(f"caption {n}\n" for n in range(captions)))
    in_parts(tmp_path / "parts" / "train_ims.npy", (1, 5))
    one, other = read(tmp_path / "whole"), read(tmp_path / "parts")
    assert (one.image_ids, one.captions, one.splits) == (other.image_ids, other.captions, other.splits)
    assert one.issues == other.issues == ()
    assert one.features is not None
    assert other.features is not None
    assert one.features.content_hash() == other.features.content_hash()
    assert read(tmp_path / "parts" / "train_caps.txt").image_ids == read(tmp_path / "whole/train_ims.npy").image_ids
    np.save(tmp_path / "parts" / "train_ims.npy", rows)
    with pytest.raises(UserError, match=r"the rows of train are in train_ims\.npy, too; keep one of them"):
        read(tmp_path / "parts")


def test_a_missing_part_and_parts_of_another_width_are_refused(tmp_path: Path) -> None:
    folder = folder_of_features(tmp_path / "data", (7,))
    in_parts(folder / "features.npy", (20, 28))
    second = folder / "features-00001-of-00002.npy"
    kept = np.load(second)
    np.save(second, kept[:, :6])
    with pytest.raises(
        UserError, match=r"00001-of-00002\.npy: rows of shape \(6,\), but .*00000-of-00002\.npy has rows"
    ):
        read(folder)
    second.unlink()
    with pytest.raises(
        UserError, match=r"features-00001-of-00002\.npy: is missing beside features-00000-of-00002\.npy"
    ):
        read(folder)
    np.save(folder / "features-00007-of-00002.npy", kept)
    with pytest.raises(UserError, match="its number is not below 2; numbers count from 0"):
        map_parts(folder / "features-00007-of-00002.npy")


def test_parts_are_ordered_by_their_numbers() -> None:
    names = [f"x-{number:05}-of-00012.npy" for number in (11, 2, 10)]
    assert first_parts(map(Path, names)) == [Path("x-00000-of-00012.npy")]
