"""MvDA against the scatters of pooled samples, against its blocks written out, and against LDA."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rungwise.models.subspace import MvDA
from rungwise.models.subspace.methods._mvda import MvDAConfig
from tests.models.subspace.items import blocks, ratios, same_directions, several_labels, some_items, views_of

ITEMS = some_items(count=50)
SINGLE, SEVERAL = np.eye(3, dtype=int)[ITEMS.labels], several_labels(ITEMS)


def centred_by_entries(members: np.ndarray) -> list[np.ndarray]:
    """Rows less their mean, in which an item of several classes counts once in each, as it does everywhere here."""
    weights = members.sum(axis=1)
    return [rows - weights @ rows / weights.sum() for rows in (ITEMS.images, ITEMS.texts)]


def joint(members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of the scatters between and within classes: (n_jc n_rc / n_c) mu_jc mu_rc', with n_c = 2 n_jc here."""
    views = centred_by_entries(members)
    between: list[list[np.ndarray]] = []
    within: list[list[np.ndarray]] = []
    for j, first in enumerate(views):
        between.append([])
        within.append([])
        for r, second in enumerate(views):
            by_class = products = np.zeros((first.shape[1], second.shape[1]))
            for own in members.T.astype(bool):
                count = own.sum()
                by_class = by_class + count * count / (2 * count) * np.outer(first[own].mean(0), second[own].mean(0))
                if j == r:
                    products = products + sum(np.outer(row, row) for row in first[own])
            between[j].append(by_class)
            within[j].append(products - by_class)
    entries = 2 * members.sum()
    return blocks(between) / entries, blocks(within) / entries


def with_ridge(within: np.ndarray, regularisation: float) -> np.ndarray:
    sizes = np.concatenate([np.full(5, np.diag(within)[:5].mean()), np.full(4, np.diag(within)[5:].mean())])
    return within + regularisation * np.diag(sizes)


@pytest.mark.parametrize("regularisation", [0.0, 0.1])
@pytest.mark.parametrize("members", [SINGLE, SEVERAL])
def test_directions_are_those_of_the_joint_problem(members: np.ndarray, regularisation: float) -> None:
    model = MvDA(pca=1.0, regularisation=regularisation)
    found = model.solve(views_of(ITEMS.images, ITEMS.texts, members))
    between, within = joint(members)
    assert found.image.shape == (5, 2)
    expected = ratios(between, with_ridge(within, regularisation))[1][:, :2]
    same_directions(np.vstack([found.image, found.text]), expected)


@pytest.mark.parametrize("members", [SINGLE, SEVERAL])
def test_the_blocks_are_the_scatters_of_pooled_samples(members: np.ndarray) -> None:
    between, within = joint(members)
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=5), rng.normal(size=4)
    views = centred_by_entries(members)
    samples = [
        (float(row @ direction), one)
        for rows, direction in zip(views, (first, second), strict=True)
        for row, own in zip(rows, members, strict=True)
        for one in np.flatnonzero(own)
    ]
    mean = sum(value for value, _ in samples) / len(samples)
    inside = across = 0.0
    for one in range(3):
        own = [value for value, name in samples if name == one]
        centre = sum(own) / len(own)
        across += len(own) * (centre - mean) ** 2 / len(samples)
        inside += sum((value - centre) ** 2 for value in own) / len(samples)
    together = np.concatenate([first, second])
    np.testing.assert_allclose(together @ between @ together, across)
    np.testing.assert_allclose(together @ within @ together, inside)


def test_of_two_equal_views_it_is_lda() -> None:
    theirs = LinearDiscriminantAnalysis(solver="svd").fit(ITEMS.images, ITEMS.labels)
    found = MvDA(regularisation=0.0).solve(views_of(ITEMS.images, ITEMS.images, ITEMS.labels))
    same_directions(found.image, theirs.scalings_)
    same_directions(found.text, theirs.scalings_)


def test_every_class_may_have_one_item() -> None:
    """The views differ from each other within a class."""
    model = MvDA().fit(ITEMS.images[:12], ITEMS.texts[:12], range(12))
    assert np.isfinite(model.block(ITEMS.images, ITEMS.texts)).all()


def test_the_configuration_says_its_kind() -> None:
    assert (MvDAConfig().kind, MvDAConfig().pca) == ("mvda", 0.95)
