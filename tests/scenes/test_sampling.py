from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.scenes import SceneConfig, held_out_combinations, sample_picture
from rungwise.scenes import _sampling as sampling
from rungwise.scenes._description import CLEAR_GAP, COLOURS, RADIUS, RELATIONS, SHAPES, SIZES, TEXTURES
from rungwise.scenes._sampling import combination_of


def kind_pairs(scene):
    return {tuple(sorted(pair)) for pair in combinations([o.kind for o in scene.objects], 2)}


@settings(max_examples=40)
@given(seed=st.integers(0, 2**40), number=st.integers(0, 10**6))
def test_relations_are_never_in_doubt(seed, number):
    scene = sample_picture(SceneConfig(seed=seed), number, held_out_combinations(seed)).scene
    assert 1 <= len(scene.objects) <= 3
    assert len({o.kind for o in scene.objects}) == len(scene.objects)
    for thing in scene.objects:
        for centre in (thing.x, thing.y):
            assert RADIUS[thing.size] <= centre <= 1 - RADIUS[thing.size]
    for a, b in combinations(scene.objects, 2):
        reach = RADIUS[a.size] + RADIUS[b.size]
        smaller = 2 * min(RADIUS[a.size], RADIUS[b.size])
        gaps = [abs(a.x - b.x) - reach, abs(a.y - b.y) - reach]
        assert max(gaps) >= CLEAR_GAP - 1e-9
        assert all(gap >= CLEAR_GAP - 1e-9 or -gap >= smaller / 2 - 1e-9 for gap in gaps)


def test_pictures_do_not_depend_on_how_many_are_asked_for():
    held_out = held_out_combinations()
    few, many = SceneConfig(pictures=5, captions_per_picture=2), SceneConfig(pictures=500, side=64)
    for number in range(40):
        a, b = (sample_picture(config, number, held_out) for config in (few, many))
        assert (a.scene, a.split, a.captions) == (b.scene, b.split, b.captions[:2])


def test_seed_changes_everything():
    a, b = (sample_picture(SceneConfig(seed=s), 0, held_out_combinations(s)) for s in (0, 1))
    assert a.scene != b.scene
    assert a.captions != b.captions


@pytest.fixture(scope="module")
def pictures():
    """Five hundred of the usual scenes."""
    held_out = held_out_combinations()
    return [sample_picture(SceneConfig(), number, held_out) for number in range(500)]


def test_combinations_are_held_out_of_train_and_val(pictures):
    held_out = held_out_combinations()
    shown = {split: [kind_pairs(p.scene) for p in pictures if p.split == split] for split in ("train", "val", "test")}
    for split in ("train", "val"):
        assert not set().union(*shown[split]) & set(held_out)
    with_held_out = [bool(pairs & set(held_out)) for pairs in shown["test"]]
    assert np.mean(with_held_out) == pytest.approx(0.5, abs=0.02)
    for picture in pictures:
        if picture.split != "test":
            for _, statement in picture.captions:
                kinds = {(m.colour, m.shape) for m in statement.mentions if m.colour and m.shape}
                assert not {tuple(sorted(pair)) for pair in combinations(kinds, 2)} & set(held_out)


def test_every_kind_and_value_occurs_in_training(pictures):
    train = [picture for picture in pictures if picture.split == "train"]
    objects = [o for p in train for o in p.scene.objects]
    assert {o.kind for o in objects} == {(c, s) for c in COLOURS for s in SHAPES}
    assert {o.size for o in objects} == set(SIZES)
    assert {o.texture for o in objects} == set(TEXTURES)
    stated = {name for p in train for _, said in p.captions for name, _, _ in said.relations}
    assert stated == set(RELATIONS)


@pytest.mark.parametrize("count", [40, 400, 4000])
def test_split_shares_are_kept(count):
    config = SceneConfig(val_share=0.1, test_share=0.2)
    splits = [sampling._split(config, n)[0] for n in range(count)]
    assert splits.count("test") == pytest.approx(0.2 * count, abs=2)
    assert splits.count("val") == pytest.approx(0.1 * count, abs=2)


def test_nothing_held_out_is_possible():
    config = SceneConfig(held_out_share=0)
    assert held_out_combinations(0, 0) == ()
    assert {sample_picture(config, n, ()).split for n in range(30)} == {"train", "val", "test"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pictures": 0}, "pictures must be at least 1"),
        ({"side": 16}, "side must be at least 32"),
        ({"test_share": 1.5}, "test_share must lie in"),
        ({"alike": 0}, "alike must be at least 1"),
        ({"held_out_share": 0.9}, "held_out_share must lie in 0..0.5"),
        ({"test_share": 0.6, "val_share": 0.6}, "add up to more than 1"),
    ],
)
def test_impossible_configurations(wrong, message):
    with pytest.raises(UserError, match=message):
        SceneConfig(**wrong)


def test_held_out_combinations_are_ordered_pairs_of_different_kinds():
    held_out = held_out_combinations(3, 0.25)
    assert len(held_out) == len(set(held_out)) == round(0.25 * 48 * 47 / 2)
    assert list(held_out) == sorted(held_out)
    assert all(a != b and combination_of(b, a) == (a, b) for a, b in held_out)


def test_neighbouring_training_pictures_may_show_the_same_things():
    config, held_out = SceneConfig(alike=5), held_out_combinations()
    pictures = [sample_picture(config, number, held_out) for number in range(100)]
    arrangements = set()
    for group in range(20):
        own = [one.scene for one in pictures[5 * group : 5 * group + 5] if one.split == "train"]
        assert len({frozenset(one.kind for one in scene.objects) for scene in own}) == 1
        arrangements |= {tuple((one.x, one.y) for one in scene.objects) for scene in own}
    assert len(arrangements) == sum(one.split == "train" for one in pictures)
    shown = {frozenset(one.kind for one in pictures[5 * at].scene.objects) for at in range(20)}
    assert len(shown) > 15


def test_pictures_of_other_splits_are_the_same_whatever_training_shows():
    held_out = held_out_combinations()
    for number in range(60):
        plain, alike = (sample_picture(SceneConfig(alike=count), number, held_out) for count in (1, 25))
        assert (plain == alike) is (plain.split != "train")
        assert plain.split == alike.split


def test_training_pictures_that_are_alike_show_no_held_out_combination():
    held_out = held_out_combinations(0, 0.5)
    config = SceneConfig(alike=3, held_out_share=0.5)
    for picture in (sample_picture(config, number, held_out) for number in range(150)):
        if picture.split == "train":
            assert not kind_pairs(picture.scene) & set(held_out)
