import json
import math

import numpy as np
import pytest
from scipy import stats

from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue, read
from rungwise.relevance import HumanJudgements, TfIdf
from rungwise.relevance.agreement import agree, krippendorff_alpha
from rungwise.relevance.agreement._degrees import DegreesOfPairs
from rungwise.relevance.agreement._protocols import pairs_agreed, preferences_agreed, texts_agreed
from rungwise.relevance.combine import pair_degrees
from rungwise.relevance.human import Preferences, RatedPairs, RatedTexts, read_judged

NAN = float("nan")
DRAW = np.random.default_rng(0)
COUNT = 60
RATINGS = np.clip(np.round(2.5 + DRAW.normal(0, 1, (COUNT, 1)) + DRAW.normal(0, 0.5, (COUNT, 3))), 1, 4)
DEGREES = RATINGS.mean(axis=1) + DRAW.normal(0, 1, COUNT)
OWN = np.arange(COUNT) % 4 == 0
APART = np.where(OWN, DEGREES - 0.3, DEGREES)


def pairs(layout="table", ratings=RATINGS, between="image-caption"):
    ids = tuple(map(str, range(len(ratings))))
    return RatedPairs(between, layout, ids, ids, ratings, ids, "file")


def found(degrees=DEGREES, apart=APART, own=OWN):
    return DegreesOfPairs(np.arange(len(degrees)), degrees, apart, own, (Issue("unknown", "line 2"),))


def values(part):
    return {name: one.value for name, one in part.numbers.items()}


def test_every_part_has_the_correlations_of_its_pairs():
    agreed = pairs_agreed(pairs(), found(), draws=0)
    means = RATINGS.mean(axis=1)
    chosen = {"all": (DEGREES, means), "others": (DEGREES[~OWN], means[~OWN]), "apart": (APART, means)}
    assert [part.name for part in agreed.parts] == list(chosen)
    for part in agreed.parts:
        degrees, grades = chosen[part.name]
        single = RATINGS[~OWN] if part.name == "others" else RATINGS
        assert part.items == len(degrees)
        assert values(part) == pytest.approx(
            {
                "Pearson": stats.pearsonr(degrees, grades).statistic,
                "Spearman": stats.spearmanr(degrees, grades).statistic,
                "Kendall tau-b": stats.kendalltau(degrees, grades, variant="b").statistic,
                "Kendall tau-c": stats.kendalltau(degrees, grades, variant="c").statistic,
                "tau-c, single grades": stats.kendalltau(np.repeat(degrees, 3), single.ravel(), variant="c").statistic,
            }
        )
    assert (agreed.items, agreed.left_out, agreed.raters, len(agreed.issues)) == (COUNT, 0, 3, 1)
    assert agreed.alpha == pytest.approx(krippendorff_alpha(RATINGS.T))
    names = ("Pearson, all pairs", "Pearson, captions of other pictures")
    wanted = [part.numbers["Pearson"] for part in agreed.parts[:2]]
    assert agreed.published == dict(zip(names, wanted, strict=True))


def test_flickr8k_experts_count_single_grades_without_own_captions():
    agreed = pairs_agreed(pairs("flickr8k-expert"), found(), draws=0)
    wanted = stats.kendalltau(np.repeat(DEGREES[~OWN], 3), RATINGS[~OWN].ravel(), variant="c").statistic
    ((name, one),) = agreed.published.items()
    assert (name, one.value) == ("tau-c, single grades, captions of other pictures", pytest.approx(wanted))
    assert "Flickr8K-Expert" in agreed.protocol


def test_flickr8k_crowd_counts_the_share_of_yes_with_captions_apart():
    share = RATINGS[:, :1] / 4
    agreed = pairs_agreed(pairs("flickr8k-crowd", share), found(), draws=0)
    ((name, one),) = agreed.published.items()
    assert (name, one.value) == (
        "Kendall tau-b, apart from itself",
        pytest.approx(stats.kendalltau(APART, share[:, 0]).statistic),
    )
    assert (agreed.raters, math.isnan(agreed.alpha)) == (1, True)
    saved = pairs_agreed(pairs("flickr8k-crowd", share), found(apart=None), draws=0)
    assert list(saved.published) == ["Kendall tau-b, all pairs"]


@pytest.mark.parametrize("between", ["caption-caption", "image-image"])
def test_pairs_of_one_kind_count_all(between):
    agreed = pairs_agreed(pairs(between=between), found(apart=None, own=np.zeros(COUNT, bool)), draws=0)
    assert [part.name for part in agreed.parts] == ["all"]
    assert list(agreed.published) == ["Pearson, all pairs", "Spearman, all pairs"]
    assert agreed.what == f"{between} pairs"


def test_what_has_no_degree_or_no_vote_is_left_out_and_counted():
    degrees, ratings, apart = DEGREES.copy(), RATINGS.copy(), APART.copy()
    degrees[:5], ratings[5:8], apart[10] = NAN, NAN, NAN
    agreed = pairs_agreed(pairs(ratings=ratings), found(degrees, apart), draws=0)
    assert (agreed.items, agreed.left_out) == (COUNT - 8, 8)
    assert [part.items for part in agreed.parts] == [COUNT - 8, int((~OWN[8:]).sum()), COUNT - 9]
    wanted = stats.spearmanr(DEGREES[8:], RATINGS[8:].mean(axis=1)).statistic
    assert agreed.parts[0].numbers["Spearman"].value == pytest.approx(wanted)


def test_intervals_hold_their_number_and_depend_on_the_seed_alone():
    first, again, other = (pairs_agreed(pairs(), found(), draws=50, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.parts[0].numbers["Pearson"].value == other.parts[0].numbers["Pearson"].value
    assert first.parts[0].numbers["Pearson"].low != other.parts[0].numbers["Pearson"].low
    for part in first.parts:
        for one in part.numbers.values():
            assert one.low < one.value < one.high


def test_vatex_eval_averages_over_raters():
    ids = tuple(map(str, range(COUNT)))
    judged = RatedTexts(ids, ids, ((),) * COUNT, RATINGS, ids, "file")
    agreed = texts_agreed(judged, DEGREES, draws=0)
    assert {name: one.value for name, one in agreed.published.items()} == pytest.approx(
        {
            "tau-b, each rater": np.mean([stats.kendalltau(DEGREES, one).statistic for one in RATINGS.T]),
            "Spearman, each rater": np.mean([stats.spearmanr(DEGREES, one).statistic for one in RATINGS.T]),
        }
    )
    alone = texts_agreed(RatedTexts(ids, ids, ((),) * COUNT, RATINGS[:, :1], ids), DEGREES, draws=0)
    assert list(alone.published) == ["Kendall tau-b", "Spearman"]


def test_pascal_50s_counts_by_category():
    votes = DRAW.integers(1, 21, (COUNT, 2)).astype(float)
    degrees = votes / 20 + DRAW.normal(0, 0.4, (COUNT, 2))
    degrees[3], degrees[7] = 0.5, NAN
    categories = tuple(np.array(["HC", "HI", "MM"])[DRAW.integers(0, 3, COUNT)])
    ids = tuple(map(str, range(COUNT)))
    judged = Preferences(ids, ids, ids, votes, categories, ((),) * COUNT, ids, "file")
    right = {name: [] for name in sorted(set(categories))}
    for (one, other), (mine, its), category in zip(degrees, votes, categories, strict=True):
        if not math.isnan(one):
            right[category].append(0.5 if one == other or mine == its else float((one > other) == (mine > its)))
    wanted = {name: np.mean(scores) for name, scores in right.items()}
    agreed = preferences_agreed(judged, degrees, draws=0)
    by_name = {part.name: part for part in agreed.parts}
    assert {name: by_name[name].numbers["accuracy"].value for name in wanted} == pytest.approx(wanted)
    assert {name: by_name[name].items for name in wanted} == {name: len(scores) for name, scores in right.items()}
    assert by_name["mean"].numbers["accuracy"].value == pytest.approx(np.mean(list(wanted.values())))
    assert (agreed.items, agreed.left_out) == (COUNT - 1, 1)


def test_pascal_50s_without_categories_has_one():
    judged = Preferences(("a",), ("b",), ("c",), np.array([[3.0, 1.0]]), ("",), ((),), ("",))
    agreed = preferences_agreed(judged, np.array([[0.5, 0.2]]), draws=0)
    assert [(part.name, part.numbers["accuracy"].value) for part in agreed.parts] == [("all", 1), ("mean", 1)]


CAPTIONS = ("a red dog", "a dog runs", "a cat sleeps", "the cat")
DATA = ImageCaptions(("a", "b"), CAPTIONS, np.array([0, 0, 1, 1]))


def test_a_source_is_asked_for_whatever_was_judged():
    judged = RatedPairs(
        "image-caption", "table", ("a",) * 4, DATA.caption_ids, np.array([[5.0], [4], [1], [2]]), ("",) * 4
    )
    agreed = agree("tfidf", judged, DATA, draws=0)
    wanted = stats.pearsonr(TfIdf(CAPTIONS, [0, 0, 1, 1]).dense()[0], [5, 4, 1, 2]).statistic
    assert agreed.parts[0].numbers["Pearson"].value == pytest.approx(wanted)
    with pytest.raises(UserError, match="give the collection they are of"):
        agree("tfidf", judged)


def test_references_can_be_fewer():
    references = (CAPTIONS[:2], CAPTIONS[2:])
    judged = RatedTexts(("a", "b"), ("runs", "sleeps the"), references, np.array([[5.0], [1.0]]), ("", ""))
    for count, wanted in ((1, -1), (2, 1)):  # only its second reference says that the dog runs
        agreed = agree("tfidf", judged, references=count, draws=0)
        assert agreed.parts[0].numbers["Pearson"].value == pytest.approx(wanted)
    with pytest.raises(UserError, match="references must be at least 1, got 0"):
        agree("tfidf", judged, references=0)


def test_numbers_are_json_without_nan(tmp_path):
    agreed = pairs_agreed(pairs(), found(), draws=0)
    agreed.to_json(tmp_path / "agreed.json", "tfidf")
    plain = json.loads((tmp_path / "agreed.json").read_text())
    assert plain.pop("source") == "tfidf"
    assert plain == json.loads(json.dumps(agreed.as_plain(), allow_nan=False))
    assert plain["parts"]["all"]["items"] == COUNT
    assert plain["parts"]["all"]["Pearson"] == [
        pytest.approx(stats.pearsonr(DEGREES, RATINGS.mean(axis=1))[0]),
        None,
        None,
    ]
    assert plain["unknown"] == 1


@pytest.mark.slow
@pytest.mark.real_data
def test_real_judgements_agree_with_words_as_the_benchmark_has_it(real_data):
    coco = read(real_data / "coco5k" / "captions.tsv", captions_only=True)
    human = HumanJudgements.read(real_data / "coco5k" / "sits_test_half.csv", coco)
    degrees = pair_degrees(TfIdf(coco.captions, coco.image_of_caption), *human.pairs.T)
    agreed = agree("tfidf", read_judged([real_data / "coco5k" / "sits_test_half.csv"]), coco, draws=0)
    assert [part.items for part in agreed.parts] == [22311, int((~human.own).sum()), 22311]
    for part, which in zip(agreed.parts, (slice(None), ~human.own), strict=False):
        wanted = stats.pearsonr(degrees[which], human.grades[which].astype(float)).statistic
        assert part.numbers["Pearson"].value == pytest.approx(wanted, abs=1e-6)
