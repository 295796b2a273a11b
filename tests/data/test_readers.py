from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.data.readers import read


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
