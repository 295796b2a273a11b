"""Both problems against scipy's plain ones; the branches for large matrices against those for small ones."""

import numpy as np
import pytest
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence

from rungwise.core import UserError
from rungwise.models.subspace import _eigenproblems as eigenproblems
from rungwise.models.subspace._eigenproblems import (
    best_directions,
    best_directions_of_factors,
    leading_pairs,
    principal_directions,
    side_by_side,
    whitening,
)
from tests.models.subspace.items import ratios, ridged, same_directions


def positive(seed: int, size: int, rank: int | None = None) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(rank or 2 * size, size))
    return rows.T @ rows / len(rows)


def symmetric(seed: int, size: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(size, size))
    return matrix + matrix.T


@pytest.mark.parametrize("regularisation", [0.0, 1e-14, 1e-3, 10.0])
def test_whitened_covariance_is_one(regularisation: float) -> None:
    matrix = positive(0, 6)
    found = whitening(matrix, regularisation)
    np.testing.assert_allclose(found.T @ ridged(matrix, regularisation) @ found, np.eye(6), atol=1e-9)


def test_a_singular_matrix_is_inverted_where_it_can_be() -> None:
    matrix = positive(1, 6, rank=2)
    found = whitening(matrix, 0.0)
    assert found.shape == (6, 2)
    np.testing.assert_allclose(found.T @ matrix @ found, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(found @ found.T, np.linalg.pinv(matrix), atol=1e-9)
    assert whitening(matrix, 1e-3).shape == (6, 6)
    assert np.isfinite(whitening(matrix, 1e-18)).all()  # a ridge below rounding


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e200])
def test_whitening_goes_with_the_size_of_numbers(size: float) -> None:
    matrix = positive(1, 4, rank=3)
    for regularisation in (0.0, 0.1):
        found = whitening(size * matrix, regularisation)
        np.testing.assert_allclose(found * np.sqrt(size), whitening(matrix, regularisation), rtol=1e-6, atol=1e-9)


def test_nothing_is_not_inverted() -> None:
    with pytest.raises(UserError, match="every row is the same"):
        whitening(np.zeros((3, 3)), 0.1)


@pytest.mark.parametrize("share", [1e-9, 0.3, 0.9, 0.99, 1.0])
def test_principal_directions_are_the_fewest_that_hold_the_share(share: float) -> None:
    covariance = positive(2, 7)
    found = principal_directions(covariance, share)
    values = sorted(np.linalg.eigvalsh(covariance), reverse=True)
    fewest = next(count for count in range(1, 8) if sum(values[:count]) >= share * sum(values) * (1 - 1e-12))
    assert found.shape == (7, fewest)
    np.testing.assert_allclose(found.T @ found, np.eye(fewest), atol=1e-12)
    np.testing.assert_allclose(np.diag(found.T @ covariance @ found), values[:fewest])
    assert (found[np.abs(found).argmax(axis=0), np.arange(fewest)] > 0).all()


@pytest.mark.parametrize("count", [1, 3, 99])
def test_leading_pairs_are_the_singular_ones(count: int) -> None:
    image, text = positive(3, 5), positive(4, 4)
    cross = 0.1 * np.random.default_rng(5).normal(size=(5, 4))
    firsts, seconds, values = leading_pairs(cross, whitening(image, 0.0), whitening(text, 0.0), count)
    squares, vectors = ratios(cross @ np.linalg.solve(text, cross.T), image)
    kept = min(count, 4)
    np.testing.assert_allclose(values, np.sqrt(squares[:kept]))
    same_directions(firsts, vectors[:, :kept])
    np.testing.assert_allclose(firsts.T @ cross @ seconds, np.diag(values), atol=1e-10)
    np.testing.assert_allclose(seconds.T @ text @ seconds, np.eye(kept), atol=1e-10)


def test_pairs_that_are_rounding_are_left_out() -> None:
    firsts, seconds, values = leading_pairs(np.outer([1.0, 2.0, 0.0], [3.0, 1.0]), np.eye(3), np.eye(2), 2)
    assert (firsts.shape, seconds.shape, values.shape) == ((3, 1), (2, 1), (1,))


@pytest.mark.parametrize("count", [1, 4, 99])
def test_best_directions_are_those_of_the_largest_ratios(count: int) -> None:
    numerator, denominator = symmetric(6, 6), positive(7, 6)
    found, values = best_directions(numerator, whitening(denominator, 0.0), count)
    every, vectors = linalg.eigh(numerator, denominator)
    kept = min(count, int((every > 0).sum()))
    assert len(values) == kept  # those that are not positive are left out
    np.testing.assert_allclose(values, every[::-1][:kept])
    same_directions(found, vectors[:, ::-1][:, :kept])


def test_factors_give_the_directions_of_their_product() -> None:
    factors, middle = np.random.default_rng(8).normal(size=(6, 4)), symmetric(9, 4)
    whitened = whitening(positive(10, 6), 0.01)
    found, values = best_directions_of_factors(factors, middle, whitened, 9)
    expected, ratio = best_directions(factors @ middle @ factors.T, whitened, 9)
    np.testing.assert_allclose(values, ratio)
    same_directions(found, expected)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every matrix counts as large."""
    monkeypatch.setattr(eigenproblems, "_DENSE", 0)
    monkeypatch.setattr(eigenproblems, "_FEW", 2)


@pytest.mark.usefixtures("large")
def test_some_vectors_of_a_large_matrix_are_those_of_the_full_decomposition() -> None:
    cross = np.random.default_rng(11).normal(size=(9, 7))
    image, text = whitening(positive(12, 9), 0.1), whitening(positive(13, 7), 0.1)
    firsts, seconds, values = leading_pairs(cross, image, text, 3)
    left, singular, right = np.linalg.svd(image.T @ cross @ text)
    np.testing.assert_allclose(values, singular[:3])
    same_directions(firsts, image @ left[:, :3])
    same_directions(seconds, text @ right[:3].T)
    np.testing.assert_allclose(firsts.T @ cross @ seconds, np.diag(values), atol=1e-9)

    numerator = symmetric(14, 9)
    found, ratio = best_directions(numerator, image, 3)
    every, vectors = np.linalg.eigh(image.T @ numerator @ image)
    np.testing.assert_allclose(ratio, every[::-1][:3])
    same_directions(found, image @ vectors[:, ::-1][:, :3])


@pytest.mark.usefixtures("large")
def test_a_large_matrix_may_send_equal_numbers_to_nothing() -> None:
    """Such as one of centred sums; Lanczos' method must not begin with a vector that is lost at once."""
    centring = np.eye(8) - 1 / 8
    numerator = centring @ np.diag(np.arange(1.0, 9.0)) @ centring
    values = best_directions(numerator, np.eye(8), 2)[1]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(numerator)[::-1][:2])
    np.testing.assert_allclose(leading_pairs(numerator, np.eye(8), np.eye(8), 2)[2], values)


@pytest.mark.usefixtures("large")
def test_a_large_matrix_may_have_fewer_pairs_than_are_asked_for() -> None:
    rows = np.random.default_rng(16).normal(size=(2, 40))
    firsts, seconds, values = leading_pairs(rows.T @ rows, np.eye(40), np.eye(40), 6)
    assert firsts.shape == seconds.shape == (40, 2)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(rows @ rows.T)[::-1])
    assert best_directions(rows.T @ rows, np.eye(40), 6)[0].shape == (40, 2)


@pytest.mark.usefixtures("large")
def test_a_large_matrix_that_does_not_converge_is_decomposed_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: object, **named: object) -> None:
        raise ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    numerator = symmetric(15, 9)
    expected = best_directions(numerator, np.eye(9), 2)
    monkeypatch.setattr(eigenproblems, "eigsh", never)
    monkeypatch.setattr(eigenproblems, "svds", never)
    found = best_directions(numerator, np.eye(9), 2)
    np.testing.assert_allclose(found[1], expected[1])
    same_directions(found[0], expected[0])
    np.testing.assert_allclose(
        leading_pairs(numerator, np.eye(9), np.eye(9), 2)[2], np.linalg.svd(numerator, compute_uv=False)[:2]
    )


def test_matrices_stand_along_a_diagonal() -> None:
    assert side_by_side([np.array([[1.0]]), np.array([[2.0], [3.0]])]).tolist() == [[1, 0], [0, 2], [0, 3]]
