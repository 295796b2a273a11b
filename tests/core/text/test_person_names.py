import pytest

from rungwise.core import UserError
from rungwise.core.text import LONGEST_NAME, person_name


@pytest.mark.parametrize(
    "given",
    [
        *(
            "",
            " ",
            "\u200b",
            "\u3164",
            "\u2800",
            "\u115f\u1160",
            "\uffa0",
            "\u0301",
            "\u202e",
            "\xa0",
            "\xad",
            "\u034f",
        ),
        *(
            "\ufe0f",
            "\u2060",
            "\U000e0041",
            "\x00",
            "\x85",
            "\u2028",
            "-",
            "...",
            "\ud800",
            "Ada\udcff",
            "\ufeff\u200d",
        ),
    ],
)
def test_what_cannot_be_seen_is_nobody(given: str) -> None:
    with pytest.raises(UserError, match="letter or a digit"):
        person_name(given)


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ("Ada", "\u200bAda\u200b"),
        ("Ada", " A\u00addа".replace("а", "a")),
        ("Ada Lovelace", "Ada\xa0Lovelace"),
        ("Ada Lovelace", "Ada \u2800 \t\nLovelace"),
        ("Ada", "\u202dAda\u202c"),
        ("Jos\xe9", "Jose\u0301"),
        ("Jos\xe9", "Jose\u200d\u0301"),
        ("Ada", "Ada\ufe0f"),
        ("Ada", "A\x00da"),
    ],
)
def test_names_that_look_the_same_are_the_same(given: str, same: str) -> None:
    assert person_name(same) == person_name(given) == given


@pytest.mark.parametrize("name", ["Ada", "ada", "Ада", "李四", "علي", "7", "हिन्दी", "O'Neill-7", "김", "ǅ"])
def test_names_of_every_script_stay(name: str) -> None:
    assert person_name(name) == name
    assert person_name(person_name(name)) == person_name(name)


def test_a_name_has_a_length() -> None:
    assert person_name(f"{'x' * LONGEST_NAME}  \u200b") == "x" * LONGEST_NAME
    with pytest.raises(UserError, match=f"at most {LONGEST_NAME}"):
        person_name("x" * (LONGEST_NAME + 1))
