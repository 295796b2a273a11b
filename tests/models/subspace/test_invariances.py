"""What must not change the scores of fitted methods: order, signs, rotation, size, names of classes, blocks, copies."""

from typing import Any

import numpy as np
import pytest

from rungwise.models.subspace import CCA, GMLDA, GMMFA, MLCCA, SCM, MvDA, Subspace
from rungwise.models.subspace import _views as views_module
from rungwise.models.subspace.methods import _gmmfa as gmmfa_module
from tests.models.subspace.items import METHODS, Items, several_labels, some_items

Method = type[Subspace]
each_seed = pytest.mark.parametrize("seed", range(3))
ROTATED = (CCA, SCM, GMLDA, GMMFA, MvDA, MLCCA)
"""Methods that read covariances alone; the regressions leave out features one by one."""


def scores(method: Method, items: Items, labels: Any = None, asked: Items | None = None, **settings: Any) -> np.ndarray:
    """Of the items themselves, or as others see them."""
    asked = asked or items
    model = method(**settings).fit(items.images, items.texts, items.labels if labels is None else labels)
    return model.block(asked.images, asked.texts)


def rotation(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


@pytest.mark.parametrize("method", METHODS)
@each_seed
def test_the_order_of_items_does_not_matter(method: Method, seed: int) -> None:
    items = some_items(seed)
    order = np.random.default_rng(seed).permutation(len(items))
    other = Items(items.images[order], items.texts[order], items.labels[order])
    np.testing.assert_allclose(scores(method, other, asked=items), scores(method, items), atol=1e-4)


@pytest.mark.parametrize("pca", [1.0, 0.9])
@pytest.mark.parametrize("method", ROTATED)
@each_seed
def test_features_may_be_rotated(method: Method, pca: float, seed: int) -> None:
    items, rng = some_items(seed), np.random.default_rng(seed)
    other = Items(items.images @ rotation(rng, 5), items.texts @ rotation(rng, 4), items.labels)
    np.testing.assert_allclose(scores(method, other, pca=pca), scores(method, items, pca=pca), atol=2e-3)


@pytest.mark.parametrize("method", METHODS)
@each_seed
def test_signs_of_features_do_not_matter(method: Method, seed: int) -> None:
    items = some_items(seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], 5)
    other = Items(items.images * signs, -items.texts, items.labels)
    np.testing.assert_allclose(scores(method, other), scores(method, items), atol=1e-4)


@pytest.mark.parametrize("method", [CCA, MvDA, MLCCA])
@each_seed
def test_without_a_ridge_each_feature_may_have_its_own_unit(method: Method, seed: int) -> None:
    items, rng = some_items(seed), np.random.default_rng(seed)
    other = Items(items.images * rng.uniform(0.1, 10, 5), items.texts * rng.uniform(0.1, 10, 4), items.labels)
    plain = {"pca": 1.0, "regularisation": 0.0}
    np.testing.assert_allclose(scores(method, other, **plain), scores(method, items, **plain), atol=2e-3)


@pytest.mark.parametrize(("seed", "size"), [(0, 1 / 1024), (1, 4.0), (2, 2.0**20)])
@pytest.mark.parametrize("method", ROTATED)
def test_both_views_may_have_another_unit(method: Method, seed: int, size: float) -> None:
    """With the ridge as well, which is a share of the features' variance. SCM's regression has a ridge of its own."""
    items = some_items(seed)
    other = Items(items.images * size, items.texts * size, items.labels)
    np.testing.assert_allclose(scores(method, other), scores(method, items), atol=1e-4)


@pytest.mark.parametrize("method", [CCA, MvDA, MLCCA])
@each_seed
def test_one_view_may_have_another_unit(method: Method, seed: int) -> None:
    items = some_items(seed)
    other = Items(items.images * 1024, items.texts, items.labels)
    np.testing.assert_allclose(scores(method, other), scores(method, items), atol=1e-4)


@pytest.mark.parametrize("method", [CCA, GMLDA, MvDA, MLCCA])
@each_seed
def test_items_may_all_stand_twice(method: Method, seed: int) -> None:
    items = some_items(seed)
    twice = Items(*(np.concatenate([one, one]) for one in (items.images, items.texts, items.labels)))
    np.testing.assert_allclose(scores(method, twice, asked=items), scores(method, items), atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@each_seed
def test_names_of_classes_do_not_matter(method: Method, seed: int) -> None:
    items = some_items(seed)
    expected = scores(method, items)
    words = ["art", "music", "war"]
    for labels in (
        [words[label] for label in items.labels],
        [(words[2 - label],) for label in items.labels],  # in another order
        items.labels + 0.5,
        np.eye(3)[items.labels],
        np.eye(4, dtype=bool)[items.labels],
    ):
        np.testing.assert_allclose(scores(method, items, labels), expected, atol=1e-4)


@pytest.mark.parametrize(("several", "seed", "values"), [(False, 0, 1), (True, 1, 23), (True, 2, 300)])
@pytest.mark.parametrize("method", METHODS)
def test_blocks_of_any_size_give_the_same_model(method: Method, several: bool, seed: int, values: int) -> None:
    items = some_items(seed)
    labels = several_labels(items) if several else items.labels
    expected = scores(method, items, labels)
    with pytest.MonkeyPatch.context() as patch:
        for module in (views_module, gmmfa_module):
            patch.setattr(module, "BLOCK_VALUES", values)
        np.testing.assert_allclose(scores(method, items, labels), expected, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_data_give_the_same_model(method: Method) -> None:
    items = some_items()
    for kernel in ("none", "gaussian"):
        first, second = (method(kernel=kernel).fit(items.images, items.texts, items.labels) for _ in range(2))
        assert first.fingerprint == second.fingerprint
