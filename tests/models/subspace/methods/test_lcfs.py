"""LCFS minimises what its equation says: values, falls and gradients against the equation written out."""

import numpy as np
import pytest
from scipy.optimize import minimize

from rungwise.core import UserError
from rungwise.models.subspace import LCFS
from rungwise.models.subspace.methods._lcfs import LCFSConfig, objective
from rungwise.models.subspace.methods._regression import sums_of
from tests.models.subspace.items import several_labels, slopes, some_items, views_of

ITEMS = some_items()
FIRST, SECOND = ITEMS.centred
MEMBERS = several_labels(ITEMS)
TARGET = MEMBERS - MEMBERS.mean(axis=0)
VIEWS = views_of(ITEMS.images, ITEMS.texts, MEMBERS)
SMOOTH = 1e-8


def by_hand(image: np.ndarray, text: np.ndarray, sparsity: float, low_rank: float) -> float:
    fits = sum(
        (predicted - wanted) ** 2 / 2
        for rows, projection in ((FIRST, image), (SECOND, text))
        for predicted, wanted in zip((rows @ projection).ravel(), TARGET.ravel(), strict=True)
    )
    rows = sum(np.sqrt(sum(one**2 for one in row) + SMOOTH) for row in [*image, *text])
    singular = np.linalg.svd(np.hstack([FIRST @ image, SECOND @ text]), compute_uv=False)
    return fits + sparsity * rows + low_rank * sum(np.sqrt(value**2 + SMOOTH) for value in singular)


@pytest.mark.parametrize(("sparsity", "low_rank"), [(0.1, 0.0), (0.3, 2.0), (5.0, 0.1)])
def test_the_objective_is_that_of_the_equation(sparsity: float, low_rank: float) -> None:
    rng = np.random.default_rng(0)
    image, text = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    found = objective(sums_of(VIEWS), image, text, sparsity, low_rank)
    np.testing.assert_allclose(found, by_hand(image, text, sparsity, low_rank))


@pytest.mark.parametrize(("sparsity", "low_rank"), [(0.1, 0.0), (0.1, 0.1), (1.0, 0.2), (5.0, 0.01)])
def test_it_falls_to_a_point_from_which_nothing_falls(sparsity: float, low_rank: float) -> None:
    model = LCFS(sparsity=sparsity, low_rank=low_rank, rounds=3000, tolerance=0)
    found = model.solve(VIEWS)
    values = np.array(model.objective)
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    np.testing.assert_allclose(values[-1], by_hand(found.image, found.text, sparsity, low_rank))
    near = slopes(lambda *pair: by_hand(*pair, sparsity, low_rank), found.image, found.text)
    far = slopes(lambda *pair: by_hand(*pair, sparsity, low_rank), np.ones((5, 3)), np.ones((4, 3)))
    assert np.linalg.norm(near) < 1e-5 * np.linalg.norm(far)


def test_rows_of_features_are_left_out() -> None:
    noise = np.random.default_rng(1).normal(size=(len(ITEMS), 3)).astype(np.float32)
    found = LCFS(sparsity=10, tolerance=1e-12).solve(views_of(np.hstack([ITEMS.images, noise]), ITEMS.texts, MEMBERS))
    sizes = np.linalg.norm(found.image, axis=1)
    assert sizes[5:].max() < 0.02 * sizes.max()


def test_where_the_rank_falls_the_rounds_end_near_the_minimum() -> None:
    """Rounds creep there. The objective is convex, so that another program's minimum is the minimum."""

    def value(numbers: np.ndarray) -> float:
        return by_hand(numbers[:15].reshape(5, 3), numbers[15:].reshape(4, 3), 0.3, 2.0)

    model = LCFS(sparsity=0.3, low_rank=2.0)
    found = model.solve(VIEWS)
    singular = np.linalg.svd(np.hstack([FIRST @ found.image, SECOND @ found.text]), compute_uv=False)
    assert (singular < 1e-3 * singular[0]).sum() == 2
    theirs = minimize(value, np.concatenate([one.ravel() for one in sums_of(VIEWS).start()]), method="BFGS")
    assert model.objective[-1] < theirs.fun * (1 + 1e-4)


def test_fewer_directions_than_classes() -> None:
    model = LCFS(dimension=2).fit(ITEMS.images, ITEMS.texts, MEMBERS)
    assert model.dimension == 2
    assert LCFS().fit(ITEMS.images, ITEMS.texts, MEMBERS).dimension == 3


def test_settings_are_checked() -> None:
    assert LCFSConfig().kind == "lcfs"
    with pytest.raises(UserError, match="low_rank: must be at least 0"):
        LCFSConfig(low_rank=-1)
