import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.words import best_by_words, words_of

WORDS = st.lists(st.sampled_from(["dog", "Dog", "cat", "sea", "café", "cafe"]), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A dog, a DOG!", ["a", "dog", "a", "dog"]),
        ("Straße naïve", ["strasse", "naive"]),
        ("snake_case 2021-07", ["snake", "case", "2021", "07"]),
        ("犬が走る", ["犬か走る"]),  # a mark that is written apart from its letter does not count either
        ("\udcff?", []),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(WORDS, st.dictionaries(st.text("abc", min_size=1, max_size=2), WORDS, max_size=6), st.integers(1, 4))
def test_scores_are_those_of_the_formula(sought: str, texts: dict[str, str], k: int) -> None:
    split = {one: words_of(text) for one, text in texts.items()}
    mean = sum(map(len, split.values())) / len(split) if split else 0
    expected = {}
    for one, words in split.items():
        score = 0.0
        for word in set(words_of(sought)) & set(words):
            bearers = sum(word in other for other in split.values())
            idf = math.log(1 + (len(split) - bearers + 0.5) / (bearers + 0.5))
            times = words.count(word)
            score += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(words) / mean))
        if set(words_of(sought)) & set(words):
            expected[one] = score
    ids, scores = best_by_words(sought, texts, k)
    assert len(ids) == min(k, len(expected))
    np.testing.assert_allclose(scores, sorted(expected.values(), reverse=True)[:k], rtol=1e-5)
    assert [expected[one] for one in ids] == pytest.approx(scores.tolist(), rel=1e-5)


def test_equal_scores_stand_in_the_order_of_the_texts() -> None:
    assert best_by_words("dog", {"z": "a dog", "b": "a dog", "c": "a cat"}, 9)[0] == ("z", "b")
