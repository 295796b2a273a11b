from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from rungwise.encoders.texts import GRUConfig, learn_vocabulary
from rungwise.encoders.vocabulary import unknown_words as outside
from rungwise.encoders.vocabulary import whole_words
from rungwise.index.query import Meaning, UnknownWord, frequent_words, unknown_words
from rungwise.index.query._unknown_words import near_in_spelling
from rungwise.language import WordVectors

PIECES = SimpleNamespace(known_words=frozenset({"boy", "horse", "zebra", "running"}), unknown_words=lambda text: ())


def nothing(word: str) -> bool:
    return False


def test_a_vocabulary_of_words_says_what_it_lacks() -> None:
    encoder = GRUConfig(word_dimension=2, min_count=1).build(["a dog in shoes", "two boats"], 4)
    assert encoder.unknown_words("A Dog in SNEAKERS, sneakers?") == ("SNEAKERS", "sneakers")
    assert encoder.unknown_words("a dog , in !") == ()
    assert encoder.known_words == {"dog", "in", "shoes", "two", "boats"}
    found = unknown_words(["a boat in sneakers"], encoder, lambda word: word in ("sneakers", "boats"), lambda: ())
    assert found == (UnknownWord("boat", ("boats",)), UnknownWord("sneakers", (), found=True))


def test_words_are_cut_as_the_vocabulary_cuts_them() -> None:
    vocabulary = learn_vocabulary(["ein Café über dem See"], 1)
    assert outside(vocabulary, "ein Cafe\u0301 unter dem See \ud800") == ("unter",)
    assert whole_words(vocabulary) == {"ein", "café", "über", "dem", "see"}


def test_near_words_are_found_by_spelling_and_then_by_meaning() -> None:
    words = ["shoes", "sandals", "sea", "sneakers"]
    table = np.array([[1, 0.1], [0.9, 0.3], [0, 1], [1, 0]], np.float32)
    meaning = Meaning.of(WordVectors({word: row for row, word in enumerate(words)}, table))
    model = SimpleNamespace(
        known_words=frozenset({"shoes", "sandals", "sea", "sneaker"}), unknown_words=lambda text: ("sneakers",)
    )
    found = unknown_words(
        ["sneakers"], model, {*words, "sneaker"}.__contains__, lambda: ["sea", "shoes", "sandals", "dog"], meaning
    )
    assert found == (UnknownWord("sneakers", ("sneaker", "shoes", "sandals"), found=True),)
    assert meaning.near("giraffe", ["shoes", "sea"]) == ()
    assert meaning.near("sneakers", []) == ()


def test_known_words_are_encoded_once() -> None:
    asked: list[int] = []

    def encode(words: Sequence[str]) -> np.ndarray:
        asked.append(len(words))
        return np.ones((len(words), 2))

    meaning = Meaning(encode)
    for _ in range(3):
        assert meaning.near("x", ["a", "b", "c"], most=1) == ("a",)
    assert asked == [3, 1, 1, 1]


@pytest.mark.parametrize(
    ("text", "near"),
    [("a zeebra", ("zebra",)), ("runing boy", ("running",)), ("hores", ("horse",))],
)
def test_a_model_of_word_pieces_has_misspelt_words_said(text: str, near: tuple) -> None:
    (found,) = unknown_words([text], PIECES, PIECES.known_words.__contains__, lambda: ())
    assert (found.near, found.misspelt) == (near, True)


@pytest.mark.parametrize("text", ["a boy", "zebras", "horseback", "qwertz", "boi", "zeebr4", "a b c"])
def test_of_other_words_nothing_is_said(text: str) -> None:
    assert unknown_words([text], PIECES, nothing, lambda: ()) == ()


def test_a_word_that_the_collection_has_is_right_as_it_is() -> None:
    assert unknown_words(["zeebra"], PIECES, lambda word: word == "zeebra", lambda: ()) == ()
    (found,) = unknown_words(["giraff"], PIECES, lambda word: word == "giraffe", lambda: ["giraffe"])
    assert found == UnknownWord("giraff", ("giraffe",), misspelt=True)


def test_a_model_that_says_nothing_of_words_has_nothing_said() -> None:
    silent = SimpleNamespace(known_words=frozenset(), unknown_words=lambda text: ())
    assert unknown_words(["zeebra"], silent, nothing, lambda: ["zebra"]) == ()


def test_a_word_that_stands_twice_is_said_once() -> None:
    assert len(unknown_words(["zeebra", "a zeebra"], PIECES, lambda word: word == "zebra", lambda: ())) == 1


def test_the_line_says_what_is_known() -> None:
    assert str(UnknownWord("sneakers")) == "the model does not know 'sneakers'"
    assert "captions or columns have it" in str(UnknownWord("sneakers", found=True))


def test_spelling_leaves_short_words_and_other_lengths_alone() -> None:
    assert near_in_spelling("cat", ["cap", "car"]) == ()
    assert near_in_spelling("boots", ["boats", "bootstrapping", "boots"]) == ("boats",)


def test_frequent_words_come_first() -> None:
    assert frequent_words(["a dog", "the dog 7", "the dog the cat"])[:2] == ("dog", "the")


def test_words_that_the_collection_lacks_are_not_proposed() -> None:
    pieces = SimpleNamespace(known_words=frozenset({"erase", "sarees"}), unknown_words=lambda text: ())
    assert unknown_words(["saree"], pieces, lambda word: word == "erase", lambda: ()) == ()
    assert unknown_words(["zeebra"], PIECES, nothing, lambda: ()) == ()
    learnt = SimpleNamespace(known_words=frozenset({"boots", "boats"}), unknown_words=lambda text: ("bouts",))
    assert unknown_words(["bouts"], learnt, lambda word: word == "boats", lambda: ()) == (
        UnknownWord("bouts", ("boats",)),
    )
    assert unknown_words(["bouts"], learnt, nothing, lambda: ()) == (UnknownWord("bouts"),)


def test_letters_that_changed_places_are_few() -> None:
    assert near_in_spelling("hores", ["horse"]) == ("horse",)
    assert near_in_spelling("saree", ["erase"]) == ()
