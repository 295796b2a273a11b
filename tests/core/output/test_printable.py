import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from rungwise.core.output import printable


@given(st.text(alphabet=st.characters()))
def test_nothing_that_steers_is_left_and_nothing_else_changes(text):
    shown = printable(text)
    assert all(unicodedata.category(sign) not in ("Cc", "Cs") or sign in "\t\n" for sign in shown)
    assert printable(shown) == shown
    shown.encode("utf-8")
    if all(sign.isprintable() for sign in text):
        assert shown == text


def test_escape_codes_and_marks_of_direction():
    assert (
        printable("\x1b]0;title\x07 \x9b31m \u202egpj.exe\u2069") == "\\x1b]0;title\\x07 \\x9b31m \\u202egpj.exe\\u2069"
    )
    assert printable("a cat\tκαφές 猫 \N{ZERO WIDTH JOINER}\n") == "a cat\tκαφές 猫 \N{ZERO WIDTH JOINER}\n"
