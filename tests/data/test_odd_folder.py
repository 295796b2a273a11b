"""A folder as people have them: of each file, what is done with it and what is said.

Tests the whole room.
"""

import os
from pathlib import Path

import pytest

from rungwise.data import NOT_READ, ImageCaptions, inspect, read
from rungwise.data.layouts import PICTURE_SUFFIXES, readable_name
from tests import odd_folder

ON_POSIX = os.name == "posix"
READS_ALL = ON_POSIX and os.geteuid() == 0
HEIC_IS_READ = ".heic" in PICTURE_SUFFIXES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("odd") / "photos"
    odd_folder.make(root)
    return root


@pytest.fixture(scope="module")
def data(folder: Path) -> ImageCaptions:
    return read(folder)


def said(data: ImageCaptions) -> list[str]:
    return [f"{issue.kind}: {issue.where}: {issue.detail}" for issue in data.issues]


def test_every_picture_is_in_the_collection(data: ImageCaptions) -> None:
    more = {"linked.jpg", odd_folder.FORBIDDEN} if ON_POSIX else set()
    more |= {odd_folder.HEIC} if HEIC_IS_READ else set()
    assert set(data.image_ids) == {readable_name(Path(one)) for one in odd_folder.PICTURES} | more


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (".hidden.png", "not read: 2 hidden files and folders, such as .hidden.png"),
        (".secret", "not read: 2 hidden files and folders"),
        ("@eaDir", "not read: 3 files and folders of systems and programs, such as @eaDir"),
        ("__MACOSX", "not read: 3 files and folders of systems and programs"),
        ("Thumbs.db", "not read: 3 files and folders of systems and programs"),
        ("drafts", "not read: 1 excluded file or folder, such as drafts"),
        ("raw.dng", "not read: 1 RAW picture (.dng), such as raw.dng"),
        ("plain.mov", "not read: 1 video (.mov), such as plain.mov"),
        ("drawing.svg", "not read: 1 picture of another format (.svg), such as drawing.svg"),
        ("notes.pdf", "not read: 1 other file (.pdf), such as notes.pdf"),
        ("both.txt", "ambiguous picture: both.txt: may be of both.jpg or both.png; left out: 'One of two.'"),
        (
            "alone.txt",
            "text without a picture: alone.txt: no picture of this name in its folder; left out: 'Whose is this?'",
        ),
        ("takeout/IMG_2.jpg.json", "not read: 1 Google Takeout file, such as takeout/IMG_2.jpg.json"),
        *([("dangling.jpg", "not a regular file: dangling.jpg: a link that leads nowhere")] if ON_POSIX else []),
        *([] if HEIC_IS_READ else [("phone.heic", "not read: 1 HEIC or HEIF picture (.heic), such as phone.heic")]),
    ],
)
def test_of_every_file_that_is_not_read_a_line_says_so(data: ImageCaptions, name: str, line: str) -> None:
    assert any(one.startswith(line) for one in said(data)), said(data)


def test_nothing_else_is_said(data: ImageCaptions) -> None:
    kinds = [issue.kind for issue in data.issues]
    assert kinds.count(NOT_READ) == (8 if HEIC_IS_READ else 9)
    assert len(kinds) - kinds.count(NOT_READ) == (3 if ON_POSIX else 2)


def test_captions_stand_with_their_picture_alone(data: ImageCaptions) -> None:
    owners = {data.captions[at]: data.image_ids[image] for at, image in enumerate(data.image_of_caption.tolist())}
    assert owners == {"A red boat.": "captioned.jpg", "A boat at sea.": "captioned.jpg"}
    assert data.layout == "text-files"


def test_what_is_said_of_a_picture_becomes_columns(data: ImageCaptions) -> None:
    def values(name: str, columns: object = data.columns) -> dict[str, object]:
        return {one: value for one, value in zip(data.image_ids, columns[name], strict=True) if value is not None}

    assert values("title") == {"sidecar.jpg": "Boat"}
    assert values("rating") == {"sidecar.jpg": 4}
    assert values("description") == {
        "sidecar.jpg": "Seen at noon.",
        "takeout/IMG_1(1).jpg": "The station",
        "takeout/IMG_1-edited.jpg": "The harbour",
        "takeout/IMG_1.jpg": "The harbour",
    }
    assert values("people") == {"takeout/IMG_1(1).jpg": ("Ada",)}
    assert values("favourite") == {"takeout/IMG_1(1).jpg": True}
    assert values("year", data.fallbacks) == dict.fromkeys(
        ("takeout/IMG_1(1).jpg", "takeout/IMG_1-edited.jpg", "takeout/IMG_1.jpg"), 2020
    )
    assert values("latitude", data.fallbacks) == {"takeout/IMG_1-edited.jpg": 59.9, "takeout/IMG_1.jpg": 59.9}


def test_inspect_lists_pictures_that_are_none(data: ImageCaptions) -> None:
    found = inspect(data)
    odd = {(issue.kind, issue.where) for issue in found.odd if issue.kind == "unreadable picture"}
    forbidden = {("unreadable picture", odd_folder.FORBIDDEN)} if ON_POSIX and not READS_ALL else set()
    assert odd == {("unreadable picture", "empty.jpg"), ("unreadable picture", "no picture.jpg")} | forbidden
    assert {issue.where for issue in found.odd if issue.kind == "identical in one split"} == {"copy.jpg (none)"}
    assert all(issue.kind == NOT_READ for issue in found.not_read)
    assert not any(issue.kind == NOT_READ for issue in found.odd)


def test_a_hundred_megapixels_are_a_picture(tmp_path: Path) -> None:
    odd_folder.make(tmp_path / "photos", large=True)
    assert odd_folder.LARGE in read(tmp_path / "photos").image_ids
