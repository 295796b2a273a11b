"""GMLDA against its joint matrices written out, and against LDA where both views are equal."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rungwise.models.subspace import GMLDA
from rungwise.models.subspace.methods._gmlda import GMLDAConfig
from tests.models.subspace.items import Items, blocks, ratios, ridged, same_directions, same_space, some_items, views_of

ITEMS = some_items(count=50)


def parts(rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scatter between and within classes, and means of classes, each by the square root of its share."""
    mean = rows.mean(axis=0)
    between = within = np.zeros((rows.shape[1], rows.shape[1]))
    means = []
    for one in range(labels.max() + 1):
        own = rows[labels == one]
        centre = own.mean(axis=0)
        means.append((centre - mean) * np.sqrt(len(own) / len(rows)))
        between = between + len(own) / len(rows) * np.outer(centre - mean, centre - mean)
        for row in own:
            within = within + np.outer(row - centre, row - centre) / len(rows)
    return between, within, np.array(means).T


def by_hand(items: Items, mu: float, alpha: float, regularisation: float) -> tuple[np.ndarray, np.ndarray]:
    (a1, b1, m1), (a2, b2, m2) = (parts(rows, items.labels) for rows in (items.images, items.texts))
    gamma = np.trace(b1) / np.trace(b2)
    nothing = np.zeros((len(b1), len(b2)))
    return ratios(
        blocks([[a1, alpha * m1 @ m2.T], [alpha * m2 @ m1.T, mu * a2]]),
        blocks([[ridged(b1, regularisation), nothing], [nothing.T, gamma * ridged(b2, regularisation)]]),
    )


@pytest.mark.parametrize("regularisation", [0.0, 0.1])
@pytest.mark.parametrize(("mu", "alpha"), [(1.0, 10.0), (0.5, 2.0), (3.0, 0.3), (1.0, 0.0)])
def test_directions_are_those_of_the_joint_problem(mu: float, alpha: float, regularisation: float) -> None:
    model = GMLDA(mu=mu, alpha=alpha, regularisation=regularisation, pca=1.0)
    found = model.solve(views_of(ITEMS.images, ITEMS.texts, ITEMS.labels))
    values, vectors = by_hand(ITEMS, mu, alpha, regularisation)
    count = int((values > 1e-9 * values[0]).sum())
    assert count == (2 if alpha > np.sqrt(mu) else 4)  # C - 1, or both views' own
    same_directions(np.vstack([found.image, found.text]), vectors[:, :count])


@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_of_two_equal_views_it_is_lda(alpha: float) -> None:
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(ITEMS.images, ITEMS.labels)
    views = views_of(ITEMS.images, ITEMS.images, ITEMS.labels)
    found = GMLDA(dimension=2, alpha=alpha, regularisation=0.0).solve(views)
    same_directions(found.image, theirs.scalings_[:, :2])
    same_directions(found.text, theirs.scalings_[:, :2])
    same_space(found.image, theirs.scalings_[:, :2])


def test_the_paper_s_settings_are_the_default() -> None:
    assert (GMLDAConfig().kind, GMLDAConfig().mu, GMLDAConfig().alpha, GMLDAConfig().pca) == ("gmlda", 1.0, 10.0, 0.95)
