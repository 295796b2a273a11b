from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.stats import pearsonr, spearmanr
from sklearn.isotonic import IsotonicRegression

from rungwise.core import UserError
from rungwise.relevance.combine import Fit, fit_table
from rungwise.relevance.combine._curves import Curve


def judged(pairs=600, sources=3, noise=0.4, seed=0):
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(pairs, sources)) * [1, 10, 0.1][:sources] + 5
    truth = 2 + np.tanh(table[:, 0] - 5) + 0.3 * np.clip((table[:, 1] - 5) / 10, -1, 1)
    return table, np.clip(truth + noise * draw.normal(size=pairs), 0, 5), draw.integers(0, 120, pairs)


def test_isotonic_is_a_curve_of_the_best_weighted_sum_without_negative_weights():
    table, grades, groups = judged()
    table[:, 2] -= grades  # falls while grades rise
    fit = fit_table(table, grades, groups=groups)
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    wanted = lsq_linear(standard, grades - grades.mean(), (0, np.inf)).x
    np.testing.assert_allclose(fit.weights, wanted, atol=1e-4)
    assert fit.weights[2] == 0
    sums = standard @ np.array(fit.weights)
    order = np.argsort(sums)
    stairs = IsotonicRegression(out_of_bounds="clip").fit(sums, grades).predict(sums)
    found = fit.apply(table)
    assert (np.diff(found[order]) >= 0).all()
    # The curve is the staircase with its corners cut.
    assert np.abs(found - stairs).mean() < 0.05
    assert fit.low <= found.min() <= found.max() <= fit.high


def test_monotone_adds_a_rising_curve_of_each_source():
    table, grades, groups = judged()
    fit = fit_table(table, grades, kind="monotone", groups=groups)
    slow = []
    for row in table:
        total = sum(np.interp(x, curve.knots, curve.values) for x, curve in zip(row, fit.curves, strict=True))
        slow.append(min(max(total, fit.low), fit.high))
    np.testing.assert_allclose(fit.apply(table), slow)
    for place in range(3):
        raised = table.copy()
        raised[:, place] += 0.7
        assert (fit.apply(raised) >= fit.apply(table)).all()


def test_monotone_learns_what_no_weighted_sum_can():
    draw = np.random.default_rng(0)
    table = draw.uniform(-1, 1, (3000, 2))
    grades = 2.0 * (table[:, 0] > 0) + 2.0 * (table[:, 1] > 0)
    groups = np.arange(3000)
    isotonic, monotone = (fit_table(table, grades, kind=kind, groups=groups) for kind in ("isotonic", "monotone"))
    assert monotone.pearson > isotonic.pearson + 0.03


@pytest.mark.parametrize("kind", ["isotonic", "monotone"])
def test_agreement_is_that_of_pairs_that_were_left_out(kind):
    table, grades, groups = judged(noise=0.8)
    fit = fit_table(table, grades, kind=kind, groups=groups)
    parts = np.random.default_rng(0).permutation(120) % 5
    assert len(np.unique(groups)) == 120
    guessed = np.empty(len(grades))
    for part in range(5):
        inside = np.array([parts[group] == part for group in groups])
        guessed[inside] = fit_table(table[~inside], grades[~inside], kind=kind).apply(table[inside])
    assert fit.folds == 5
    assert fit.pearson == pytest.approx(pearsonr(guessed, grades)[0])
    assert fit.spearman == pytest.approx(spearmanr(guessed, grades)[0])


def test_noise_that_is_learned_by_heart_does_not_count():
    draw = np.random.default_rng(0)
    table, grades = draw.normal(size=(2000, 4)), draw.normal(size=2000)
    table[:, 0] += 0.05 * grades
    for kind in ("isotonic", "monotone"):
        fit = fit_table(table, grades, kind=kind)
        assert pearsonr(fit.apply(table), grades)[0] > fit.pearson + 0.02


def test_pairs_that_share_any_group_with_a_fold_are_left_out():
    table, grades, _ = judged(noise=0.8)
    groups = np.random.default_rng(1).integers(0, 60, (600, 2))
    parts = np.random.default_rng(0).permutation(60) % 5
    guessed = np.empty(len(grades))
    for part in range(5):
        judged_here = np.array([parts[first] == part for first, _ in groups])
        seen = np.array([parts[first] != part and parts[second] != part for first, second in groups])
        guessed[judged_here] = fit_table(table[seen], grades[seen]).apply(table[judged_here])
    assert fit_table(table, grades, groups=groups).pearson == pytest.approx(pearsonr(guessed, grades)[0])


def test_one_group_cannot_be_left_out():
    table, grades, _ = judged()
    fit = fit_table(table, grades, groups=np.zeros(len(grades), np.int64))
    assert (fit.pearson, fit.spearman, fit.folds) == (None, None, 0)
    assert "not measured" in str(fit)


def test_a_gap_stays_one():
    table, grades, _ = judged()
    for kind in ("isotonic", "monotone"):
        found = fit_table(table, grades, kind=kind).apply([[5, 5, 5], [np.nan, 5, 5]])
        assert np.isnan(found).tolist() == [False, True]


def test_the_same_data_give_the_same_numbers():
    table, grades, groups = judged()
    assert fit_table(table, grades, groups=groups) == fit_table(table, grades, groups=groups)
    assert fit_table(table, grades, groups=groups).judgements != fit_table(table, grades).judgements


def test_the_line_says_what_was_measured():
    table, grades, groups = judged()
    line = str(fit_table(table, grades, groups=groups, names=("a", "b", "c")))
    assert "left out of the fit (5 folds): Pearson 0." in line
    assert "600 judged pairs" in line
    assert "reaches" in str(fit_table(table, grades, kind="monotone"))


def test_what_teaches_nothing_is_refused_in_one_line():
    table, grades, groups = judged()
    holes = table.copy()
    holes[:7, 1] = np.nan
    cases = {
        "source 2 has no degree of 7 of the 600 judged pairs": lambda: fit_table(holes, grades),
        "29 judged pairs; give at least 30": lambda: fit_table(table[:29], grades[:29]),
        "all 600 grades are 3; give judgements that differ": lambda: fit_table(table, np.full(600, 3.0)),
        "1 of 600 grades are not finite": lambda: fit_table(table, np.where(np.arange(600) == 3, np.inf, grades)),
        "no source rises with the grades": lambda: fit_table(-table[:, :1], grades),
        "do not fit": lambda: fit_table(table, grades[:-1]),
        "2 names do not fit": lambda: fit_table(table, grades, names=("a", "b")),
        "groups of shape": lambda: fit_table(table, grades, groups=groups[:5]),
        "kind must be": lambda: fit_table(table, grades, kind="linear"),
        "where (pairs, 3) are wanted": lambda: fit_table(table, grades).apply(table[:, :2]),
        "2 hashes of 3 sources": lambda: fit_table(table, grades, hashes=("a", "b")),
    }
    for message, make in cases.items():
        with pytest.raises(UserError) as caught:
            make()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


def test_numbers_that_do_not_fit_together_are_refused():
    curve = Curve((0.0, 1.0), (0.0, 5.0))
    good = Fit("isotonic", ("a",), (), "", 30, 0.0, 5.0, (0.0,), (1.0,), (1.0,), (curve,))
    bad = [
        {"centres": ()},
        {"scales": (0.0,)},
        {"weights": (-1.0,)},
        {"weights": (1e29,), "scales": (1e-300,)},
        {"weights": ()},
        {"curves": ()},
        {"low": 5.0},
        {"centres": (float("nan"),)},
        {"names": ()},
        {"kind": "monotone"},
    ]
    for change in bad:
        with pytest.raises(UserError):
            replace(good, **change)
