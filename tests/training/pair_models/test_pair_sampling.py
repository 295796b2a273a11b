import numpy as np
import pytest

from rungwise.training.pair_models._pair_sampling import NEAR, NEIGHBOURS, drawn_pairs


def world(count, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, 6)).astype(np.float32)
    return [f"text {place}" for place in range(count)], vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("cells", [1, 700, 1 << 24])
def test_near_pairs_are_neighbours_and_no_pair_comes_twice(monkeypatch, cells):
    monkeypatch.setattr("rungwise.training.pair_models._pair_sampling._CELLS", cells)
    texts, vectors = world(120)
    first, second = drawn_pairs(texts, vectors, 200, seed=1)
    assert len(first) == len(second) == 200
    places = [(texts.index(a), texts.index(b)) for a, b in zip(first, second, strict=True)]
    assert len({frozenset(pair) for pair in places}) == 200
    cosines = vectors @ vectors.T
    nearest = [set(np.argsort(-row, kind="stable")[: NEIGHBOURS + 1].tolist()) for row in cosines]
    near = [b in nearest[a] or a in nearest[b] for a, b in places]
    assert all(near[: round(NEAR * 200)])
    assert sum(near[round(NEAR * 200) :]) < 25, "the others are drawn at random"
    assert drawn_pairs(texts, vectors, 200, seed=1) == (first, second)
    assert drawn_pairs(texts, vectors, 200, seed=2) != (first, second)


def test_pairs_that_are_known_are_not_drawn_and_few_texts_give_few_pairs():
    texts, vectors = world(4)
    without = {(texts[1], texts[0]), (texts[2], texts[3]), ("of no text", texts[0])}
    first, second = drawn_pairs(texts, vectors, 50, seed=0, without=without)
    pairs = {frozenset(pair) for pair in zip(first, second, strict=True)}
    assert pairs == {frozenset((texts[a], texts[b])) for a, b in ((0, 2), (0, 3), (1, 2), (1, 3))}


@pytest.mark.parametrize(("count", "wanted"), [(0, 5), (1, 5), (9, 0)])
def test_there_may_be_nothing_to_draw(count, wanted):
    assert drawn_pairs(*world(count), wanted, seed=0) == ((), ())
