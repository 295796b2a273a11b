"""The order in which people list names."""

from hypothesis import given
from hypothesis import strategies as st

from rungwise.core.text import natural_key


@given(st.lists(st.integers(0, 10**17)))
def test_numbers_are_sorted_by_size(numbers: list[int]) -> None:
    assert sorted(map(str, numbers), key=natural_key) == [str(number) for number in sorted(numbers)]


@given(st.lists(st.text()))
def test_any_names_have_one_order(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=natural_key) == sorted(backwards, key=natural_key)


def test_words_come_after_numbers_and_other_digits_are_words() -> None:
    assert sorted(["-1", "dog", "\u0663", "7", "9" * 30, ""], key=natural_key) == [
        "7",
        "",
        "-1",
        "9" * 30,
        "dog",
        "\u0663",
    ]
