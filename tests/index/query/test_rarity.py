from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.query import Rarity


def test_rare_words_say_more_than_frequent_ones() -> None:
    rarity = Rarity(["a dog", "a cat", "a bird", "a boat"])
    assert rarity.shares("a dog", ["a cat"])[0] < 0.1
    assert rarity.shares("a dog", ["the DOG"])[0] > 0.9
    assert rarity.shares("a dog", ["a dog there"])[0] == 1
    assert rarity.shares("sneakers", ["a dog in sneakers"])[0] == 1
    assert rarity.shares("red sneakers", ["a red dog"])[0] == 0.5
    assert rarity.shares("?!", ["a dog"])[0] == 0
    assert Rarity([]).shares("dog", ["dog"])[0] == 1


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=4), max_size=12), st.lists(st.sampled_from("abcdef")))
def test_texts_that_hold_all_words_are_counted(texts: list, words: list) -> None:
    counted = sum(bool(words) and all(word in text for word in words) for text in texts)
    rarity = Rarity(map(" ".join, texts))
    assert rarity.bearers(" ".join(words)) == counted
    assert rarity.texts == len(texts)
