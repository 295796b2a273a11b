"""Favourites and saved searches, which every browser sees."""

from collections.abc import Iterator

import pytest

from rungwise.index import Index
from rungwise.serving import ServerSettings, background
from tests.page.browser import expect, expect_told
from tests.page.collection import PaletteModel, collection

pytestmark = pytest.mark.slow


@pytest.fixture
def own_site(tmp_path) -> Iterator[str]:
    """A server whose favourites are no other test's."""
    index = Index.build(collection(tmp_path / "pictures", count=12), PaletteModel(), tmp_path / "index")
    with background(index, PaletteModel()) as address:
        yield address


def more(page):
    page.get_by_label("More", exact=True).click()


def mark(page, site, *ids):
    for one in ids:
        page.goto(f"{site}?q=blue&end=false&show={one}")
        page.get_by_role("button", name="Favourite", exact=True).click()
        expect(page.locator("#favourite")).to_have_attribute("aria-pressed", "true")


def test_another_browser_sees_what_was_marked(own_site, page, new_page):
    mark(page, own_site, "004", "005")
    other = new_page()
    other.goto(own_site)
    other.get_by_role("link", name="Favourites").click()
    expect(other.locator("#results-title")).to_have_text("Favourites")
    expect(other.locator("#results a.open")).to_have_count(2)
    expect(other.locator("#results a.open").first).to_have_attribute("data-id", "005")
    other.locator("#query").fill("red")
    other.locator("#query").press("Enter")
    expect(other.locator("#chips")).to_contain_text("favourites only")
    expect(other.locator("#results .tile, #nothing button").first).to_be_visible()
    other.get_by_role("button", name="Remove favourites only").click()
    expect(other.locator("#chips")).not_to_contain_text("favourites only")
    other.goto(own_site + "?q=blue&end=false&show=005")
    other.get_by_role("button", name="Favourite", exact=True).click()
    expect(other.locator("#favourite")).to_have_attribute("aria-pressed", "false")
    page.goto(own_site + "?favourites=true")
    expect(page.locator("#results a.open")).to_have_count(1)


def test_a_search_is_saved_under_a_name_and_stands_on_the_start_page(own_site, page, new_page):
    page.goto(own_site + "?q=blue&end=false&where=year < 2008")
    expect_told(page)
    more(page)
    page.get_by_role("button", name="Save this search").click()
    expect(page.locator("#save-name")).to_have_value("blue")
    page.locator("#save-name").fill("Old blue ones")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#toast")).to_contain_text("Saved")
    other = new_page()
    other.goto(own_site)
    other.get_by_role("link", name="Old blue ones").click()
    expect(other.locator("#query")).to_have_value("blue")
    expect(other.locator("#chips .filter")).to_have_count(1)
    other.locator("#home").click()
    other.get_by_role("button", name="Remove the saved search Old blue ones").click()
    expect(other.locator("#saved")).to_be_hidden()


def test_where_nothing_is_kept_the_page_says_so_and_offers_nothing(page, index):
    with background(index, PaletteModel(), settings=ServerSettings(allowed_hosts=["pictures.example"])) as address:
        page.goto(address + "?q=blue&end=false")
        expect_told(page)
        more(page)
        expect(page.locator("#not-kept")).to_contain_text("are not kept here: the server has no token")
        expect(page.locator("#save-search")).to_be_hidden()
        page.locator("#results a.open").first.click()
        expect(page.locator("#download")).to_be_visible()
        expect(page.locator("#favourite")).to_be_hidden()
        page.goto("about:blank")  # it asks nothing more of a server that ends now


def test_no_favourites_yet(own_site, page):
    page.goto(own_site + "?favourites=true")
    expect(page.locator("#results-title")).to_contain_text("There are no favourites yet")
