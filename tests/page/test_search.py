"""Searching with words: what is shown and said, as one scrolls, when nothing is found, and when something is wrong."""

import re

import pytest

from rungwise.index import Index
from rungwise.serving import ServerSettings, background
from tests.page.browser import expect, expect_drawn, expect_told, scroll_to_the_end, settle
from tests.page.collection import LONG, ODD_ID, PaletteModel

pytestmark = pytest.mark.slow


def ids(page):
    return page.locator("#results a.open").evaluate_all("links => links.map(link => link.dataset.id)")


def search(page, text):
    page.locator("#query").fill(text)
    page.locator("#query").press("Enter")


def test_finds_and_says_how_many(page, site):
    page.goto(site + "?end=false")
    search(page, "a red square on blue")
    expect(page.locator("#results-title")).to_have_text("Pictures for “a red square on blue”")
    expect(page.locator("#results a.open").first).to_contain_text("a red square on blue")
    expect(page.locator("#announcer")).to_have_text(re.compile(r"\d+ pictures"))
    expect(page.locator("#results .score").first).to_have_text(re.compile(r"0\.\d{3}|1\.000"))
    expect(page).to_have_title("a red square on blue – rungwise")
    assert page.url.endswith("?q=a+red+square+on+blue&end=false")


def test_loads_more_as_one_scrolls_and_none_twice(page, site):
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").nth(29)).to_be_visible()
    scroll_to_the_end(page)
    expect(page.locator("#end")).to_have_text("That is all: 131 pictures.")
    expect(page.locator("#announcer")).to_have_text("131 pictures")
    found = ids(page)
    assert len(found) == len(set(found)) == 131


def test_where_the_server_gives_no_more_it_is_said(page, site):
    page.route("**/about", lambda route: route.fulfill(json={**route.fetch().json(), "max_offset": 60}))
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#about")).to_contain_text("131 pictures")
    scroll_to_the_end(page)
    expect(page.locator("#end")).to_contain_text("These are the first 90 pictures.")


def test_where_the_server_gives_no_more_it_is_said_when_that_is_learned_late(page, site):
    held = []
    page.route("**/about", lambda route: held.append(route))
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").nth(29)).to_be_attached()
    expect(page.locator("#end")).to_be_empty()
    held[0].fulfill(json={**held[0].fetch().json(), "max_offset": 20})
    expect(page.locator("#end")).to_contain_text(re.compile("These are the first (30|90) pictures"))
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    settle(page)
    assert not [address for address in asked if "/search?" in address]
    assert len(ids(page)) in (30, 90)


def test_stays_in_place_as_more_come(page, site):
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").nth(29)).to_be_visible()
    expect_told(page)
    first_places = "() => [...document.querySelectorAll('#results .tile')].slice(0, 20).map(t => t.offsetTop)"
    before = page.evaluate(first_places)
    page.mouse.wheel(0, 2500)
    expect(page.locator("#results a.open").nth(80)).to_be_attached()
    assert page.evaluate(first_places) == before


def test_a_word_that_the_model_does_not_know_is_said(page, site):
    page.goto(site)
    search(page, "a redd square")
    line = page.locator("#unknown p")
    expect(line).to_have_text(re.compile(r"does not know 'redd'.*: ?red$"))
    line.get_by_role("button", name="Search for red in place of redd").click()
    expect(page.locator("#query")).to_have_value("a red square")
    expect(page.locator("#unknown")).to_be_hidden()


def test_pictures_that_are_nearly_the_same_are_folded(page, site):
    page.goto(site + "?q=a+yellow+square+on+green&end=false")
    badge = page.locator(".folded").first
    expect(badge).to_have_text(re.compile(r"\d+ alike"))
    badge.click()
    expect(page.locator("#detail-folded li").first).to_be_visible()
    page.locator("#detail-folded a").first.click()
    expect(page).to_have_url(re.compile("show="))


def test_the_same_address_shows_the_same(page, new_page, site):
    page.goto(site + "?q=green&end=false")
    expect(page.locator("#results a.open").nth(20)).to_be_visible()
    other = new_page()
    other.goto(page.url)
    expect(other.locator("#results a.open").nth(20)).to_be_visible()
    assert ids(other)[:20] == ids(page)[:20]


def test_captions_of_any_length_and_script_are_shown(page, site):
    for item, text, direction in (
        ("002", "مربع أحمر على خلفية زرقاء", "rtl"),
        ("003", "青い背景に赤い四角形", "ltr"),
    ):
        page.goto(site + f"?q=blue&end=false&show={item}")
        title = page.locator("#detail-title")
        expect(title).to_have_text(text)
        assert title.evaluate("e => getComputedStyle(e).direction") == direction
    page.goto(site + "?q=blue&fold=false&end=false&show=001")
    expect(page.locator("#detail-title")).to_have_text(LONG.strip())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_id_may_be_any_text(page, site):
    page.goto(site)
    address = page.evaluate("id => '?' + new URLSearchParams({ show: id })", ODD_ID)
    page.goto(site + address)
    expect(page.locator("#detail-captions li")).to_have_count(2)
    page.locator("#detail-like").click()
    expect(page.locator("#results a.open").first).to_be_visible()
    expect(page.locator("#source-link")).to_be_visible()
    expect_drawn(page.locator("#source-picture"), 160)


def test_a_filter_that_cannot_be_read_is_said(page, site):
    page.expected.append("422")
    page.goto(site + "?q=red&where=year+%3E%3E+3")
    expect(page.locator("#message")).to_contain_text("filter")
    expect(page.locator("#results li")).to_have_count(0)


def test_nothing_to_search_for_asks_for_words(page, site):
    page.goto(site)
    page.locator(".go").click()
    expect(page.locator("#query")).to_be_focused()
    expect(page.locator("#start")).to_be_visible()


def test_a_server_that_is_gone_is_said_and_can_be_tried_again(page, index: Index):
    page.expected.append("ERR_")
    with background(index, PaletteModel()) as address:
        page.goto(address + "?q=red&end=false")
        expect(page.locator("#results a.open").first).to_be_visible()
        port = int(address.rsplit(":", 1)[1].strip("/"))
    search(page, "green")
    expect(page.locator("#message")).to_contain_text("The server does not answer")
    with background(index, PaletteModel(), settings=ServerSettings(port=port)):
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#results a.open").first).to_contain_text("green")
        expect(page.locator("#message")).to_be_hidden()


def test_more_that_cannot_be_loaded_can_be_tried_again(page, site):
    page.expected.append("ERR_")
    page.set_viewport_size({"width": 1000, "height": 300})
    page.route("**/search?*offset=*", lambda route: route.abort())
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").first).to_be_visible()
    page.mouse.wheel(0, 5000)
    again = page.get_by_role("button", name="Load more")
    expect(again).to_be_visible()
    page.unroute("**/search?*offset=*")
    again.click()
    expect(page.locator("#results a.open").nth(80)).to_be_attached()
