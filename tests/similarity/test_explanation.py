"""What attention says of a pair, against the equations of rungwise.similarity._stacked_attention written as loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from rungwise.similarity import CrossAttention, Explanation

Rows = list[list[float]]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def attended(queries: Rows, others: Rows, smoothing: float) -> tuple[Rows, list[float]]:
    """Of every query, its weights b over the others and the cosine r with what it attended to (Lee et al. 2018)."""
    s = [[dot(query, other) for other in others] for query in queries]
    clipped = [[one if one > 0 else 0.1 * one for one in row] for row in s]
    norms = [math.sqrt(sum(row[i] ** 2 for row in clipped)) + 1e-8 for i in range(len(others))]
    b, r = [], []
    for query, row in zip(queries, clipped, strict=True):
        raised = [math.exp(smoothing * one / norm) for one, norm in zip(row, norms, strict=True)]
        b.append([one / sum(raised) for one in raised])
        context = [sum(w * other[d] for w, other in zip(b[-1], others, strict=True)) for d in range(len(query))]
        r.append(dot(query, context) / math.sqrt(dot(query, query) * dot(context, context)))
    return b, r


def counted(r: list[float], pooling: str, lse: float) -> list[float]:
    raised = [math.exp(lse * one) if pooling == "lse" else 1.0 for one in r]
    return [one / sum(raised) for one in raised]


def sets(seed: int, *sizes: int, width: int = 5) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return [F.normalize(torch.randn(n, width, generator=draw, dtype=torch.float64), dim=1) for n in sizes]


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 5), st.sampled_from(["lse", "mean"]))
def test_words_that_attend_are_explained_by_their_attention(seed, count, length, pooling):
    regions, words = sets(seed, count, length)
    found = CrossAttention("t2i", 9.0, pooling, 6.0).attention(regions, words)
    b, r = attended(words.tolist(), regions.tolist(), 9.0)
    np.testing.assert_allclose(found.weights, b, atol=1e-9)
    np.testing.assert_allclose(found.answers, r, atol=1e-7)
    np.testing.assert_allclose(found.shares, counted(r, pooling, 6.0), atol=1e-7)


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 5), st.sampled_from(["lse", "mean"]))
def test_regions_that_attend_are_read_the_other_way(seed, count, length, pooling):
    regions, words = sets(seed, count, length)
    found = CrossAttention("i2t", 4.0, pooling, 5.0).attention(regions, words)
    b, r = attended(regions.tolist(), words.tolist(), 4.0)
    p = counted(r, pooling, 5.0)
    for word in range(length):
        by_way_of = [p[i] * b[i][word] for i in range(count)]
        assert float(found.shares[word]) == pytest.approx(sum(by_way_of), abs=1e-7)
        weights = [one / sum(by_way_of) for one in by_way_of]
        np.testing.assert_allclose(found.weights[word], weights, atol=1e-7)
        assert float(found.answers[word]) == pytest.approx(dot(weights, r), abs=1e-7)


@pytest.mark.parametrize("attend", ["t2i", "i2t"])
@pytest.mark.parametrize("pooling", ["lse", "mean"])
def test_weights_and_shares_add_up(attend, pooling):
    found = CrossAttention(attend, pooling=pooling).attention(*sets(0, 49, 12, width=32))
    np.testing.assert_allclose(found.weights.sum(dim=1), np.ones(12), atol=1e-9)
    assert float(found.shares.sum()) == pytest.approx(1, abs=1e-9)
    assert float(found.weights.min()) >= 0


def test_shares_are_what_the_score_changes_by():
    """The share of a word is the derivative of S by its cosine."""
    r = torch.tensor([[[0.3], [0.9], [-0.2]]], dtype=torch.float64, requires_grad=True)
    similarity = CrossAttention("t2i", lse=6.0)
    similarity.pooled(r).sum().backward()
    assert r.grad is not None
    np.testing.assert_allclose(r.grad[0, :, 0], counted([0.3, 0.9, -0.2], "lse", 6.0))


def grid(side: int) -> np.ndarray:
    steps = np.arange(side) / side
    return np.array([(x, y, x + 1 / side, y + 1 / side) for y in steps for x in steps])


def pointing_at(*places: int, side: int = 7) -> Explanation:
    weights = np.zeros((1, side * side), np.float32)
    weights[0, list(places)] = 1 / len(places)
    one = np.ones(1, np.float32)
    return Explanation(("dog",), weights, one, one, grid(side))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (0, "upper left"),
        (3, "top"),
        (6, "upper right"),
        (24, "middle"),
        (27, "right"),
        (42, "lower left"),
        (45, "bottom"),
    ],
)
def test_places_have_names(place, name):
    assert pointing_at(place).where(0) == name


def test_what_is_spread_is_all_over():
    assert pointing_at(*range(49)).where(0) == "all over"
    assert pointing_at(*range(7)).where(0) == "top"
    assert pointing_at(*range(3, 49, 7)).where(0) == "middle"
    assert pointing_at(*range(0, 49, 7)).where(0) == "left"


def test_regions_outside_of_the_picture_are_nowhere():
    found = pointing_at(0, 48)
    boxes = grid(7)
    boxes[0] = 0.0
    assert Explanation(found.words, found.weights, found.answers, found.shares, boxes).where(0) == "lower right"
    nowhere = Explanation(found.words, found.weights, found.answers, found.shares, np.zeros((49, 4)))
    assert nowhere.where(0) == "all over"
    assert Explanation(found.words, found.weights, found.answers, found.shares, None).where(0) == ""


def test_the_most_decisive_words_come_first_and_frames_are_left_out():
    found = Explanation(
        ("", "a", "dog", "runs", ""),
        np.ones((5, 1), np.float32),
        np.array([0.9, 0.1, 0.2, 0.3, 0.9], np.float32),
        np.array([0.3, 0.1, 0.2, 0.2, 0.2], np.float32),
        None,
    )
    assert found.decisive() == [3, 2, 1]
    assert found.decisive(1) == [3]
