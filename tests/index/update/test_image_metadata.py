import io
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.TiffImagePlugin import IFDRational

from rungwise.data.files import TarMember
from rungwise.data.sidecars import LONGEST_TAG, MOST_TAGS
from rungwise.index.update._image_metadata import NO_HEMISPHERE, facts_of_file, facts_of_picture
from tests.odd_folder import in_languages
from tests.odd_folder import xmp as described

TAKEN, OFFSET, ORIENTATION, EXIF, GPS = 0x9003, 0x9011, 0x0112, 0x8769, 0x8825


def picture(form: str = "JPEG", size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size).save(file, form, **options)
    return file.getvalue()


def with_exif(times: dict[int, Any] | None = None, gps: dict[int, Any] | None = None, form: str = "JPEG") -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    exif.get_ifd(EXIF).update(times or {})
    exif.get_ifd(GPS).update(gps or {})
    return picture(form, exif=exif.tobytes())


def camera(make: str = "", model: str = "", lens: str = "", written: str = "", **times: str) -> bytes:
    exif = Image.Exif()
    for tag, said in ((0x010F, make), (0x0110, model), (0x0132, written)):
        if said:
            exif[tag] = said
    named = {"lens": 0xA434, "original": TAKEN, "digitized": 0x9004, "offset": 0x9010}
    exif.get_ifd(EXIF).update({named[name]: said for name, said in {"lens": lens, **times}.items() if said})
    return picture(exif=exif.tobytes())


def place(*degrees: tuple[int, int, float]) -> dict[int, Any]:
    north, east = (tuple(IFDRational(one).limit_rational(10**6) for one in some) for some in degrees)
    return {1: "S", 2: tuple(IFDRational(*one) for one in north), 3: "E", 4: tuple(IFDRational(*one) for one in east)}


def xmp(*keywords: str, head: str = "") -> bytes:
    listed = "".join(f"<rdf:li>{one}</rdf:li>" for one in keywords)
    return (
        f'<?xpacket begin="" id="W5M0"?>{head}<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF'
        ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<rdf:Description><dc:title><rdf:Alt><rdf:li>no keyword</rdf:li></rdf:Alt></dc:title>"
        f"<dc:subject><rdf:Bag>{listed}</rdf:Bag></dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>"
    ).encode()


def with_xmp(packet: bytes) -> bytes:
    data = picture()
    body = b"http://ns.adobe.com/xap/1.0/\0" + packet
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]


def with_iptc(*keywords: bytes) -> bytes:
    return with_records(*(((2, 25), one) for one in keywords))


def with_records(*fields: tuple[tuple[int, int], bytes]) -> bytes:
    records = b"".join(b"\x1c" + bytes(field) + struct.pack(">H", len(one)) + one for field, one in fields)
    resource = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(records)) + records + b"\0" * (len(records) % 2)
    body = b"Photoshop 3.0\0" + resource
    data = picture()
    return data[:2] + b"\xff\xed" + struct.pack(">H", len(body) + 2) + body + data[2:]


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_time_and_size_as_seen_of_every_format(form: str) -> None:
    facts = facts_of_picture(with_exif({TAKEN: "2021:07:04 12:33:10", OFFSET: "+02:00"}, form=form))
    assert (facts["taken"], facts["year"]) == ("2021-07-04T12:33:10+02:00", 2021)
    assert (facts["width"], facts["height"], facts["format"]) == (30, 40, form)


@pytest.mark.parametrize(
    "said",
    ["0000:00:00 00:00:00", "2021:13:01 00:00:00", "1066:10:14 09:00:00", "9999:01:01 00:00:00", "soon", "",
     "２０２１:07:04 12:00:00"],
)  # fmt: skip
def test_absurd_times_are_left_out(said: str) -> None:
    assert "taken" not in facts_of_picture(with_exif({TAKEN: said}))


def test_the_time_of_the_file_stands_in_where_no_other_is_given() -> None:
    written = "2019:01:02 03:04:05"
    assert facts_of_picture(camera(written=written))["taken"] == "2019-01-02T03:04:05"
    assert facts_of_picture(camera(written=written, offset="+09:00"))["taken"] == "2019-01-02T03:04:05+09:00"
    for other in ({"original": "2021:07:04 12:33:10"}, {"digitized": "2021:07:04 12:33:10"}):
        assert facts_of_picture(camera(written=written, **other))["taken"] == "2021-07-04T12:33:10"
    assert "taken" not in facts_of_picture(camera(written=written, original="0000:00:00 00:00:00"))
    assert "taken" not in facts_of_picture(camera(written="0000:00:00 00:00:00"))


def test_camera_and_lens_are_cleaned_lines() -> None:
    facts = facts_of_picture(camera(" FUJIFILM \0junk", "X-T5", "XF35mm\x07F1.4\n R"))
    assert (facts["camera_make"], facts["camera_model"], facts["lens"]) == ("FUJIFILM", "X-T5", "XF35mm F1.4 R")
    assert len(str(facts_of_picture(camera("x" * 5000))["camera_make"])) == LONGEST_TAG
    assert not {"camera_make", "camera_model", "lens"} & facts_of_picture(camera(" ", "\0")).keys()


@pytest.mark.parametrize("lacking", [1, 3])
@pytest.mark.parametrize("said", [None, "", "?", "north"])
def test_a_place_without_a_hemisphere_is_left_out_and_noted(lacking: int, said: str | None) -> None:
    gps = place((33, 51, 31.2), (151, 12, 36))
    del gps[lacking]
    notes: list[str] = []
    facts = facts_of_picture(with_exif(gps=gps if said is None else gps | {lacking: said}), notes.append)
    assert "latitude" not in facts
    assert notes == [NO_HEMISPHERE]


def test_no_hemisphere_is_missed_where_there_is_no_place() -> None:
    notes: list[str] = []
    facts_of_picture(with_exif(gps={2: (IFDRational(0),) * 3, 4: (IFDRational(0),) * 3}), notes.append)
    facts_of_picture(with_exif(gps=place((33, 51, 31.2), (151, 12, 36))), notes.append)
    facts_of_picture(b"no picture", notes.append)
    assert notes == []


def test_an_odd_offset_leaves_the_time() -> None:
    assert (
        facts_of_picture(with_exif({TAKEN: "2021:07:04 12:33:10", OFFSET: "+99:00"}))["taken"] == "2021-07-04T12:33:10"
    )


def test_places_are_degrees_north_and_east() -> None:
    facts = facts_of_picture(with_exif(gps=place((33, 51, 31.2), (151, 12, 36))))
    assert (facts["latitude"], facts["longitude"]) == (-33.858667, 151.21)


@pytest.mark.parametrize(
    "gps",
    [
        place((0, 0, 0), (0, 0, 0)),
        place((91, 0, 0), (0, 0, 0)),
        {1: "N", 2: (IFDRational(1, 0), IFDRational(0), IFDRational(0)), 3: "E", 4: (IFDRational(1),) * 3},
        {1: "N", 2: (1.0, 2.0), 3: "E", 4: (1.0, 2.0, 3.0)},
        {2: (1.0, 2.0, 3.0)},
    ],
)
def test_absurd_places_are_left_out(gps: dict[int, Any]) -> None:
    assert "latitude" not in facts_of_picture(with_exif(gps=gps))


def test_keywords_of_xmp_and_iptc() -> None:
    assert facts_of_picture(with_xmp(xmp("sea", " sun ", "Sea", "a&amp;b", "")))["tags"] == ("sea", "sun", "a&b")
    assert facts_of_picture(with_iptc(b"sea", "Stra\u00dfe".encode(), b"caf\xe9"))["tags"] == ("sea", "Straße", "café")


def test_titles_descriptions_and_ratings_of_xmp_and_iptc() -> None:
    said = in_languages("title", de="Boot", x_default="Boat") + in_languages("description", x_default="At sea.")
    facts = facts_of_picture(with_xmp(described(said, xmp_Rating="-1")))
    assert (facts["title"], facts["description"], facts["rating"]) == ("Boat", "At sea.", -1)
    records = (((2, 5), b"Boat"), ((2, 120), "At s\u00e9a.\r\nNoon.".encode()), ((2, 25), b"sea"))
    facts = facts_of_picture(with_records(*records))
    assert (facts["title"], facts["description"], facts["tags"]) == ("Boat", "At s\u00e9a. Noon.", ("sea",))
    assert "rating" not in facts


def test_a_document_type_is_not_read() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    assert "tags" not in facts_of_picture(with_xmp(xmp("&b;", head=bomb)))


def test_keywords_have_bounds() -> None:
    tags = facts_of_picture(with_xmp(xmp(*map(str, range(300)))))["tags"]
    assert isinstance(tags, tuple)
    assert len(tags) == MOST_TAGS
    assert "tags" not in facts_of_picture(with_xmp(xmp("x" * (LONGEST_TAG + 1))))
    assert facts_of_picture(with_xmp(xmp("a&#x9;b\x7fc")))["tags"] == ("a b c",)


@settings(max_examples=30)
@given(st.binary(max_size=300), st.sampled_from([with_exif, with_xmp, with_iptc]))
def test_damaged_metadata_cost_a_fact_and_no_picture(noise: bytes, make: Any) -> None:
    data = {
        with_exif: lambda: with_exif({TAKEN: noise}),
        with_xmp: lambda: with_xmp(noise),
        with_iptc: lambda: with_iptc(noise),
    }[make]()
    facts = facts_of_picture(data)
    assert {facts["width"], facts["height"]} == {40, 30}


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_word(data: bytes) -> None:
    facts_of_picture(data)
    facts_of_picture(b"\xff\xd8\xff\xe1" + data)


def test_no_pixel_of_a_png_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", lambda self: pytest.fail("decoded"))
    assert facts_of_picture(picture("PNG"))["width"] == 40


@pytest.mark.parametrize(
    ("path", "item_id", "folder"),
    [
        (Path("/a/photos/rome/b.jpg"), "rome/b.jpg", "rome"),
        (Path("/a/photos/2021/rome/b.jpg"), "2021/rome/b.jpg", "2021/rome"),
        (Path("/a/photos/b.jpg"), "b.jpg", "photos"),
        (Path("/a/photos/b.jpg"), "other/id", "photos"),
        (TarMember(Path("/a/0.tar"), 0, 1, "dogs/b.jpg"), "b", "dogs"),
        (TarMember(Path("/a/0.tar"), 0, 1, "b.jpg"), "b", "0.tar"),
    ],
)
def test_folders_never_tell_where_the_collection_is(path: Any, item_id: str, folder: str) -> None:
    facts = facts_of_file(path, item_id, 1, 1e9)
    assert (facts["file"], facts["folder"]) == ("b.jpg", folder)


def test_a_folder_within_the_collection_goes_before_that_of_the_id() -> None:
    assert facts_of_file(Path("/a/photos/2021/rome/b.jpg"), "rome/b.jpg", 1, 0, "2021/rome")["folder"] == "2021/rome"


def test_times_beyond_the_calendar_are_left_out() -> None:
    assert "modified" not in facts_of_file(Path("a.jpg"), "a", 1, 1e15)
    assert facts_of_file(Path("caf\udce9.jpg"), "a", 1, 0)["file"] == "caf\\xe9.jpg"
