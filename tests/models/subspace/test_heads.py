"""Heads that are fitted, against the same in float64."""

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel

from rungwise.core import UserError
from rungwise.models.subspace._heads import Centred, KernelRows, Posteriors, Roots
from rungwise.models.subspace._settings import Gaussian


def some_rows(seed: int, count: int, width: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32).astype(np.float64)


def mapped(head: torch.nn.Module, rows: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return head(torch.from_numpy(rows).float()).double().numpy()


def test_roots_keep_signs() -> None:
    assert mapped(Roots(), np.array([[0.0, 4.0, -9.0]])).tolist() == [[0, 2, -3]]


@pytest.mark.parametrize("shift", [0.0, 300.0])
@pytest.mark.parametrize("gamma", [0.05, None])
@pytest.mark.parametrize("width", [1, 2, 10, 60])
def test_products_of_coordinates_are_the_kernel_of_landmarks(width: int, gamma: float | None, shift: float) -> None:
    """Far from 0 as well, and where landmarks are so alike that most of their directions are rounding."""
    landmarks = (some_rows(0, 80, width) + shift).astype(np.float32).astype(np.float64)
    head = KernelRows.fitted(landmarks, Gaussian(gamma=gamma))
    found = mapped(head, landmarks)
    exact = rbf_kernel(landmarks - shift, gamma=1 / (width * landmarks.var()) if gamma is None else gamma)
    np.testing.assert_allclose(found @ found.T, exact, atol=2e-4)


def test_of_few_landmarks_rows_are_projected_on_what_they_span() -> None:
    landmarks, rows = some_rows(1, 12, 6), some_rows(2, 9, 6)
    found = mapped(KernelRows.fitted(landmarks, Gaussian(gamma=0.1)), rows)
    across, within = rbf_kernel(rows, landmarks, gamma=0.1), rbf_kernel(landmarks, gamma=0.1)
    np.testing.assert_allclose(found @ found.T, across @ np.linalg.inv(within) @ across.T, atol=1e-4)


@pytest.mark.parametrize("size", [1e-15, 1e-3, 1e3, 1e15])
def test_the_kernel_s_own_gamma_goes_with_the_size_of_features(size: float) -> None:
    landmarks = some_rows(3, 20, 4)
    found = KernelRows.fitted(size * landmarks, Gaussian())
    np.testing.assert_allclose(
        mapped(found, size * landmarks), mapped(KernelRows.fitted(landmarks, Gaussian()), landmarks), atol=1e-3
    )


def test_equal_rows_have_equal_coordinates() -> None:
    rows = np.full((5, 3), 2.5)
    found = mapped(KernelRows.fitted(rows, Gaussian()), rows)
    np.testing.assert_allclose(found @ found.T, np.ones((5, 5)), atol=1e-5)


def test_settings_of_the_kernel_are_checked() -> None:
    for settings in ({"gamma": 0.0}, {"gamma": float("inf")}, {"gamma": float("nan")}, {"landmarks": 0}, {"seed": -1}):
        with pytest.raises(UserError, match="gaussian.") as caught:
            Gaussian(**settings)
        assert "\n" not in str(caught.value)


def test_centred_rows_are_projected() -> None:
    rows, mean, directions = some_rows(4, 7, 3), np.arange(3.0), some_rows(5, 3, 2)
    np.testing.assert_allclose(mapped(Centred.fitted(mean, directions), rows), (rows - mean) @ directions, atol=1e-5)


@pytest.mark.parametrize("exclusive", [False, True])
def test_posteriors_are_probabilities_less_their_mean(exclusive: bool) -> None:
    head = Posteriors(2, 3, exclusive)
    weight, rows = some_rows(6, 2, 3), some_rows(7, 5, 2)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(weight))
        head.intercept.copy_(torch.tensor([0.0, 1.0, -1.0]))
        head.mean.fill_(0.25)
    scores = np.exp(rows @ weight + np.array([0.0, 1.0, -1.0]))
    expected = scores / scores.sum(axis=1, keepdims=True) if exclusive else scores / (1 + scores)
    np.testing.assert_allclose(mapped(head, rows), expected - 0.25, atol=1e-6)


def test_nothing_of_a_head_is_trained() -> None:
    for head in (KernelRows(2, 3), Centred(2, 3), Posteriors(2, 3, True)):
        assert not any(one.requires_grad for one in head.parameters())
