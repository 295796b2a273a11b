import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.relevance import CIDErD, load

CAPTIONS = ["a dog runs", "a red dog", "the cat sleeps", "a cat", "blue sky", "a dog and a cat"]
OWNERS = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def source():
    return CIDErD(CAPTIONS, OWNERS)


def test_saving_again_replaces_but_never_something_else(source, tmp_path):
    source.save(tmp_path / "degrees", k=1)
    source.save(tmp_path / "degrees")
    assert not (tmp_path / "degrees/indices.npy").exists()
    (tmp_path / "photos").mkdir()
    with pytest.raises(UserError, match="holds no relevance degrees"):
        source.save(tmp_path / "photos")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["degrees", "photos"]


def test_damage_is_named(source, tmp_path):
    with pytest.raises(UserError, match="no relevance degrees here"):
        load(tmp_path / "nowhere")
    source.save(tmp_path / "degrees")
    header = tmp_path / "degrees/relevance.json"
    good = header.read_text()
    header.write_text(json.dumps(json.loads(good) | {"shape": [7, 6]}))
    with pytest.raises(UserError, match="does not fit"):
        load(tmp_path / "degrees")
    header.write_text(good[:20])
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")
    header.write_text(good)
    values = tmp_path / "degrees/values.npy"
    values.write_bytes(values.read_bytes()[:-8])
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here that is always full")
@pytest.mark.parametrize("k", [None, 2])
def test_a_full_disk_is_said_in_one_line_and_leaves_nothing(source, tmp_path, monkeypatch, k):
    real = Path.open

    def full(path, *arguments, **options):
        return real(Path("/dev/full") if path.suffix == ".npy" else path, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(UserError, match="the disk is full"):
        source.save(tmp_path / "degrees", k=k)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 99}, "of version 99, where this program reads 1"),
        ({"direction": "sideways"}, "direction 'sideways'"),
        ({"options": None}, "has no options"),
        ({"source": None}, "has no source"),
        ({"k": "many"}, "damaged"),
    ],
)
def test_a_header_that_says_something_odd_is_refused(source, tmp_path, change, said):
    source.save(tmp_path / "degrees", k=2)
    header = tmp_path / "degrees/relevance.json"
    kept = json.loads(header.read_text()) | change
    header.write_text(json.dumps({key: value for key, value in kept.items() if value is not None}))
    with pytest.raises(UserError, match=said):
        load(tmp_path / "degrees")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("indices.npy", np.full((4, 2), 77, np.int32)),
        ("indices.npy", np.full((4, 2), -1, np.int32)),
        ("indices.npy", np.zeros((4, 2), np.float32)),
        ("values.npy", np.zeros((4, 2), np.int64)),
        ("image_of_caption.npy", np.zeros(5, np.int64)),
        ("image_of_caption.npy", np.full(6, 4)),
    ],
)
def test_an_array_that_does_not_fit_is_refused(source, tmp_path, name, array):
    source.save(tmp_path / "degrees", k=2)
    np.save(tmp_path / "degrees" / name, array)
    with pytest.raises(UserError, match=f"damaged .{name} .*; save the source again"):
        load(tmp_path / "degrees")


@pytest.mark.parametrize("content", [b"", b"PK\3\4 an archive that was cut off", b"\x93NUMPY\1\0\x08\0{'shape'"])
def test_a_file_of_another_kind_is_refused(source, tmp_path, content):
    source.save(tmp_path / "degrees")
    (tmp_path / "degrees/values.npy").write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")
    with pytest.raises(UserError, match="no relevance degrees here"):
        load(tmp_path / "degrees/values.npy")


def test_an_archive_in_place_of_an_array_is_refused(source, tmp_path):
    source.save(tmp_path / "degrees")
    np.savez(tmp_path / "values.npz", values=source.dense())
    (tmp_path / "values.npz").replace(tmp_path / "degrees/values.npy")
    with pytest.raises(UserError, match="damaged"):
        load(tmp_path / "degrees")


def test_a_folder_with_somebody_elses_file_is_never_replaced(source, tmp_path):
    source.save(tmp_path / "degrees")
    (tmp_path / "degrees" / "notes.txt").write_text("by hand")
    with pytest.raises(UserError, match=r"holds 'notes\.txt', which is no part of saved relevance degrees"):
        source.save(tmp_path / "degrees", k=1)
    assert (tmp_path / "degrees" / "notes.txt").read_text() == "by hand"
    assert not (tmp_path / "degrees" / "indices.npy").exists()
