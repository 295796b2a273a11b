import pytest

from rungwise.language.scene_graphs._phrases import Phrase, phrases
from rungwise.language.scene_graphs._tagging import tagged, tokens


def read(caption: str) -> list[Phrase]:
    return phrases(tagged(tokens(caption)))


@pytest.mark.parametrize(
    ("caption", "kinds"),
    [
        ("a man riding a horse", ["things", "verb", "things"]),
        ("a dog next to a cat", ["things", "relation", "things"]),
        ("a dog is red and furry", ["things", "be", "said", "and", "said"]),
        ("a man who sings", ["things", "who", "verb"]),
        ("a man runs while a dog sleeps", ["things", "verb", "while", "things", "verb"]),
        ("two dogs; one is red", ["things", "comma", "pronoun", "be", "said"]),
        ("", []),
    ],
)
def test_kinds_of_phrases(caption, kinds):
    assert [phrase.kind for phrase in read(caption)] == kinds


@pytest.mark.parametrize(
    ("caption", "names"),
    [
        ("a cat and a dog", ["cat", "dog"]),
        ("a cat, a dog and two birds", ["cat", "dog", "bird"]),
        ("a cat, two dogs, and birds", ["cat", "dog", "bird"]),
        ("a group of people", ["person"]),
        ("a picture of a cat", ["cat"]),
        ("a close up of a cat", ["cat"]),
        ("a bowl of fruit", ["bowl", "fruit"]),
        ("the young", ["young"]),
    ],
)
def test_things_of_noun_phrases(caption, names):
    assert [thing.name for phrase in read(caption) for thing in phrase.things] == names


@pytest.mark.parametrize(
    ("caption", "attributes"),
    [
        ("two big red balls", ("2", "big", "red")),
        ("a red and white ball", ("red", "white")),
        ("a red, white and blue ball", ("red", "white", "blue")),
        ("a tennis ball", ("tennis",)),
        ("a very big ball", ("big",)),
        ("a pair of balls", ("2",)),
        ("three kinds of balls", ("3",)),
        ("some of the balls", ()),
    ],
)
def test_what_a_noun_phrase_says(caption, attributes):
    assert [thing.attributes for phrase in read(caption) for thing in phrase.things] == [attributes]


def test_whose_a_thing_is():
    (phrase,) = read("the old man's red hat")
    (hat,) = phrase.things
    assert (hat.name, hat.attributes) == ("hat", ("red",))
    assert hat.owner is not None
    assert (hat.owner.name, hat.owner.attributes) == ("man", ("old",))


def test_what_is_said_not_to_be_there():
    assert [thing.nothing for phrase in read("no dogs on a mat") for thing in phrase.things] == [True, False]


def test_a_relation_may_have_two_names():
    assert read("a cat to the upper left of a dog")[1].names == ("above", "left of")
