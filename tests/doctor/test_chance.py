from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.data import ImageCaptions
from rungwise.doctor._chance import no_better_than_chance, of_chance
from rungwise.doctor._run_files import RunFiles
from rungwise.evaluation import evaluate
from rungwise.training.config import BestEpoch, TrainConfig

OWNERS = np.sort(np.random.default_rng(0).integers(0, 60, 200))
DATA = ImageCaptions(
    tuple(f"{one}.jpg" for one in range(60)), ("a dog",) * 200, OWNERS, features=None, splits=("val",) * 60
)


def run_with(**numbers: float) -> RunFiles:
    rows = ({"epoch": 1.0, **{name.replace("_", "/R@"): value for name, value in numbers.items()}},)
    return RunFiles(Path("run"), TrainConfig(), rows, (), None, {})


def test_chance_is_what_random_rankings_have() -> None:
    draw, found = np.random.default_rng(1), defaultdict(list)
    for _ in range(150):
        scores = draw.random((60, 200), np.float32)
        result = evaluate(similarity=scores, image_of_caption=OWNERS, measures=["R@1", "R@5", "R@10"])
        for k in (1, 5, 10):
            found[k].append((result[f"i2t/R@{k}"] + result[f"t2i/R@{k}"]) / 2)
    for k, values in found.items():
        mean, deviation = of_chance(DATA, k)
        assert mean == pytest.approx(np.mean(values), abs=5 * deviation / 150**0.5)
        # Queries of one direction share their scores with those of the other: the real deviation may be larger.
        assert deviation == pytest.approx(np.std(values), rel=0.25)


def test_a_run_near_chance_is_told_and_one_above_it_is_not() -> None:
    mean, deviation = of_chance(DATA, 10)
    (finding,) = no_better_than_chance(run_with(i2t_10=mean, t2i_10=mean), DATA)
    assert finding.name == "no better than chance"
    assert f"random rankings have {mean:.3g}" in finding.what
    above = mean + 4 * deviation
    assert not list(no_better_than_chance(run_with(i2t_10=above, t2i_10=above), DATA))


def test_nothing_is_said_where_nothing_can_be() -> None:
    near = run_with(i2t_10=1.0, t2i_10=1.0)
    by_labels = replace(near, config=replace(TrainConfig(), snapshot=BestEpoch(measure="MAP", protocol="labels")))
    assert not list(no_better_than_chance(by_labels, DATA))
    assert not list(no_better_than_chance(replace(near, history=()), DATA))
    assert not list(no_better_than_chance(near, DATA.select(np.arange(3))))
