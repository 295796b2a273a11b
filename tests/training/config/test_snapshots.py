import math

import pytest

from rungwise.core import UserError, from_plain
from rungwise.training.config import BestEpoch, TrainConfig


def test_a_source_with_options_becomes_one_line():
    found = from_plain(TrainConfig, {"snapshot": {"relevance": {"kind": "tfidf", "tokenizer": "unicode"}}}, "run.yaml")
    assert found.snapshot.relevance == "{kind: tfidf, tokenizer: unicode}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": -1}, "patience: must be at least 0"),
        (
            {"measure": "recall"},
            "snapshot.measure: there is no measure 'recall'; did you mean Recall@K",
        ),
        ({"measure": "CS"}, "snapshot.measure: .*'CS' is not well formed; write CS@K"),
        ({"measure": "val/CS@10"}, "snapshot.measure: 'val' is no direction; write i2t/CS@10, t2i/CS@10, or CS@10 for"),
        ({"measure": "i2t/rsum"}, "snapshot.measure: rsum adds both directions; write rsum alone"),
        ({"protocol": "half"}, "snapshot.protocol: "),
    ],
)
def test_mistakes_are_one_line(settings: dict, message: str):
    with pytest.raises(UserError, match=message) as caught:
        BestEpoch(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("measure", "number", "name"),
    [("rsum", 7.0, "rsum"), ("CS@5", 0.25, "CS@5"), ("t2i/CS@5", 0.4, "t2i/CS@5"), ("MedR", 6.0, "MedR")],
)
def test_a_measure_without_a_direction_is_the_mean_of_both(measure: str, number: float, name: str):
    numbers = {"rsum": 7.0, "i2t/CS@5": 0.1, "t2i/CS@5": 0.4, "i2t/MedR": 4.0, "t2i/MedR": 8.0}
    assert BestEpoch(measure=measure).chosen.number(numbers) == pytest.approx(number)
    assert BestEpoch(measure=measure).name == name


@pytest.mark.parametrize(("measure", "up"), [("rsum", True), ("nDCG@10", True), ("MedR", False), ("t2i/MeanR", False)])
def test_the_measure_says_which_way_is_better(measure: str, up: bool):
    better = BestEpoch(measure=measure).chosen.better
    assert better(2.0, 1.0) is up
    assert better(1.0, 2.0) is not up
    assert not better(1.0, 1.0)
    assert better(1.0, None)
    assert better(1.0, math.nan)
    assert better(math.nan, None)
    assert not better(math.nan, math.nan)
    assert not better(math.nan, 1.0)
