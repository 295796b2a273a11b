import re
from xml.etree import ElementTree

import pytest

from rungwise.evaluation.report._plots import HEIGHT, WIDTH, Axis, bars, lines, scatter, spreads


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 100), (-0.37, 0.92), (3, 3), (1e-5, 3e-5), (0, 12345)])
def test_ticks_are_few_and_inside(low, high):
    ticks = Axis("", low, high).ticks()
    assert 1 <= len(ticks) <= 11
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)
    assert ticks == sorted(set(ticks))


def test_logarithmic_ticks_are_powers_of_ten():
    assert Axis("", 1, 25000, logarithmic=True).ticks() == [1, 10, 100, 1000, 10000]
    assert Axis("", 2, 5, logarithmic=True).ticks() == [2]


def test_every_plot_is_well_formed_and_stays_inside_its_frame():
    for drawn in (
        lines({"a<b": [(1, 0), (10, 100)], "b": [(1, 50)]}, Axis("K", 1, 10, True), Axis("&", 0, 100), "one"),
        bars({"a": [1, 2, 0], "b": [3, 0, 1]}, ["x", "y", "<"], Axis("n", 0, 3), "two", "groups"),
        scatter({"a": [(0, 0), (1, 1)]}, Axis("", 0, 1), Axis("", 0, 1), "three"),
        spreads(["1", "2"], [[0, 1, 2, 3, 4], [1, 1, 1, 1, 1]], Axis("S", 0, 4), "four", "rung"),
    ):
        ElementTree.fromstring(re.search(r"<svg.*</svg>", drawn)[0])
        for name, most in (("x", WIDTH), ("x1", WIDTH), ("cx", WIDTH), ("y", HEIGHT), ("y1", HEIGHT), ("cy", HEIGHT)):
            assert all(0 <= float(value) <= most for value in re.findall(rf' {name}="([^"]*)"', drawn))


def test_a_value_stands_where_the_axis_says():
    drawn = lines({"a": [(1, 0), (10, 50), (100, 100)]}, Axis("K", 1, 100, True), Axis("R", 0, 100), "t")
    [points] = re.findall(r'points="([^"]*)"', drawn)
    (x0, y0), (x1, y1), (x2, y2) = ([float(v) for v in point.split(",")] for point in points.split())
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)
    assert y0 > y2


def test_levels_are_dashed_lines_in_the_colour_of_their_series():
    x, y = Axis("K", 1, 10), Axis("P", 0, 100)
    drawn = lines({"a": [(1, 50), (10, 50)], "b": [(1, 10)]}, x, y, "t", levels={"a": 50.0}, levels_name="chance")
    [(series, up)] = re.findall(r'class="level s(\d)"[^>]* y1="([^"]*)"', drawn)
    assert (series, up) == ("0", re.search(r'points="[^,]*,([^ ]*)', drawn)[1])
    assert "chance" in drawn
    assert "chance" not in lines({"a": [(1, 50)]}, x, y, "t", levels_name="chance")
