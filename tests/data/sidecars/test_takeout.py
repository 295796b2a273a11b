import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.data.sidecars._takeout import PictureNames, columns_of_takeout, is_takeout
from tests.odd_folder import takeout

LONG = "A very long name of a picture that nobody will ever read.jpg"
CUT = LONG[:47]


@pytest.mark.parametrize(
    ("name", "title", "there", "found"),
    [
        ("a.jpg.json", "a.jpg", ["a.jpg", "b.jpg"], ["a.jpg"]),
        ("a.jpg.supplemental-metadata.json", "a.jpg", ["a.jpg"], ["a.jpg"]),
        ("a.jpg.supplemental-meta.json", "a.jpg", ["a.jpg"], ["a.jpg"]),
        ("a.jpg.suppl.json", "a.jpg", ["a.jpg"], ["a.jpg"]),
        ("a.jpg.s.json", "a.jpg", ["a.jpg"], ["a.jpg"]),
        ("a.jpg(1).json", "a.jpg", ["a.jpg", "a(1).jpg"], ["a(1).jpg"]),
        ("a.jpg.supplemental-metadata(12).json", "a.jpg", ["a.jpg", "a(12).jpg"], ["a(12).jpg"]),
        ("a.jpg(1).json", "a.jpg", ["a.jpg"], []),
        ("a(1).jpg.json", "a(1).jpg", ["a.jpg", "a(1).jpg"], ["a(1).jpg"]),
        ("a.jpg.json", "a.jpg", ["a.jpg", "a-edited.jpg"], ["a.jpg", "a-edited.jpg"]),
        ("a.jpg(1).json", "a.jpg", ["a-edited.jpg", "a-edited(1).jpg"], ["a-edited(1).jpg"]),
        ("a.jpg.json", "a.jpg", ["a-bearbeitet.jpg"], ["a-bearbeitet.jpg"]),
        ("a.jpg.json", "quite another.jpg", ["a.jpg"], []),
        ("it_s.jpg.json", "it&#39;s.jpg", ["it_s.jpg"], ["it_s.jpg"]),
        ("a.heic.json", "a.heic", ["a.jpg"], []),
        (f"{LONG[:46]}.json", LONG, [f"{CUT}.jpg", "other.jpg"], [f"{CUT}.jpg"]),
        (f"{LONG[:46]}.json", LONG, [f"{LONG[:48]}.jpg", f"{LONG[:50]}.jpg"], []),
        ("metadata.json", "Holiday", ["a.jpg"], []),
        ("().json", "", ["a.jpg"], []),
        (")))).json", "a", ["a.jpg"], []),
    ],
)
def test_a_file_belongs_to_the_picture_of_its_name(name: str, title: str, there: list[str], found: list[str]) -> None:
    assert PictureNames(there).of(name, title) == found


def test_it_is_known_by_its_fields() -> None:
    assert is_takeout(json.loads(takeout("a.jpg")))
    for other in (
        {},
        [],
        None,
        {"title": "a"},
        {"photoTakenTime": {"timestamp": "1"}},
        {"title": 3, "photoTakenTime": {}},
    ):
        assert not is_takeout(other)


def columns(**fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return columns_of_takeout(json.loads(takeout("a.jpg", **fields)))


def test_what_is_said_and_what_counts_only_without_the_camera() -> None:
    said, otherwise = columns(
        description=" A &amp; B\n", people=[{"name": "Ada"}, {"name": ""}, {}, 3], favorited=True,
        geoData={"latitude": 59.9139, "longitude": 10.7522},
    )  # fmt: skip
    assert said == {"description": "A & B", "people": ("Ada",), "favourite": True}
    assert otherwise == {
        "taken": "2020-09-13T12:26:40+00:00", "year": 2020, "latitude": 59.9139, "longitude": 10.7522,
    }  # fmt: skip


@pytest.mark.parametrize(
    "timestamp", ["0", "", "soon", "9" * 400, 9 * 10**30, -(10**12), True, None, [], "253402300800", 1.5]
)
def test_absurd_times_are_left_out(timestamp: object) -> None:
    assert columns(photoTakenTime={"timestamp": timestamp})[1] == {}


@pytest.mark.parametrize(
    "place",
    [{"latitude": 0.0, "longitude": 0.0}, {"latitude": 91, "longitude": 0}, {"latitude": "1", "longitude": 2}, {}, None,
     {"latitude": 10**400, "longitude": 1}, [1, 2]],
)  # fmt: skip
def test_absurd_places_are_left_out(place: object) -> None:
    assert "latitude" not in columns(geoData=place)[1]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@settings(max_examples=100, deadline=None)
@given(values, values, values, values, st.text(max_size=20), st.text(max_size=70))
def test_whatever_stands_there_is_no_error(a: Any, b: Any, c: Any, d: Any, title: str, name: str) -> None:
    columns_of_takeout({"description": a, "people": b, "photoTakenTime": c, "geoData": d, "favorited": a})
    assert set(PictureNames(["a.jpg", "b.png"]).of(f"{name}.json", title)) <= {"a.jpg", "b.png"}
