"""One picture large: what is said of it, going through the pictures, copying, closing."""

import re

import pytest

from tests.page.browser import expect, expect_drawn, expect_told, settle

pytestmark = pytest.mark.slow


@pytest.fixture
def found(page, site):
    page.goto(site + "?q=blue&fold=false&end=false")
    expect(page.locator("#results a.open").nth(10)).to_be_visible()
    expect_told(page)
    return page


def shown(page):
    return re.search(r"show=([^&]*)", page.url)[1]


def test_shows_all_that_is_known(page, site):
    page.goto(site + "?by=newest&show=004")
    expect(page.locator("#detail-title")).to_be_focused()
    facts = page.locator("#detail-facts")
    for fact in ("title", "No. 4", "year", "2004", "kind", "card", "for sale", "yes", "size", "160 × 120", "004.png"):
        expect(facts).to_contain_text(fact)
    expect_drawn(page.locator("#detail-picture"), 160)
    expect(page.locator("#detail-similar li").nth(5)).to_be_visible()


def test_arrow_keys_go_through_what_was_found_and_load_more(found):
    found.set_viewport_size({"width": 1200, "height": 300})
    order = found.locator("#results a.open").evaluate_all("links => links.map(link => link.dataset.id)")
    found.locator("#results a.open").first.click()
    expect(found.locator("#detail-before")).to_be_disabled()
    expect(found.locator("#detail-place")).to_have_text(re.compile(r"^1 of \d+\+?$"))
    for expected in order[1:4]:
        found.keyboard.press("ArrowRight")
        expect(found).to_have_url(re.compile(f"show={re.escape(expected)}"))
    found.keyboard.press("ArrowLeft")
    expect(found).to_have_url(re.compile(f"show={re.escape(order[2])}"))
    found.locator("#detail-after").click()
    expect(found).to_have_url(re.compile(f"show={re.escape(order[3])}"))
    for place in range(5, 5 + len(order)):
        found.keyboard.press("ArrowRight")
        expect(found.locator("#detail-place")).to_have_text(re.compile(rf"^{place} of"))


@pytest.mark.parametrize("way", ["Escape", "button", "back"])
def test_closing_gives_the_place_and_the_focus_back(found, way):
    link = found.locator("#results a.open").nth(9)
    link.scroll_into_view_if_needed()
    settle(found)
    before = found.evaluate("scrollY")
    link.click()
    expect(found.locator("#detail")).to_be_visible()
    if way == "Escape":
        found.keyboard.press("Escape")
    elif way == "button":
        found.locator("#detail-close").click()
    else:
        found.go_back()
    expect(found.locator("#detail")).to_be_hidden()
    expect(found).not_to_have_url(re.compile("show="))
    expect(link).to_be_focused()
    assert found.evaluate("scrollY") == before


def test_its_address_can_be_shared(found, new_page):
    found.locator("#results a.open").nth(3).click()
    title = found.locator("#detail-title").inner_text()
    other = new_page()
    other.goto(found.url)
    expect(other.locator("#detail-title")).to_have_text(title)
    expect(other.locator("#detail-place")).to_contain_text("4 of")
    other.keyboard.press("Escape")
    expect(other.locator("#detail")).to_be_hidden()
    expect(other).to_have_url(re.compile(r"\?q=blue&fold=false&end=false$"))


def test_a_neighbour_leads_on(found):
    found.locator("#results a.open").first.click()
    before = shown(found)
    found.locator("#detail-similar a").nth(2).click()
    expect(found).not_to_have_url(re.compile(f"show={re.escape(before)}"))
    expect(found.locator("#detail-title")).not_to_be_empty()


def test_copying(new_page, site):
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(site + "?q=blue&end=false&show=004")
    page.locator("#copy-caption").click()
    expect(page.locator("#toast")).to_have_text("Caption copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#detail-title").inner_text()
    page.locator("#copy-link").click()
    expect(page.locator("#toast")).to_have_text("Link copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_copying_where_there_is_no_clipboard(page, site):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(site + "?q=blue&end=false&show=004")
    page.locator("#copy-caption").click()
    expect(page.locator("#toast")).to_have_text("Caption copied")


def test_the_file_opens_by_itself(page, site):
    page.goto(site + "?q=blue&end=false&show=004")
    with page.expect_popup() as popup:
        page.locator("#open-file").click()
    expect(popup.value).to_have_url(re.compile("/images/004$"))


def test_the_path_is_shown_whole_and_the_file_is_downloaded(page, site, index):
    path = index.item("004").path
    page.goto(site + "?q=blue&end=false&show=004")
    expect(page.locator("#detail-facts")).to_contain_text(str(path))
    with page.expect_download() as download:
        page.locator("#download").click()
    assert download.value.suggested_filename == "004.png"
    assert download.value.path().read_bytes() == path.read_bytes()


def test_more_and_less_like_it(found):
    found.locator("#results a.open").nth(2).click()
    found.locator("#detail-like").click()
    expect(found.locator("#source-title")).to_have_text("More like this picture")
    found.go_back()
    expect(found.locator("#detail")).to_be_visible()
    found.locator("#detail-unlike").click()
    expect(found.locator("#chips .chip.less")).to_have_count(1)


def test_a_picture_that_is_not_there_is_said(page, site):
    page.expected.append("404")
    page.goto(site + "?q=blue&end=false&show=nobody")
    expect(page.locator("#detail-gone")).to_contain_text("no picture")
