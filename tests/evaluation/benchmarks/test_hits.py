"""Measures against loops over the papers' equations, with ties on every side."""

import numpy as np
import pytest

from rungwise.evaluation.benchmarks import average_precision, hit, target_recall


def cases():
    draw = np.random.default_rng(0)
    for _ in range(200):
        count = int(draw.integers(2, 12))
        scores = draw.integers(0, 4, count) / 2.0
        right = draw.choice(count, int(draw.integers(1, count)), replace=False)
        yield scores.tolist(), right.tolist(), int(draw.integers(1, 15))


def places(scores, right):
    """Candidates by falling score, wrong ones before right ones of the same score."""
    order = []
    left = list(range(len(scores)))
    while left:
        best = left[0]
        for one in left:
            if scores[one] > scores[best] or (scores[one] == scores[best] and best in right and one not in right):
                best = one
        left.remove(best)
        order.append(best)
    return order


def test_a_hit_is_higher_than_every_wrong_candidate():
    for scores, right, _ in cases():
        wanted = False
        for one in right:
            higher = True
            for other in range(len(scores)):
                if other not in right and not scores[one] > scores[other]:
                    higher = False
            wanted = wanted or higher
        assert hit(scores, right) == 100 * wanted


def test_average_precision_is_circos():
    for scores, right, k in cases():
        order = places(scores, right)
        total = 0.0
        for place in range(min(k, len(order))):
            if order[place] in right:
                before = 0
                for one in order[: place + 1]:
                    before += one in right
                total += before / (place + 1)
        assert average_precision(scores, right, k) == pytest.approx(100 * total / min(k, len(right)))


def test_recall_looks_for_the_target_alone():
    for scores, right, k in cases():
        target = right[0]
        assert target_recall(scores, target, k) == 100 * (target in places(scores, [target])[:k])


def test_what_is_no_number_is_below_all_numbers():
    assert hit([float("nan"), -5.0], [0]) == 0
    assert hit([-5.0, float("nan")], [0]) == 100
    assert average_precision([float("nan"), 1.0], [1], 1) == 100
    assert target_recall([float("nan"), 1.0], 0, 1) == 0
