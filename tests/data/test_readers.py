import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError
from rungwise.data import read
from tests.odd_files import on_posix, put


def test_a_bare_folder(tmp_path: Path) -> None:
    (tmp_path / "a.WebP").touch()
    data = read(str(tmp_path))
    assert (data.layout, data.image_ids) == ("folder", ("a.WebP",))


def test_paths_that_hold_nothing_get_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.jpg").touch()
    (tmp_path / "a.zip").touch()
    for name, message in (
        ("none", "none: no such file or folder; correct the path"),
        ("empty", "empty: no pictures in this folder or below"),
        ("a.jpg", "a.jpg: is a single picture; give the folder that holds it"),
        ("a.zip", "a.zip: not a kind of file that holds captions"),
    ):
        with pytest.raises(UserError, match=message):
            read(tmp_path / name)


def test_the_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "a.jpg").touch()
    assert read("~").paths == (tmp_path / "a.jpg",)


def test_flickr8k_comes_before_other_texts(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "x.token.txt").write_text("a.jpg#0\tA dog .\n")
    (tmp_path / "captions.csv").write_text("image,caption\na.jpg,A cat.\n")
    assert read(tmp_path).layout == "flickr8k"
    assert read(tmp_path / "captions.csv").layout == "table"


def test_relative_folders_read_like_absolute_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / "data" / name).touch()
    (tmp_path / "data" / "t.csv").write_text(f"image,caption\n{(tmp_path / 'data' / 'a.jpg').as_posix()},A dog.\n")
    monkeypatch.chdir(tmp_path)
    assert read("data").image_ids[1] == "b.jpg"
    (tmp_path / "data" / "t.csv").write_text("image,caption\na.jpg,A dog.\n")
    assert read("data").image_ids == ("a.jpg", "b.jpg")
    monkeypatch.chdir(tmp_path / "data")
    assert read(".").image_ids == ("a.jpg", "b.jpg")
    assert read(".").name == "data"


@on_posix
@pytest.mark.parametrize(
    ("name", "kind"),
    [("captions.csv", "pipe"), ("a.tsv", "socket"), ("a.jsonl", "endless"), ("a.parquet", "pipe"),
     ("dataset_x.json", "folder"), ("a.token.txt", "loop"), ("captions.txt", "pipe"), ("features.npy", "device"),
     ("train_ims.npy", "pipe"), ("train_caps.txt", "dangling")],
)  # fmt: skip
def test_nothing_but_a_file_is_read(tmp_path: Path, name: str, kind: str) -> None:
    """Given as the argument it is refused in one line; beside pictures it is listed and left alone."""
    put(tmp_path / name, kind)
    with pytest.raises(UserError) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)
    (tmp_path / "a.jpg").touch()
    data = read(tmp_path)
    assert data.image_ids == ("a.jpg",)
    kinds = [issue.kind for issue in data.issues]
    assert kinds == ([] if kind == "folder" else ["unreadable file" if kind == "loop" else "not a regular file"])


@on_posix
@pytest.mark.parametrize(
    ("name", "other", "kind"),
    [
        ("ids.txt", "features.npy", "pipe"),
        ("ids.txt", "features.npy", "dangling"),
        ("dev_ids.txt", "dev_ims.npy", "folder"),
    ],
)
def test_ids_that_are_no_file_are_not_passed_over(tmp_path: Path, name: str, other: str, kind: str) -> None:
    np.save(tmp_path / other, np.zeros((1, 2), np.float32))
    (tmp_path / "dev_caps.txt").write_text("a dog\n")
    put(tmp_path / name, kind)
    with pytest.raises(UserError, match=rf"{name}: (is a|no such file)"):
        read(tmp_path / other)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a" * 300, r"cannot be read \(file name too long\)"),
        ("a/" * 3000, r"cannot be read \(file name too long\)"),
        ("a\0b", r"cannot be read \(embedded null byte\)"),
        ("~nobody of this name/x", "there is no such home folder"),
        ("/dev/null/x", "no such file or folder"),
    ],
)
def test_paths_that_no_system_has_get_one_line(path: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read(path)


@on_posix
def test_devices_and_pseudo_files_are_no_captions() -> None:
    for path in ("/dev/zero", "/dev/tty", "/dev/stdin", "/proc/self/mem", "/proc/kmsg"):
        with pytest.raises(UserError):
            read(path)


def test_issues_of_the_folder_reach_collections_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "gone.txt").symlink_to("nowhere")
    np.save(tmp_path / "features.npy", np.zeros((1, 2), np.float32))
    (tmp_path / "captions.csv").write_text("image,caption\na,A dog.\n")
    assert [issue.where for issue in read(tmp_path).issues] == ["gone.txt"]
    assert read(tmp_path, captions_only=True).issues == ()


def test_a_folder_of_something_that_is_not_read_says_what_to_do(tmp_path: Path) -> None:
    for name, message in (
        ("data-00000-of-00001.arrow", "save_to_disk writes it, is not read; write Parquet with Dataset.to_parquet"),
        ("00000.tar.gz", "a compressed archive, in which no picture can be read by its place; unpack it to .tar"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
        for path in (tmp_path / name, tmp_path / name / name):
            with pytest.raises(UserError, match=message):
                read(path)
        (tmp_path / name / "a.jpg").touch()
        assert read(tmp_path / name).image_ids == ("a.jpg",)


def test_pictures_beside_a_shard_are_said(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("c.jpg"))
    data = read(tmp_path)
    assert data.image_ids == ("c",)
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("pictures left out", "with 1 more; give the folder that holds them alone")
    ]
    assert read(tmp_path / "0.tar").issues == ()


def test_of_several_layouts_the_first_is_taken(tmp_path: Path) -> None:
    """In the order that the page on data gives; what is taken is removed, and then comes the next."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.jpg").write_bytes(b"")
    (tmp_path / "captions.csv").write_text("image,caption\na.jpg,A dog.\n")
    pq.write_table(pa.table({"image": [{"bytes": b"x", "path": "b.jpg"}]}), tmp_path / "train.parquet")
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("c.jpg"))
    arrays = {f"{side}_{end}": np.ones((1, 2)) for side in "IT" for end in ("tr", "te")}
    scipy.io.savemat(tmp_path / "raw_features.mat", arrays)
    images, sentences = [{"id": 1, "file_name": "a.jpg"}], [{"raw": "A dog."}]
    annotations = [{"image_id": 1, "id": 1, "caption": "A dog."}]
    for name in ("train_images", "train_texts"):
        np.save(tmp_path / f"{name}.npy", np.ones((1, 2)))
    (tmp_path / "coco.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    karpathy = {"images": [{"filename": "a.jpg", "split": "train", "sentences": sentences}]}
    (tmp_path / "karpathy.json").write_text(json.dumps(karpathy))
    (tmp_path / "x.token.txt").write_text("a.jpg#0\tA dog .\n")
    np.save(tmp_path / "dev_ims.npy", np.ones((1, 2)))
    (tmp_path / "dev_caps.txt").write_text("A dog.\n")
    found = []
    for taken in ("dev_ims.npy", "x.token.txt", "karpathy.json", "coco.json", "raw_features.mat", "train_images.npy",
                  "train.parquet", "0.tar", "captions.csv", "dev_caps.txt"):  # fmt: skip
        found.append(read(tmp_path).layout)
        (tmp_path / taken).unlink()
    assert found == [
        "precomputed", "flickr8k", "karpathy", "coco", "labelled_features", "labelled_features", "parquet",
        "webdataset", "table", "folder",
    ]  # fmt: skip
