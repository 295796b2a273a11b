import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import ImageFont

from rungwise.evaluation.analysis import MeanCurve, mean_curve
from rungwise.evaluation.report._plots import (
    COLOURS,
    HEIGHT,
    WIDTH,
    Axis,
    bars,
    lines,
    mark_style,
    scatter,
    spreads,
    text_width,
)


def curve(points, chance=(), ideal=()):
    x, y = (np.array(one, dtype=float) for one in zip(*points, strict=True))
    return MeanCurve(x, y, y - 5, y + 5, np.asarray(chance, dtype=float), np.asarray(ideal, dtype=float))


def one_of_each():
    return (
        lines(
            {"a<b": curve([(1, 5), (10, 95)], [1, 2], [90, 99]), "b": curve([(1, 50)], [3])},
            Axis("K", 1, 10, True), Axis("&", 0, 100), "one", chance="chance", ideal="best",
        ),
        bars({"a": [1, 2, 0], "b": [3, 0, 1]}, ["x", "y", "<"], Axis("n", 0, 3), "two", "groups"),
        bars({"a": [1] * 40}, [f"{n * 1000:,}-{n * 2000:,}" for n in range(40)], Axis("n", 0, 12345), "many", "groups"),
        scatter({"a": [(0, 0), (1, 1)]}, Axis("", 0, 1), Axis("", 0, 1), "three & a half"),
        spreads(["1", "2"], [[0, 1, 2, 3, 4], [1, 1, 1, 1, 1]], Axis("S", 0, 4), "four", "rung"),
    )  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 100), (-0.37, 0.92), (3, 3), (1e-5, 3e-5), (0, 12345)])
def test_ticks_are_few_and_inside(low, high):
    ticks = Axis("", low, high).ticks()
    assert 1 <= len(ticks) <= 11
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_logarithmic_ticks_are_powers_of_ten_and_finer_where_these_are_few():
    assert Axis("", 1, 25000, logarithmic=True).ticks() == [1, 10, 100, 1000, 10000]
    assert Axis("", 1, 40, logarithmic=True).ticks() == [1, 2, 5, 10, 20]
    assert Axis("", 2, 5, logarithmic=True).ticks() == [2, 5]
    assert Axis("", 3, 4, logarithmic=True).ticks() == [3]


@pytest.mark.parametrize("figure", one_of_each(), ids=lambda one: one.title)
def test_every_plot_is_well_formed_and_stays_inside_its_frame(figure):
    ElementTree.fromstring(f"<svg>{figure.drawn}</svg>")
    for name, most in (("x", WIDTH), ("x1", WIDTH), ("y", figure.height), ("y1", figure.height)):
        assert all(0 <= float(value) <= most for value in re.findall(rf' {name}="([^"]*)"', figure.drawn))
    for points in re.findall(r'points="([^"]*)"', figure.drawn):
        for point in points.split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT


@pytest.mark.parametrize("figure", one_of_each(), ids=lambda one: one.title)
def test_a_file_needs_no_other_and_holds_title_legend_and_colours(figure):
    root = ElementTree.fromstring(figure.file())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = " ".join("".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text"))
    assert figure.title in texts
    for key in figure.keys:
        assert key.name in texts
    style = root.find("{http://www.w3.org/2000/svg}style").text
    assert "var(" not in style
    assert COLOURS["a"] in style
    assert not re.search(r"url\(|@import|<script|href", figure.file())
    high = float(root.get("viewBox").split()[3])
    for one in root.iter("{http://www.w3.org/2000/svg}text"):
        if one.get("x") is not None and one.get("transform") is None:
            assert float(one.get("x")) <= WIDTH
            assert float(one.get("y")) <= high


@pytest.mark.parametrize("figure", one_of_each(), ids=lambda one: one.title)
def test_every_colour_of_a_plot_is_in_its_legend(figure):
    given = {one for key in figure.keys for one in key.classes.split()}
    used = {one for classes in re.findall(r'class="([^"]*)"', figure.drawn) for one in classes.split()}
    assert used - {"grid", "axis", "label"} <= given


def test_a_value_stands_where_the_axis_says():
    drawn = lines({"a": curve([(1, 0), (10, 50), (100, 100)])}, Axis("K", 1, 100, True), Axis("R", 0, 100), "t").drawn
    [points] = re.findall(r'polyline class="s0" points="([^"]*)"', drawn)
    (x0, y0), (x1, y1), (x2, y2) = ([float(v) for v in point.split(",")] for point in points.split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert y0 > y2


def test_chance_is_dashed_in_the_colour_of_its_series_and_drawn_once_where_all_have_the_same():
    x, y = Axis("K", 1, 10), Axis("P", 0, 100)
    series = {"a": curve([(1, 50), (10, 50)], [50, 50]), "b": curve([(1, 10)], [20])}
    drawn = lines(series, x, y, "t", chance="chance").drawn
    assert re.findall(r'polyline class="chance (\w+)"', drawn) == ["s0", "s1"]
    up = re.search(r'class="chance s0" points="[^,]*,([^ ]*)', drawn)[1]
    assert up == re.search(r'polyline class="s0" points="[^,]*,([^ ]*)', drawn)[1]
    same = {"a": curve([(1, 50), (10, 50)], [5, 5]), "b": curve([(1, 10)], [5])}
    assert re.findall(r'class="chance (\w+)"', lines(same, x, y, "t", chance="chance").drawn) == ["all"]
    figure = lines(series, x, y, "t")
    assert "chance" not in figure.drawn
    assert "chance" not in [key.name for key in figure.keys]


def test_a_band_goes_around_its_curve():
    values = np.array([[0.0, 10], [20, 30], [40, 80]])
    one = mean_curve([1, 2], values, [0, 1, 2])
    drawn = lines({"a": one}, Axis("K", 1, 2), Axis("P", 0, 100), "t").drawn
    edge = [tuple(map(float, p.split(","))) for p in re.search(r'band s0" points="([^"]*)"', drawn)[1].split()]
    line = [
        tuple(map(float, p.split(","))) for p in re.search(r'polyline class="s0" points="([^"]*)"', drawn)[1].split()
    ]
    assert len(edge) == 2 * len(line)
    for place, (x, y) in enumerate(line):
        (high_x, high), (low_x, low) = edge[place], edge[-1 - place]
        assert high_x == low_x == x
        assert high <= y <= low  # y falls on a page


def boxes_of_names(figure):
    """Left and right ends of the names below, as far as they stand level."""
    texts = re.findall(r'<text x="([\d.]+)" y="232" text-anchor="(\w+)">([^<]*)</text>', figure.drawn)
    return [(float(x) - text_width(name) / 2, float(x) + text_width(name) / 2) for x, _, name in texts]


@pytest.mark.parametrize("count", [1, 4, 9, 20, 60, 200])
@pytest.mark.parametrize("name", ["{0}", "{0}00-{0}99", "a long name of {0}"])
def test_names_below_bars_never_meet(count, name):
    """The hubness figure once showed 100-199200-499."""
    names = [name.format(number) for number in range(count)]
    figure = bars({"a": [1.0] * count}, names, Axis("n", 0, 1), "t", "x")
    level = boxes_of_names(figure)
    assert all(left >= right for (_, right), (left, _) in pairwise(level))
    turned = [float(x) for x in re.findall(r"translate\(([\d.]+) 230\) rotate", figure.drawn)]
    assert all(after - before >= 11 / np.sin(np.radians(40)) * 0.7 for before, after in pairwise(turned))
    assert len(level) + len(turned) >= min(count, 10)
    assert not (level and turned)


@pytest.mark.parametrize(
    "text", ["100-199", "200-499", "1,001-5,000", "text to image, skewness 2.24", "MMM", "illicit"]
)
def test_the_measured_width_is_not_less_than_that_of_a_wide_font(text):
    try:
        font = ImageFont.truetype("DejaVuSans.ttf", 110)
    except OSError:
        pytest.skip("DejaVu Sans, the widest of the usual fonts, is not installed")
    assert text_width(text) >= 0.97 * font.getlength(text) / 10


def test_a_page_gives_its_own_colours():
    assert "#" not in mark_style()
    assert "var(" not in mark_style(COLOURS)
