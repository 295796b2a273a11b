from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from rungwise.core import UserError
from rungwise.relevance.agreement import cohen_kappa, krippendorff_alpha

NAN = float("nan")

# "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers, twelve units.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


def slow_alpha(ratings, level):
    """The definition: observed and expected coincidences of values, one pair after the other."""
    units = [[value for value in unit if not np.isnan(value)] for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    coincidences = Counter()
    for unit in units:
        for one, other in permutations(unit, 2):
            coincidences[one, other] += 1 / (len(unit) - 1)
    often = Counter()
    for (one, _), count in coincidences.items():
        often[one] += count
    values = sorted(often)

    def delta(one, other):
        if level == "nominal":
            return float(one != other)
        if level == "interval":
            return (one - other) ** 2
        low, high = min(one, other), max(one, other)
        between = sum(often[value] for value in values if low <= value <= high)
        return (between - (often[one] + often[other]) / 2) ** 2

    total = sum(often.values())
    observed = sum(count * delta(*pair) for pair, count in coincidences.items()) / total
    expected = sum(often[one] * often[other] * delta(one, other) for one in values for other in values)
    return 1 - observed / (expected / (total * (total - 1)))


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level, printed):
    assert krippendorff_alpha(PUBLISHED, level) == pytest.approx(printed, abs=5e-4)
    assert krippendorff_alpha(PUBLISHED, level) == pytest.approx(slow_alpha(PUBLISHED, level))


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("graders", [2, 3, 5])
def test_alpha_follows_the_definition(level, graders):
    draw = np.random.default_rng(graders)
    for _ in range(20):
        truth = draw.integers(0, 6, 30)
        ratings = np.clip(truth + draw.integers(-1, 2, (graders, 30)), 0, 5).astype(float)
        ratings[draw.random(ratings.shape) < 0.3] = NAN
        assert krippendorff_alpha(ratings, level) == pytest.approx(slow_alpha(ratings, level))


def test_the_order_of_graders_and_items_does_not_matter():
    turned = np.array(PUBLISHED)[::-1, ::-1]
    assert krippendorff_alpha(turned) == pytest.approx(krippendorff_alpha(PUBLISHED))
    grown = np.hstack([PUBLISHED, [[7], [NAN], [NAN], [NAN]]])  # one grade alone can agree with nothing
    assert krippendorff_alpha(grown) == pytest.approx(krippendorff_alpha(PUBLISHED))


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_kappa_is_that_of_scikit_learn(weights):
    draw = np.random.default_rng(0)
    for _ in range(20):
        first = draw.integers(0, 6, 50)
        second = np.clip(first + draw.integers(-2, 3, 50), 0, 5)
        wanted = cohen_kappa_score(first, second, weights=weights, labels=range(6))
        assert cohen_kappa(first, second, weights) == pytest.approx(wanted)


def test_kappa_leaves_out_what_only_one_graded():
    first, second = [1, 2, 3, NAN, 2, 1], [1, 3, 3, 4, NAN, 2]
    assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score([1, 2, 3, 1], [1, 3, 3, 2]))


def test_quadratic_weights_are_distances_of_grades_not_of_ranks():
    first, second = [0, 0, 5, 5], [0, 5, 5, 1]
    wanted = cohen_kappa_score(first, second, weights="quadratic", labels=range(6))
    assert cohen_kappa(first, second, "quadratic") == pytest.approx(wanted)
    assert wanted != pytest.approx(cohen_kappa_score(first, second, weights="quadratic"))


@pytest.mark.parametrize("ratings", [[[1, NAN], [NAN, 2]], [[3, 3], [3, 3]], [[1, 2]], [[], []]])
def test_where_nothing_can_differ_agreement_is_not_defined(ratings):
    assert all(np.isnan(krippendorff_alpha(ratings, level)) for level in ("nominal", "ordinal", "interval"))
    assert np.isnan(cohen_kappa(ratings[0], ratings[-1])) or len(ratings) == 1
    assert np.isnan(cohen_kappa([3, 3], [3, 3], "quadratic"))


def test_perfect_agreement_is_1_and_chance_is_0():
    grades = np.random.default_rng(0).integers(0, 6, (2, 20_000)).astype(float)
    assert krippendorff_alpha([grades[0], grades[0]]) == cohen_kappa(grades[0], grades[0]) == 1
    assert abs(krippendorff_alpha(grades)) < 0.02
    assert abs(cohen_kappa(*grades, "quadratic")) < 0.02


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: cohen_kappa([1, 2], [1]), "grades of shapes"),
        (lambda: cohen_kappa([1], [1], "linear"), "weights must be None or 'quadratic', got 'linear'"),
        (lambda: krippendorff_alpha([1, 2]), "give a table of"),
        (lambda: krippendorff_alpha([[1], [2]], "ratio"), "level must be"),
        (lambda: krippendorff_alpha([[1], [np.inf]]), "a grade is infinite"),
    ],
    ids=["lengths", "weights", "no table", "level", "infinite"],
)
def test_mistakes_get_one_line(ask, said):
    with pytest.raises(UserError, match=said) as caught:
        ask()
    assert "\n" not in str(caught.value)
