"""Queries that a server keeps: the page says so, keeps what was typed and nothing else, and deletes it."""

from collections.abc import Iterator

import pytest

from rungwise.index import Index
from rungwise.serving import ServerSettings, background
from tests.page.browser import expect, expect_told
from tests.page.collection import PaletteModel, collection

pytestmark = pytest.mark.slow


@pytest.fixture
def own_index(tmp_path) -> Index:
    return Index.build(collection(tmp_path / "pictures", count=24), PaletteModel(), tmp_path / "index")


@pytest.fixture
def keeping(own_index) -> Iterator[str]:
    with background(own_index, PaletteModel(), settings=ServerSettings(keep_queries=30)) as address:
        yield address


def type_in(page, words):
    page.locator("#query").fill(words)
    page.locator("#query").press("Enter")
    expect_told(page)


def test_the_page_keeps_what_was_typed_and_nothing_else(own_index, page):
    with background(own_index, PaletteModel(), settings=ServerSettings(keep_queries=30)) as address:
        page.goto(f"{address}?q=green")
        expect_told(page)
        type_in(page, "red")
        type_in(page, "a thing that nobody knows")
        page.goto(address)
        page.locator("#examples button").first.click()
        expect_told(page)
        page.goto("about:blank")  # it asks nothing more of a server that ends now
    assert own_index.asked_queries() == {"red": 1, "a thing that nobody knows": 1}


def test_the_start_page_says_that_queries_are_kept_and_deletes_them(keeping, page):
    page.goto(keeping)
    note = page.locator("#kept-queries")
    expect(note).to_contain_text("kept beside this collection (in queries.jsonl)")
    expect(note).to_contain_text("30 days after they were last asked")
    expect(page.locator("#about")).to_contain_text("kept for 30 days")
    type_in(page, "red")
    page.goto(keeping)
    page.get_by_role("button", name="Delete them").click()
    expect(page.locator("#toast")).to_contain_text("deleted")


def test_where_none_are_kept_nothing_is_said(site, page):
    page.goto(site)
    expect(page.locator("#about")).to_contain_text("model")
    expect(page.locator("#kept-queries")).to_be_hidden()
