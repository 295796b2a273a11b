"""An index of a folder as people have them: of each file, what is in the index and what is said.

Tests no module of its own: reading, decoding, metadata and update together.
"""

import os
from pathlib import Path

import pytest

from rungwise.data import NOT_READ, ImageCaptions, read
from rungwise.data.layouts import readable_name
from rungwise.data.pictures import NEEDS_EXTRA
from rungwise.index import Index, Item
from rungwise.index.update import Changes
from tests import odd_folder
from tests.index.update.test_update import Counting

ON_POSIX = os.name == "posix"
UNREADABLE = {"empty.jpg": "the file is empty", "no picture.jpg": "not a picture in a known format"}


class Made:
    """The folder, what was read of it, and its index."""

    def __init__(self, root: Path) -> None:
        odd_folder.make(root, large=True)
        self.root, self.model = root, Counting()
        self.data: ImageCaptions = read(root)
        index = Index.create(root.parent / "index", self.model, name=root.name, store="exact")
        self.changes: Changes = index.update(self.data, self.model)
        self.items: dict[str, Item] = {item.id: item for item in index.items()}
        self.index = index

    def left_out(self) -> dict[str, str]:
        """What is said of each picture that is not in the index."""
        said = [f"{issue.where}: {issue.detail}" for issue in self.changes.issues]
        return {one: line for one in self.data.image_ids for line in said if str(self.root / one) in line}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("odd") / "photos")


def test_every_picture_is_in_the_index_or_listed_with_the_reason(made: Made) -> None:
    left = made.left_out()
    assert set(made.items) | set(left) == set(made.data.image_ids)
    assert made.items.keys().isdisjoint(left)
    for name, reason in UNREADABLE.items():
        assert reason in left.pop(name)
    without_heif = {odd_folder.HEIC} if any(one.kind == NEEDS_EXTRA for one in made.changes.issues) else set()
    forbidden = {odd_folder.FORBIDDEN} if ON_POSIX and os.geteuid() else set()
    assert set(left) == without_heif | forbidden


def test_pictures_of_every_make_are_encoded(made: Made) -> None:
    made_of = {"animated.gif", "animated.webp", "cmyk.jpg", "grey16.png", "pages.tif", "no ending", "png called.jpg"}
    assert made_of | {odd_folder.LARGE, readable_name(Path(odd_folder.NFD)), *odd_folder.TURNS} <= made.items.keys()
    large = made.items[odd_folder.LARGE].columns
    assert (large["width"], large["height"]) == (10_000, 10_000)
    sizes = {(made.items[turn].columns["width"], made.items[turn].columns["height"]) for turn in odd_folder.TURNS}
    assert sizes == {(24, 16), (16, 24)}, "as they are seen"


def test_a_copy_is_not_encoded_again(made: Made) -> None:
    same = {"plain.jpg", "copy.jpg"} | ({"linked.jpg"} if ON_POSIX else set())
    assert same <= made.items.keys()
    assert len({made.items[one].columns["hash"] for one in same}) == 1
    assert len(same & set(made.model.seen)) == 1


def test_what_files_beside_a_picture_say_is_in_the_index(made: Made) -> None:
    sidecar = made.items["sidecar.jpg"].columns
    assert (sidecar["title"], sidecar["rating"], sidecar["description"]) == ("Boat", 4, "Seen at noon.")
    assert made.items["takeout/IMG_1.jpg"].columns["year"] == 2020
    assert made.items["captioned.jpg"].captions == ("A red boat.", "A boat at sea.")
    assert not made.items["both.jpg"].captions
    assert not made.items["both.png"].captions
    assert made.items["embedded.jpg"].columns["title"]


def test_nothing_that_is_dropped_into_the_folder_changes_what_it_is(made: Made) -> None:
    (made.root / "taxes.csv").write_text("year,sum\n2020,7\n")
    (made.root / "captions.csv").write_text("image,caption\nplain.jpg,Another one.\n")
    (made.root / "backup.tar").write_bytes(b"no archive")
    assert made.index.source is not None
    again = read(made.root, layout=made.index.source.layouts[0])
    changes = made.index.update(again, made.model)
    assert (changes.added, changes.changed, changes.removed, changes.encoded) == (0, 0, 0, 0)
    said = [f"{issue.kind}: {issue.where}: {issue.detail}" for issue in again.issues]
    assert [one for one in said if "captions.csv" in one and "with 1 more" in one], "the other is taxes.csv"
    assert [one for one in said if "backup.tar" in one]
    assert any(issue.kind == NOT_READ for issue in again.issues)
