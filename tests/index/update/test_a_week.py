"""A week in the life of an index: what people do with a folder, day by day, with a clock that the test sets.

Tests no module of its own: reading, update and manifest together.
"""

import os
import shutil
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rungwise.data import listing_of, read, read_again
from rungwise.index import Index
from rungwise.index.update import Changes
from rungwise.index.update import _file_reader as file_reader
from tests.colour_model import ColourModel, picture_bytes
from tests.index.update.test_update import Counting

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

    def run(self, what: str, *, allow_removals: bool = False) -> Changes:
        """Index as the command does; the index is opened anew, as by another process."""
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
                assert Index.open(place).holds(index.source, again) is not bool(changes.withheld), what
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
