"""The start page: pictures to look at, and examples that find something."""

import re

import pytest

from tests.page.browser import expect, scroll_to_the_end
from tests.page.collection import collection

pytestmark = pytest.mark.slow


def test_starts_with_pictures_by_theme(page, site):
    page.goto(site)
    expect(page.locator(".group .grid.row").first).to_be_visible()
    expect(page.locator("a.open").nth(19)).to_be_attached()
    expect(page.locator("#start-note")).to_contain_text("131 pictures in squares")
    expect(page.locator("nav a[aria-current]")).to_have_text("By theme")
    expect(page.locator("#query")).to_be_focused()


def test_a_theme_leads_to_more_of_it(page, site):
    page.goto(site)
    title = page.locator(".group h2 a").first
    label = title.inner_text()
    title.click()
    expect(page.locator("#query")).to_have_value(label)
    expect(page.locator("#results a.open").nth(5)).to_be_visible()


@pytest.mark.parametrize("way", ["Newest", "At random"])
def test_other_ways_to_start_have_an_address_of_their_own(page, site, way):
    page.goto(site)
    page.get_by_role("link", name=way).click()
    expect(page.locator("a.open").nth(20)).to_be_visible()
    expect(page.locator("nav a[aria-current]")).to_have_text(way)
    page.reload()
    expect(page.locator("nav a[aria-current]")).to_have_text(way)


def test_the_newest_go_on_as_one_scrolls(page, site):
    page.goto(site + "?by=newest")
    expect(page.locator("a.open").first).to_have_attribute("data-id", "twin")
    scroll_to_the_end(page)
    expect(page.locator("#end")).to_have_text("That is all: 131 pictures.")


def test_every_example_finds_something(page, site):
    page.goto(site)
    expect(page.locator("#examples button").first).to_be_visible()
    examples = page.locator("#examples button").all_inner_texts()
    assert len(examples) >= 3
    for example in examples:
        page.locator("#home").click()
        page.get_by_role("button", name=example, exact=True).click()
        expect(page.locator("#results a.open").first).to_contain_text(example)


def test_without_captions_and_files_ids_stand_in_their_place(page, bare_site):
    page.goto(bare_site)
    expect(page.locator("a.open").first).to_contain_text("row-")
    page.goto(bare_site + "?by=newest")
    page.locator("a.open").first.click()
    expect(page.locator("#detail-gone")).to_have_text("This collection has no picture files.")
    expect(page.locator("#open-file")).to_be_hidden()
    expect(page.locator("#copy-caption")).to_be_hidden()
    page.locator("#detail-like").click()
    page.get_by_role("button", name="less related").click()
    expect(page.locator("#results a.open")).to_have_count(7)
    expect(page.locator("#fitting")).to_be_hidden()


def test_one_picture(page, new_index_site):
    address = new_index_site(lambda folder: collection(folder, count=8).select([4]))
    page.goto(address)
    expect(page.locator("a.open")).to_have_count(1)
    expect(page.locator("#start-note")).to_contain_text("1 picture in squares.")
    page.locator("a.open").click()
    expect(page.locator("#detail-after")).to_be_disabled()
    page.locator("#detail-like").click()
    expect(page.locator("#results-title")).to_have_text(re.compile("no picture", re.IGNORECASE))
