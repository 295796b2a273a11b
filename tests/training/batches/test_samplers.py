from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.scenes import SceneConfig, SceneRelevance, held_out_combinations, sample_picture
from rungwise.training.batches import (
    label_lists,
    one_caption_per_image,
    relevance_aware_batches,
    rung_counts,
    somewhat_relevant,
)


def plain(batches):
    return [batch.tolist() for batch in batches]


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 9), st.integers(0, 3))
def test_no_image_twice_in_a_batch_and_every_caption_once(owners, size, epoch) -> None:
    batches = one_caption_per_image(owners, size, seed=1, epoch=epoch)
    assert sorted(c for batch in batches for c in batch) == list(range(len(owners)))
    for batch in batches:
        assert 1 <= len(batch) <= size
        assert len({owners[c] for c in batch}) == len(batch)
    assert plain(batches) == plain(one_caption_per_image(owners, size, seed=1, epoch=epoch))


def test_epochs_and_seeds_differ() -> None:
    owners = np.repeat(np.arange(20), 3)
    runs = [plain(one_caption_per_image(owners, 5, seed=s, epoch=e)) for s, e in ((0, 0), (0, 1), (1, 0))]
    assert runs[0] != runs[1] != runs[2] != runs[0]


LABELS = [("a",), ("b",), ("a", "c"), ("c",), (), ("b",)]
OWNERS = np.array([0, 0, 1, 2, 3, 4, 5])


def test_lists_hold_the_own_item_and_irrelevant_ones() -> None:
    batches = list(label_lists(LABELS, OWNERS, queries=3, irrelevant=2, seed=0, epoch=0))
    assert [len(batch.images) for batch in batches] == [3, 3, 1]
    assert Counter(np.concatenate([b.images for b in batches]).tolist()) == Counter(OWNERS.tolist())
    assert sorted(np.concatenate([b.captions for b in batches]).tolist()) == list(range(7))
    for batch in batches:
        for image, row in zip(batch.images, batch.captions_of_images, strict=True):
            assert OWNERS[row[0]] == image
            assert len(set(row)) == 3
            assert all(OWNERS[c] != image and not set(LABELS[image]) & set(LABELS[OWNERS[c]]) for c in row[1:])
        for caption, row in zip(batch.captions, batch.images_of_captions, strict=True):
            assert row[0] == OWNERS[caption]
            assert all(i != row[0] and not set(LABELS[row[0]]) & set(LABELS[i]) for i in row[1:])
    again = next(label_lists(LABELS, OWNERS, queries=3, irrelevant=2, seed=0, epoch=0))
    assert np.array_equal(again.captions_of_images, batches[0].captions_of_images)


def test_irrelevant_items_are_drawn_from_all_there_are() -> None:
    seen: dict[int, set[int]] = {image: set() for image in range(len(LABELS))}
    for epoch in range(30):
        for batch in label_lists(LABELS, OWNERS, queries=3, irrelevant=2, seed=0, epoch=epoch):
            for row in batch.images_of_captions.tolist():
                seen[row[0]].update(row[1:])
    for image, drawn in seen.items():
        apart = [other for other in seen if other != image and not set(LABELS[image]) & set(LABELS[other])]
        assert drawn == set(apart)


def test_batches_and_lists_hold_something() -> None:
    with pytest.raises(UserError, match="batch_size must be at least 1, got 0"):
        one_caption_per_image([0, 1], 0, seed=0, epoch=0)
    for queries, irrelevant in ((0, 1), (1, 0)):
        with pytest.raises(UserError, match=f"must be at least 1, got {queries} and {irrelevant}"):
            next(label_lists(LABELS, OWNERS, queries=queries, irrelevant=irrelevant, seed=0, epoch=0))


def test_lists_say_what_is_missing() -> None:
    with pytest.raises(UserError, match="has no class labels"):
        next(label_lists([(), ()], [0, 1], queries=1, irrelevant=1, seed=0, epoch=0))
    with pytest.raises(UserError, match="only 1 captions share no label with image .*; lower irrelevant"):
        list(label_lists([("a",), ("b",)], [0, 1], queries=1, irrelevant=2, seed=0, epoch=0))


@given(st.integers(0, 30), st.integers(1, 8), st.data())
def test_relevance_aware_batches_cover_every_pair_once(pairs, size, data) -> None:
    near = [np.array(data.draw(st.lists(st.integers(0, pairs - 1), max_size=4)), dtype=np.int64) for _ in range(pairs)]
    near = [np.setdiff1d(some, [own]) for own, some in enumerate(near)]
    group = data.draw(st.integers(1, size))
    batches = relevance_aware_batches(near, size, group=group, seed=0, epoch=2)
    assert sorted(p for batch in batches for p in batch) == list(range(pairs))
    assert all(len(batch) == size for batch in sorted(batches, key=len)[1:])
    assert plain(batches) == plain(relevance_aware_batches(near, size, group=group, seed=0, epoch=2))


def test_a_group_must_fit_a_batch() -> None:
    with pytest.raises(UserError, match=r"group must lie in 1..4"):
        relevance_aware_batches([], 4, group=5, seed=0, epoch=0)


def scenes(pictures):
    config = SceneConfig(captions_per_picture=2)
    held_out = held_out_combinations()
    made = [sample_picture(config, number, held_out) for number in range(pictures)]
    owners = np.repeat(np.arange(pictures), 2)
    said = [statement for picture in made for _, statement in picture.captions]
    return SceneRelevance([picture.scene for picture in made], said), owners


def test_rungs_fill_up_on_scenes() -> None:
    relevance, owners = scenes(300)
    captions = np.arange(len(owners))
    near = somewhat_relevant(relevance, owners, captions, at_least=0.8)

    def empty(batches):
        counts = [
            rung_counts(relevance.block(owners[b], b), [0.8], owners[b][:, None] == owners[b][None, :]) for b in batches
        ]
        return float(np.mean(np.concatenate(counts)[:, 0] == 0))

    plain_share = empty(relevance_aware_batches(near, 32, group=1, seed=0, epoch=0))
    aware_share = empty(relevance_aware_batches(near, 32, group=4, seed=0, epoch=0))
    assert aware_share < 0.6 * plain_share


def test_near_pairs_are_within_the_bounds_and_few() -> None:
    relevance, owners = scenes(60)
    near = somewhat_relevant(relevance, owners, np.arange(120), at_least=0.5, below=0.8, keep=5)
    degrees = relevance.dense()
    assert max(map(len, near)) == 5
    for pair, others in enumerate(near):
        assert all(0.5 <= degrees[owners[pair], c] < 0.8 and owners[c] != owners[pair] for c in others)


def test_which_near_pairs_are_kept_is_drawn() -> None:
    relevance, owners = scenes(60)
    bounds = {"at_least": 0.5, "below": 0.8}
    every = somewhat_relevant(relevance, owners, np.arange(120), **bounds, keep=120)
    drawn = [somewhat_relevant(relevance, owners, np.arange(120), **bounds, keep=5, seed=seed) for seed in range(20)]
    pair = max(range(120), key=lambda number: len(every[number]))
    assert len(every[pair]) > 10
    seen = {int(other) for near in drawn for other in near[pair]}
    assert len(seen) > min(15, len(every[pair]) / 2)


def test_a_degree_that_is_nan_counts_on_the_lowest_level() -> None:
    assert rung_counts([[1.0, np.nan], [0.7, 1.0]], [0.63]).tolist() == [[0, 1], [1, 0]]


@given(st.integers(1, 6), st.data())
def test_counts_are_those_of_a_loop(size, data) -> None:
    level = st.sampled_from([0.1, 0.56, 0.6, 0.63, 0.9])
    degrees = np.array([[data.draw(level) for _ in range(size)] for _ in range(size)])
    positives = np.array([[data.draw(st.booleans()) for _ in range(size)] for _ in range(size)])
    expected = np.zeros((size, 3), int)
    for q in range(size):
        for c in range(size):
            if q != c and not positives[q, c]:
                expected[q, 0 if degrees[q, c] >= 0.63 else 1 if degrees[q, c] >= 0.56 else 2] += 1
    assert rung_counts(degrees, [0.63, 0.56], positives).tolist() == expected.tolist()
