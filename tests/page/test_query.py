"""What a query is made of: chips for terms and filters, and what they do."""

import re

import pytest

from tests.page.browser import expect

pytestmark = pytest.mark.slow


def first(page):
    return page.locator("#results a.open").first


def test_with_and_without_become_chips(page, site):
    page.goto(site + "?q=blue&end=false")
    expect(first(page)).to_be_visible()
    expect(page.locator(".chip:visible")).to_have_count(0)
    page.locator("#add-without").click()
    page.locator("#adding").fill("red")
    page.locator("#adding").press("Enter")
    chips = page.locator("#chips .chip")
    expect(chips).to_have_count(2)
    expect(chips.nth(1)).to_have_class(re.compile("less"))
    expect(page.locator("#query")).to_have_value('"blue" - "red"')
    expect(page.locator("#reading")).to_contain_text("red")
    page.locator("#add-with").click()
    page.locator("#adding").fill('a "white" square')
    page.locator("#adding").press("Enter")
    expect(chips).to_have_count(3)
    expect(chips.nth(2)).to_contain_text('a "white" square')


def test_sign_weight_and_removal(page, site):
    page.goto(site + '?q="blue" - "red"')
    chips = page.locator("#chips .chip")
    expect(chips).to_have_count(2)
    chips.nth(0).get_by_role("combobox").select_option("2")
    expect(page.locator("#query")).to_have_value(re.compile(r'^2\*"blue" - '))
    chips.nth(1).get_by_role("button", name="Without red; change").click()
    expect(page.locator("#query")).to_have_value('2*"blue" + "red"')
    expect(page.locator("#chips .chip.less")).to_have_count(0)
    chips.nth(0).get_by_role("button", name="Remove blue").click()
    expect(page.locator("#query")).to_have_value("red")
    expect(page.locator("#chips .chip")).to_have_count(0)


def test_words_that_say_not_are_shown_as_the_server_reads_them(page, site):
    page.goto(site + "?q=a+blue+square+without+red")
    expect(page.locator("#chips .chip.less")).to_have_text(re.compile("red"))


def test_escape_closes_what_was_to_be_added(page, site):
    page.goto(site + "?q=blue&end=false")
    page.locator("#add-with").click()
    expect(page.locator("#adding")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#adder")).to_be_hidden()
    expect(page.locator("#add-with")).to_be_focused()


def test_more_like_this_goes_to_the_top_and_shows_what_it_is_like(page, site):
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").nth(29)).to_be_visible()
    tile = page.locator("#results .tile").nth(25)
    title = tile.locator(".caption").inner_text()
    tile.scroll_into_view_if_needed()
    tile.hover()
    tile.get_by_role("button", name=re.compile("More like this")).click()
    expect(page.locator("#source-title")).to_have_text("More like this picture")
    expect(page.locator("#source-note")).to_have_text(title)
    expect(page.locator("#source-picture")).to_be_in_viewport()
    assert page.evaluate("scrollY") == 0
    expect(page.locator("#chips img")).to_be_visible()
    expect(page.locator("#fitting-list li").first).to_be_visible()
    page.locator("#fitting-list button").first.click()
    expect(page.locator("#results-title")).to_have_text(re.compile("Pictures for"))


def test_less_like_this_leads_away_from_it(page, site):
    page.goto(site + "?q=red+blue&fold=false&end=false")
    expect(first(page)).to_be_visible()
    before = first(page).get_attribute("data-id")
    page.locator("#results .tile").first.hover()
    page.locator("#results .tile").first.get_by_role("button", name=re.compile("Less like this")).click()
    expect(page.locator("#chips .chip.less img")).to_be_visible()
    expect(first(page)).not_to_have_attribute("data-id", before)
    expect(page).to_have_url(re.compile("q=red.blue.*unlike="))


def test_words_join_a_picture(page, site):
    page.goto(site + "?like=007&like=twin&like_weight=1&like_weight=-0.5")
    expect(page.locator("#chips .chip")).to_have_count(2)
    page.locator("#query").fill("red")
    page.locator("#query").press("Enter")
    expect(page.locator("#chips .chip")).to_have_count(3)
    expect(page.locator("#chips .chip.less")).to_have_count(1)
    page.locator("#chips .chip", has=page.locator("img")).first.get_by_role("combobox").select_option("3")
    expect(page).to_have_url(re.compile("like_weight=3&.*like_weight=-0.5"))


def test_clear_leads_to_the_start(page, site):
    page.goto(site + "?q=blue&where=captions+contains+%22red%22")
    expect(first(page)).to_be_visible()
    page.locator("#clear").click()
    expect(page.locator("#start")).to_be_visible()
    expect(page.locator("#query")).to_be_focused()
    assert page.url == site
