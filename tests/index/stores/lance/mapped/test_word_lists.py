"""Lists of words against BM25 over all texts in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.index.stores import WordIndex
from rungwise.index.stores.lance.mapped import _word_lists as lists_of_words
from rungwise.index.stores.lance.mapped._word_lists import WordLists, word_lists

WORDS = [*"abcdefgh", "été", "snow"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=40)


def made(texts: list[list[str]]) -> WordLists:
    return WordLists(word_lists(texts), len(texts))


def reference(
    texts: list[list[str]], words: list[str], k: int, kept: list[bool] | None
) -> tuple[list[int], list[float]]:
    """The same by :class:`WordIndex`, which adds up all words of all texts."""
    index = WordIndex((str(at), " ".join(text)) for at, text in enumerate(texts))
    ids, scores = index.best(" ".join(words), k, None if kept is None else lambda one: kept[int(one)])
    return [int(one) for one in ids], scores.tolist()


@given(texts=TEXTS, words=st.lists(st.sampled_from([*WORDS, "nobody"]), max_size=5, unique=True), data=st.data())
@settings(max_examples=150)
@pytest.mark.parametrize("frequent", [0, 10**6])
def test_the_best_are_those_of_all_texts(
    frequent: int, texts: list[list[str]], words: list[str], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, 12))
    kept = data.draw(st.none() | st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    found = made(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists_of_words, "_FREQUENT", frequent)
        positions, scores = found.best(words, k, None if kept is None else np.array(kept))
    plainly, sought = [[plain(word) for word in text] for text in texts], [plain(one) for one in words]
    _, wanted = reference(plainly, sought, k, kept)
    np.testing.assert_allclose(scores, wanted, rtol=1e-5)
    everything = dict(zip(*reference(plainly, sought, len(texts), kept), strict=True))
    assert [everything[one] for one in positions.tolist()] == pytest.approx(scores.tolist(), rel=1e-5)
    equal = [one for one, score in zip(positions, scores, strict=True) if score == scores[0]]
    assert equal == sorted(equal)


def plain(word: str) -> str:
    """A word as :class:`WordIndex` reads it."""
    return {"été": "ete"}.get(word, word)


def test_frequent_words_are_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    texts = [
        ["a", "in", *(["dog"] if row % 11 == 0 else []), *(["snow"] if row % 97 == 0 else [])] for row in range(20_000)
    ]
    for text in texts:
        text += [f"w{word}" for word in draw.integers(0, 500, 5)]
    found, looked = made(texts), []
    reached = lists_of_words._reached
    monkeypatch.setattr(lists_of_words, "_FREQUENT", 1000)
    monkeypatch.setattr(
        lists_of_words, "_reached", lambda scores, at: looked.append(sum(map(len, at))) or reached(scores, at)
    )
    positions, scores = found.best(["a", "dog", "in", "snow"], 10, None)
    ids, wanted = reference(texts, ["a", "dog", "in", "snow"], 10, None)
    assert positions.tolist() == ids
    np.testing.assert_allclose(scores, wanted, rtol=1e-5)
    assert max(looked) < 5_000  # of 40,000 entries
    assert found.bearers("snow") == len(range(0, 20_000, 97))
    assert found.bearers("nobody") == 0


def test_texts_without_words() -> None:
    found = made([[], [], []])
    assert found.texts == 0
    assert found.best(["a"], 3, None)[0].tolist() == []
    some = made([[], ["a"], []])
    assert some.best(["a", "b"], 3, None)[0].tolist() == [1]
    assert some.best([], 3, None)[0].tolist() == []
    assert (some.texts, some.mean) == (1, 1.0)
