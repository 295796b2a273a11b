"""LGCFL minimises what its equation says: values, falls and gradients against the equation written out."""

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.models.subspace import LGCFL
from rungwise.models.subspace.methods._lgcfl import FeatureBlocks, LGCFLConfig, objective
from rungwise.models.subspace.methods._regression import sums_of
from tests.models.subspace.items import several_labels, slopes, some_items, views_of

ITEMS = some_items()
FIRST, SECOND = ITEMS.centred
MEMBERS = several_labels(ITEMS)
TARGET = MEMBERS - MEMBERS.mean(axis=0)
VIEWS = views_of(ITEMS.images, ITEMS.texts, MEMBERS)
SMOOTH = 1e-8


def norms(rows: np.ndarray, size: int) -> float:
    """Of blocks of rows; the last may be shorter."""
    return sum(
        np.sqrt(sum(one**2 for row in rows[begin : begin + size] for one in row) + SMOOTH)
        for begin in range(0, len(rows), size)
    )


def with_representation(
    image: np.ndarray, text: np.ndarray, common: np.ndarray, sizes: tuple[int, int], sparsity: float, guidance: float
) -> float:
    fits = np.square(FIRST @ image - common).sum() + np.square(SECOND @ text - common).sum()
    guided = guidance * np.square(common - TARGET).sum()
    return (fits + guided) / 2 + sparsity * (norms(image, sizes[0]) + norms(text, sizes[1]))


def by_hand(image: np.ndarray, text: np.ndarray, sizes: tuple[int, int], sparsity: float, guidance: float) -> float:
    common = (FIRST @ image + SECOND @ text + guidance * TARGET) / (2 + guidance)
    return with_representation(image, text, common, sizes, sparsity, guidance)


CASES = [((1, 1), 0.1, 1.0), ((2, 3), 0.3, 0.2), ((16, 1), 5.0, 10.0)]


@pytest.mark.parametrize(("sizes", "sparsity", "guidance"), CASES)
def test_the_objective_is_that_of_the_equation(sizes: tuple[int, int], sparsity: float, guidance: float) -> None:
    rng = np.random.default_rng(0)
    image, text = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    groups = FeatureBlocks.of(5, sizes[0]), FeatureBlocks.of(4, sizes[1])
    found = objective(sums_of(VIEWS), image, text, groups, sparsity, guidance)
    np.testing.assert_allclose(found, by_hand(image, text, sizes, sparsity, guidance))


def test_the_common_representation_is_the_best_one() -> None:
    rng = np.random.default_rng(0)
    image, text = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    common = (FIRST @ image + SECOND @ text + 0.2 * TARGET) / 2.2
    best = with_representation(image, text, common, (1, 1), 0.1, 0.2)
    for _ in range(5):
        other = common + 0.01 * rng.normal(size=common.shape)
        assert with_representation(image, text, other, (1, 1), 0.1, 0.2) > best


@pytest.mark.parametrize(("sizes", "sparsity", "guidance"), CASES)
def test_it_falls_to_a_point_from_which_nothing_falls(sizes: tuple[int, int], sparsity: float, guidance: float) -> None:
    model = LGCFL(
        image_block=sizes[0], text_block=sizes[1], sparsity=sparsity, guidance=guidance, rounds=5000, tolerance=0
    )
    found = model.solve(VIEWS)
    values = np.array(model.objective)
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    np.testing.assert_allclose(values[-1], by_hand(found.image, found.text, sizes, sparsity, guidance))
    near = slopes(lambda *pair: by_hand(*pair, sizes, sparsity, guidance), found.image, found.text)
    far = slopes(lambda *pair: by_hand(*pair, sizes, sparsity, guidance), np.ones((5, 3)), np.ones((4, 3)))
    assert np.linalg.norm(near) < 1e-5 * np.linalg.norm(far)


def test_blocks_of_features_are_left_out() -> None:
    noise = np.random.default_rng(1).normal(size=(len(ITEMS), 5)).astype(np.float32)
    model = LGCFL(sparsity=10, image_block=5, tolerance=1e-12)
    sizes = np.linalg.norm(model.solve(views_of(np.hstack([ITEMS.images, noise]), ITEMS.texts, MEMBERS)).image, axis=1)
    assert sizes[5:].max() < 0.02 * sizes[:5].max()


def test_settings_are_checked() -> None:
    assert LGCFLConfig().kind == "lgcfl"
    for settings in ({"image_block": 0}, {"text_block": 0}, {"guidance": 0.0}, {"guidance": float("inf")}):
        with pytest.raises(UserError, match="must be"):
            LGCFLConfig(**settings)
