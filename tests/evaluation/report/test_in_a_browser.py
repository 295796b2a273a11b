"""Reports as people see them: everybody can use them, nothing is too wide, names do not meet, and nothing is asked."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings, Provenance, diagnose, evaluate, positives_from_labels, report_page
from rungwise.evaluation.report import ReportOrigin, curve_measures

pytestmark = pytest.mark.slow

LOOKS = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
TOO_WIDE = """[...document.querySelectorAll('body *')]
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll, .tall'))
  .map(one => one.outerHTML.slice(0, 120))"""
MEETING = """[...document.querySelectorAll('figure > svg[role=img]')].flatMap(svg => {
  const all = [...svg.querySelectorAll('text:not(.label)')].filter(text => !text.hasAttribute('transform'))
  const boxes = all.map(text => [text.textContent, text.getBoundingClientRect()])
  return boxes.flatMap(([name, one], place) => boxes.slice(place + 1)
    .filter(([, other]) => one.left < other.right && other.left < one.right && one.top + 2 < other.bottom
      && other.top + 2 < one.bottom)
    .map(([other]) => `${svg.getAttribute('aria-label')}: ${name} meets ${other}`))
})"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> str:
    """A report under the protocol labels, with degrees, vectors and long names: it has every kind of figure."""
    generator = np.random.default_rng(0)
    count = 120
    labels = tuple((f"a class with a long name, number {number % 14}",) for number in range(count))
    texts = tuple("a text " * (1 + number % 11) + str(number) for number in range(count))
    data = ImageCaptions(tuple(f"{'picture' * 8}{n}.jpg" for n in range(count)), texts, np.arange(count), labels=labels)
    right = positives_from_labels(data.labels, data.image_of_caption)
    vectors = generator.standard_normal((count, 8))
    scores = {"image_embeddings": vectors, "text_embeddings": vectors + generator.standard_normal((count, 8))}
    scores = {name: one / np.linalg.norm(one, axis=1, keepdims=True) for name, one in scores.items()}
    relevance = np.clip(vectors @ vectors.T / 16, 0, 1)
    asked = ["MAP", "R@1", "nDCG@10", "ECE"]
    whole = evaluate(
        **scores, image_of_caption=data.image_of_caption, relevance=relevance, protocol="labels",
        measures=[*asked, *curve_measures(count, count)], settings=EvaluationSettings(positives=right),
        provenance=replace(Provenance.of(data), model_hash="5eed" * 16),
    )  # fmt: skip
    found = diagnose(scores, data, relevance=relevance, positives=right, protocol="labels")
    result = whole.of_measures(asked)
    origin = ReportOrigin(
        "run/" + "model" * 30, "kind vse", {"data": "photos"}, "rungwise evaluate " + "x" * 400, "2026"
    )
    page = report_page(result, found, curves=whole, intervals=result.intervals(draws=20), beside=found, origin=origin)
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize("look", LOOKS)
def test_no_rule_of_axe_is_broken_nothing_is_too_wide_and_no_names_meet(chromium, place, look):
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = next(Path(package.__path__[0]).rglob("axe.min.js")).read_text(encoding="utf-8")
    context = chromium.new_context(**LOOKS[look])
    try:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(place)
        assert asked == [place]
        assert page.evaluate(TOO_WIDE) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        assert page.evaluate(MEETING) == []
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        broken = [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found["violations"]]
        assert not broken
    finally:
        context.close()


def test_a_link_saves_its_file(chromium, place, tmp_path):
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(place)
        with page.expect_download() as waiting:
            page.get_by_role("link", name="Recall curve as SVG").click()
        assert waiting.value.suggested_filename == "recall-curve.svg"
        waiting.value.save_as(tmp_path / "saved.svg")
        assert (tmp_path / "saved.svg").read_text(encoding="utf-8").startswith("<svg xmlns=")
    finally:
        context.close()
