import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rungwise.index.query import _negation as negation
from rungwise.index.query._negation import split_negation

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
        ("a room without people or without dogs", "a room", ["people", "dogs"]),
        ("a room without people, without dogs or no cats", "a room", ["people", "dogs", "cats"]),
        ("a no parking sign without cars", "a no parking sign", ["cars"]),
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
        "a dog without a leash without people",
        "a beach without people at sunset without clouds",
        "a man without a hat and without a coat on a bench without a back",
        "a street with no cars at night with no lights",
        "a dog without a collar not on a leash",
        "without people, no dogs",
        "no dogs no cats",
        "a street without cars without",
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


def slowly_split(text: str) -> tuple[str, tuple[str, ...]]:
    """The rules as they are said, cue by cue over the whole text: it takes the cube of the length for some texts."""
    whole, text = text, " ".join(text.split())
    for cue in negation._CUE.finditer(text):
        before, after = text[: cue.start()], text[cue.end() :]
        last, first = slow_words(before)[-1:], slow_words(after)[:1]
        if not first or not slow_takes_away(cue[1].lower(), last[0] if last else "", first[0]):
            continue
        kept = re.sub(rf"(?:{SLOW_JOINING})+\s*$", "", before.rstrip(), flags=re.IGNORECASE).strip()
        phrase, tail = after, ""
        if (place := negation._TAIL.search(after)) and not negation._BACK.search(after, place.start()):
            phrase, tail = after[: place.start()], after[place.start() :]
        less = tuple(one for one in (part.strip(" .,;!") for part in negation._ALTERNATIVES.split(phrase)) if one)
        if not re.search(r"\w", kept) or any(negation._CUE.search(one) for one in (*less, tail)):
            return whole, ()
        return (" ".join(f"{kept} {tail}".split()), less) if less else (whole, ())
    return whole, ()


SLOW_JOINING = (
    r"\s*[,;]|\s+(?:but|and|with|has|have|having|there\s+(?:is|are)"
    r"|(?:(?:that|which|who)\s+)?(?:is|are|was|were|does|do|has|have))"
)


def slow_words(text: str) -> list[str]:
    return re.findall(r"[\w'’.-]*\w", text.lower())


def slow_takes_away(cue: str, last: str, first: str) -> bool:
    if cue == "not":
        return first not in negation._NOT_NEGATED and last not in ("why", "or", "if")
    return first not in negation._SIGNS and (cue == "without" or last not in negation._SAYING)


MORE_WORDS = [*WORDS, ";", ".", "!", "on", "next to", "next", "top", "nor", "there is", "that", "which has", "having"]
MORE_WORDS += [
    "only",
    "parking",
    "sign says",
    "no-one",
    "a.no",
    "no.",
    "dog,",
    "or,",
    "no,",
    "İ",
    "ſ",
    "-",
    "'",
    "while",
]


@settings(max_examples=500)
@given(
    st.lists(
        st.tuples(st.sampled_from(MORE_WORDS), st.sampled_from([" ", " ", " ", "", ", ", "  ", "\t"])), max_size=12
    )
)
@example([("a", " "), *[("no", " , ")] * 6])
@example([("a dog", " "), ("without", ""), (".", "  "), ("at the no cat", "")])
def test_in_one_pass_as_cue_by_cue(parts: list) -> None:
    text = "".join(word + gap for word, gap in parts)
    assert split_negation(text) == slowly_split(text)
