"""Sums over items, in blocks of any size, against loops over items."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rungwise.core import UserError
from rungwise.models.subspace import Views
from rungwise.models.subspace import _views as module
from rungwise.models.subspace._classes import Classes
from rungwise.models.subspace._heads import Roots
from rungwise.models.subspace._views import ViewRows, several
from tests.models.subspace.items import Items, products, several_labels, some_items, views_of

ITEMS = some_items(count=37)
FIRST, SECOND = ITEMS.centred


@given(values=st.integers(1, 400), width=st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_blocks_of_any_size_give_the_same_sums(values: int, width: int) -> None:
    items = some_items(width, count=37, widths=(width, 4))
    first, second = items.centred
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_VALUES", values)
        found = views_of(items.images, items.texts, items.labels)
        sizes = [len(block) for _, block, _ in found.blocks()]
        assert sum(sizes) == 37
        assert max(sizes) <= max(16, values // max(width, 4))
        np.testing.assert_allclose(found.means[0], items.images.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.moments.image, first.T @ first / 37, atol=1e-10)
        np.testing.assert_allclose(found.moments.text, second.T @ second / 37, atol=1e-10)
        np.testing.assert_allclose(found.moments.cross, first.T @ second / 37, atol=1e-10)


def test_moments_are_averages_of_products() -> None:
    found = views_of(ITEMS.images, ITEMS.texts).moments
    np.testing.assert_allclose(found.image, products(FIRST, FIRST) / 37, atol=1e-12)
    np.testing.assert_allclose(found.cross, products(FIRST, SECOND) / 37, atol=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_leading_directions_are_those_of_the_largest_variance(share: float) -> None:
    views = views_of(ITEMS.images, ITEMS.texts).reduced(share)
    first, second = (np.concatenate(blocks) for blocks in zip(*((a, b) for _, a, b in views.blocks()), strict=True))
    for rows, found in zip((first, second), views.leading(2), strict=True):
        assert found.shape == (rows.shape[1], 2)
        values = np.linalg.svd(rows, compute_uv=False)[:2]
        np.testing.assert_allclose((rows @ found).T @ (rows @ found), np.diag(values**2), atol=1e-8)
    assert [one.shape[1] for one in views.leading(1000)] == list(views.widths)


def test_weighted_sums() -> None:
    weights = np.random.default_rng(0).random((37, 2))
    found = views_of(ITEMS.images, ITEMS.texts)
    images, texts = found.weighted(weights[:, 0])
    np.testing.assert_allclose(images, products(weights[:, :1] * FIRST, FIRST), atol=1e-12)
    np.testing.assert_allclose(texts, products(weights[:, :1] * SECOND, SECOND), atol=1e-12)
    images, texts = found.sums(weights)
    np.testing.assert_allclose(images, products(FIRST, weights), atol=1e-12)
    np.testing.assert_allclose(texts, products(SECOND, weights), atol=1e-12)


def scatter_by_hand(rows: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Within and between classes; an item of several classes counts once in each."""
    entries = [(row, column) for row, own in zip(rows, members, strict=True) for column in np.flatnonzero(own)]
    mean = sum(row for row, _ in entries) / len(entries)
    within = between = np.zeros((rows.shape[1], rows.shape[1]))
    for one in range(members.shape[1]):
        own = [row for row, column in entries if column == one]
        centre = sum(own) / len(own)
        between = between + len(own) * np.outer(centre - mean, centre - mean)
        for row in own:
            within = within + np.outer(row - centre, row - centre)
    return within / len(entries), between / len(entries)


@pytest.mark.parametrize("several_of_them", [False, True])
def test_scatter_is_that_around_the_means_of_classes(several_of_them: bool) -> None:
    members = several_labels(ITEMS) if several_of_them else np.eye(3, dtype=int)[ITEMS.labels]
    for rows, found in zip((FIRST, SECOND), views_of(ITEMS.images, ITEMS.texts, members).scatter, strict=True):
        within, between = scatter_by_hand(rows, members)
        np.testing.assert_allclose(found.within, within, atol=1e-12)
        np.testing.assert_allclose(found.means @ found.means.T, between, atol=1e-12)
        if not several_of_them:
            np.testing.assert_allclose(within + between, products(rows, rows) / 37, atol=1e-12)


def test_items_without_a_label_are_no_part_of_the_labelled_ones() -> None:
    labels = [None if item % 5 == 0 else int(label) for item, label in enumerate(ITEMS.labels)]
    kept = np.flatnonzero(np.arange(37) % 5)
    found = views_of(ITEMS.images, ITEMS.texts, labels).labelled
    alone = views_of(ITEMS.images[kept], ITEMS.texts[kept], ITEMS.labels[kept])
    assert len(found) == len(kept)
    np.testing.assert_allclose(found.moments.cross, alone.moments.cross, atol=1e-12)
    np.testing.assert_allclose(found.scatter[1].means, alone.scatter[1].means, atol=1e-12)
    everybody = views_of(ITEMS.images, ITEMS.texts, ITEMS.labels)
    assert everybody.labelled is everybody


def test_reduced_views_are_those_of_projected_rows() -> None:
    found = views_of(ITEMS.images, ITEMS.texts, ITEMS.labels).reduced(0.9)
    assert found.bases is not None
    assert found.widths == (found.bases[0].shape[1], found.bases[1].shape[1])
    assert found.widths[0] < 5
    first, second = FIRST @ found.bases[0], SECOND @ found.bases[1]
    np.testing.assert_allclose(found.moments.cross, products(first, second) / 37, atol=1e-10)
    np.testing.assert_allclose(found.sums(np.ones((37, 1)))[0], 0, atol=1e-10)
    np.testing.assert_allclose(found.scatter[0].within, scatter_by_hand(first, found.classes.members)[0], atol=1e-10)
    projected = found.projected(np.eye(found.widths[0])[:, :1], np.eye(found.widths[1]))
    np.testing.assert_allclose(projected[0], first[:, :1], atol=1e-10)
    np.testing.assert_allclose(projected[1], second, atol=1e-10)
    assert first.var() * first.shape[1] >= 0.9 * FIRST.var(axis=0).sum()
    plain = views_of(ITEMS.images, ITEMS.texts)
    assert plain.reduced(1.0) is plain


def test_a_lift_comes_before_centring() -> None:
    rows = torch.from_numpy(ITEMS.images.astype(np.float32))
    side = ViewRows(lambda positions: rows[positions], 5, nn.Sequential(Roots()))
    found = Views(side, side, np.arange(37)).moments
    lifted = np.sign(ITEMS.images) * np.sqrt(np.abs(ITEMS.images))
    lifted = lifted - lifted.mean(axis=0)
    np.testing.assert_allclose(found.image, products(lifted, lifted) / 37, atol=1e-5)


def test_positions_choose_items() -> None:
    rows = torch.from_numpy(ITEMS.images.astype(np.float32))
    side = ViewRows(lambda positions: rows[positions], 5, nn.Sequential())
    found = Views(side, side, np.array([3, 3, 8]))
    np.testing.assert_allclose(found.means[0], ITEMS.images[[3, 3, 8]].mean(axis=0))


def test_classes_are_asked_for_where_there_are_none() -> None:
    views = views_of(ITEMS.images, ITEMS.texts)
    assert not views.has_classes
    with pytest.raises(UserError, match="reads class labels, and there are none"):
        views.scatter  # noqa: B018


def test_one_class_tells_nothing_apart() -> None:
    with pytest.raises(UserError, match="all 37 labelled items are of one class, '4'"):
        views_of(ITEMS.images, ITEMS.texts, [4] * 37).scatter  # noqa: B018
    with pytest.raises(UserError, match="no item has a label"):
        several(Classes.of([None]))


def test_data_stay_as_they_are() -> None:
    items = Items(ITEMS.images.copy(), ITEMS.texts.copy(), ITEMS.labels)
    views = views_of(items.images, items.texts, items.labels)
    views.scatter  # noqa: B018
    views.weighted(np.ones(37))
    np.testing.assert_array_equal(items.images, ITEMS.images)
