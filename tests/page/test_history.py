"""Back and forth: the place, what was found, and what was typed come back."""

import pytest

from tests.page.browser import expect, expect_told

pytestmark = pytest.mark.slow


def scrolled(page, site):
    """Search, and scroll down until more pictures were loaded."""
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").nth(29)).to_be_visible()
    expect_told(page)
    page.evaluate(
        "() => { window.scrolled = new Promise(done => addEventListener('scrollend', done, { once: true })) }"
    )
    page.mouse.wheel(0, 1800)
    page.evaluate(
        "() => window.scrolled"
    )  # on a busy machine, scrolling may rest on its way for longer than the page waits
    expect(page.locator("#results a.open").nth(80)).to_be_attached()
    # The page notes the place once it is no longer scrolled.
    page.wait_for_function("scrollY > 500 && Math.abs(history.state.scroll - scrollY) < 2")


def test_back_restores_place_and_what_was_found(page, site):
    scrolled(page, site)
    place, count = page.evaluate("scrollY"), page.locator("#results a.open").count()
    assert place > 500
    page.locator("#query").fill("red")
    page.locator("#query").press("Enter")
    expect(page.locator("#results-title")).to_have_text("Pictures for “red”")
    assert page.evaluate("scrollY") == 0
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/search" in request.url else None)
    page.go_back()
    expect(page.locator("#results-title")).to_have_text("Pictures for “blue”")
    expect(page.locator("#query")).to_have_value("blue")
    assert page.locator("#results a.open").count() == count
    assert abs(page.evaluate("scrollY") - place) < 2
    assert not asked
    page.go_forward()
    expect(page.locator("#results-title")).to_have_text("Pictures for “red”")


def test_a_reload_comes_back_to_the_place(page, site):
    scrolled(page, site)
    place = page.evaluate("scrollY")
    page.reload()
    expect(page.locator("#results a.open").nth(80)).to_be_attached()
    page.wait_for_function("place => Math.abs(scrollY - place) < 2", arg=place)


def test_a_reload_loads_as_many_pictures_as_reach_to_the_place(page, site):
    scrolled(page, site)
    # A place beyond the thirty pictures that its entry speaks of, as when one leaves while more are on their way.
    page.evaluate("history.replaceState({ ...history.state, scroll: 3000, count: 30 }, '')")
    page.evaluate("addEventListener('pagehide', (event) => event.stopImmediatePropagation(), true)")
    page.reload()
    page.wait_for_function("place => Math.abs(scrollY - place) < 2", arg=3000)


def test_the_start_page_comes_back_with_the_same_pictures(page, site):
    page.goto(site + "?by=random")
    expect(page.locator("#groups a.open").nth(10)).to_be_visible()
    ids = "() => [...document.querySelectorAll('#groups a.open')].map(link => link.dataset.id)"
    before = page.evaluate(ids)
    page.locator("#query").fill("red")
    page.locator("#query").press("Enter")
    expect(page.locator("#results a.open").first).to_be_visible()
    page.go_back()
    expect(page.locator("#groups a.open").nth(10)).to_be_visible()
    assert page.evaluate(ids) == before


def test_the_brand_leads_home(page, site):
    page.goto(site + "?q=blue&end=false")
    page.locator("#home").click()
    expect(page.locator("#start")).to_be_visible()
    assert page.url == site
    expect(page.locator("#query")).to_have_value("")
