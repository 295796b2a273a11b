"""The demo's page in a browser: what it says is what the interface answered, and everybody can use it."""

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.page.browser import expect

pytestmark = pytest.mark.slow

QUERY = "a small red star above a blue heart"
LOOKS = {
    "desktop": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


def ready(page):
    expect(page.locator("#columns .column")).to_have_count(2)
    expect(page.locator("#columns")).to_have_attribute("aria-busy", "false")


def test_both_columns_show_what_the_interface_answers(new_page, address, demo):
    page = new_page()
    page.goto(f"{address}?q={quote(QUERY)}")
    ready(page)
    answer = demo.comparison.answer(QUERY)
    for place, column in enumerate(answer.columns):
        own = page.locator(".column").nth(place)
        expect(own.locator("h2")).to_have_text(column.title)
        expect(own.locator(".tile")).to_have_count(len(column.hits))
        expect(own.locator(".curve rect")).to_have_count(len(column.curve))
        steps = own.locator(".tile").evaluate_all("tiles => tiles.map(tile => Number(tile.dataset.step))")
        assert steps == [int(hit.degree * 4 + 1e-6) for hit in column.hits]
        words = own.locator(".tile img").evaluate_all("all => all.map(one => one.alt)")
        assert [text.partition(":")[0] for text in words] == [f"{hit.true} of 6 true" for hit in column.hits]
        assert own.locator(".numbers b").all_text_contents()[0] == f"{column.measures['nDCG@10']:.0f}"


def test_searching_keeps_the_query_in_the_address(new_page, address):
    page = new_page()
    page.goto(address)
    ready(page)
    page.locator("#query").fill("a blue circle")
    page.locator("#query").press("Enter")
    expect(page.locator("#truth")).to_contain_text("2 facts")
    expect(page).to_have_url(f"{address}?q=a%20blue%20circle")
    page.go_back()
    expect(page.locator("#query")).not_to_have_value("a blue circle")


def test_what_is_not_understood_is_said_and_frames_are_neutral(new_page, address):
    page = new_page()
    page.goto(f"{address}?q={quote('a purple elephant')}")
    ready(page)
    expect(page.locator("#truth")).to_contain_text("Not understood: “elephant”")
    expect(page.locator(".tile[data-step]")).to_have_count(0)
    expect(page.locator(".curve")).to_have_count(0)


def test_a_refusal_is_shown(new_page, address):
    page = new_page()
    page.expected = ["422"]
    page.goto(f"{address}?q={'x' * 600}")
    expect(page.locator("#message")).to_contain_text("characters")


def test_examples_and_pictures_lead_on(new_page, address, demo):
    page = new_page()
    page.goto(address)
    ready(page)
    offered = page.locator("#examples .chip").all_text_contents()
    assert offered == [example.text for example in demo.results.examples]
    if offered:
        page.locator("#examples .chip").last.click()
        expect(page.locator("#query")).to_have_value(offered[-1])
        ready(page)
    page.locator(".tile a:visible").first.click()
    expect(page.locator("#detail")).to_be_visible()
    assert page.url.startswith((f"{address}triplet/?q=", f"{address}degrees/?q="))


def test_averages_are_there(new_page, address, demo):
    page = new_page()
    page.goto(address)
    expect(page.locator("#averages table")).to_have_count(2)
    first = demo.results.compared[0].lines[0]
    expect(page.locator("#averages tbody tr").first.locator("td").nth(1)).to_have_text(f"{first.degrees:.0f} %")


@pytest.mark.parametrize("look", LOOKS)
def test_no_rule_of_axe_is_broken_and_nothing_is_too_wide(new_page, address, look):
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = next(Path(package.__path__[0]).rglob("axe.min.js")).read_text(encoding="utf-8")
    page = new_page(reduced_motion="reduce", **LOOKS[look])
    for query in (QUERY, "a purple elephant"):
        page.goto(f"{address}?q={quote(query)}")
        ready(page)
        expect(page.locator("#averages")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        broken = [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found["violations"]]
        assert not broken, (query, broken)
