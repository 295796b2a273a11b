"""Tests rungwise.language.scene_graphs._verbs where captions meet it: by the words that are tagged."""

import pytest

from rungwise.language.scene_graphs._lexicon import Word
from rungwise.language.scene_graphs._tagging import tagged, tokens
from rungwise.language.scene_graphs._verbs import Place, goes_on, is_verb


@pytest.mark.parametrize(
    ("caption", "verbs"),
    [
        ("a man riding a horse", ["ride"]),
        ("a man rides a horse", ["ride"]),
        ("two men ride a horse", ["ride"]),
        ("a man and a woman ride horses", ["ride"]),
        ("a bike ride in the park", []),
        ("a parked car", []),
        ("a car parked in the street", ["park"]),
        ("two running dogs", []),
        ("two dogs running", ["run"]),
        ("people who run", ["run"]),
        ("a man watches as a dog jumps", ["watch", "jump"]),
        ("a table with drinks", []),
        ("a woman is watching", ["watch"]),
        ("the water rises to the bridge", ["rise"]),
        ("a man in black holds a ball", ["hold"]),
    ],
)
def test_verbs_of_a_caption(caption, verbs):
    assert [word.root for word in tagged(tokens(caption)) if word.kind == "verb"] == verbs


@pytest.mark.parametrize(("form", "text"), [("ing", "riding"), ("ed", "ridden"), ("s", "rides"), ("", "ride")])
def test_after_who_it_is_a_verb(form, text):
    who = Word("who", "who", "who")
    assert is_verb(form, Place(text, {"verb": "ride", "noun": "ride"}, who, "a", [who]))


@pytest.mark.parametrize(("form", "text"), [("ing", "riding"), ("ed", "ridden"), ("s", "rides"), ("", "ride")])
def test_after_an_article_it_is_none(form, text):
    the = Word("the", "determiner", "the")
    assert not is_verb(form, Place(text, {"verb": "ride", "noun": "ride"}, the, "horses", [the]))


def test_a_noun_phrase_goes_on_with_nouns_and_adjectives_alone():
    assert [goes_on(word) for word in ("horse", "red", "blurkel", "the", "and", "", ".")] == [True] * 3 + [False] * 4
