import difflib
import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core.text import near_names, normalised, unescaped, with_few_marks
from tests.house import PACKAGE

FORMS = ("NFC", "NFD", "NFKC", "NFKD")


@given(st.text(max_size=60), st.sampled_from(FORMS))
def test_texts_of_people_are_normalised_as_they_always_were(text: str, form: str) -> None:
    assert normalised(text, form) == unicodedata.normalize(form, text)
    long = (text or "é") * 40 + "é" * 1000
    assert normalised(long, form) == unicodedata.normalize(form, long)


def test_no_more_marks_are_put_in_order_than_a_letter_has() -> None:
    text = "a" + "\u0301\u0327" * 5000
    marked = with_few_marks(text)
    assert marked.replace("\u034f", "") == text
    assert max(map(len, marked[1:].split("\u034f"))) == 30


@given(
    st.lists(st.sampled_from(["&", "amp;", "#", "0", "65", "x41", ";", "lt", "a ", "1114111", "99999999"]), max_size=8)
)
def test_html_is_read_as_the_library_reads_it(parts: list) -> None:
    text = "".join(parts)
    assert unescaped(text) == html.unescape(text)


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000 + "65"])
def test_a_number_of_thousands_of_digits_is_read(digits: str) -> None:
    assert unescaped(f"a &#{digits}; b") in ("a \ufffd b", "a A b")


def test_near_names_are_those_of_the_library_unless_one_is_very_long() -> None:
    known = ["year", "title", "tags", "years"]
    assert near_names("yaer", known, 3) == difflib.get_close_matches("yaer", known, 3, 0.6)
    assert near_names("ye" * 1000, ["ye" * 1000]) == []
    assert near_names("year", [*known, "year" * 1000], 9, 0.0) == difflib.get_close_matches("year", known, 9, 0.0)


@pytest.mark.parametrize(
    "call",
    ["get_close_matches", r"SequenceMatcher\(", r"unicodedata(\.|\b.*import .*)normalize\b", r"html\.unescape\("],
)
def test_what_takes_the_square_of_a_text_is_called_at_one_door(call: str) -> None:
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(call, path.read_text("utf-8"))
    ]
    assert set(found) <= {"core/text/_linear.py"}
