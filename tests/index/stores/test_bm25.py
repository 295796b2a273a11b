import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.stores import WordIndex, words_of
from rungwise.index.stores._bm25 import best_by_words

TEXTS = st.lists(st.lists(st.sampled_from(["red", "boat", "dog", "sea", "a"]), max_size=6).map(" ".join), max_size=8)


@given(TEXTS, st.sampled_from(["red", "red boat", "a dog", "sea sea", "zebra", ""]), st.integers(1, 9))
def test_scores_are_those_of_bm25(texts: list, words: str, k: int) -> None:
    counts = [Counter(text.split()) for text in texts]
    mean = sum(one.total() for one in counts) / max(len(counts), 1)
    expected = {}
    for place, one in enumerate(counts):
        for word in set(words.split()) & set(one):
            bearers = sum(word in other for other in counts)
            rarity = math.log(1 + (len(counts) - bearers + 0.5) / (bearers + 0.5))
            length = 1.2 * (0.25 + 0.75 * one.total() / max(mean, 1.0))
            expected[str(place)] = expected.get(str(place), 0) + rarity * one[word] * 2.2 / (one[word] + length)
    ids, scores = best_by_words(words, {str(place): text for place, text in enumerate(texts)}, k)
    assert len(ids) == min(k, len(expected))
    np.testing.assert_allclose(scores, sorted(expected.values(), reverse=True)[:k], rtol=1e-5)
    np.testing.assert_allclose(scores, [expected[one] for one in ids], rtol=1e-5)


def test_equal_scores_stand_in_the_order_of_texts_and_some_are_left_out() -> None:
    index = WordIndex([("b", "red"), ("a", "red"), ("c", "red")])
    assert index.best("RED", 2)[0] == ("b", "a")
    assert index.best("red", 2, lambda one: one != "b")[0] == ("a", "c")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("T-Shirt_No.5", ["t", "shirt", "no", "5"]),
        ("ŞIŞ Straße", ["sis", "strasse"]),
        ("ÉCOLE école", ["ecole", "ecole"]),
        ("一隻狗", ["一隻狗"]),
        ("a\ud800b", ["a", "b"]),
        ("", []),
    ],
)
def test_words_are_folded(text: str, words: list) -> None:
    assert words_of(text) == words
