"""Also tests rungwise.evaluation.report._parts."""

import re

import numpy as np
import pytest

from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings, RankedLists, diagnose, evaluate, positives_from_labels, report_page
from rungwise.evaluation.report import _labels as report_labels
from rungwise.evaluation.report import curve_measures
from tests.evaluation.report.test_page import checked


def world(labels, per_image=1):
    images = len(labels)
    owners = np.repeat(np.arange(images), per_image)
    several = tuple((one,) if isinstance(one, str) else tuple(one) for one in labels)
    names = tuple(f"i{n}" for n in range(images)), tuple(f"caption {n}" for n in range(len(owners)))
    data = ImageCaptions(*names, owners, labels=several)
    scores = np.random.default_rng(0).random((images, len(owners)))
    return data, scores


def evaluated(similarity, data, measures):
    """The result by shared labels."""
    settings = EvaluationSettings(positives=positives_from_labels(data.labels, data.image_of_caption))
    return evaluate(
        similarity=similarity,
        image_of_caption=data.image_of_caption,
        measures=measures,
        protocol="labels",
        settings=settings,
    )


def pages(data, scores, measures=("MAP",), drawn=None):
    right = positives_from_labels(data.labels, data.image_of_caption)
    given = {"protocol": "labels", "positives": right}
    more = curve_measures(*scores.shape) if drawn is None else drawn
    whole = evaluated(scores, data, [*measures, *more])
    found = diagnose({"similarity": scores}, data, **given)
    return report_page(whole.of_measures(measures), found, curves=whole), whole


def curves_of(page):
    """Points of each curve, in the units of its figure's frame."""
    return [
        [tuple(map(float, point.split(","))) for point in points.split()]
        for points in re.findall(r'<polyline class="s\d" points="([^"]*)"', page)
        if not points.startswith("0,5 ")  # of a legend
    ]


def test_the_page_shows_curves_classes_and_confusions():
    page, whole = pages(*world([*"abcab"] * 4, 2), measures=("MAP", "MAP@50", "P@10"))
    checked(page)
    for heading in ("Precision curves", "Numbers by class", "Which class is taken for which"):
        assert f"<h2>{heading}</h2>" in page
    assert "Image queries: classes of the first 10 captions" in page
    assert "Caption queries: classes of the first 10 images" in page
    assert len(curves_of(page)[0]) == 11
    inline = page.partition("<h2>Precision curves")[2].partition("</section>")[0]
    assert len(re.findall(r'polyline class="chance', inline)) == 4  # in both figures, and in their legends
    assert len(re.findall(r'polygon class="band', inline)) == 4
    assert (
        "AP11" not in page.partition("<h2>Precision curves")[0].partition("<body>")[2]
    )  # the table has what was asked for
    steps = [k for k in (1, 2, 5, 10, 20, 40) if f"i2t/P@{k}" in whole.numbers]
    assert [len(one) for one in curves_of(page)[2:4]] == [len(steps), len([k for k in steps if k <= 20])]


def test_curves_end_at_chance():
    """The precision of the whole gallery is the share of right candidates."""
    page, whole = pages(*world([*"abab"] * 5))
    assert whole["i2t/P@20"] == 50.0
    figure = page.partition("<figcaption>Precision of the first K")[2].partition('role="img"')[2]
    level = float(re.search(r'class="chance all" points="[^,]*,([\d.]+)', figure)[1])
    assert curves_of(page)[2][-1][1] == pytest.approx(level, abs=0.1)


def test_names_of_classes_are_text():
    page, _ = pages(*world(["<b>&", "<b>&", '"q"', '"q"']))
    checked(page)
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&</b>" not in page


def test_several_labels_are_explained_and_one_label_is_not():
    page, _ = pages(*world([("a", "b"), ("b",), ("a",), ()] * 3))
    assert "A result with several labels counts in each by a fraction" in page
    assert "i2t: queries without a label, which are in no class: 3" in page
    assert "several labels" not in pages(*world([*"abab"]))[0]


def test_nearest_wrong_classes_stand_in_words():
    data, _ = world([*"aabb"])
    page, _ = pages(data, np.array([[0, 0, 1, 1]] * 4, dtype=float))
    assert "<b>a</b>: b <small>50\u00a0%</small>" in page  # four candidates are all of the first ten


def test_of_many_classes_those_with_most_queries_are_shown(monkeypatch):
    monkeypatch.setattr(report_labels, "_SHOWN", 2)
    page, _ = pages(*world([*"aaabccc"]))
    assert "Of 3 classes, the 2 with the most queries." in page
    table = page.partition("<table class=heat>")[2].partition("</table>")[0]
    assert re.findall(r"<th scope=row title=\"(\w)\"", table) == ["a", "c"]
    monkeypatch.setattr(report_labels, "MOST_CLASSES", 2)
    assert "There are more than 2 classes, which make no table." in pages(*world([*"aaabccc"]))[0]


def test_without_labels_or_curves_what_there_is_is_shown():
    data, scores = world([*"abab"])
    page, _ = pages(data, scores, drawn=())
    assert "Precision curves" not in page
    assert "Numbers by class" in page
    bare = ImageCaptions(data.image_ids, data.captions, data.image_of_caption)
    right = positives_from_labels(data.labels, data.image_of_caption)
    given = {"protocol": "labels", "positives": right}
    result = evaluated(scores, data, ["AP11", "P@4"])
    page = report_page(result, diagnose({"similarity": scores}, bare, **given))
    checked(page)
    assert "Precision curves" in page
    assert "Numbers by class" not in page


def test_ranked_lists_of_one_direction_are_shown():
    data, _ = world([*"abab"])
    lists = RankedLists({"t2i": [[0, 1], [1], [3, 2], [0]]}, (4, 4))
    given = {"protocol": "labels", "positives": positives_from_labels(data.labels, data.image_of_caption)}
    result = evaluated(lists, data, ["P@1"])
    page = report_page(result, diagnose(lists, data, **given))
    checked(page)
    assert "Caption queries" in page
    assert "Image queries" not in page


def test_other_protocols_have_no_such_sections():
    data, scores = world([*"abab"])
    result = evaluate(similarity=scores, image_of_caption=data.image_of_caption, measures=["R@1"])
    assert "by class" not in report_page(result, diagnose({"similarity": scores}, data))
