import pytest

from rungwise.data.files import has_known_ending, is_of_programs, is_other_picture, picture_suffix


@pytest.mark.parametrize(
    ("start", "suffix"),
    [
        (b"\xff\xd8\xff\xdb", ".jpg"), (b"\x89PNG\r\n\x1a\n\0", ".png"), (b"GIF89a", ".gif"), (b"II*\0", ".tif"),
        (b"MM\0*", ".tif"), (b"RIFF\0\0\0\0WEBPVP8L", ".webp"), (b"\0\0\0\x1cftypavif", ".avif"),
        (b"\0\0\0\x18ftypheic", ".heic"), (b"\0\0\0\x0cjP  \r\n\x87\n", ".jp2"),
        (b"BM\x10\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", ".bmp"),
        (b"", ""), (b"BMW is a maker of cars in Munich", ""), (b"RIFF\0\0\0\0WAVEfmt ", ""), (b"%PDF-1.7", ""),
        (b"\0\0\0\x14ftypqt  ", ""), (b"GIF", ""), (b"\xff\xd8", ""),
    ],
)  # fmt: skip
def test_pictures_are_known_by_their_first_bytes(start: bytes, suffix: str) -> None:
    assert picture_suffix(start) == suffix


@pytest.mark.parametrize(
    "name",
    ["@eaDir", "#recycle", ".thumbnails", ".git", "__MACOSX", ".Trash-1000", ".Trashes", "lost+found", "$RECYCLE.BIN",
     "System Volume Information", "Catalog Previews.lrdata", ".stfolder", "._a.jpg", "Thumbs.db", ".DS_Store",
     "desktop.ini", "THUMBS.DB"],
)  # fmt: skip
def test_names_that_programs_keep(name: str) -> None:
    assert is_of_programs(name)


@pytest.mark.parametrize("name", ["trash", "git", "thumbs.jpg", "recycle", "node_modules", "a.lrdata.jpg", ".hidden"])
def test_names_that_people_give(name: str) -> None:
    assert not is_of_programs(name)


def test_endings_that_say_what_a_file_is() -> None:
    assert all(map(has_known_ending, ("a.pdf", "a.CR3", "a.parquet", "a.txt", "a.md", "a.tar", "a.xmp", "a.py")))
    assert not any(map(has_known_ending, ("a", "a.", "a.1", "photo at 10.30", "a.jpg_large", "a.jpg~")))
    assert all(map(is_other_picture, ("a.svg", "a.PSD", "a.ico", "a.tga", "a.jxl")))
    assert not any(map(is_other_picture, ("a.mov", "a.pdf", "a")))
