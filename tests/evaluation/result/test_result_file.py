"""Also tests rungwise.core.formats._json_values."""

import math

import numpy as np
import pytest

from rungwise.core.formats import read_as
from rungwise.evaluation import Result, evaluate
from rungwise.evaluation.result._result_file import OfQueries, check, checksum

NOTHING = OfQueries(per_query={}, image_of_query={}, query_ids={})
WHOLE = {
    "numbers": {"i2t/MeanR": 2.0, "t2i/MeanR": None},
    "units": {"i2t/MeanR": "rank", "t2i/MeanR": "rank"},
    "protocol": "full",
    "gallery": {"i2t": [2], "t2i": [2]},
    "queries": {"i2t": 2, "t2i": 2},
    "captions_per_image": {"min": 1.0, "mean": 1.0, "max": 1.0},
}


def test_what_has_no_value_agrees_with_queries_without_values():
    check(read_as(Result, WHOLE), NOTHING, {"i2t/MeanR": np.array([1.0, 3.0]), "t2i/MeanR": np.full(2, math.nan)})
    with pytest.raises(ValueError, match="t2i/MeanR is nan, but its values per query give 1"):
        check(read_as(Result, WHOLE), NOTHING, {"t2i/MeanR": np.array([1.0, math.nan])})


def test_measures_that_this_program_does_not_know_are_left_alone():
    named = {"numbers": {"i2t/Joy@3": 12345.0}, "units": {"i2t/Joy@3": "smiles"}}
    check(read_as(Result, {**WHOLE, **named}), NOTHING, {"i2t/Joy@3": np.array([1.0, 2.0])})


def test_sums_in_another_order_are_the_same():
    values = np.random.default_rng(0).random(2) * 100
    number = {"numbers": {"i2t/R@1": float(values.mean()) * (1 + 1e-13)}, "units": {"i2t/R@1": "percent"}}
    check(read_as(Result, {**WHOLE, **number}), NOTHING, {"i2t/R@1": values})


def test_the_checksum_covers_every_part():
    values, images = {"i2t/R@1": np.array([1.0, math.nan])}, {"i2t": np.array([0, 1])}
    sums = {
        checksum({"a": 1}, values, images),
        checksum({"a": 2}, values, images),
        checksum({"a": 1}, {"i2t/R@5": values["i2t/R@1"]}, images),
        checksum({"a": 1}, {"i2t/R@1": np.array([1.0, 2.0])}, images),
        checksum({"a": 1}, values, {"i2t": np.array([1, 0])}),
        checksum({"a": 1}, {}, images),
    }
    assert len(sums) == 6
    assert checksum({"b": 2, "a": 1}, values, images) == checksum({"a": 1, "b": 2}, values, images)
    assert checksum({"a": 1}, {"i2t/R@1": np.array([1.0, -math.nan])}, images) in sums


def test_every_measure_s_own_numbers_pass(tmp_path):
    rng = np.random.default_rng(1)
    result = evaluate(
        similarity=rng.standard_normal((40, 80)),
        image_of_caption=np.repeat(np.arange(40), 2),
        relevance=rng.random((40, 80)),
        measures=["R@1", "Recall@5", "MAP", "MRR", "MeanR", "MedR", "nDCG@10", "CS@10", "NCS@10", "rsum"],
    )
    result.to_json(tmp_path / "r.json")
    assert type(result).from_json(tmp_path / "r.json") == result
