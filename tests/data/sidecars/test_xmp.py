import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.data.sidecars import LONGEST_DESCRIPTION, LONGEST_TITLE, MOST_TAGS, Xmp, read_xmp
from tests.odd_folder import in_languages, xmp

BAG = "<dc:subject><rdf:Bag>{}</rdf:Bag></dc:subject>"


def test_the_default_language_goes_before_others() -> None:
    said = in_languages("title", de="Boot", x_default="Boat") + in_languages(
        "description", fr="Un bateau", de="Ein Boot"
    )
    found = read_xmp(xmp(said))
    assert (found.title, found.description) == ("Boat", "Un bateau")


@pytest.mark.parametrize(
    ("said", "rating"),
    [("4", 4), ("4.5", 4.5), ("-1", -1), ("0", None), ("6", None), ("-2", None), ("nan", None), ("many", None),
     ("1e400", None), ("", None)],
)  # fmt: skip
def test_ratings_as_attribute_and_as_element(said: str, rating: float | None) -> None:
    assert read_xmp(xmp(xmp_Rating=said)).rating == rating
    assert read_xmp(xmp(f"<xmp:Rating>{said}</xmp:Rating>")).rating == rating


def test_keywords_are_taken_once() -> None:
    found = read_xmp(
        xmp(BAG.format("".join(f"<rdf:li>{one}</rdf:li>" for one in ("sea", " sun ", "Sea", "a&amp;b", ""))))
    )
    assert found.columns == {"tags": ("sea", "sun", "a&b")}
    many = read_xmp(xmp(BAG.format("".join(f"<rdf:li>{one}</rdf:li>" for one in range(5000))))).columns["tags"]
    assert isinstance(many, tuple)
    assert len(many) == MOST_TAGS


def test_texts_without_languages_and_in_attributes() -> None:
    assert read_xmp(xmp("<dc:title>Plain</dc:title>", photoshop_SidecarForExtension="CR2")).title == "Plain"
    assert read_xmp(xmp(photoshop_SidecarForExtension="CR2")).extension == "CR2"
    assert read_xmp(xmp(dc_title="Short")).title == "Short"


def test_what_is_said_of_other_pictures_is_not_taken() -> None:
    inner = "<rdf:Description xmp:Rating='5'><dc:title>Ingredient</dc:title></rdf:Description>"
    found = read_xmp(xmp(f"<dc:source>{inner}</dc:source><dc:relation><dc:title>No</dc:title></dc:relation>"))
    assert found == Xmp()


def test_a_text_is_one_line_of_bounded_length() -> None:
    assert read_xmp(xmp(in_languages("title", x_default="a\r\n b&#x9;c\x7fd"))).title == "a b c d"
    assert read_xmp(xmp(in_languages("title", x_default="x" * (LONGEST_TITLE + 1)))).title == ""
    assert read_xmp(xmp(in_languages("description", x_default="x" * (LONGEST_DESCRIPTION + 1)))).description == ""


@pytest.mark.parametrize(
    "packet",
    [
        b"", b"no xml", b"<a", xmp()[:-9], b"\xff\xfe", b"<a>" * 100_000,
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>',
        b'<?xml version="1.0" encoding="no such"?><a/>', b"x" * ((1 << 20) + 1),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_nothing(packet: bytes) -> None:
    assert read_xmp(packet) == Xmp(is_whole=False)


def test_other_encodings_of_unicode_are_read() -> None:
    text = xmp(in_languages("title", x_default="Größe")).decode()
    assert read_xmp(text.encode("utf-16")).title == "Größe"


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 500))
def test_no_damage_is_an_error(noise: bytes, at: int) -> None:
    packet = xmp(in_languages("title", x_default="Boat"), xmp_Rating="4")
    read_xmp(packet[:at] + noise + packet[at + len(noise) :])
