import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.negation import split_negation

WORDS = ["a", "dog", "without", "no", "not", ",", "people", "in", "its", "or", "and", "with", "but", "red"]


@pytest.mark.parametrize(
    ("text", "kept", "less"),
    [
        ("a beach without people", "a beach", ["people"]),
        ("A BEACH WITHOUT PEOPLE.", "A BEACH", ["PEOPLE"]),
        ("a street with no cars", "a street", ["cars"]),
        ("a street, no cars", "a street", ["cars"]),
        ("beach no people", "beach", ["people"]),
        ("a dog that is not black", "a dog", ["black"]),
        ("a dog but not a cat", "a dog", ["a cat"]),
        ("a dog, not a cat", "a dog", ["a cat"]),
        ("a man not wearing a hat", "a man", ["wearing a hat"]),
        ("a man without a hat on a bench", "a man on a bench", ["a hat"]),
        ("a dog without a ball in its mouth", "a dog", ["a ball in its mouth"]),
        ("a room without people or dogs", "a room", ["people", "dogs"]),
        ("a room without people and without dogs", "a room", ["people", "dogs"]),
        ("a room with no people, no cars", "a room", ["people", "cars"]),
    ],
)
def test_what_words_take_away_is_cut_out(text: str, kept: str, less: list) -> None:
    assert split_negation(text) == (kept, tuple(less))


@pytest.mark.parametrize(
    "text",
    [
        "no parking sign",
        "a no parking sign",
        "a street with no parking sign",
        "a sign that says no smoking",
        "the word no on a wall",
        "dogs not only in parks",
        "a dog not yet grown",
        "a knot",
        "notes on paper",
        "forget-me-not",
        "no-one on a beach",
        "without people",
        "not a dog",
        "why not dogs",
        "a dog without",
    ],
)
def test_other_words_are_left_whole(text: str) -> None:
    assert split_negation(text) == (text, ())


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_something_wanted_always_stays(words: list) -> None:
    text = " ".join(words)
    kept, less = split_negation(text)
    assert (kept == text) == (less == ())
    assert all(one.strip() for one in less)
    assert kept.strip() or not text.strip()
