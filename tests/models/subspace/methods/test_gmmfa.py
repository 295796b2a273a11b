"""GMMFA against its graphs and joint matrices written out; without pairs of means it is marginal Fisher analysis."""

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.models.subspace import GMMFA
from rungwise.models.subspace._classes import Classes
from rungwise.models.subspace.methods._gmmfa import GMMFAConfig, border_pairs, graph_scatter, neighbours
from tests.models.subspace.items import blocks, ratios, ridged, same_directions, several_labels, some_items, views_of

ITEMS = some_items(count=30)
SINGLE, SEVERAL = np.eye(3, dtype=int)[ITEMS.labels], several_labels(ITEMS)
Pairs = set[tuple[int, int]]


def near_pairs(rows: np.ndarray, members: np.ndarray, count: int) -> Pairs:
    """Every item with its nearest ones of each of its classes."""
    found = set()
    for one in range(members.shape[1]):
        own = np.flatnonzero(members[:, one])
        for item in own:
            others = sorted((other for other in own if other != item), key=lambda other: apart(rows, item, other))
            found |= {tuple(sorted((int(item), int(other)))) for other in others[:count]}
    return found


def far_pairs(rows: np.ndarray, members: np.ndarray, count: int) -> Pairs:
    """The nearest pairs across the border of each class."""
    found = set()
    for one in range(members.shape[1]):
        across = [
            (item, other) for item in np.flatnonzero(members[:, one]) for other in np.flatnonzero(members[:, one] == 0)
        ]
        nearest = sorted(across, key=lambda pair: apart(rows, *pair))[:count]
        found |= {tuple(sorted((int(item), int(other)))) for item, other in nearest}
    return found


def apart(rows: np.ndarray, item: int, other: int) -> float:
    return float(sum((one - another) ** 2 for one, another in zip(rows[item], rows[other], strict=True)))


def average(rows: np.ndarray, pairs: Pairs) -> np.ndarray:
    return sum(np.outer(rows[one] - rows[other], rows[one] - rows[other]) for one, other in pairs) / len(pairs)


def as_set(edges: np.ndarray) -> Pairs:
    assert len({tuple(edge) for edge in edges.tolist()}) == len(edges)
    return {tuple(edge) for edge in edges.tolist()}


@pytest.mark.parametrize("members", [SINGLE, SEVERAL])
@pytest.mark.parametrize("count", [1, 4, 1000])
def test_graphs_join_nearest_items(members: np.ndarray, count: int) -> None:
    rows, classes = ITEMS.images.astype(np.float32), Classes.of(members)
    near, far = neighbours(rows, classes, count), border_pairs(rows, classes, count)
    assert as_set(near) == near_pairs(ITEMS.images, members, count)
    assert as_set(far) == far_pairs(ITEMS.images, members, count)
    for edges in (near, far):
        np.testing.assert_allclose(
            graph_scatter(rows, edges), average(ITEMS.images, as_set(edges)), rtol=1e-6, atol=1e-9
        )


def by_hand(mu: float, alpha: float, regularisation: float) -> tuple[np.ndarray, np.ndarray]:
    spread, kept, means = [], [], []
    for rows in ITEMS.centred:
        spread.append(average(rows, far_pairs(rows, SINGLE, 12)))
        kept.append(average(rows, near_pairs(rows, SINGLE, 3)))
        centres = [
            rows[ITEMS.labels == one].sum(axis=0) / np.sqrt(30 * (ITEMS.labels == one).sum()) for one in range(3)
        ]
        means.append(np.array(centres).T)
    gamma, nothing = np.trace(kept[0]) / np.trace(kept[1]), np.zeros((5, 4))
    cross = alpha * means[0] @ means[1].T
    return ratios(
        blocks([[spread[0], cross], [cross.T, mu * spread[1]]]),
        blocks([[ridged(kept[0], regularisation), nothing], [nothing.T, gamma * ridged(kept[1], regularisation)]]),
    )


@pytest.mark.parametrize("regularisation", [0.0, 0.1])
@pytest.mark.parametrize(("mu", "alpha"), [(1.0, 10.0), (0.5, 0.2), (2.0, 0.0)])
def test_directions_are_those_of_the_joint_problem(mu: float, alpha: float, regularisation: float) -> None:
    model = GMMFA(mu=mu, alpha=alpha, regularisation=regularisation, same_class=3, other_class=12, dimension=4)
    found = model.solve(views_of(ITEMS.images, ITEMS.texts, ITEMS.labels))
    same_directions(np.vstack([found.image, found.text]), by_hand(mu, alpha, regularisation)[1][:, :4], 1e-5)


@pytest.mark.parametrize("pca", [1.0, 0.999999])
def test_neighbours_are_looked_for_in_the_leading_components(pca: float) -> None:
    """Component by component from a decomposition of the rows themselves; what is averaged are whole rows."""
    views = views_of(ITEMS.images, ITEMS.texts, ITEMS.labels).reduced(pca)
    model = GMMFA(alpha=0.0, regularisation=0.0, same_class=3, other_class=12, neighbour_components=2, pca=pca)
    found, exact = model.solve(views), GMMFA(**vars(model.config) | {"neighbour_components": 100}).solve(views)
    for view, (own, other, plain) in enumerate(
        ((found.image, found.text, exact.image), (found.text, found.image, exact.text))
    ):
        centred = ITEMS.centred[view]
        rows = centred if views.bases is None else centred @ views.bases[view]
        two = rows @ np.linalg.svd(rows, full_matrices=False)[2][:2].T
        mine = np.linalg.norm(own, axis=0) > np.linalg.norm(other, axis=0)
        numerator, denominator = average(rows, far_pairs(two, SINGLE, 12)), average(rows, near_pairs(two, SINGLE, 3))
        same_directions(own[:, mine], ratios(numerator, denominator)[1], 1e-4)
        assert not np.allclose(own, plain[:, : own.shape[1]], atol=1e-3)


def test_without_pairs_of_means_each_view_has_marginal_fisher_analysis() -> None:
    model = GMMFA(alpha=0.0, regularisation=0.0, same_class=3, other_class=12)
    found = model.solve(views_of(ITEMS.images, ITEMS.texts, ITEMS.labels))
    assert found.image.shape == (5, 9)
    for rows, own, other in zip(ITEMS.centred, (found.image, found.text), (found.text, found.image), strict=True):
        mine = np.linalg.norm(own, axis=0) > np.linalg.norm(other, axis=0)
        np.testing.assert_allclose(other[:, mine], 0, atol=1e-6)
        numerator, denominator = average(rows, far_pairs(rows, SINGLE, 12)), average(rows, near_pairs(rows, SINGLE, 3))
        same_directions(own[:, mine], ratios(numerator, denominator)[1], 1e-5)


def test_equal_items_are_neighbours_of_each_other_and_not_of_themselves() -> None:
    rows = np.zeros((3, 2), np.float32)
    assert as_set(neighbours(rows, Classes.of(["a", "a", "a"]), 2)) == {(0, 1), (0, 2), (1, 2)}


def test_a_class_of_one_item_has_no_neighbours() -> None:
    rows = ITEMS.images[:3].astype(np.float32)
    assert neighbours(rows, Classes.of(["a", "b", "c"]), 2).shape == (0, 2)
    with pytest.raises(UserError, match="every class has one item"):
        GMMFA().fit(ITEMS.images[:3], ITEMS.texts[:3], ["a", "b", "c"])


def test_a_class_of_everybody_has_no_border() -> None:
    rows = ITEMS.images[:3].astype(np.float32)
    assert border_pairs(rows, Classes.of(["a", "a", "a"]), 2).shape == (0, 2)


def test_settings_are_checked() -> None:
    assert GMMFAConfig().kind == "gmmfa"
    for name in ("same_class", "other_class", "neighbour_components"):
        with pytest.raises(UserError, match=": must be at least 1"):
            GMMFAConfig(**{name: 0})
