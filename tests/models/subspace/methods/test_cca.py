"""CCA against scikit-learn's, its textbook equations and the dual of kernel CCA."""

import numpy as np
import pytest
import torch
from scipy import linalg
from sklearn import cross_decomposition
from sklearn.metrics.pairwise import rbf_kernel

from rungwise.models.subspace import CCA
from rungwise.models.subspace.methods import CCAConfig
from rungwise.models.subspace.methods._cca import correlated
from tests.models.subspace.items import products, ratios, ridged, same_directions, some_items, views_of

ITEMS = some_items(count=60)
FIRST, SECOND = ITEMS.centred
VIEWS = views_of(ITEMS.images, ITEMS.texts)


def correlations(firsts: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    return np.array([np.corrcoef(one, other)[0, 1] for one, other in zip(firsts.T, seconds.T, strict=True)])


def test_it_is_the_cca_of_scikit_learn() -> None:
    theirs = cross_decomposition.CCA(n_components=4, scale=False, tol=1e-14, max_iter=100_000).fit(
        ITEMS.images, ITEMS.texts
    )
    found = correlated(VIEWS, 4, 0.0)
    same_directions(found.image, theirs.x_rotations_, 1e-5)
    same_directions(found.text, theirs.y_rotations_, 1e-5)
    own = correlations(FIRST @ found.image, SECOND @ found.text)
    np.testing.assert_allclose(own, correlations(*theirs.transform(ITEMS.images, ITEMS.texts)), atol=1e-6)


def test_directions_are_the_singular_ones_of_the_whitened_covariance() -> None:
    left, values, right = np.linalg.svd(np.linalg.qr(FIRST)[0].T @ np.linalg.qr(SECOND)[0])
    found = correlated(VIEWS, 3, 0.0)
    np.testing.assert_allclose(correlations(FIRST @ found.image, SECOND @ found.text), values[:3])
    same_directions(FIRST @ found.image, np.linalg.qr(FIRST)[0] @ left[:, :3])
    same_directions(SECOND @ found.text, np.linalg.qr(SECOND)[0] @ right[:3].T)


@pytest.mark.parametrize("regularisation", [0.0, 1e-3, 1.0])
def test_directions_solve_the_equation_of_either_side(regularisation: float) -> None:
    image, text, cross = (products(*pair) / 60 for pair in ((FIRST, FIRST), (SECOND, SECOND), (FIRST, SECOND)))
    image, text = ridged(image, regularisation), ridged(text, regularisation)
    found = correlated(VIEWS, 2, regularisation)
    same_directions(found.image, ratios(cross @ np.linalg.inv(text) @ cross.T, image)[1][:, :2])
    same_directions(found.text, ratios(cross.T @ np.linalg.inv(image) @ cross, text)[1][:, :2])
    np.testing.assert_allclose(found.image.T @ image @ found.image, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(found.text.T @ text @ found.text, np.eye(2), atol=1e-10)
    assert (np.diag(found.image.T @ cross @ found.text) > 0).all()  # both sides of a pair point the same way


def test_a_singular_covariance_is_inverted_where_it_can_be() -> None:
    doubled = views_of(np.hstack([ITEMS.images, ITEMS.images]), np.hstack([ITEMS.texts, np.ones((60, 1))]))
    found, plain = correlated(doubled, 9, 0.0), correlated(VIEWS, 9, 0.0)
    same_directions(np.hstack([FIRST, FIRST]) @ found.image, FIRST @ plain.image)
    same_directions(np.hstack([SECOND, np.zeros((60, 1))]) @ found.text, SECOND @ plain.text)


def test_vectors_are_cosines_of_centred_projections() -> None:
    model = CCA(dimension=2, regularisation=0.01).fit(ITEMS.images, ITEMS.texts)
    found = correlated(VIEWS, 2, 0.01)
    for own, rows, directions in (
        (model.encode_image(ITEMS.images).vectors, FIRST, found.image),
        (model.encode_text(ITEMS.texts), SECOND, found.text),
    ):
        projected = rows @ directions
        np.testing.assert_allclose(own, projected / np.linalg.norm(projected, axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize(("gamma", "regularisation"), [(0.1, 0.1), (1.0, 0.01), (None, 1.0)])
def test_kernel_cca_is_that_of_the_dual(gamma: float | None, regularisation: float) -> None:
    """With G = K (K + n r I)^-1 of the centred kernels, the projections of the items solve G_x G_z a = r^2 a."""
    items = some_items(count=30)
    kernel = {"kind": "gaussian", "gamma": gamma, "landmarks": 30}
    model = CCA(dimension=3, regularisation=regularisation, kernel=kernel).fit(items.images, items.texts)
    fits = []
    for rows in (items.images, items.texts):
        likeness = rbf_kernel(rows, gamma=1 / (rows.shape[1] * rows.var()) if gamma is None else gamma)
        centring = np.eye(30) - 1 / 30
        likeness = centring @ likeness @ centring
        ridge = regularisation * np.trace(likeness) / 30  # the mean diagonal of 30 coordinates, times n
        fits.append(likeness @ np.linalg.inv(likeness + ridge * np.eye(30)))
    for rows, head, first, second in (
        (items.images, model.image_projection, *fits),
        (items.texts, model.text_projection, *fits[::-1]),
    ):
        values, vectors = linalg.eig(first @ second)
        order = np.argsort(-values.real)[:3]
        with torch.no_grad():
            projected = head(torch.from_numpy(rows).float()).double().numpy()
        same_directions(projected, vectors.real[:, order], 1e-4)


def test_the_configuration_says_its_kind() -> None:
    assert (CCAConfig().kind, CCA().config) == ("cca", CCAConfig())
