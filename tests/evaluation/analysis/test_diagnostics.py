import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import RankedLists, diagnose, evaluate
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.evaluation.analysis import _diagnostics as diagnostics
from rungwise.evaluation.analysis import false_negatives_by_gallery, in_positions_of_data


def world(images=40, per_image=2, seed=0):
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(images), per_image)
    data = ImageCaptions(
        tuple(f"i{n}" for n in range(images)), tuple("x" * (1 + n % 17) for n in range(len(owners))), owners
    )
    image = generator.standard_normal((images, 6))
    text = image[owners] + generator.standard_normal((len(owners), 6))
    return data, {"image_embeddings": image, "text_embeddings": text}, generator.random((images, len(owners)))


def test_rungs_part_all_pairs_and_say_where_they_stand():
    data, scores, relevance = world()
    found = diagnose(scores, data, relevance=relevance, thresholds=[0.9, 0.5])
    similarity = (scores["image_embeddings"] @ scores["text_embeddings"].T).astype(np.float32)
    places = np.argsort(np.argsort(-similarity, axis=1), axis=1)
    bounds = [(0.9, np.inf), (0.5, 0.9), (-np.inf, 0.5)]
    for rung, (low, high) in zip(found.rungs, bounds, strict=True):
        here = (relevance >= low) & (relevance < high)
        assert rung.pairs == here.sum()
        assert rung.quantiles[2] == pytest.approx(np.median(similarity[here]), abs=1e-5)
        assert rung.percentile == pytest.approx(100 * places[here].mean() / (similarity.shape[1] - 1))
        assert rung.found == pytest.approx(100 * (places[here] < 10).mean())


def test_thresholds_follow_from_shares_unless_given():
    data, scores, relevance = world()
    cuts = diagnose(scores, data, relevance=relevance).thresholds
    assert [(relevance >= cut).mean() for cut in cuts] == pytest.approx([0.001, 0.01, 0.1], abs=0.002)
    assert diagnose(scores, data, relevance=np.round(relevance)).thresholds == (1.0,)


def test_the_curve_of_coherence_is_what_evaluate_says():
    data, scores, relevance = world()
    found = diagnose(scores, data, relevance=relevance)
    for way, curve in found.coherence.items():
        names = [f"CS@{k:.0f}" for k in curve.x]
        wanted = evaluate(**scores, image_of_caption=data.image_of_caption, relevance=relevance, measures=names)
        assert curve.value.tolist() == pytest.approx([wanted[f"{way}/{name}"] for name in names])
        for place, name in enumerate(names):  # the interval of the same number, from other draws
            low, high = wanted.interval(f"{way}/{name}")
            assert (curve.low[place], curve.high[place]) == pytest.approx((low, high), abs=0.02)
        assert curve.chance.tolist() == [0.0] * len(names)
    assert found.coherence["t2i"].x.tolist() == [5, 10, 20]


def test_the_coherent_score_of_random_orders_is_the_chance_that_is_drawn():
    data, _, relevance = world()
    generator = np.random.default_rng(5)
    curves = [
        diagnose({"similarity": generator.random(relevance.shape)}, data, relevance=relevance).coherence["i2t"]
        for _ in range(20)
    ]
    np.testing.assert_allclose(np.mean([curve.value for curve in curves], axis=0), curves[0].chance, atol=0.03)


def test_the_number_of_queries_that_rungs_are_made_of_is_known(monkeypatch):
    data, scores, relevance = world()
    assert diagnose(scores, data).sampled == 0
    found = diagnose(scores, data, relevance=relevance)
    assert (found.sampled, sum(rung.pairs for rung in found.rungs)) == (len(data), relevance.size)
    monkeypatch.setattr(diagnostics, "_SAMPLE", 7)
    found = diagnose(scores, data, relevance=relevance)
    assert (found.sampled, sum(rung.pairs for rung in found.rungs)) == (7, 7 * relevance.shape[1])


@pytest.mark.parametrize("thresholds", [[0.2, 0.6], [0.5, 0.5], [np.nan], [np.inf, 0.2]])
def test_thresholds_that_do_not_fall_are_refused(thresholds):
    data, scores, relevance = world()
    with pytest.raises(UserError, match="cut no rungs; give finite degrees, each below the one before") as caught:
        diagnose(scores, data, relevance=relevance, thresholds=thresholds)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("least", [0.3, 0.001])
def test_degrees_with_gaps_have_rungs_and_no_curve(least, monkeypatch):
    monkeypatch.setattr(diagnostics, "_BLOCK_VALUES", 900)
    data, scores, relevance = world()
    gaps = np.where(relevance < least, np.nan, relevance)
    assert np.isnan(gaps[0]).any() == (least == 0.3)
    found = diagnose(scores, data, relevance=gaps, thresholds=[0.6])
    assert found.coherence is None
    assert sum(rung.pairs for rung in found.rungs) == (relevance >= least).sum()


def test_a_protocol_s_gallery_is_what_is_looked_at():
    data, scores, relevance = world(per_image=3)
    found = diagnose(scores, data, relevance=relevance, protocol="one-caption-per-image")
    assert found.data.captions == data.captions[::3]
    np.testing.assert_array_equal(found.data.image_of_caption, np.arange(40))
    alone = diagnose(
        {**scores, "text_embeddings": scores["text_embeddings"][::3]}, found.data, relevance=relevance[:, ::3]
    )
    np.testing.assert_array_equal(found.lists["i2t"].candidates, alone.lists["i2t"].candidates)
    np.testing.assert_array_equal(found.lists["i2t"].degrees, alone.lists["i2t"].degrees)


def test_the_gap_is_the_distance_of_the_means():
    data, scores, _ = world()
    moved = {name: vectors + (5.0 if name == "image_embeddings" else 0.0) for name, vectors in scores.items()}
    unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in moved.values()]
    gap = diagnose(moved, data).gap
    assert gap.distance == pytest.approx(np.linalg.norm(unit[0].mean(axis=0) - unit[1].mean(axis=0)))
    assert gap.images.shape == (40, 2)
    assert diagnose({"similarity": np.eye(40).repeat(2, axis=1)}, data).gap is None


def test_lists_of_one_direction_are_looked_at_alone():
    data, scores, relevance = world()
    order = np.argsort(-(scores["image_embeddings"] @ scores["text_embeddings"].T), axis=1)[:, :12]
    found = diagnose({"similarity": RankedLists({"i2t": order}, relevance.shape)}, data, relevance=relevance)
    assert list(found.lists) == ["i2t"]
    np.testing.assert_array_equal(found.lists["i2t"].candidates[:, :12], order)
    assert (found.lists["i2t"].candidates[:, 12:] == -1).all()
    assert found.coherence is None
    assert found.rungs == ()
    assert len(found.thresholds) == 3


def test_false_negatives_come_from_every_gallery_by_their_positions_in_the_data():
    data, scores, relevance = world(per_image=3, images=40)
    found = diagnose(scores, data, relevance=relevance, protocol=ConsecutiveFolds("quarters", 4, 10))
    wrong = in_positions_of_data(found, false_negatives_by_gallery(found, right_from=0.7))
    similarity = (scores["image_embeddings"] @ scores["text_embeddings"].T).astype(np.float32)
    wanted = set()
    for first in range(0, 40, 10):
        images, captions = np.arange(first, first + 10), np.arange(3 * first, 3 * first + 30)
        part = similarity[np.ix_(images, captions)]
        for way, s, queries, candidates in (("i2t", part, images, captions), ("t2i", part.T, captions, images)):
            for row, query in zip(s, queries, strict=True):
                for place, candidate in enumerate(candidates[np.argsort(-row, kind="stable")[:10]], start=1):
                    image, caption = (query, candidate) if way == "i2t" else (candidate, query)
                    if data.image_of_caption[caption] != image and relevance[image, caption] >= 0.7:
                        wanted.add((way, query, candidate, place, relevance[image, caption]))
    assert {(one.direction, one.query, one.candidate, one.rank, one.degree) for one in wrong} == wanted
    assert len(wrong) == len(wanted)
    for way in ("i2t", "t2i"):
        excess = [one.degree - one.needed for one in wrong if one.direction == way]
        assert excess == sorted(excess, reverse=True)
