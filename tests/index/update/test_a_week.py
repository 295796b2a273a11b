"""A week in the life of an index: what people do with a folder, day by day, with a clock that the test sets.

Tests no module of its own: reading, update and manifest together.
"""

import os
import shutil
import tarfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError, read_bytes
from rungwise.data import ImageCaptions, Issue, listing_of, read, read_again
from rungwise.data.pictures import MISSING
from rungwise.data.sidecars import _descriptions as descriptions
from rungwise.index import Index
from rungwise.index.update import Changes
from rungwise.index.update import _file_reader as file_reader
from tests.colour_model import ColourModel, picture_bytes
from tests.index.update.test_update import Counting
from tests.odd_folder import takeout, xmp

MONDAY = 1_700_000_000
DAY = 86_400
IMPORTED = 200


@dataclass
class Week:
    """A folder, its index, and the time of day.

    Attributes:
        photos: The folder.
        model: Notes what it encodes.
        now: Seconds since 1970.
        told: Changes of each run.
    """

    photos: Path
    model: Counting = field(default_factory=Counting)
    now: float = MONDAY
    told: list[tuple[str, Changes, int]] = field(default_factory=list)

    def write(self, name: str, number: int) -> None:
        """A picture that shows a number, written now."""
        path = self.photos / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture_bytes((number % 251, number // 251, 7 * number % 256), "BMP"))
        os.utime(path, (self.now, self.now))

    def later(self, seconds: float = DAY) -> None:
        self.now += seconds

    def order(self, what: str) -> Changes:
        """Index with ``--allow-removals``."""
        return self.run(what, allow_removals=True)

    def run(self, what: str, *, allow_removals: bool = False, known: bool = True) -> Changes:
        """Index as the command does; the index is opened anew, as by another process.

        ``known`` says whether a run with the same files may leave them unread.
        """
        place = self.photos.parent / "index"
        seen = len(self.model.seen)
        if place.exists():
            index = Index.open(place)
            assert index.source is not None
            listing = listing_of(index.source, without=place)
            held = index.holds(index.source, listing)
            data = read_again(index.source)
            changes = index.update(data, self.model, allow_removals=allow_removals, listing=listing)
            # Whatever looks up to date without being read, is.
            assert not (held and (changes or changes.withheld)), what
            if again := listing_of(index.source, without=place):  # none where a file is newer than the test's clock
                assert Index.open(place).holds(index.source, again) is (known and not changes.withheld), what
        else:
            index = Index.create(place, self.model, name=self.photos.name, store="exact")
            changes = index.update(read(self.photos), self.model)
        self.told.append((what, changes, len(self.model.seen) - seen))
        return changes

    def ids(self) -> set[str]:
        return {item.id for item in Index.open(self.photos.parent / "index").items()}


def counts(changes: Changes) -> tuple[int, int, int, int, int]:
    return changes.added, changes.changed, changes.removed, changes.unchanged, changes.encoded


def test_a_week_in_the_life_of_an_index(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = elsewhere / "disk"
    week = Week(tmp_path / "photos")
    monkeypatch.setattr(file_reader.time, "time_ns", lambda: int((week.now + 60) * 1e9))
    for number in range(60):
        week.write(f"rome/{number:03}.bmp", number)
    week.photos = tmp_path / "photos"
    disk.mkdir()
    (week.photos / "usb").symlink_to(disk)
    for number in range(60, 70):
        week.write(f"usb/{number:03}.bmp", number)

    assert counts(week.run("Monday: the folder is indexed")) == (70, 0, 0, 0, 70)
    assert counts(week.run("Monday: again")) == (0, 0, 0, 70, 0)

    week.later()
    for number in range(70, 75):
        week.write(f"oslo/{number:03}.bmp", number)
    week.write("rome/000.bmp", 900)
    (week.photos / "rome" / "001.bmp").rename(week.photos / "rome" / "colosseum.bmp")
    assert counts(week.run("Tuesday: 5 added, 1 edited, 1 renamed")) == (6, 1, 1, 68, 6)

    week.later()
    (week.photos / "rome").rename(week.photos / "holidays")
    assert counts(week.run("Wednesday: a folder of 60 is renamed")) == (60, 0, 60, 15, 0)

    week.later()
    with tarfile.open(week.photos / "backup.tar", "w") as archive:
        archive.add(week.photos / "holidays", "holidays")
    (week.photos / "taxes.csv").write_text("year,sum\n2020,7\n")
    (week.photos / "oslo" / "captions.csv").write_text("image,caption\n070.bmp,a fjord\n")
    assert counts(week.run("Thursday: an archive and two tables are dropped")) == (0, 0, 0, 75, 0)

    week.later()
    (week.photos / "usb").unlink()
    (week.photos / "usb").mkdir()
    away = week.run("Friday: a disk is not there")
    assert counts(away) == (0, 0, 0, 75, 0)
    assert (away.withheld, away.why) == (10, f"{week.photos / 'usb'} is empty or gone, perhaps not mounted")
    (week.photos / "usb").rmdir()
    (week.photos / "usb").symlink_to(disk)
    back = week.run("Friday: the disk is back")
    assert counts(back) == (0, 0, 0, 75, 0)
    assert back.withheld == 0

    week.later()
    for number in range(300, 300 + IMPORTED):
        week.write(f"import/{number}.bmp", number)
    shutil.copytree(week.photos / "import", week.photos / "import again", copy_function=shutil.copy2)
    assert counts(week.run("Saturday: 200 are imported, twice")) == (2 * IMPORTED, 0, 0, 75, IMPORTED)

    week.later()
    shutil.rmtree(week.photos / "import again")
    copies = week.run("Sunday: the 200 second copies are deleted")
    assert (copies.removed, copies.withheld) == (0, IMPORTED)
    assert copies.why == "they are more than a tenth of the 475 pictures of the index"
    assert week.order("Sunday: that is meant so").removed == IMPORTED
    shutil.rmtree(week.photos / "holidays")
    lost = week.run("Sunday: 60 of 275 are deleted")
    assert (lost.removed, lost.withheld) == (0, 60)
    assert lost.why == "they are more than a tenth of the 275 pictures of the index"
    assert week.order("Sunday: that is meant so, too").removed == 60
    there = {f"{folder}/{number:03}.bmp" for folder, some in (("oslo", range(70, 75)), ("usb", range(60, 70)))
             for number in some} | {f"import/{number}.bmp" for number in range(300, 300 + IMPORTED)}  # fmt: skip
    assert week.ids() == there
    # Every content went through the model once: 70 on Monday, 5 and an edit on Tuesday, the import on Saturday.
    assert len(week.model.seen) == 70 + 6 + IMPORTED
    assert Index.open(tmp_path / "index").search(ColourModel().encode_text(["red"]), k=3)[0]


@pytest.fixture
def known(tmp_path: Path) -> Week:
    """An index of three pictures, and what stood in their folder is known."""
    week = Week(tmp_path / "photos")
    for number in range(3):
        week.write(f"{number}.bmp", number)
    week.run("make")
    week.run("again")
    assert _holds(week)
    return week


def _place(week: Week) -> Path:
    return week.photos.parent / "index"


def _holds(week: Week) -> bool:
    index = Index.open(_place(week))
    assert index.source is not None
    return index.holds(index.source, listing_of(index.source, without=_place(week)))


def test_a_picture_that_the_disk_did_not_give_is_tried_again(known: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    known.write("3.bmp", 3)
    with monkeypatch.context() as away:
        away.setattr(file_reader, "read_picture", lambda _: Issue("unreadable picture", "3.bmp", "input/output error"))
        assert known.run("a share hiccups", known=False).issues
    assert not _holds(known)
    assert known.run("the share is back").added == 1
    assert _holds(known)


def test_pictures_that_were_away_for_a_moment_come_back(known: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    known.later()
    known.write("0.bmp", 9)  # to be opened again
    with monkeypatch.context() as away:
        away.setattr(file_reader, "read_picture", lambda _: Issue(MISSING, "0.bmp", "no such file"))
        assert known.run("the share goes away between listing and reading", known=False).removed == 1
    assert not _holds(known)
    assert known.run("the share is back").added == 1


def test_a_sidecar_that_could_not_be_read_is_read_again(known: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in ("0.xmp", xmp(xmp_Rating="3")), ("1.bmp.json", takeout("1.bmp", description="At sea.")):
        (known.photos / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(known.photos / name, (MONDAY, MONDAY))
        error = OSError(5, "Input/output error")

        def fails(path: Path, limit: str, error: OSError = error, name: str = name) -> bytes:
            if path.name == name:
                raise UserError(f"{path}: cannot be read") from error
            return read_bytes(path, limit)  # type: ignore[arg-type]

        with monkeypatch.context() as away:
            away.setattr(descriptions, "read_bytes", fails)
            known.run("a share hiccups", known=False)
        assert not _holds(known)
        assert known.run("the share is back").changed == 1
        assert _holds(known)


@pytest.mark.parametrize("name", ["../elsewhere/x.bmp", "{0}/elsewhere/x.bmp", "{0}/elsewhere/1.bmp"])
def test_what_a_table_seeks_elsewhere_may_come_there(known: Week, name: str) -> None:
    named = name.format(known.photos.parent)
    (known.photos / "captions.csv").write_text(f"image,caption\n0.bmp,a red one\n{named},a green one\n")
    os.utime(known.photos / "captions.csv", (MONDAY, MONDAY))
    index = Index.open(_place(known))
    assert index.source is not None
    source = replace(index.source, layouts=("",), files=())
    listing = listing_of(source, without=_place(known))
    index.update(read_again(source), known.model, listing=listing, allow_removals=True)
    assert not _holds(known)
    known.write(f"../elsewhere/{Path(named).name}", 7)
    assert known.run("what lies elsewhere came", known=False).added == 1


@pytest.mark.parametrize("step", ["rows", "captions"])
def test_who_dies_while_rows_change_leaves_no_listing(known: Week, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.open(_place(known))
    with monkeypatch.context() as dying:
        dying.setattr(Index, "_raise_revision" if step == "rows" else "_settle", _dies)
        with pytest.raises(KeyboardInterrupt):
            index.remove(["1.bmp"])
    assert known.ids() == {"0.bmp", "2.bmp"}
    assert not _holds(known)
    assert known.run("again").added == 1


def _dies(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_what_others_remove_during_an_update_is_missed(known: Week) -> None:
    index, other = Index.open(_place(known)), Index.open(_place(known))
    assert index.source is not None
    listing = listing_of(index.source, without=_place(known))
    index.update(
        read_again(index.source),
        known.model,
        listing=listing,
        progress=lambda _: other.remove(["1.bmp"]) and None,
    )
    assert known.ids() == {"0.bmp", "2.bmp"}
    assert not _holds(known)
    assert known.run("again").added == 1


def test_a_picture_of_a_client_may_be_taken_away_by_hand(known: Week) -> None:
    index = Index.open(_place(known))
    assert index.added is not None
    index.added.mkdir()
    known.write("../index.added/new.bmp", 8)
    new = index.added / "new.bmp"
    index.upsert(ImageCaptions(("new",), (), np.empty(0, np.int64), paths=(new,)), known.model)
    known.run("a client added a picture", known=False)
    assert "new" in known.ids()
    new.unlink()
    assert not _holds(known)
    assert known.run("its file is gone").removed == 1
    assert _holds(known)
