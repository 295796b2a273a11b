"""Sums of the regressions, their start, their end, and how they are brought to fewer directions."""

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.models.subspace.methods._regression import (
    SMOOTH,
    RegressionConfig,
    fall,
    rotated,
    row_weights,
    rows_norm,
    sums_of,
    with_ridge_solved,
)
from tests.models.subspace.items import products, several_labels, some_items, views_of

ITEMS = some_items()
FIRST, SECOND = ITEMS.centred
MEMBERS = several_labels(ITEMS)
TARGET = MEMBERS - MEMBERS.mean(axis=0)
SUMS = sums_of(views_of(ITEMS.images, ITEMS.texts, MEMBERS))


def some_projections(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 3)), rng.normal(size=(4, 3))


def test_sums_are_those_of_centred_rows_and_labels() -> None:
    np.testing.assert_allclose(SUMS.image, products(FIRST, FIRST), atol=1e-10)
    np.testing.assert_allclose(SUMS.text, products(SECOND, SECOND), atol=1e-10)
    np.testing.assert_allclose(SUMS.cross, products(FIRST, SECOND), atol=1e-10)
    np.testing.assert_allclose(SUMS.image_labels, products(FIRST, TARGET), atol=1e-10)
    np.testing.assert_allclose(SUMS.text_labels, products(SECOND, TARGET), atol=1e-10)
    np.testing.assert_allclose(SUMS.labels, sum(one**2 for row in TARGET for one in row))


def test_the_misfit_is_that_of_the_rows() -> None:
    image, text = some_projections(0)
    expected = sum(
        (predicted - wanted) ** 2 / 2
        for rows, projection in ((FIRST, image), (SECOND, text))
        for predicted, wanted in zip((rows @ projection).ravel(), TARGET.ravel(), strict=True)
    )
    np.testing.assert_allclose(SUMS.misfit(image, text), expected)


def test_the_start_is_ridge_regression() -> None:
    for rows, found in zip((FIRST, SECOND), SUMS.start(), strict=True):
        ridge = 1e-3 * np.square(rows).sum() / rows.shape[1]
        np.testing.assert_allclose(rows.T @ (TARGET - rows @ found), ridge * found, atol=1e-9)


def test_norms_of_rows_are_smoothed() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert rows_norm(rows) == pytest.approx(5 + SMOOTH**0.5)
    np.testing.assert_allclose(row_weights(rows), [1 / 5, 1 / SMOOTH**0.5])


def halved(image: np.ndarray, text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return image / 2, text


def size(image: np.ndarray, text: np.ndarray) -> float:
    return float(np.abs(image).sum()) + 1


@pytest.mark.parametrize("rank", [1, 5])
def test_a_ridge_of_very_unlike_numbers(rank: int) -> None:
    rows = FIRST[:, :rank] @ np.random.default_rng(2).normal(size=(rank, 5))
    ridge, wanted = np.array([1e-5, 1e9, 1.0, 1e3, 1e-2]), rows.T @ TARGET
    found = with_ridge_solved(rows.T @ rows, ridge, wanted)
    np.testing.assert_allclose(rows.T @ (rows @ found) + ridge[:, None] * found, wanted, rtol=1e-6)
    with pytest.raises(UserError, match="raise sparsity"):
        with_ridge_solved(np.ones((5, 5)), np.full(5, 1e-40), wanted)


START = np.ones((1, 1)), np.ones((1, 1))


def test_it_ends_where_a_round_gains_too_little() -> None:
    found, values = fall(START, halved, size, RegressionConfig(tolerance=0.1, rounds=50))
    np.testing.assert_allclose(values, [2, 1.5, 1.25, 1.125])  # the last round gains 0.1 of 1.25
    assert found[0] == 0.125


def test_it_ends_after_the_rounds() -> None:
    assert len(fall(START, halved, size, RegressionConfig(tolerance=0, rounds=3))[1]) == 4
    assert len(fall(START, lambda *pair: pair, size, RegressionConfig(tolerance=0, rounds=50))[1]) == 2


def test_a_rise_is_a_fault() -> None:
    with pytest.raises(ArithmeticError, match="the objective rose"):
        fall(START, lambda image, text: (image * 2, text), size, RegressionConfig())


def test_fewer_directions_are_those_in_which_projections_vary_most() -> None:
    image, text = some_projections(1)
    same = rotated(SUMS, (image, text), 3)
    assert same.image is image
    found = rotated(SUMS, (image, text), 2)
    together = np.vstack([FIRST @ image, SECOND @ text])
    values = np.linalg.eigvalsh(together.T @ together)[::-1]
    own = np.vstack([FIRST @ found.image, SECOND @ found.text])
    np.testing.assert_allclose(own.T @ own, np.diag(values[:2]), atol=1e-8)


@pytest.mark.parametrize(
    "settings", [{"sparsity": 0.0}, {"sparsity": float("inf")}, {"rounds": 0}, {"tolerance": -1}, {"tolerance": np.nan}]
)
def test_settings_are_checked(settings: dict[str, float]) -> None:
    with pytest.raises(UserError, match="must be"):
        RegressionConfig(**settings)
