import math
from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import Result, evaluate
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.evaluation.statistics import bootstrap
from rungwise.metrics import parse

MEASURES = ["R@1", "R@5", "R@10", "MedR", "MeanR", "rsum", "CS@5"]


def evaluated(images=40, per_image=3, noise=2.0, seed=0, protocol="full", measures=MEASURES, empty=0):
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(images - empty), per_image)
    image = generator.standard_normal((images, 8))
    text = image[owners] + noise * generator.standard_normal((len(owners), 8))
    similarity = image @ text.T
    relevance = np.abs(similarity + generator.standard_normal(similarity.shape))
    return evaluate(
        similarity=similarity, image_of_caption=owners, relevance=relevance, measures=measures, protocol=protocol
    )


def by_hand(result, counts):
    """Every number when image i counts counts[i] times: queries are written out so often and aggregated as usual."""
    numbers = {}
    for name in result.numbers:
        if "/" in name:
            way, _, measure = name.partition("/")
            repeated = np.repeat(result.per_query(name), counts[result.image_of_query(way)])
            numbers[name] = parse(measure).aggregate(repeated)
    if "rsum" in result.numbers:
        numbers["rsum"] = sum(numbers[f"{way}/R@{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10))
    return numbers


@pytest.mark.parametrize("empty", [0, 4])
def test_draws_equal_the_numbers_of_the_drawn_queries_written_out(empty):
    result = evaluated(empty=empty)
    found = bootstrap([result], list(result.numbers), draws=6, seed=3)
    chosen = np.random.default_rng(3).integers(0, 40, (6, 40))  # the same draws, taken one by one
    for draw in range(6):
        wanted = by_hand(result, np.bincount(chosen[draw], minlength=40))
        for name, number in wanted.items():
            assert found[name][0, draw] == pytest.approx(number, rel=1e-12), name


def test_folds_are_drawn_by_themselves_and_averaged():
    result = evaluated(protocol=ConsecutiveFolds("halves", count=2, size=20), measures=["MedR", "R@1"])
    found = bootstrap([result], ["t2i/MedR", "i2t/R@1"], draws=5, seed=1)
    generator = np.random.default_rng(1)
    folds = [generator.integers(0, 20, (5, 20)), generator.integers(0, 20, (5, 20))]
    for draw in range(5):
        for name, per_fold in (("t2i/MedR", 60), ("i2t/R@1", 20)):
            way, _, measure = name.partition("/")
            numbers = []
            for fold in range(2):
                queries = slice(fold * per_fold, (fold + 1) * per_fold)
                counts = np.bincount(folds[fold][draw], minlength=20)
                own = result.per_query(name)[queries]
                numbers.append(
                    parse(measure).aggregate(np.repeat(own, counts[result.image_of_query(way)[queries] - 20 * fold]))
                )
            assert found[name][0, draw] == pytest.approx(np.mean(numbers), rel=1e-12)


def test_all_numbers_have_intervals_that_hold_them_and_one_seed_gives_one_interval():
    result = evaluated()
    intervals = result.intervals()
    assert set(intervals) == set(result.numbers)
    for name, (low, high) in intervals.items():
        assert low <= result[name] <= high, name
        assert result.interval(name) == intervals[name]
    assert result.interval("rsum", seed=1) != intervals["rsum"]
    narrow, wide = result.interval("rsum", level=0.5), result.interval("rsum", level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_interval_of_a_mean_is_that_of_the_textbook():
    result = evaluated(images=400, per_image=1, measures=["R@1"])
    values = result.per_query("i2t/R@1")
    spread = 1.96 * values.std() / math.sqrt(len(values))
    low, high = result.interval("i2t/R@1", draws=4000)
    assert (low, high) == pytest.approx((values.mean() - spread, values.mean() + spread), abs=1.0)


def test_captions_of_one_image_do_not_make_it_surer():
    """Five captions that fare alike are one observation: drawing captions singly would halve the width."""
    hits = np.random.default_rng(0).random(200) < 0.5
    similarity = np.where(hits[:, None], np.eye(200), 1 - np.eye(200))
    owners = np.repeat(np.arange(200), 5)
    alike = evaluate(similarity=np.repeat(similarity.T, 5, axis=1), image_of_caption=owners, measures=["R@1"])
    once = evaluate(similarity=similarity.T, image_of_caption=np.arange(200), measures=["R@1"])
    widths = [np.ptp(result.interval("t2i/R@1")) for result in (alike, once)]
    assert widths[0] == pytest.approx(widths[1], rel=1e-9)


def test_intervals_survive_the_file(tmp_path):
    result = evaluated()
    result.to_json(tmp_path / "r.json")
    again = Result.from_json(tmp_path / "r.json")
    assert again.intervals() == result.intervals()
    with pytest.raises(KeyError, match="evaluate again"):
        replace(result, _per_query={}, _image_of_query={}).interval("rsum")


def test_a_number_without_any_value_has_no_interval():
    result = evaluated(measures=["R@1"])
    nothing = {**vars(result), "_per_query": {name: np.full(40, np.nan) for name in ("i2t/R@1",)}}
    low, high = Result(**nothing).interval("i2t/R@1")
    assert math.isnan(low)
    assert math.isnan(high)


def test_what_makes_no_sense_is_refused():
    result = evaluated(measures=["R@1"])
    with pytest.raises(UserError, match="draws must be at least 1, got 0"):
        result.interval("i2t/R@1", draws=0)
    with pytest.raises(UserError, match="level must lie between 0 and 1, got 95"):
        result.interval("i2t/R@1", level=95)
    with pytest.raises(KeyError, match="'i2t/R@7' was not measured"):
        result.interval("i2t/R@7")
