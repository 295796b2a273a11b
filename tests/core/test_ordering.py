"""The order in which people list names."""

from hypothesis import given
from hypothesis import strategies as st

from rungwise.core.ordering import as_people_count


@given(st.lists(st.integers(0, 10**17)))
def test_numbers_are_sorted_by_size(numbers: list[int]) -> None:
    assert sorted(map(str, numbers), key=as_people_count) == [str(number) for number in sorted(numbers)]


@given(st.lists(st.text()))
def test_any_names_have_one_order(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=as_people_count) == sorted(backwards, key=as_people_count)


def test_words_come_after_numbers_and_other_digits_are_words() -> None:
    assert sorted(["-1", "dog", "\u0663", "7", "9" * 30, ""], key=as_people_count) == [
        "7",
        "",
        "-1",
        "9" * 30,
        "dog",
        "\u0663",
    ]
