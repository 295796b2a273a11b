import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError
from rungwise.data import CollectionSource, read
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


def test_a_key_is_one_of_two_and_without_shards_has_no_effect(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    with pytest.raises(UserError, match="key='first': is none of dot, stem"):
        read(tmp_path, key="first")  # type: ignore[arg-type]
    data = read(tmp_path, key="stem")
    assert [(issue.kind, issue.where) for issue in data.issues] == [("option without effect", "key stem")]
    assert data.source is not None
    assert data.source.key == "stem"
    issues = [(issue.kind, issue.where) for issue in read(tmp_path, join_restval=True).issues]
    assert issues == [("option without effect", "join_restval")]
    (tmp_path / "backup.tar").write_bytes(b"")
    assert [issue.kind for issue in read(tmp_path, key="stem").issues] == ["unreadable file"]


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


def shard(path: Path, *names: str) -> None:
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 4 * name.endswith(".txt")
            archive.addfile(member, io.BytesIO(b"text"))


def test_an_archive_beside_pictures_does_not_take_their_place(tmp_path: Path) -> None:
    """A backup may hold more pictures than the folder; only captions tell that it is rather the collection."""
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    shard(tmp_path / "backup.tar", "c.jpg", "d.jpg", "e.jpg")
    data = read(tmp_path)
    assert (data.layout, data.image_ids) == ("folder", ("a.jpg", "b.jpg"))
    assert [(issue.kind, issue.where, issue.detail) for issue in data.issues] == [
        ("not read", "backup.tar", "holds 3 pictures, not read beside pictures; to read it, give it alone")
    ]
    assert read(tmp_path, layout="webdataset").image_ids == ("c", "d", "e")
    assert read(tmp_path / "backup.tar").issues == ()


def test_shards_with_captions_are_read_where_few_pictures_lie_beside_them(tmp_path: Path) -> None:
    (tmp_path / "logo.jpg").touch()
    shard(tmp_path / "0.tar", "c.jpg", "c.txt", "d.jpg")
    data = read(tmp_path)
    assert data.image_ids == ("c", "d")
    assert [issue.kind for issue in data.issues] == ["pictures left out"]
    assert read(tmp_path, layout="folder").image_ids == ("logo.jpg",)


def test_captions_that_were_only_found_do_not_end_the_reading_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    for name, content in (
        ("dataset_x.json", '{"images": [{"filename": "b.jpg", "split": "train", "sentences": [{"raw": "A dog."}]}]}'),
        ("captions_val2017.json", '{"images": [], "annotations": [{"caption": 1, "image_id": 2}]}'),
        ("x.token.txt", "no picture of the folder#0\tA dog .\n"),
        ("train_images.npy", "x"),
        ("raw_features.mat", "x"),
        ("shop.parquet", "x"),
        ("backup.tar", "x"),
        ("dev_ims.npy", "x"),
    ):
        (tmp_path / name).write_text(content)
        assert read(tmp_path).image_ids == ("a.jpg",), name
    said = {issue.where for issue in read(tmp_path).issues}
    assert said >= {"x.token.txt", "dataset_x.json", "captions_val2017.json", "shop.parquet", "backup.tar"}
    (tmp_path / "y.token.txt").touch()
    assert read(tmp_path).image_ids == ("a.jpg",)
    for asked in ("x.token.txt", "dataset_x.json"):
        with pytest.raises(UserError):
            read(tmp_path, captions=tmp_path / asked)


def test_packed_pictures_go_before_captions_of_none_and_before_few_rows(tmp_path: Path) -> None:
    shard(tmp_path / "0.tar", "c.jpg", "c.txt", "d.jpg")
    (tmp_path / "dataset_x.json").write_text('{"images": [{"filename": "b.jpg", "sentences": [{"raw": "A dog."}]}]}')
    np.save(tmp_path / "features.npy", np.ones((1, 2)))
    data = read(tmp_path)
    assert (data.layout, data.image_ids) == ("webdataset", ("c", "d"))
    assert {Path(issue.where).name for issue in data.issues} == {"dataset_x.json", "features.npy"}


def test_an_archive_beside_rows_of_features_does_not_take_their_place(tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", np.ones((2, 2)))
    (tmp_path / "captions.csv").write_text("image,caption\na,A dog.\nb,A cat.\n")
    shard(tmp_path / "0.tar", "c.jpg", "c.txt")
    data = read(tmp_path)
    assert (data.image_ids, data.captions) == (("a", "b"), ("A dog.", "A cat."))
    assert [(issue.kind, issue.where) for issue in data.issues] == [("not read", "0.tar")]


def test_captions_of_another_place_are_an_order(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").touch()
    (tmp_path / "photos" / "own.csv").write_text("image,caption\na.jpg,Own.\n")
    (tmp_path / "words.csv").write_text("image,caption\na.jpg,A dog.\n")
    data = read(tmp_path / "photos", captions=tmp_path / "words.csv")
    assert data.captions == ("A dog.",)
    assert data.source == CollectionSource(
        (str(tmp_path / "photos"),), ("table",), captions=str(tmp_path / "words.csv")
    )
    (tmp_path / "words.csv").write_text("picture of,words\na.jpg,A dog.\n")
    with pytest.raises(UserError, match=r"words.csv.* needs an image column"):
        read(tmp_path / "photos", captions=tmp_path / "words.csv")
    with pytest.raises(UserError, match=r"none.csv: no such file"):
        read(tmp_path / "photos", captions=tmp_path / "none.csv")
    with pytest.raises(UserError, match="is no folder of pictures"):
        read(tmp_path / "words.csv", captions=tmp_path / "words.csv")


def test_a_layout_that_was_asked_for_is_an_order(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "captions.csv").write_text("image,caption\na.jpg,A dog.\n")
    assert read(tmp_path, layout="folder").captions == ()
    assert read(tmp_path, layout="table").captions == ("A dog.",)
    with pytest.raises(UserError, match="holds nothing to be read as Karpathy's JSON"):
        read(tmp_path, layout="karpathy")
    with pytest.raises(UserError, match="there are precomputed, flickr8k"):
        read(tmp_path, layout="album")


def test_of_several_layouts_the_first_is_taken(tmp_path: Path) -> None:
    """In the order that the page on data gives; what is taken is removed, and then comes the next."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.jpg").write_bytes(b"")
    (tmp_path / "captions.csv").write_text("image,caption\na.jpg,A dog.\n")
    packed = {"image": [{"bytes": b"x", "path": name} for name in ("b.jpg", "c.jpg")], "caption": ["A dog."] * 2}
    pq.write_table(pa.table(packed), tmp_path / "train.parquet")
    shard(tmp_path / "0.tar", "c.jpg", "c.txt", "d.jpg")
    arrays = {f"{side}_{end}": np.ones((1, 2)) for side in "IT" for end in ("tr", "te")}
    scipy.io.savemat(tmp_path / "raw_features.mat", arrays)
    images, sentences = [{"id": 1, "file_name": "a.jpg"}], [{"raw": "A dog."}]
    annotations = [{"image_id": 1, "id": 1, "caption": "A dog."}]
    for name in ("train_images", "train_texts"):
        np.save(tmp_path / f"{name}.npy", np.ones((2, 2)))
    (tmp_path / "coco.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    karpathy = {"images": [{"filename": "a.jpg", "split": "train", "sentences": sentences}]}
    (tmp_path / "karpathy.json").write_text(json.dumps(karpathy))
    (tmp_path / "x.token.txt").write_text("a.jpg#0\tA dog .\n")
    np.save(tmp_path / "dev_ims.npy", np.eye(2))
    (tmp_path / "dev_caps.txt").write_text("A dog.\nA cat.\n")
    found = []
    for taken in ("dev_ims.npy", "x.token.txt", "karpathy.json", "coco.json", "raw_features.mat", "train_images.npy",
                  "train.parquet", "0.tar", "captions.csv", "dev_caps.txt"):  # fmt: skip
        found.append(read(tmp_path).layout)
        (tmp_path / taken).unlink()
    assert found == [
        "precomputed", "flickr8k", "karpathy", "coco", "labelled_features", "labelled_features", "parquet",
        "webdataset", "table", "folder",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"exclude": 3}, "^exclude= got int; give a pattern such as '.*', or a list of them$"),
        ({"exclude": b"*.png"}, "^exclude= got bytes; give a pattern"),
        ({"exclude": ["*.png", 3]}, "^exclude= holds int; give a pattern"),
        ({"layout": ["table"]}, r"^layout=\['table'\]: no such layout; there are precomputed"),
        ({"path": ""}, r"^the path is empty; give a folder or a file, or '\.' for the current folder$"),
        ({"path": [""]}, "^the path is empty"),
        ({"path": "no\nsuch"}, r"no\\nsuch: no such file or folder; correct the path$"),
        ({"path": ["no\nsuch"]}, r"no\\nsuch: no such file or folder; correct the path$"),
        ({"captions": "no\nsuch"}, r"no\\nsuch: no such file or folder; correct the path$"),
    ],
)
def test_wrong_arguments_have_one_line(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(**{"path": tmp_path, **arguments})
    assert "\n" not in str(caught.value)


def test_one_text_is_one_pattern(tmp_path: Path) -> None:
    for name in ("a.png", "b.jpg", "png.jpg"):
        (tmp_path / name).touch()
    for exclude in ("*.png", ["*.png"], ("*.png",), iter(["*.png"])):
        assert read(tmp_path, exclude=exclude).image_ids == ("b.jpg", "png.jpg")
