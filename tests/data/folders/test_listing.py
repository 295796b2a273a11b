import os
from pathlib import Path

import pytest

from rungwise.core import limited
from rungwise.data import CollectionSource, listing_of

LONG_AGO = 1_700_000_000


def _write(path: Path, content: bytes, seconds: int = LONG_AGO) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (seconds, seconds))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jpg", "trip/b.jpg", "trip/.hidden", "captions.csv"):
        _write(tmp_path / "photos" / name, name.encode())
    return tmp_path / "photos"


def _listing(folder: Path, **settings: str) -> str:
    return listing_of(CollectionSource((str(folder),), **settings), without=folder / "index")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: _write(folder / "c.jpg", b""),
        lambda folder: _write(folder / "a.jpg", b"another size"),
        lambda folder: _write(folder / "a.jpg", b"a.jpg", LONG_AGO + 1),
        lambda folder: (folder / "a.jpg").unlink(),
        lambda folder: (folder / "a.jpg").rename(folder / "d.jpg"),
        lambda folder: (folder / "trip").rename(folder / "journey"),
        lambda folder: (folder / "empty").mkdir(),
        lambda folder: _write(folder / ".rungwiseignore", b"trip/"),
        lambda folder: (folder / "trip/link.jpg").symlink_to(folder / "a.jpg"),
        lambda folder: (folder / "trip/nowhere.jpg").symlink_to(folder / "nothing"),
    ],
)  # fmt: skip
def test_whatever_is_changed_below_a_folder_changes_its_listing(folder: Path, change: object) -> None:
    before = _listing(folder)
    assert before == _listing(folder) != ""
    assert callable(change)
    change(folder)
    assert _listing(folder) != before


def test_a_changed_target_of_a_link_counts(folder: Path, tmp_path: Path) -> None:
    _write(tmp_path / "elsewhere/e.jpg", b"e")
    (folder / "one.jpg").symlink_to(tmp_path / "elsewhere/e.jpg")
    (folder / "all").symlink_to(tmp_path / "elsewhere")
    before = _listing(folder)
    _write(tmp_path / "elsewhere/e.jpg", b"longer")
    assert _listing(folder) != before


def test_links_in_a_circle_end(folder: Path) -> None:
    (folder / "trip/up").symlink_to(folder)
    assert _listing(folder) == _listing(folder) != ""


def test_the_index_itself_does_not_count(folder: Path) -> None:
    before = _listing(folder)
    _write(folder / "index/index.json", b"{}")
    assert _listing(folder) == before


def test_a_file_of_captions_elsewhere_counts(folder: Path, tmp_path: Path) -> None:
    _write(tmp_path / "words.csv", b"a")
    before = _listing(folder, captions=str(tmp_path / "words.csv"))
    _write(tmp_path / "words.csv", b"ab")
    assert _listing(folder, captions=str(tmp_path / "words.csv")) != before


def test_other_limits_of_what_is_read_are_another_listing(folder: Path) -> None:
    before = _listing(folder)
    with limited(table_columns=3):
        assert _listing(folder) != before


def test_where_it_cannot_tell_it_is_empty(folder: Path, tmp_path: Path) -> None:
    assert _listing(tmp_path / "gone") == ""
    assert listing_of(CollectionSource(("s3://bucket/prefix",)), without=tmp_path) == ""
    (folder / "new.jpg").write_bytes(b"now")  # which may be written again in the same tick of the clock
    assert _listing(folder) == ""


@pytest.mark.parametrize("hidden", [".hidden", "left out"])
def test_a_second_way_to_a_folder_counts(folder: Path, hidden: str) -> None:
    # The pictures are read by the link alone, as the folder itself is hidden or excluded.
    _write(folder / hidden / "c.jpg", b"c")
    _write(folder / ".rungwiseignore", b"left out/")
    alone = _listing(folder)
    (folder / "z").symlink_to(folder / hidden)
    linked = _listing(folder)
    (folder / "z").rename(folder / "zz")
    renamed = _listing(folder)
    (folder / "zz").unlink()
    (folder / "zz").symlink_to(folder / "trip")
    assert len({alone, linked, renamed, _listing(folder)}) == 4


def test_a_file_whose_time_of_writing_was_set_back_counts(folder: Path) -> None:
    _write(folder / "a.xmp", b"rating 3")
    before = _listing(folder)
    time = (folder / "a.xmp").stat().st_ctime_ns
    while (folder / "a.xmp").stat().st_ctime_ns == time:  # the clock of the file system has its ticks
        _write(folder / "a.xmp", b"rating 4")
    assert _listing(folder) != before


def test_the_folder_around_annotations_counts(folder: Path) -> None:
    _write(folder / "annotations/captions_train.json", b"{}")
    source = CollectionSource((str(folder / "annotations/captions_train.json"),))
    before = listing_of(source, without=folder / "index")
    _write(folder / "new.jpg", b"new")
    assert listing_of(source, without=folder / "index") != before != ""
