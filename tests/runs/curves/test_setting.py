import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.runs.curves import draw
from rungwise.training.config import DataConfig, config_of_settings

from .worlds import result, run, systems


def hinge(negatives, **more):
    return config_of_settings({"loss": {"kind": "max_of_hinges", "negative_set": negatives, **more}}, "here").loss


def test_a_number_stands_above_the_setting_with_a_band_over_seeds(tmp_path):
    runs = [
        run(tmp_path / f"n{n}/seed-{seed}", results=[result(10 * n + seed)], seed=seed, loss=hinge(n))
        for n in (64, 2, 8)
        for seed in (0, 1)
    ]
    found = draw(systems(*runs), by="negative_set", measures=["R@1", "rsum"])
    (part,) = found.parts
    assert [panel.title for panel in part.panels] == ["R@1, image to text", "R@1, text to image", "rsum"]
    panel = part.panels[0]
    curve, chance = panel.curves
    assert curve.x == (2, 8, 64)
    assert panel.log_x
    assert panel.x_label == "loss.negative_set"
    for at, n in enumerate(curve.x):
        assert curve.y[at] == pytest.approx(np.mean([result(10 * n + seed)["i2t/R@1"] for seed in (0, 1)]))
    assert chance.y == pytest.approx([100 * 3 / 60] * 2)
    assert part.panels[2].curves[1].y[0] == pytest.approx(
        sum(
            draw(systems(*runs), ["recall"]).parts[0].panels[way].curves[-1].y[k - 1]
            for way in (0, 1)
            for k in (1, 5, 10)
        )
    )
    assert part.notes[0] == "bands: 95 % interval of the mean over 2 seeds, by Student's t"


def test_systems_that_agree_in_all_else_make_one_curve_named_by_the_difference(tmp_path):
    runs = [
        run(tmp_path / f"{share}-{size}", results=[result()], data=DataConfig(share=share), batch_size=size, ema=0.5)
        for size in (16, 32)
        for share in (0.1, 1.0)
    ]
    (part,) = draw(systems(*runs), by="data.share").parts
    assert [one.name for one in part.panels[0].curves] == ["batch_size 16", "batch_size 32", "chance"]
    assert part.panels[0].x_label == "data.share, share of the training data"
    assert not part.panels[0].log_x


def test_words_are_categories(tmp_path):
    runs = [run(tmp_path / f"{n}", results=[result()], loss=hinge(n)) for n in (8, 2)]
    runs.append(run(tmp_path / "all", results=[result()], loss=hinge(None)))
    (part,) = draw(systems(*runs), by="loss.negative_set").parts
    assert part.panels[0].categories == ("2", "8", "not set")


def test_what_cannot_be_drawn_is_listed(tmp_path):
    runs = [
        run(tmp_path / "a", results=[result()], ema=0.1),
        run(tmp_path / "b", results=[result(measures=["MedR"])], ema=0.2),
        run(tmp_path / "again", results=[result()], ema=0.1),
        run(tmp_path / "none", ema=0.3),
    ]
    found = draw(systems(*runs), by="ema")
    assert found.left_out[0].startswith("setting: none: has no result of split test, protocol full")
    assert found.left_out[1:] == (
        "setting: again: has the same settings as a, which is drawn",
        "setting: b: its results have no rsum",
    )


def test_unknown_names_are_refused(tmp_path):
    runs = [run(tmp_path / "a", results=[result()], ema=0.1), run(tmp_path / "b", results=[result()], ema=0.2)]
    with pytest.raises(
        UserError, match="--by emma: no run has this setting; did you mean ema.*; the runs differ in ema"
    ):
        draw(systems(*runs), by="emma")
    with pytest.raises(UserError, match="several settings end so; name one of"):
        draw(systems(*runs), by="kind")
    with pytest.raises(UserError, match=r"--measures R@2: no result has this number; there are i2t/R@1"):
        draw(systems(*runs), by="ema", measures=["R@2"])
