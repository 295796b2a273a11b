"""The page in a browser, as far as every change has to show: a search, and a picture large."""

import re

import pytest

from tests.page.browser import expect, expect_drawn
from tests.page.collection import collection


@pytest.mark.smoke
def test_a_search_and_a_picture(page, new_index_site):
    page.goto(new_index_site(lambda folder: collection(folder, count=8)) + "?end=false")
    page.locator("#query").fill("a red square on blue")
    page.locator("#query").press("Enter")
    expect(page.locator("#results-title")).to_have_text("Pictures for “a red square on blue”")
    page.locator("#results a.open").first.click()
    expect(page).to_have_url(re.compile("show="))
    expect(page.locator("#detail-title")).not_to_be_empty()
    expect_drawn(page.locator("#detail-picture"), 160)
