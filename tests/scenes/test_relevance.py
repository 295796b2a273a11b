from itertools import permutations

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import read
from rungwise.relevance import Relevance
from rungwise.relevance.description.describe import describe
from rungwise.relevance.precomputed import load
from rungwise.scenes import (
    Mention,
    Scene,
    SceneConfig,
    SceneObject,
    SceneRelevance,
    Statement,
    generate,
    held_out_combinations,
    own_degrees,
    sample_picture,
)


def by_definition(scene, statement):
    """Counted fact by fact, for every way to give the mentions different objects or none."""
    objects = [*range(len(scene.objects)), None, None, None]
    best = total = 0
    for chosen in set(permutations(objects, len(statement.mentions))):
        held = total = 0
        for thing, mention in zip(chosen, statement.mentions, strict=True):
            for name in ("shape", "colour", "size", "texture"):
                wanted = getattr(mention, name)
                if wanted is not None:
                    total += 1
                    held += thing is not None and getattr(scene.objects[thing], name) == wanted
        for relation, a, b in statement.relations:
            total += 1
            if chosen[a] is not None and chosen[b] is not None:
                held += relation in scene.relations(chosen[a], chosen[b])
        if statement.count is not None:
            total += 1
            held += statement.count == len(scene.objects)
        best = max(best, held)
    return best / total


@pytest.fixture(scope="module")
def pictures():
    held_out = held_out_combinations()
    return [sample_picture(SceneConfig(captions_per_picture=4), n, held_out) for n in range(60)]


@pytest.fixture(scope="module")
def relevance(pictures):
    return SceneRelevance([p.scene for p in pictures], [said for p in pictures for _, said in p.captions])


def test_is_a_relevance_source(relevance):
    assert isinstance(relevance, Relevance)


def test_equals_the_definition(pictures, relevance):
    expected = [[by_definition(p.scene, said) for q in pictures for _, said in q.captions] for p in pictures]
    dense = relevance.dense()
    assert dense.dtype == np.float32
    np.testing.assert_allclose(dense, expected, rtol=1e-6)
    assert len(np.unique(dense)) > 10


def test_one_means_true(pictures, relevance):
    true = [[said.is_true_of(p.scene) for q in pictures for _, said in q.captions] for p in pictures]
    np.testing.assert_array_equal(relevance.dense() == 1, true)
    own = np.repeat(np.arange(60), 4)
    assert (relevance.dense()[own, np.arange(240)] == 1).all()


def test_block_is_a_part_of_dense(relevance):
    rng = np.random.default_rng(0)
    images, captions = rng.integers(0, 60, 17), rng.integers(0, 240, 31)
    np.testing.assert_array_equal(relevance.block(images, captions), relevance.dense()[np.ix_(images, captions)])
    assert relevance.block([], [3]).shape == (0, 1)
    assert relevance.block([2], []).shape == (1, 0)


@pytest.mark.parametrize(
    ("statement", "degree"),
    [
        (Statement((Mention("star", "red"),)), 1),
        (Statement((Mention("star", "blue"),)), 1 / 2),
        (Statement((Mention("star", "red"), Mention("heart", "blue")), (("left of", 0, 1),)), 1),
        (Statement((Mention("star", "red"), Mention("heart", "blue")), (("right of", 0, 1),)), 4 / 5),
        (Statement((Mention("star", "blue"), Mention("heart", "red")), (("left of", 0, 1),)), 3 / 5),
        (Statement((Mention("star"), Mention("star"))), 1 / 2),
        (Statement((Mention("star"), Mention("heart"), Mention("cross")), count=3), 1 / 2),
        (Statement((Mention("star"),), count=2), 1),
    ],
)
def test_degrees_by_hand(statement, degree):
    star = SceneObject("star", "red", "small", "plain", 0.2, 0.5)
    heart = SceneObject("heart", "blue", "large", "plain", 0.7, 0.5)
    for objects in ((star, heart), (heart, star)):
        assert SceneRelevance([Scene(objects)], [statement]).dense()[0, 0] == np.float32(degree)


def test_load_goes_by_id(tmp_path):
    data = generate(tmp_path, SceneConfig(pictures=12, side=32))
    whole = SceneRelevance.load(tmp_path, data).dense()
    chosen = np.random.default_rng(0).permutation(12)[:5]
    part = data.select(chosen)
    captions = [data.caption_ids.index(name) for name in part.caption_ids]
    np.testing.assert_array_equal(SceneRelevance.load(tmp_path, part).dense(), whole[np.ix_(chosen, captions)])


def test_load_refuses_a_stranger(tmp_path):
    data = generate(tmp_path / "a", SceneConfig(pictures=4, side=32))
    more = generate(tmp_path / "b", SceneConfig(pictures=5, side=32))
    assert SceneRelevance.load(tmp_path / "b", data).dense().shape == (4, 20)
    with pytest.raises(UserError, match="scene-00004"):
        SceneRelevance.load(tmp_path / "a", more)


def test_load_knows_whose_captions_they_are(tmp_path):
    data = generate(tmp_path, SceneConfig(pictures=8, side=32))
    relevance = SceneRelevance.load(tmp_path, data)
    np.testing.assert_array_equal(relevance.image_of_caption, data.image_of_caption)
    assert describe(relevance).own == 1
    relevance.save(tmp_path / "degrees")
    assert load(tmp_path / "degrees", data=data).captions_hash == relevance.captions_hash
    with pytest.raises(UserError, match="or other ones"):
        load(tmp_path / "degrees", data=data.select(np.arange(8)[::-1]))


def test_positions_outside_are_refused(relevance):
    for images, captions in (([-1], [0]), ([0], [-1])):
        with pytest.raises(UserError, match="must lie in 0"):
            relevance.block(images, captions)


@pytest.mark.parametrize("given", [".", "captions.jsonl"])
def test_scenes_bring_their_degrees_along_and_other_collections_none(tmp_path, given):
    data = generate(tmp_path, SceneConfig(pictures=6, side=32))
    degrees = own_degrees(tmp_path / given, read(tmp_path / given))
    np.testing.assert_array_equal(degrees.dense(), SceneRelevance.load(tmp_path, data).dense())
    assert own_degrees(None, data) is None
    (tmp_path / "scenes.json").unlink()
    assert own_degrees(tmp_path, read(tmp_path)) is None
