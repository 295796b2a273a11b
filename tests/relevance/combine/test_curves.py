import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from rungwise.core import UserError
from rungwise.relevance.combine._curves import Curve, rising_curve


def stairs(degrees, grades):
    """Steps of scikit-learn's regression: middle of the pairs on each, weighed by their number, and its height."""
    heights = IsotonicRegression().fit_transform(degrees, grades)
    return [(degrees[heights == height].mean(), height) for height in np.unique(heights)]


def test_a_curve_runs_through_the_middles_of_the_steps_of_isotonic_regression():
    draw = np.random.default_rng(0)
    for count in (1, 2, 50, 400):
        degrees = draw.integers(0, 60, count).astype(float)  # many of them equal
        grades = np.sqrt(degrees) + draw.normal(size=count)
        curve = rising_curve(degrees, grades)
        wanted = stairs(degrees, grades)
        np.testing.assert_allclose(curve.knots, [middle for middle, _ in wanted])
        np.testing.assert_allclose(curve.values, [height for _, height in wanted])


def test_blocks_are_averaged_before():
    draw = np.random.default_rng(1)
    degrees, grades = draw.random(40), draw.random(40)
    order = np.argsort(degrees)
    middles, heights = (side[order].reshape(8, 5).mean(axis=1) for side in (degrees, grades))
    found, wanted = rising_curve(degrees, grades, blocks=8), rising_curve(middles, heights)
    np.testing.assert_allclose(found.knots, wanted.knots)
    np.testing.assert_allclose(found.values, wanted.values)
    assert rising_curve(degrees, grades, blocks=40) == rising_curve(degrees, grades, blocks=99)


def test_a_curve_is_level_beyond_its_ends_and_keeps_gaps():
    found = Curve((1.0, 2.0, 4.0), (0.0, 3.0, 3.0)).at([[-9.0, 1.5], [3.0, np.nan]])
    np.testing.assert_array_equal(found, [[0.0, 1.5], [3.0, np.nan]])


@pytest.mark.parametrize(
    ("knots", "values", "message"),
    [
        ((), (), "0 knots and 0 values"),
        ((1.0,), (1.0, 2.0), "1 knots and 2 values"),
        ((1.0, 1.0), (1.0, 2.0), "knots must rise"),
        ((1.0, 2.0), (2.0, 1.0), "values must not fall"),
        ((1.0, np.inf), (1.0, 2.0), "not a number"),
    ],
    ids=["none", "numbers", "equal", "falling", "infinite"],
)
def test_what_is_no_curve_is_refused(knots, values, message):
    with pytest.raises(UserError, match=message):
        Curve(knots, values)
