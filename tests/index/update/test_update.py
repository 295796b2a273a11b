"""An index that is brought up to date.

Also tests rungwise.index.update._skipped, rungwise.index.update._removals, rungwise.index.update._file_reader,
rungwise.index.layout.store_pair.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError
from rungwise.data import CollectionSource, ImageCaptions, Issue, read
from rungwise.data.files import FeatureRows
from rungwise.data.layouts import PictureFolder, read_folder
from rungwise.data.pictures import _picture_files as door
from rungwise.index import Index
from rungwise.index import _items as items
from rungwise.index.filters import Where
from rungwise.index.layout import keep_favourite, read_favourites, read_grades
from rungwise.index.layout.manifest import read_issues, read_manifest
from rungwise.index.stores import Record, Store
from rungwise.index.update import _file_reader as file_reader
from rungwise.models import EncodedImages
from tests.colour_model import ColourModel, picture_bytes
from tests.hostile import bombs
from tests.odd_folder import in_languages, takeout, xmp

OLD = 1_600_000_000
NOT_LONG_AGO = 4_000_000_000
"""In the year 2096, which is later than the clock says for as long as these tests may take."""


class Counting(ColourModel):
    """Notes the names of the pictures that it encodes, and which texts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seen: list[str] = []
        self.read: list[str] = []

    def encode_image(self, pictures: Any, **options: Any) -> EncodedImages:
        names = [str(at) for at in range(len(pictures))] if isinstance(pictures, FeatureRows) else pictures
        self.seen += [Path(one).name for one in names]
        return super().encode_image(pictures, **options)

    def encode_text(self, texts: Sequence[str]) -> Any:
        self.read += texts
        return super().encode_text(texts)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(6):
        draw(folder / f"{number}.png", number)
    return folder


@pytest.fixture
def model() -> Counting:
    return Counting()


def draw(path: Path, number: int, time: int = OLD) -> None:
    """A picture whose content says its number, of a time that is long ago; all have the same size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture_bytes((255 - number, number, 7 * number % 256), "BMP"))
    os.utime(path, (time + number, time + number))


def collection(folder: Path, **changes: Any) -> ImageCaptions:
    return replace(read_folder(PictureFolder(folder)), **changes)


def captioned(folder: Path, text: str = "a red one", **columns: Any) -> ImageCaptions:
    data = collection(folder)
    count = len(data)
    texts = tuple(f"{text} {number}" for number in range(count))
    given = {name: tuple(value for _ in range(count)) for name, value in columns.items()}
    return replace(data, captions=texts, image_of_caption=np.arange(count), caption_ids=(), columns=given)


def made(photos: Path, model: Counting, data: ImageCaptions | None = None, store: str = "exact") -> Index:
    index = Index.create(photos.parent / "index", model, name="photos", store=store)
    changes = index.update(data or collection(photos), model)
    assert str(changes) == f"{len(index)} added, 0 changed, 0 removed, 0 unchanged"
    model.seen.clear()
    model.read.clear()
    return index


def ids(index: Index) -> list[str]:
    return sorted(item.id for item in Index.open(index.folder).items())


@pytest.mark.parametrize("store", ["exact", "lance"])
def test_a_second_update_touches_only_what_changed(photos: Path, model: Counting, store: str) -> None:
    index = made(photos, model, store=store)
    draw(photos / "1.png", 101)
    draw(photos / "new" / "a.png", 102)
    (photos / "2.png").unlink()
    changes = index.update(collection(photos), model)
    assert str(changes) == "1 added, 1 changed, 1 removed, 4 unchanged"
    assert sorted(model.seen) == ["1.png", "a.png"]
    assert changes.encoded == 2
    assert ids(index) == ["0.png", "1.png", "3.png", "4.png", "5.png", "new/a.png"]
    whole = Index.build(collection(photos), model, photos.parent / "whole")
    for item in whole.items():
        np.testing.assert_array_equal(
            index.picture_store.get([item.id])[item.id].vector, whole.picture_store.get([item.id])[item.id].vector
        )
        assert index.item(item.id) == item


def test_nothing_new_is_nothing_done(photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    index = made(photos, model)
    monkeypatch.setattr(file_reader, "read_picture", lambda _: pytest.fail("a file was opened"))
    done: list[int] = []
    changes = index.update(collection(photos), model, progress=done.append)
    assert not changes
    assert (changes.unchanged, sum(done), model.seen) == (6, 6, [])


@pytest.mark.parametrize("store", ["exact", "lance"])
def test_nothing_new_reads_pictures_once_and_no_record_of_captions(
    photos: Path, model: Counting, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made(photos, model, captioned(photos), store)
    looked = []
    records = type(index.picture_store).records

    def counted(self: Store, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        looked.append(self.side)
        return records(self, where)

    monkeypatch.setattr(type(index.picture_store), "records", counted)
    assert not index.update(captioned(photos), model)
    assert looked == ["image"]


@pytest.mark.parametrize("store", ["exact", "lance"])
@pytest.mark.parametrize("strays", [1, 300])
def test_captions_that_no_picture_has_go_also_where_nothing_changed(
    photos: Path, model: Counting, store: str, strays: int
) -> None:
    index = made(photos, model, captioned(photos), store)
    assert index.added is not None
    draw(index.added / "sent.png", 9)
    sent = replace(collection(index.added), image_ids=("dog-7",))
    index.upsert(replace(sent, captions=("sent",), image_of_caption=np.zeros(1, int), caption_ids=()), model)
    borne = sorted(index.captions())
    assert "sent" in borne
    # As a process leaves it that died between captions and pictures.
    index.caption_store.upsert([f"stray {number}" for number in range(strays)], model.encode_text(["red"] * strays))
    assert not index.update(captioned(photos), model)
    assert sorted(index.captions()) == borne


def test_a_caption_of_a_picture_that_cannot_be_read_goes(photos: Path, model: Counting) -> None:
    data = captioned(photos)
    index = made(photos, model, data)
    (photos / "3.png").write_bytes(b"no picture any more")
    changes = index.update(data, model)
    assert (changes.removed, "a red one 3" in set(index.captions())) == (1, False)
    index.caption_store.upsert(["a red one 3"], model.encode_text(["red"]))
    assert not index.update(data, model)
    assert "a red one 3" not in set(index.captions())


def test_a_row_without_source_is_made_anew_from_its_file(photos: Path, model: Counting) -> None:
    index = made(photos, model, captioned(photos))
    row = index.picture_store.get(["2.png"])["2.png"]
    own = {name: value for name, value in row.record[items.ITEM].items() if name != "source"}
    index.picture_store.upsert(["2.png"], row.vector[None], [{**row.record, items.ITEM: own}])
    assert index.update(captioned(photos), model).changed == 1
    assert index.update(captioned(photos), model).changed == 0


def test_a_renamed_picture_is_not_encoded_again(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    (photos / "3.png").rename(photos / "renamed.png")
    (photos / "4.png").rename(photos / "x.png")
    (photos / "5.png").rename(photos / "4.png")
    (photos / "x.png").rename(photos / "5.png")
    vectors = {one: index.picture_store.get([one])[one].vector for one in ("3.png", "4.png", "5.png")}
    changes = index.update(collection(photos), model)
    assert str(changes) == "1 added, 2 changed, 1 removed, 3 unchanged"
    assert model.seen == []
    for old, new in (("3.png", "renamed.png"), ("4.png", "5.png"), ("5.png", "4.png")):
        np.testing.assert_array_equal(index.picture_store.get([new])[new].vector, vectors[old])


@pytest.mark.parametrize("store", ["exact", "lance"])
def test_captions_and_columns_alone_encode_no_picture(photos: Path, model: Counting, store: str) -> None:
    index = made(photos, model, captioned(photos, year=2020), store)
    assert index.item("0.png").columns["year"] == 2020
    changes = index.update(captioned(photos, year=2021), model)
    assert str(changes) == "0 added, 6 changed, 0 removed, 0 unchanged"
    assert index.item("0.png").columns["year"] == 2021
    changes = index.update(captioned(photos, text="a blue one", year=2021), model)
    assert (changes.changed, model.seen) == (6, [])
    assert sorted(index.captions()) == [f"a blue one {number}" for number in range(6)]
    assert not index.update(captioned(photos, text="a blue one", year=2021), model)


def test_files_beside_pictures_change_columns_and_encode_no_picture(photos: Path, model: Counting) -> None:
    index = made(photos, model, read(photos))
    model.seen.clear()
    (photos / "0.xmp").write_bytes(xmp(in_languages("title", x_default="A red boat"), xmp_Rating="4"))
    (photos / "1.png.json").write_text(takeout("1.png", description="At sea."))
    assert str(index.update(read(photos), model)) == "0 added, 2 changed, 0 removed, 4 unchanged"
    assert model.seen == []
    assert (index.item("0.png").columns["title"], index.item("0.png").columns["rating"]) == ("A red boat", 4)
    assert (index.item("1.png").columns["description"], index.item("1.png").columns["year"]) == ("At sea.", 2020)
    (photos / "0.xmp").write_bytes(xmp(xmp_Rating="-1"))
    (photos / "1.png.json").unlink()
    assert str(index.update(read(photos), model)) == "0 added, 2 changed, 0 removed, 4 unchanged"
    assert model.seen == []
    assert index.item("0.png").columns["rating"] == -1
    assert "title" not in index.item("0.png").columns
    assert not {"description", "year", "taken"} & index.item("1.png").columns.keys()


def test_an_index_among_its_pictures_is_no_part_of_the_collection(photos: Path, model: Counting) -> None:
    index = Index.create(photos / "index", model, name="photos", store="exact")
    index.update(read(photos), model, thumbnails=True)
    data = read(photos)
    assert len(data) == 6
    assert [issue.where for issue in data.issues] == ["1 index that rungwise wrote, such as index"]


def test_the_time_of_the_camera_goes_before_that_of_takeout(photos: Path, model: Counting) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2019:05:01 12:00:00"
    Image.new("RGB", (8, 8)).save(photos / "0.png", exif=exif.tobytes())
    for name in ("0.png", "1.png"):
        (photos / f"{name}.json").write_text(takeout(name))
    index = made(photos, model, read(photos))
    assert [index.item(name).columns["taken"] for name in ("0.png", "1.png")] == [
        "2019-05-01T12:00:00",
        "2020-09-13T12:26:40+00:00",
    ]


def test_a_file_that_was_only_touched_is_unchanged_and_not_opened_twice(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    os.utime(photos / "0.png", (OLD - 7, OLD - 7))
    changes = index.update(collection(photos), model)
    assert (bool(changes), changes.unchanged, model.seen) == (False, 6, [])
    assert str(index.item("0.png").columns["modified"]).endswith(":33Z")
    assert not index.update(collection(photos), model)


def test_rehash_finds_what_size_and_time_hide(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    before = (photos / "0.png").stat()
    draw(photos / "0.png", 200)
    assert (photos / "0.png").stat().st_size == before.st_size
    os.utime(photos / "0.png", ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert not index.update(collection(photos), model)
    assert index.update(collection(photos), model, rehash=True).changed == 1
    assert model.seen == ["0.png"]


def test_a_file_that_was_just_written_is_looked_at_again(photos: Path, model: Counting) -> None:
    draw(photos / "0.png", 0, time=NOT_LONG_AGO)
    index = made(photos, model)
    before = (photos / "0.png").stat()
    draw(photos / "0.png", 200)
    os.utime(photos / "0.png", ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert index.update(collection(photos), model).changed == 1


def test_a_file_that_is_written_while_it_is_encoded_is_looked_at_again(photos: Path) -> None:
    class Meddled(Counting):
        def encode_image(self, pictures: Any, **options: Any) -> EncodedImages:
            found = super().encode_image(pictures, **options)
            draw(photos / "0.png", 200, time=OLD + 99)
            return found

    index = made(photos, Meddled())
    assert "hash" not in index.item("0.png").columns
    model = Counting()
    assert index.update(collection(photos), model).changed == 1
    assert model.seen == ["0.png"]


def test_pictures_of_equal_content_are_encoded_once(photos: Path, model: Counting) -> None:
    (photos / "twin.png").write_bytes((photos / "0.png").read_bytes())
    index = Index.create(photos.parent / "index", model, store="exact")
    changes = index.update(collection(photos), model)
    assert (changes.added, changes.encoded, len(model.seen)) == (7, 6, 6)
    assert index.item("twin.png").columns["hash"] == index.item("0.png").columns["hash"]


def test_unreadable_pictures_are_listed_each_time_and_tried_when_they_change(photos: Path, model: Counting) -> None:
    (photos / "bad.png").write_bytes(b"no picture")
    (photos / "bad too.png").write_bytes(b"no picture")
    os.utime(photos / "bad.png", (OLD, OLD))
    os.utime(photos / "bad too.png", (OLD, OLD))
    index = Index.create(photos.parent / "index", model, store="exact")
    for times in (1, 1, 1):
        changes = index.update(collection(photos), model)
        assert [issue.kind for issue in changes.issues] == ["unreadable picture"] * 2
        assert model.seen.count("bad.png") + model.seen.count("bad too.png") == times
    assert [left.id for left in Index.open(index.folder).left_out] == ["bad too.png", "bad.png"]
    draw(photos / "bad.png", 9)
    changes = index.update(collection(photos), model)
    assert (changes.added, len(changes.issues)) == (1, 1)
    assert Index.open(index.folder).manifest.skipped == 1


def test_heic_is_read_as_soon_as_its_decoder_is_there(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photos / "a.heic").write_bytes(bombs.heic(64))
    os.utime(photos / "a.heic", (OLD, OLD))
    monkeypatch.setattr(door, "has_heif", lambda: False)
    index = Index.create(photos.parent / "index", model, store="exact")
    changes = index.update(collection(photos), model)
    assert [(issue.kind, changes.added) for issue in changes.issues] == [(door.NEEDS_EXTRA, 6)]
    assert "pip install 'rungwise[heif]'" in changes.issues[0].detail
    monkeypatch.undo()
    changes = index.update(collection(photos), model)
    assert (changes.added, changes.unchanged, changes.issues) == (1, 6, ())


def test_places_that_are_left_out_are_counted_in_one_line(photos: Path, model: Counting) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8825).update({2: (10.0, 20.0, 30.0), 4: (10.0, 20.0, 30.0)})
    for name in ("a.jpg", "b.jpg"):
        Image.new("RGB", (8, 8), "red").save(photos / name, exif=exif.tobytes())
        os.utime(photos / name, (OLD, OLD))
    index = Index.create(photos.parent / "index", model, store="exact")
    changes = index.update(collection(photos), model)
    assert changes.notes == (Issue("place without a hemisphere", "a.jpg", "left out of the columns, of 2 in all"),)
    assert index.update(collection(photos), model).notes == ()


def test_an_index_learns_of_new_columns_without_encoding(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(items, "FACTS", items.FACTS - {"lens"})
        index = made(photos, model)
    changes = index.update(collection(photos), model)
    assert (changes.changed, changes.encoded, changes.unchanged) == (6, 0, 0)
    assert index.update(collection(photos), model).unchanged == 6


def test_a_picture_that_turns_into_none_is_removed(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    (photos / "0.png").write_bytes(b"")
    changes = index.update(collection(photos), model)
    assert (changes.removed, changes.unchanged, len(changes.issues)) == (1, 5, 1)
    assert "0.png" not in ids(index)


def test_pictures_that_the_system_keeps_away_stay(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(photos / "locked" / "a.png", 50)
    index = Index.create(photos.parent / "index", model, store="exact")
    index.update(collection(photos), model)
    stat = os.stat

    def refused(path: Any, *arguments: Any, **options: Any) -> Any:
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **options)

    data = collection(photos)
    monkeypatch.setattr(os, "stat", refused)
    changes = index.update(data.select(range(6)), model)
    assert (changes.removed, changes.unchanged) == (0, 7)
    monkeypatch.undo()
    assert index.update(data.select(range(6)), model).removed == 1


def test_nothing_is_removed_when_everything_is_gone(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    empty = ImageCaptions((), (), np.empty(0, np.int64), name="photos")
    changes = index.update(empty, model)
    assert (changes.removed, changes.unchanged, changes.withheld) == (0, 6, 6)
    assert changes.why == "photos is not there or holds no pictures now"
    draw(photos.parent / "others" / "x.png", 9)
    others = collection(photos.parent / "others")
    with pytest.raises(UserError, match="has not one of the 6 pictures"):
        index.update(others, model)
    assert len(ids(index)) == 6
    changes = index.update(replace(others, name="photos"), model)
    assert (changes.added, changes.removed, changes.withheld) == (1, 0, 6)
    assert index.update(others, model, allow_removals=True).removed == 6
    assert ids(index) == ["x.png"]
    assert index.update(replace(empty, name="others"), model, allow_removals=True).removed == 1


def test_a_large_share_is_not_removed_by_itself_and_a_small_one_is(photos: Path, model: Counting) -> None:
    for number in range(6, 200):
        draw(photos / f"{number}.png", number)
    index = made(photos, model)
    for number in range(20):
        (photos / f"{number}.png").unlink()
    assert index.update(collection(photos), model).removed == 20, "a tenth of 200"
    for number in range(20, 40):
        (photos / f"{number}.png").unlink()
    draw(photos / "new.png", 3)
    changes = index.update(collection(photos), model)
    assert (changes.added, changes.removed, changes.unchanged, changes.withheld) == (1, 0, 180, 20)
    assert changes.why == "they are more than a tenth of the 180 pictures of the index"
    assert len(index) == 181
    draw(photos / "20.png", 20)
    changes = index.update(collection(photos), model)
    assert (changes.removed, changes.withheld) == (19, 0), "fewer than 20 go, whatever their share"


def test_pictures_that_moved_are_not_lost(photos: Path, model: Counting) -> None:
    for number in range(6, 40):
        draw(photos / f"{number}.png", number)
    index = made(photos, model)
    (photos / "2020").mkdir()
    for file in photos.glob("*.png"):
        file.rename(photos / "2020" / file.name)
    seen = len(model.seen)
    changes = index.update(collection(photos), model)
    assert (changes.added, changes.removed, changes.withheld, changes.encoded) == (40, 40, 0, 0)
    assert len(model.seen) == seen


def test_favourites_and_grades_go_with_a_picture_that_moved(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    for one in ("1.png", "2.png"):
        keep_favourite(index.folder, one)
    index.grade("a dog", "1.png", "right", "Ada")
    (photos / "1.png").rename(photos / "dog.png")
    (photos / "2.png").unlink()
    changes = index.update(collection(photos), model)
    assert (changes.added, changes.removed, changes.encoded) == (1, 2, 0)
    assert [one.id for one in read_favourites(index.folder).pictures] == ["2.png", "dog.png"]
    assert [(one.id, one.grade, one.who) for one in read_grades(index.folder)] == [("dog.png", "right", "Ada")]


def test_while_much_is_gone_what_moved_leaves_no_second_row(photos: Path, model: Counting) -> None:
    for number in range(6, 60):
        draw(photos / f"{number}.png", number)
    index = made(photos, model)
    for number in range(25):
        (photos / f"{number}.png").rename(photos / f"new {number}.png")
    for number in range(25, 50):
        (photos / f"{number}.png").unlink()
    changes = index.update(collection(photos), model)
    assert (changes.added, changes.removed, changes.withheld, changes.encoded) == (25, 25, 25, 0)
    assert len(ids(index)) == 60


def test_files_that_became_unreadable_count_as_gone(photos: Path, model: Counting) -> None:
    """As the placeholders of a program that keeps files in a cloud."""
    for number in range(6, 40):
        draw(photos / f"{number}.png", number)
    index = made(photos, model)
    for number in range(25):
        (photos / f"{number}.png").write_bytes(b"not here yet")
    changes = index.update(collection(photos), model)
    assert (changes.removed, changes.withheld, len(changes.issues)) == (0, 25, 25)
    assert len(index) == 40


def test_what_lay_on_a_disk_that_is_away_stays(photos: Path, elsewhere: Path, model: Counting) -> None:
    draw(elsewhere / "disk" / "a.png", 7)
    draw(elsewhere / "disk" / "b" / "c.png", 8)
    (photos / "usb").symlink_to(elsewhere / "disk")
    index = Index.create(photos.parent / "index", model, store="exact")
    index.update(read(photos), model)
    assert index.manifest.mounts == ("../photos/usb",)
    for away in ("gone", "empty", "on the same disk"):
        (photos / "usb").unlink()
        if away == "gone":
            (photos / "usb").symlink_to(elsewhere / "nowhere")
        else:
            (photos / "usb").mkdir()
        if away == "on the same disk":
            (photos / "usb" / "notes.txt").touch()
        (photos / "0.png").unlink(missing_ok=True)
        changes = Index.open(index.folder).update(read(photos), model)
        assert (changes.removed, changes.withheld) == (0, 3), away
        assert changes.why == f"{photos / 'usb'} is empty or gone, perhaps not mounted"
        assert read_manifest(index.folder).mounts == ("../photos/usb",)
        shutil.rmtree(photos / "usb") if (photos / "usb").is_dir() else None
        if not (photos / "usb").is_symlink():
            (photos / "usb").symlink_to(elsewhere / "disk")
    shutil.rmtree(photos / "usb", ignore_errors=True)
    (photos / "usb").unlink(missing_ok=True)
    (photos / "usb").symlink_to(elsewhere / "disk")
    shutil.move(elsewhere / "disk", elsewhere / "away")
    (elsewhere / "disk" / ".Trash-1000").mkdir(parents=True)
    assert Index.open(index.folder).update(read(photos), model).withheld == 3, "only what systems keep is there"
    shutil.rmtree(elsewhere / "disk")
    shutil.move(elsewhere / "away", elsewhere / "disk")
    (elsewhere / "disk" / "a.png").unlink()
    changes = Index.open(index.folder).update(read(photos), model)
    assert (changes.removed, changes.withheld) == (2, 0), "the disk is there, and the picture is not"
    (photos / "usb").unlink()
    changes = Index.open(index.folder).update(read(photos), model, allow_removals=True)
    assert changes.removed == 1
    assert read_manifest(index.folder).mounts == ()


def test_what_clients_of_a_server_added_is_not_of_the_collection_and_stays(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    assert index.added is not None
    draw(index.added / "sent.png", 9)
    index.upsert(replace(collection(index.added), image_ids=("dog-7",)), model)
    changes = index.update(collection(photos), model)
    assert (changes.removed, changes.unchanged) == (0, 7)
    (index.added / "sent.png").unlink()
    assert index.update(collection(photos), model).removed == 1


def test_an_index_knows_of_what_it_was_made(photos: Path, model: Counting) -> None:
    index = Index.build(read(photos), model, photos.parent / "index")
    assert index.manifest.source == CollectionSource(("../photos",), ("folder",))
    assert index.source == CollectionSource((str(photos),), ("folder",))
    both = photos.parent.rename(photos.parent.with_name("moved"))
    assert Index.open(both / "index").source == CollectionSource((str(both / "photos"),), ("folder",))
    index = Index.open(both / "index")
    index.update(read(both / "photos"), model)
    (both / "captions.csv").write_text("image,caption\n0.png,A dog.\n")
    index.update(read(both / "photos", captions=both / "captions.csv"), model)
    assert index.source == CollectionSource((str(both / "photos"),), ("table",), captions=str(both / "captions.csv"))
    assert index.manifest.source == CollectionSource(("../photos",), ("table",), captions="../captions.csv")
    index.update(read(both / "photos").select(range(6)), model)
    assert index.source is not None, "what no reader made changes nothing"


def test_batches_are_acknowledged_one_by_one_and_can_be_searched(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "_FIRST", 2)
    monkeypatch.setattr(file_reader, "MOST", 2)
    index = Index.create(photos.parent / "index", model, store="exact")
    seen: list[tuple[str, ...]] = []

    def stored(some: Sequence[str]) -> None:
        seen.append(tuple(some))
        opened = Index.open(index.folder)
        assert len(opened) == 2 * len(seen)
        assert set(some) <= {hit.id for hit in opened.search([[1, 0, 0]], k=9)[0]}

    index.update(collection(photos), model, stored=stored)
    assert [one for some in seen for one in some] == [f"{number}.png" for number in range(6)]


def test_an_update_that_died_goes_on_from_what_was_stored(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "_FIRST", 2)
    monkeypatch.setattr(file_reader, "MOST", 2)

    class Dies(Counting):
        def encode_image(self, pictures: Any, **options: Any) -> EncodedImages:
            if len(self.seen) == 4:
                raise KeyboardInterrupt
            return super().encode_image(pictures, **options)

    index = Index.create(photos.parent / "index", Dies(), store="exact")
    with pytest.raises(KeyboardInterrupt):
        index.update(captioned(photos), Dies())
    again, model = Index.open(index.folder), Counting()
    assert len(again) == 4
    assert again.update(captioned(photos), model).added == 2
    assert model.seen == ["4.png", "5.png"]
    assert len(list(again.captions())) == 6


def test_a_second_update_at_the_same_time_is_refused_and_other_changes_are_not(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    draw(photos / "new.png", 77)

    def stored(some: Sequence[str]) -> None:
        other = Index.open(index.folder)
        with pytest.raises(UserError, match="an indexing run writes here now"):
            other.update(collection(photos), model)
        assert other.remove(["0.png"]) == 1

    index.update(collection(photos), model, stored=stored)
    assert ids(index) == ["1.png", "2.png", "3.png", "4.png", "5.png", "new.png"]


@pytest.mark.parametrize("store", ["exact", "lance"])
def test_those_who_opened_it_notice_every_change(photos: Path, model: Counting, store: str) -> None:
    index = made(photos, model, store=store)
    opened = Index.open(index.folder)
    assert not opened.is_replaced()
    draw(photos / "new.png", 77)
    index.update(collection(photos), model)
    assert opened.is_replaced()
    assert read_manifest(index.folder).revision > opened.manifest.revision


def test_rows_of_features_are_told_by_their_numbers(tmp_path: Path, model: Counting) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    data = ImageCaptions(("a", "b", "c", "d"), (), np.empty(0, np.int64), features=FeatureRows(rows))
    index = Index.create(tmp_path / "index", model, store="exact")
    assert index.update(data, model).added == 4
    other = rows.copy()
    other[2] += 1
    model.seen.clear()
    changes = index.update(replace(data, features=FeatureRows(other)), model)
    assert (changes.changed, changes.unchanged, len(model.seen)) == (1, 3, 1)


def test_another_model_is_refused(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    with pytest.raises(UserError, match="built by model"):
        index.update(collection(photos), ColourModel(fingerprint="another"))


@pytest.mark.parametrize("damage", [lambda data: None, lambda data: data.paths[0].unlink()])
def test_a_first_update_without_a_picture_says_why(
    tmp_path: Path, model: Counting, damage: Callable[[ImageCaptions], object]
) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"x")
    data = collection(tmp_path / "photos")
    damage(data)
    index = Index.create(tmp_path / "index", model, store="exact")
    with pytest.raises(UserError, match="none of 1 pictures could be read; the first: .*a.png"):
        index.update(data, model)


def test_a_death_between_the_two_files_of_what_is_left_out(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made(photos, model)
    (photos / "bad.png").write_bytes(b"no picture")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rungwise.core.disk._files.sync_file", dies)
        with pytest.raises(KeyboardInterrupt):
            index.update(collection(photos), model)
    manifest = read_manifest(index.folder)
    assert read_issues(index.folder, manifest) == ()
    assert len(index.update(collection(photos), model).issues) == 1


def test_small_copies_are_kept_and_go_with_their_pictures(photos: Path, model: Counting) -> None:
    index = Index.create(photos.parent / "index", model, store="exact", thumbnails=True)
    index.update(collection(photos), model)
    small = index.thumbnail("0.png")
    assert small is not None
    assert small.startswith(b"\xff\xd8")
    (photos / "0.png").unlink()
    index.update(collection(photos), model)
    files = list((index.folder / "thumbnails").rglob("*.thumbnail"))
    assert len(files) == 5
    files[0].unlink()
    model.seen.clear()
    assert not index.update(collection(photos), model)
    assert (len(list((index.folder / "thumbnails").rglob("*.thumbnail"))), model.seen) == (5, [])
    stranger = index.folder / "thumbnails" / "ab" / "left by a killed run"
    stranger.parent.mkdir(exist_ok=True)
    stranger.write_bytes(b"x")
    index.compact()
    assert not stranger.exists()
    assert index.thumbnail("1.png") is not None
    assert Index.build(collection(photos), model, photos.parent / "plain").thumbnail("1.png") is None


def test_small_copies_can_begin_later(photos: Path, model: Counting) -> None:
    index = made(photos, model)
    assert index.thumbnail("1.png") is None
    assert not index.update(collection(photos), model, thumbnails=True)
    assert model.seen == []
    assert Index.open(index.folder).thumbnail("1.png") is not None


def test_facts_stand_where_filters_see_them_and_a_table_wins(photos: Path, model: Counting) -> None:
    index = made(photos, model, captioned(photos, year=1999, width="broad"))
    columns = index.item("0.png").columns
    assert (columns["year"], columns["width"], columns["height"]) == (1999, "broad", 30)
    assert (columns["file"], columns["folder"], columns["format"]) == ("0.png", "photos", "BMP")
    assert columns["bytes"] == (photos / "0.png").stat().st_size


def test_folders_are_those_of_the_collection_whatever_the_ids_are(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folders(index: Index) -> dict[str, object]:
        return {item.id: item.columns["folder"] for item in index.items()}

    for name in ("2020/rome/6.png", "2021/rome/7.png"):
        draw(photos / name, int(name[-5]))
    lines = ["filename,caption", "6.png,a dog", "rome/7.png,a cat", "0.png,a cow"]
    (photos / "captions.csv").write_text("\n".join(lines))
    data = read(photos, captions=photos / "captions.csv")
    with monkeypatch.context() as before:
        before.setattr(items, "_folder_within", lambda roots, path: "")
        index = made(photos, model, data)
        assert folders(index)["6.png"] == "rome"
    changes = index.update(data, model)
    assert (changes.changed, changes.encoded) == (2, 0)
    assert index.update(data, model).unchanged == len(data)
    found = folders(index)
    assert (found["6.png"], found["rome/7.png"], found["0.png"]) == ("2020/rome", "2021/rome", "photos")
    both = Index.create(photos.parent / "both", model, store="exact")
    both.update(read([f"north={photos}"]), model)
    assert {str(one) for one in folders(both).values()} == {"north", "north/2020/rome", "north/2021/rome"}


def test_stores_are_put_in_order_where_much_is_new(
    photos: Path, model: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.index._index._TAKES_LONG", 1)
    index, said = Index.create(photos.parent / "index", model, name="photos", store="exact"), list[str]()
    index.update(collection(photos), model, say=said.append)
    assert said == ["putting the index of 6 pictures in order"]
    index.update(collection(photos), model, say=said.append)
    assert (len(said), read_manifest(index.folder).rows_in_order) == (1, 6)
    monkeypatch.setattr("rungwise.index._index._IN_ORDER", 0.5)
    draw(photos / "new.png", 77)
    index.update(collection(photos), model, say=said.append)
    assert (len(said), read_manifest(index.folder).rows_in_order) == (1, 6)
