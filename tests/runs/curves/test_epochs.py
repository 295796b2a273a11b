import math

import pytest

from rungwise.core import UserError
from rungwise.runs.curves._epochs import epoch_part
from rungwise.training.config import config_of_settings

from .worlds import row, run, systems


def drawn(*runs, measures=()):
    return epoch_part(systems(*runs), measures)


def test_the_mean_over_seeds_goes_as_far_as_all_seeds(tmp_path):
    runs = [
        run(tmp_path / f"a/seed-{seed}", [row(n, loss=n + seed, rsum=10 * n) for n in range(1, 4 + seed)], seed=seed)
        for seed in range(3)
    ]
    part, left_out = drawn(*runs)
    loss, rsum = part.panels
    assert (loss.title, loss.y_label, rsum.y_label) == ("loss", "mean loss of a pair", "rsum, sum of 6 numbers in %")
    (curve,) = loss.curves
    assert curve.x == (1, 2, 3)
    assert curve.y == (2, 3, 4)
    assert curve.low[0] == pytest.approx(2 - 4.302652729911275 / math.sqrt(3))
    assert "a: drawn up to epoch 3, which all 3 seeds reached; the longest has 5" in part.notes
    assert curve.kept == (3.0,)  # of the other seeds it lies beyond
    assert left_out == []


def test_the_kept_epoch_is_the_best_by_the_measure_of_the_run(tmp_path):
    rows = [row(1, rsum=5), row(2, rsum=9), row(3, rsum=9), row(4, rsum=math.nan)]
    part, _ = drawn(run(tmp_path / "a", rows))
    assert part.panels[1].curves[0].kept == (2.0,)
    assert math.isnan(part.panels[1].curves[0].y[3])
    assert part.panels[1].curves[0].low == ()


def test_warm_up_and_stages_end_between_epochs(tmp_path):
    settings = {
        "warm_up_epochs": 1,
        "epochs": [2],
        "learning_rates": [0.1],
        "stages": [{"name": "frozen"}, {"name": "whole", "warm_up_epochs": 0, "epochs": [3]}],
    }
    staged = config_of_settings(settings, "here")
    rows = [{"stage": "frozen", **row(n, rsum=n)} for n in (1, 2)]
    rows += [{"stage": "whole", **row(n, rsum=9 - n)} for n in (1, 2, 3)]
    changes = {name: getattr(staged, name) for name in ("stages", "warm_up_epochs", "epochs", "learning_rates")}
    part, _ = drawn(run(tmp_path / "a", rows, **changes))
    curve = part.panels[1].curves[0]
    assert curve.ends == ((1.5, "end of warm-up"), (2.5, "end of stage frozen"))
    assert curve.x == (1, 2, 3, 4, 5)
    assert curve.kept == (3.0,)  # the best of the last stage
    assert "during the warm-up the loss is the sum of hinges, whose values compare with no other loss" in part.notes


def test_any_column_is_drawn_and_an_unknown_one_refused(tmp_path):
    runs = [
        run(tmp_path / "a", [row(1, **{"i2t/R@1": 3.0})]),
        run(tmp_path / "b", [row(1)], ema=0.5),
    ]
    part, left_out = drawn(*runs, measures=["i2t/R@1", "learning_rate"])
    assert [panel.title for panel in part.panels] == ["R@1, image to text", "learning rate"]
    assert left_out == ["epochs: b: its history has no i2t/R@1"]
    with pytest.raises(UserError, match=r"--measures i2t/R@2: no history has this column; did you mean i2t/R@1\?"):
        drawn(*runs, measures=["i2t/R@2"])


def test_runs_without_a_sound_history_are_listed(tmp_path):
    sound = run(tmp_path / "a", [row(1)])
    empty = run(tmp_path / "b", [], ema=0.5)
    missing = run(tmp_path / "c", ema=0.6)
    broken = run(tmp_path / "d", [row(1)], ema=0.7)
    (tmp_path / "d" / "history.jsonl").write_text("[1]\n")
    part, left_out = drawn(sound, empty, missing, broken)
    assert [one.name for one in part.panels[0].curves] == ["a"]
    assert left_out[0].endswith("history.jsonl: holds no epoch yet")
    assert left_out[1] == f"epochs: {tmp_path / 'c'}: has no history.jsonl"
    assert "line 1: no numbers of an epoch" in left_out[2]
    part, left_out = drawn(missing)
    assert part is None
    assert len(left_out) == 1


def test_a_loss_that_spans_much_stands_on_a_logarithmic_axis(tmp_path):
    part, _ = drawn(run(tmp_path / "a", [row(1, loss=50), row(2, loss=1)]), run(tmp_path / "b", [row(1)], ema=0.5))
    assert [panel.log_y for panel in part.panels] == [True, False]
