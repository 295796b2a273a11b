"""Two stages, beside the slow way: sort every query by the first model, take K, sort these by the second.

Also tests rungwise.evaluation.inputs._rank_only.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rungwise.calibration import Calibration
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import (
    EvaluationSettings,
    RankedLists,
    Reranked,
    diagnose,
    evaluate,
    format_result,
    similarity_source,
)
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.evaluation.inputs._shortlists import steps_of
from rungwise.metrics import MatrixSource

MEASURES = ["R@1", "R@5", "Recall@5", "MedR", "MeanR", "MAP", "MRR", "nDCG@10", "NCS@3(non_gt)", "SR@5", "Spearman"]


class Asked:
    """A second model that writes down which pairs it is asked for."""

    def __init__(self, scores):
        self.scores = scores
        self.pairs_asked = []

    def pairs(self, images, captions):
        self.pairs_asked += zip(images.tolist(), captions.tolist(), strict=True)
        return self.scores[images, captions]


def order_of(first, second, top):
    """Candidates of one query, best first, by the definition."""
    by_first = sorted(range(len(first)), key=lambda one: (-first[one], one))
    shortlist = sorted(by_first[:top], key=lambda one: -second[one])  # sorted is stable: ties stay in the first's order
    return shortlist + by_first[top:]


def orders_of(first, second, top):
    """Per direction, the candidates of every query."""
    return {
        "i2t": [order_of(*both, top) for both in zip(first, second, strict=True)],
        "t2i": [order_of(*both, top) for both in zip(first.T, second.T, strict=True)],
    }


def shortlisted(first, top):
    """(image, caption) of every pair that a shortlist of either direction holds."""
    i2t, t2i = (orders_of(first, first, top)[way] for way in ("i2t", "t2i"))
    pairs = {(image, caption) for image, own in enumerate(i2t) for caption in own[:top]}
    return pairs | {(image, caption) for caption, own in enumerate(t2i) for image in own[:top]}


def ranked(source):
    """Per direction, the order that the values of a source say; ties to the lower position."""
    return {
        "i2t": [np.argsort(-row, kind="stable").tolist() for _, block in source.rows(2) for row in block],
        "t2i": [np.argsort(-row, kind="stable").tolist() for _, block in source.columns(2) for row in block],
    }


def random_world(images=20, per_image=3, seed=0):
    first, second, relevance = np.random.default_rng(seed).random((3, images, images * per_image))
    return first, second, relevance, np.repeat(np.arange(images), per_image)


COARSE = st.sampled_from([-2.0, 0.0, 0.5, 1e30])
"""So few values that there are ties everywhere, and one beside which adding 1 changes nothing."""


@given(st.data(), st.integers(1, 6), st.integers(1, 8), st.integers(1, 9))
def test_rankings_are_those_of_the_definition_whatever_ties_there_are(data, images, captions, top):
    first, second = (data.draw(arrays.arrays(np.float64, (images, captions), elements=COARSE)) for _ in range(2))
    model = Asked(second)
    source = Reranked(first, model, top)
    assert ranked(source) == orders_of(first, second, top)
    assert len(model.pairs_asked) == len(set(model.pairs_asked)) == source.pairs_scored
    assert set(model.pairs_asked) == shortlisted(first, top)


@given(arrays.arrays(np.float64, (3, 5), elements=COARSE), arrays.arrays(np.float64, (3, 5), elements=COARSE))
def test_values_are_equal_only_where_both_models_score_alike(first, second):
    for top in (2, 5):
        for (_, block), own, other in zip(Reranked(first, second, top).rows(1), first, second, strict=True):
            inside = set(order_of(own, own, top)[:top])
            for a in range(5):
                for b in range(5):
                    alike = own[a] == own[b] and ((a in inside) == (b in inside))
                    alike = alike and (a not in inside or other[a] == other[b])
                    assert (block[0, a] == block[0, b]) == alike


@given(arrays.arrays(np.float64, (2, 4), elements=COARSE), arrays.arrays(np.float64, (2, 4), elements=COARSE))
def test_steps_count_distinct_pairs_of_scores_below(second, first):
    first = -np.sort(-first, axis=1)
    for row, (a, b) in enumerate(zip(second, first, strict=True)):
        pairs = list(zip(a, b, strict=True))
        assert steps_of(second, first)[row].tolist() == [
            len({other for other in pairs if other <= one}) for one in pairs
        ]


@pytest.mark.parametrize("top", [1, 4, 10, 20, 1000])
def test_measures_are_those_of_two_explicit_permutations(top):
    first, second, relevance, owners = random_world()
    asked = {"image_of_caption": owners, "relevance": relevance, "measures": [*MEASURES, "rsum", "CS@10", "Kendall"]}
    lists = RankedLists(orders_of(first, second, top), first.shape)
    wanted = evaluate(similarity=lists, **asked)
    got = evaluate(similarity=Reranked(first, second, top), **asked)
    assert got.numbers == pytest.approx(wanted.numbers, rel=1e-12)
    for name in ("t2i/MRR", "i2t/CS@10"):
        np.testing.assert_allclose(got.per_query(name), wanted.per_query(name))


def test_the_whole_gallery_ranked_anew_is_the_second_model_and_one_candidate_changes_nothing():
    first, second, _, owners = random_world()
    for top, alone in ((first.size, second), (1, first)):
        got = evaluate(similarity=Reranked(first, second, top), image_of_caption=owners)
        assert got.numbers == evaluate(similarity=alone, image_of_caption=owners).numbers


def test_every_kind_of_first_stage_gives_the_same():
    rng = np.random.default_rng(0)
    image, text = rng.normal(size=(12, 4)), rng.normal(size=(36, 4))
    owners = rng.permutation(np.repeat(np.arange(12), 3))  # tiles take captions in another order
    matrix, second = image @ text.T, rng.random((12, 36))
    vectors = {"image_embeddings": image, "text_embeddings": text}
    sources = [
        similarity_source(similarity=matrix, image_of_caption=owners),
        similarity_source(**vectors, image_of_caption=owners),
        similarity_source(similarity=lambda a, b: matrix[np.ix_(a, b)], image_of_caption=owners),
        MatrixSource(matrix),
    ]
    wanted = evaluate(similarity=Reranked(matrix, second, 5), image_of_caption=owners).numbers
    for source in sources:
        result = evaluate(similarity=Reranked(source, second, 5), image_of_caption=owners)
        assert result.numbers == wanted
        assert len(result.warnings) == (2 if source is sources[1] else 0)  # these vectors are not normalised


def test_folds_make_shortlists_within_their_galleries_and_no_pair_is_scored_twice():
    first, second, relevance, owners = random_world(images=12)
    halves = ConsecutiveFolds("halves", 2, 6)
    model = Asked(second)
    source = Reranked(first, model, 4)
    asked = {"measures": ["R@1", "MAP", "nDCG@5"], "image_of_caption": owners, "relevance": relevance}
    got = evaluate(similarity=source, protocol=halves, **asked)
    parts = [np.ix_(np.arange(n, n + 6), np.arange(3 * n, 3 * n + 18)) for n in (0, 6)]
    alone = [
        evaluate(
            similarity=RankedLists(orders_of(first[part], second[part], 4), (6, 18)),
            **asked | {"image_of_caption": owners[:18], "relevance": relevance[part]},
        )
        for part in parts
    ]
    for name, value in got.numbers.items():
        assert value == pytest.approx(np.mean([one[name] for one in alone]), rel=1e-12)
    of_part = {
        (image + 6 * n, caption + 18 * n)
        for n, part in enumerate(parts)
        for image, caption in shortlisted(first[part], 4)
    }
    assert set(model.pairs_asked) == of_part
    assert len(model.pairs_asked) == len(of_part) == got.reranking.pairs
    before = len(model.pairs_asked)
    diagnose(source, ImageCaptions(tuple(map(str, range(12))), ("x",) * 36, owners), protocol=halves)
    assert len(model.pairs_asked) == before  # a report of the same galleries asks for nothing more


def test_a_selection_follows_the_order_that_was_asked_for():
    first, second, _, _ = random_world(images=6)
    images, captions = np.array([4, 0, 2]), np.array([17, 3, 1, 8])
    part = np.ix_(images, captions)
    source = Reranked(first, second, 2).select(images, captions)
    assert ranked(source) == orders_of(first[part], second[part], 2)
    again = np.array([2, 1])
    assert ranked(source.select(again, again)) == orders_of(
        first[part][again][:, again], second[part][again][:, again], 2
    )


def test_single_pairs_are_those_of_the_rows():
    first, second, _, _ = random_world(images=5)
    source = Reranked(first, second, 3)
    images, captions = np.array([4, 0, 4]), np.array([1, 14, 1])
    rows = np.concatenate([block.copy() for _, block in source.rows(2)])
    assert source.pairs(images, captions).tolist() == rows[images, captions].tolist()


def test_a_result_says_what_was_measured_wherever_it_is_shown(tmp_path):
    first, second, _, owners = random_world()
    result = evaluate(similarity=Reranked(first, second, 5, second_hash="ab" * 32), image_of_caption=owners)
    count = len(shortlisted(first, 5))
    said = f"model abababababab ({count} pairs scored) orders the first 5 of each query; all others stand behind them"
    assert said in format_result(result, "markdown")
    result.to_json(tmp_path / "r.json")
    kept = type(result).from_json(tmp_path / "r.json")
    assert kept.reranking == result.reranking
    assert (kept.reranking.model_hash, kept.reranking.top, kept.reranking.pairs) == ("ab" * 32, 5, count)
    text = (tmp_path / "r.json").read_text()
    for value in ('"top": 0', '"top": "5"', '"top": 6'):
        (tmp_path / "r.json").write_text(text.replace('"top": 5', value))
        with pytest.raises(UserError, match="damaged|altered"):
            type(result).from_json(tmp_path / "r.json")
    assert "reranking" not in evaluate(similarity=first, image_of_caption=owners).plain()


def test_a_report_shows_no_similarity_of_two_models():
    first, second, relevance, owners = random_world()
    data = ImageCaptions(tuple(map(str, range(20))), ("x",) * 60, owners)
    found = diagnose(Reranked(first, second, 5), data, relevance=relevance)
    assert np.isnan(found.lists["t2i"].scores).all()
    assert found.rungs == ()
    assert found.coherence["i2t"].x[0] == 5
    wanted = orders_of(first, second, 5)
    for way, lists in found.lists.items():
        assert lists.candidates.tolist() == [own[:30] for own in wanted[way]]


def test_what_cannot_be_meant_is_refused():
    first, second, relevance, owners = random_world(images=3, per_image=1)
    for top in (0, -1):
        with pytest.raises(UserError, match=f"top must be at least 1, got {top}"):
            Reranked(first, second, top)
    with pytest.raises(UserError, match=r"second stage scores \(3, 2\) .* the first \(3, 3\)"):
        Reranked(first, second[:, :2])
    with pytest.raises(UserError, match="ranked lists have no similarities"):
        Reranked(RankedLists({"i2t": [[0]] * 3}, (3, 3)), second)
    with pytest.raises(UserError, match="reads the scores of one model"):
        evaluate(
            similarity=Reranked(first, second),
            image_of_caption=owners,
            relevance=relevance,
            measures=["CutF1(0.5)"],
            settings=EvaluationSettings(ends=Calibration.unsupervised()),
        )
    broken = Asked(np.where(np.eye(3) > 0, np.nan, second))
    with pytest.raises(UserError, match="image 0 with caption 0 scores nan"):
        evaluate(similarity=Reranked(first, broken), image_of_caption=owners)
    broken.pairs = lambda images, captions: np.zeros(2)
    with pytest.raises(UserError, match=r"asked for 9 pairs, got shape \(2,\)"):
        evaluate(similarity=Reranked(first, broken), image_of_caption=owners)
    with pytest.raises(UserError, match="too large"):
        evaluate(similarity=Reranked(first * 1e308, second), image_of_caption=owners)
