"""No rule of axe-core is broken, wherever one looks."""

from pathlib import Path

import pytest

from tests.page.browser import expect
from tests.page.ends import bands, judged

pytestmark = pytest.mark.slow

LOOKS = {
    "desktop": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
PLACES = {
    "start": ("", "#groups a.open"),
    "results": ('?q="blue" - "redd"&end=false&where=year < 2003', "#results a.open"),
    "like": ("?like=twin&end=false&where=year < 2003", "#fitting-list li"),
    "detail": ("?q=blue&end=false&where=year < 2003&show=004", "#detail-similar li"),
    "filters": ("?q=blue&end=false&where=year < 2001", "#results a.open"),
}
ENDS = {
    "bands": (bands(2, 3, 4), "?q=blue&fold=false", ".limit button"),
    "nothing": (bands(0, 0, 0), "?q=a redd circle", "#nothing"),
}


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return next(Path(package.__path__[0]).rglob("axe.min.js")).read_text(encoding="utf-8")


@pytest.mark.parametrize("look", LOOKS)
def test_no_violations(new_page, site, axe, look):
    page = new_page(reduced_motion="reduce", **LOOKS[look])
    for place in PLACES if look == "desktop" else ("start", "results", "detail"):
        query, ready = PLACES[place]
        page.goto(site + query)
        expect(page.locator(ready).first).to_be_visible()
        if place == "filters":
            page.locator("#add-filter").click()
            expect(page.locator("#filters")).to_be_visible()
        _check(page, axe, place)
    for place, (shown, query, ready) in ENDS.items():
        judged(page, shown)
        page.goto(site + query)
        expect(page.locator(ready)).to_be_visible()
        if place == "bands":
            page.locator(ready).click()
            page.get_by_label("More", exact=True).click()
            page.locator("#grading-mode").click()  # in which all grades stand at a picture, given or not
            # Another grade for each look: the same one again would take it back.
            page.locator("#results .grades button").nth(list(LOOKS).index(look)).press("Enter")
            expect(page.locator("#judged")).to_be_visible()
        _check(page, axe, place)


@pytest.mark.parametrize("look", LOOKS)
def test_no_violations_where_it_is_said_why_a_picture_was_found(new_page, why_site, axe, look):
    page = new_page(reduced_motion="reduce", **LOOKS[look])
    page.goto(why_site + "?q=a red square&end=false&show=004")
    page.locator("#why-ask").click()
    expect(page.locator("#why-words button")).to_have_count(3)
    _check(page, axe, "why")


def _check(page, axe, place):
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    broken = [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found["violations"]]
    assert not broken, (place, broken)
