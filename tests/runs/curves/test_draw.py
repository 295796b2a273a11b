"""Also tests rungwise.runs.curves._curve_plot, rungwise.runs.curves._panels and
rungwise.runs.curves._matplotlib_picture.
"""

import csv
import math
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

from rungwise.core import MissingExtraError, UserError
from rungwise.runs.curves import BandWords, CurvePlot, Panel, PlotCurve, PlotPart, draw
from rungwise.runs.curves._panels import band_notes, spread

from .worlds import result, row, run, systems


def several(folder, count=3, seeds=2, name="system"):
    return systems(
        *(
            run(
                folder / f"{name}-{n}/seed-{seed}",
                [row(1, rsum=n + seed), row(2, rsum=n + 2)],
                [result(seed + 10 * n, graded=True, measures=["R@1", "MedR", "rsum", "MeanDegree@5"])],
                seed=seed,
                ema=n / 100,
            )
            for n in range(count)
            for seed in range(seeds)
        )
    )


def text_of(svg):
    return " ".join(ElementTree.fromstring(svg).itertext())


@pytest.fixture(scope="module")
def plot(tmp_path_factory):
    return draw(several(tmp_path_factory.mktemp("runs")))


@given(st.lists(st.lists(st.floats(0, 100), min_size=3, max_size=3), min_size=2, max_size=5))
def test_a_band_is_students_interval(rows):
    found = spread(rows)
    for place, values in enumerate(np.array(rows).T):
        error = stats.sem(values)
        # Seeds that agree have no band: they say nothing of how far others lie apart.
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), error or 1.0)
        if values.std(ddof=1) <= 1e-9 * max(1, abs(values.mean())):
            low = high = math.nan
        assert found.low[place] == pytest.approx(low, abs=1e-6, nan_ok=True)
        assert found.high[place] == pytest.approx(high, abs=1e-6, nan_ok=True)


def test_a_place_without_a_value_in_one_seed_has_the_mean_of_the_others():
    found = spread([[1.0, math.nan, math.nan], [3.0, 5.0, math.nan]])
    assert found.y[:2] == (2.0, 5.0)
    assert math.isnan(found.low[1])
    assert math.isnan(found.y[2])


def test_all_kinds_that_the_runs_hold_are_drawn(plot):
    assert plot.kinds == ("epochs", "recall", "degrees")
    assert plot.left_out == ()


def test_the_picture_names_every_line_and_says_what_bands_are(plot):
    text = text_of(plot._repr_svg_())
    for words in (
        "system-0", "system-1", "system-2", "chance", "best possible order", "kept epoch of a seed",
        "Training by epoch, measures on the split val", "Recall by K",
        "toy, split test, protocol full, 20 images x 60 captions (3 an image)",
        "bands: 95 % interval of the mean over 2 seeds, by Student's t", "epoch", "mean loss of a pair",
        "K, number of first candidates, of 60 captions", "recall R@K (%)", "mean degree of relevance",
    ):  # fmt: skip
        assert words in text, words


def test_the_same_curves_give_the_same_bytes(plot, tmp_path):
    small = CurvePlot(plot.parts[1:2])
    for form in ("svg", "png", "pdf"):
        first, second = (small.save(tmp_path / f"{n}.{form}").read_bytes() for n in (1, 2))
        assert first == second
    with Image.open(tmp_path / "1.png") as picture:
        assert picture.width == 9 * 160
    assert b"rungwise plot" in (tmp_path / "1.svg").read_bytes()[:4096]


def test_other_endings_are_refused(plot, tmp_path):
    with pytest.raises(UserError, match=r"a\.txt: a picture ends with \.svg, \.png or \.pdf"):
        plot.save(tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())


def test_points_stand_in_a_table(plot, tmp_path):
    text = plot.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == text
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == sum(len(one.x) for part in plot.parts for panel in part.panels for one in panel.curves)
    first = rows[0]
    assert (first["kind"], first["panel"], first["curve"], first["x"]) == ("epochs", "loss", "system-0", "1.0")
    frame = plot.to_frame()
    assert len(frame) == len(rows)
    assert set(frame.loc["degrees"]["role"]) == {"system", "ideal", "chance"}


def test_it_prints_few_lines_and_shows_itself_in_a_notebook(plot):
    assert len(repr(plot).splitlines()) <= 12
    assert repr(plot).startswith("CurvePlot: epochs, recall, degrees\n")
    html = CurvePlot(plot.parts[:1])._repr_html_()
    assert "<svg" in html
    assert "<?xml" not in html
    assert "<script" not in html


@pytest.mark.parametrize(
    ("count", "seeds", "name"), [(12, 1, "a-system-with-a-long-name" * 4), (1, 1, "<b>&"), (1, 2, "$x")]
)
def test_many_systems_and_odd_names_are_drawn(count, seeds, name, tmp_path):
    found = draw(several(tmp_path, count, seeds, name))
    text = text_of(found._repr_svg_())
    assert re.sub(r"\s", "", text).count(re.sub(r"\s", "", name)) >= count


def test_systems_differ_in_colour_or_style():
    from rungwise.runs.curves._matplotlib_picture import _looks

    curves = tuple(PlotCurve(f"{n}", (1.0,), (1.0,)) for n in range(30))
    looks = _looks([PlotPart("epochs", "", (Panel("", "", "", curves),))])
    assert len({(one["color"], str(one["linestyle"])) for one in looks.values()}) == 30


@pytest.mark.parametrize(
    "curve",
    [
        PlotCurve("a", (1.0,), (2.0,), kept=(1.0,)),
        PlotCurve("a", (1.0, 2.0), (2.0, math.nan), (1.0, math.nan), (3.0, math.nan), BandWords(2), kept=(2.0,)),
        PlotCurve("a", (1.0, 2.0), (0.0, 0.0), ends=((1.5, "end of warm-up"),)),
    ],
    ids=["one epoch", "a gap", "all zero"],
)  # fmt: skip
def test_odd_curves_are_drawn(curve):
    panel = Panel("t", "x", "y", (curve,), whole_x=True)
    assert "<svg" in CurvePlot((PlotPart("epochs", "t", (panel,)),))._repr_svg_()


def test_bands_of_different_kinds_are_told_apart():
    one = PlotCurve("a", (1.0,), (2.0,), (1.0,), (3.0,), BandWords(seeds=3))
    other = PlotCurve("b", (1.0,), (2.0,), (1.0,), (3.0,), BandWords(draws=100))
    assert band_notes([Panel("", "", "", (one, other))]) == [
        "band of a: 95 % interval of the mean over 3 seeds, by Student's t",
        "band of b: 95 % interval over pictures, by 100 bootstrap draws",
    ]


def test_results_alone_are_systems_without_epochs():
    found = draw((), results={"first": result(0), "second": result(1)})
    assert found.kinds == ("recall",)
    assert [one.name for one in found.parts[0].panels[0].curves] == ["first", "second", "chance"]


@pytest.mark.parametrize(
    ("given_options", "said"),
    [
        ({"kinds": ["recal"]}, r"--kind recal: no kind of plot; did you mean recall\?"),
        ({"kinds": ["setting"]}, "--kind setting: give --by"),
        ({"width": 0.0}, "--width 0: give 1 to 100 inches"),
        ({"height": math.nan}, "--height nan: give 1 to 100 inches"),
        ({"draws": -1}, "--draws -1: give 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(given_options, said, tmp_path):
    with pytest.raises(UserError, match=said):
        draw(several(tmp_path, 1, 1), **given_options)


def test_without_matplotlib_there_are_points_but_no_picture(plot, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"a plot needs matplotlib; run: pip install 'rungwise\[plots\]'"):
        plot.save(tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())
    assert plot.to_csv()


def test_no_figure_of_pyplot_is_touched(plot, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "<svg" in CurvePlot(plot.parts[:1])._repr_svg_()
