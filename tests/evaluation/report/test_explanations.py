import re

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.evaluation import diagnose, evaluate, report_page
from rungwise.evaluation.report._explanations import section_of_reasons
from rungwise.similarity import Explanation
from tests.colour_model import COLOURS
from tests.evaluation.report.test_page import checked
from tests.pointing_model import GRID, PointingModel

NAMES = ("red", "green", "blue", "yellow")
MODEL = PointingModel(COLOURS)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> ImageCaptions:
    """Grey pictures with one quarter of a colour each."""
    folder = tmp_path_factory.mktemp("quarters")
    paths = []
    for number, name in enumerate(NAMES):
        picture = Image.new("RGB", (80, 60), (128, 128, 128))
        picture.paste(
            COLOURS[name], (40 * (number % 2), 30 * (number // 2), 40 + 40 * (number % 2), 30 + 30 * (number // 2))
        )
        picture.save(folder / f"{name}.png")
        paths.append(folder / f"{name}.png")
    return ImageCaptions(NAMES, tuple(f"a {name} thing" for name in NAMES), np.arange(4), paths=tuple(paths))


def found(data, similarity):
    return diagnose({"similarity": similarity}, data)


RIGHT = np.eye(4)
ONE_WRONG = np.eye(4) - 2 * np.outer([0, 0, 0, 1], [0, 0, 0, 1]) + np.outer([1, 0, 0, 0], [0, 0, 0, 0.5])
"""The caption of the yellow picture finds the red one first."""


def cards(html):
    return re.findall(r"<article>.*?</article>", html)


def veils(card):
    return [
        [
            float(one)
            for one in re.findall(r'<rect x="\d+" y="\d+" width="\d+" height="\d+" fill-opacity="([\d.]+)"', svg)
        ]
        for svg in re.findall(r"<svg.*?</svg>", card)
    ]


def test_regions_that_answered_stay_and_others_fade(data):
    first = cards(section_of_reasons(found(data, RIGHT), MODEL.explain))[0]
    assert "“a red thing”" in first
    assert "first hit: red, right" in first
    word = re.search(r"<figcaption><b>(\w+)</b> <small>([^<]*)</small>", first)
    assert word is not None
    assert word[1] == "red"  # the word that counts most
    reasons = MODEL.explain(data.paths[0], "a red thing")
    share, answer = reasons.shares[2], reasons.answers[2]
    assert word[2] == f"{answer:.2f}, {100 * share:.0f} % of S, upper left"
    drawn = np.array(veils(first)[0]).reshape(GRID, GRID)
    assert drawn[:2, :2].max() < 0.1
    weights = reasons.weights[2]
    expected = 0.82 * (weights.max() - weights) / (weights.max() - weights.min())
    np.testing.assert_allclose(drawn.ravel(), expected, atol=0.006)
    assert min(drawn[2:].min(), drawn[:, 2:].min()) > 0.5


def test_right_and_wrong_first_hits_are_shown_and_told_apart(data):
    shown = cards(section_of_reasons(found(data, ONE_WRONG), MODEL.explain))
    assert [("right" in one.partition("first hit")[2][:20], "wrong;" in one) for one in shown] == [
        *[(True, False)] * 3,
        (False, True),
    ]
    assert "“a yellow thing”" in shown[-1]
    assert "first hit: red, wrong; the best right one is at rank 4" in shown[-1]


def test_no_picture_is_shown_twice(data):
    """Of four captions three find the red picture first, wrongly."""
    hub = np.eye(4) / 2
    hub[0] = 1
    shown = cards(section_of_reasons(found(data, hub), MODEL.explain))
    assert ["wrong;" in one for one in shown] == [False, True]


def test_a_report_with_reasons_stands_alone(data):
    result = evaluate(similarity=RIGHT, image_of_caption=data.image_of_caption, measures=["R@1"])
    page = report_page(result, found(data, RIGHT), explain=MODEL.explain)
    parser = checked(page)
    assert "<h2>Why these hits</h2>" in page
    assert 'alt="red, where “red” was found: upper left"' in page
    assert parser.seen.count("svg") > 3
    assert "Why these hits" not in report_page(result, found(data, RIGHT))
    assert "Why these hits" not in report_page(result, found(data, RIGHT), explain=MODEL.explain, has_texts=False)


def test_what_the_model_did_not_see_fades_too(data):
    def cropped(picture, text):
        whole = MODEL.explain(picture, text)
        left, top, right, bottom = whole.boxes.T
        boxes = np.stack([0.25 + left / 2, top, 0.25 + right / 2, bottom], axis=1)
        return Explanation(whole.words, whole.weights, whole.answers, whole.shares, boxes)

    html = section_of_reasons(found(data, RIGHT), cropped)
    assert "M0 0H1000V1000H0ZM250 0V1000H750V0Z" in html


def test_regions_without_places_are_listed_by_number(data):
    rows = np.full((4, GRID * GRID, 3), 128.0)
    rows[:, 5] = [COLOURS[name] for name in NAMES]
    plain = ImageCaptions(NAMES, data.captions, data.image_of_caption, features=FeatureRows(rows))
    html = section_of_reasons(found(plain, RIGHT), PointingModel(COLOURS, boxes=False).explain)
    assert "<svg" not in html
    assert re.search(r"<b>red</b> <small>[^<]*regions 5 \(\d+ %\)", html)
    assert "does not say where they lie" in html


def test_a_picture_that_cannot_be_looked_at_is_said_in_its_card(data):
    def refusing(picture, text):
        raise UserError("red.png: <gone>")

    html = section_of_reasons(found(data, RIGHT), refusing)
    assert "red.png: &lt;gone&gt;" in html


def test_captions_are_text_and_no_html(data):
    odd = ImageCaptions(NAMES, ("<b>red</b> thing", *data.captions[1:]), data.image_of_caption, paths=data.paths)
    html = section_of_reasons(found(odd, RIGHT), MODEL.explain)
    assert "<b>red</b> thing" not in html
    assert "&lt;b&gt;red" in html
