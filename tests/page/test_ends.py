"""Where relevance ends on the page: bands, the line, what is folded behind it, and nothing found at all."""

import re

import pytest

from rungwise.calibration import UNJUDGED_RUNGS
from tests.page.browser import expect, scroll_to_the_end
from tests.page.ends import bands, judged

pytestmark = pytest.mark.slow

FEW = "&where=year < 2003"  # 18 pictures


def headings(page):
    return [" ".join(text.split()) for text in page.locator("#results h2").all_inner_texts()]


def tiles(page):
    return page.locator("#results .tile")


def test_hits_stand_in_bands_up_to_the_end(page, site):
    judged(page, bands(2, 3, 4))
    page.goto(site + "?q=blue&fold=false")
    expect(tiles(page)).to_have_count(9)
    assert headings(page) == ["Exactly 2", "Close 3", "Loosely related 4", "Relevance ends here"]
    expect(page.locator("#announcer")).to_have_text("9 pictures; relevance ends after 9")
    expect(page.locator("#results .score")).to_have_count(0)
    expect(page.get_by_role("region", name="Close").locator(".tile")).to_have_count(3)
    expect(page.locator("#end")).to_be_empty()


def test_without_judgements_the_bands_are_of_matches(page, site):
    judged(page, bands(2, 3, 4), names=UNJUDGED_RUNGS)
    page.goto(site + "?q=blue&fold=false")
    expect(tiles(page)).to_have_count(9)
    assert headings(page) == ["Best matches 2", "Good matches 3", "Further matches 4", "Relevance ends here"]
    expect(page.locator("#remark")).to_be_hidden()
    tiles(page).first.locator("a.open").click()
    expect(page.locator(".fit")).to_have_text("One of the best matches")


def test_where_no_picture_stands_out_the_page_says_so_above_them(page, site):
    judged(page, bands(0, 0, 4), names=UNJUDGED_RUNGS, remark="no picture stands out clearly; these come nearest")
    page.goto(site + "?q=blue&fold=false")
    expect(tiles(page)).to_have_count(4)
    expect(page.locator("#remark")).to_have_text("No picture stands out clearly; these come nearest.")


def test_bands_without_pictures_are_not_shown(page, site):
    judged(page, bands(0, 1, 0))
    page.goto(site + "?q=blue&fold=false")
    expect(tiles(page)).to_have_count(1)
    assert headings(page) == ["Close 1", "Relevance ends here"]
    expect(page.locator("#announcer")).to_have_text("1 picture; relevance ends after it")


def test_the_rest_is_shown_on_request_and_hidden_again(page, site):
    judged(page, bands(1, 1, 1))
    page.goto(site + "?q=blue&fold=false" + FEW)
    button = page.get_by_role("button", name="Show 15 less related")
    button.press("Enter")
    expect(tiles(page)).to_have_count(18)
    assert headings(page)[-2:] == ["Relevance ends here", "Less related 15"]
    expect(tiles(page).nth(3).locator("a.open")).to_be_focused()
    expect(page.locator("#end")).to_have_text("That is all: 18 pictures.")
    page.get_by_role("button", name="Hide the less related").click()
    expect(tiles(page)).to_have_count(3)
    expect(button).to_be_focused()


def test_more_comes_as_one_scrolls_up_to_the_end_and_beyond_it_on_request(page, site):
    judged(page, bands(10, 40, 0))
    page.goto(site + "?q=blue&fold=false")
    expect(tiles(page)).to_have_count(30)
    assert headings(page) == ["Exactly 10", "Close 20+"]
    page.mouse.wheel(0, 6000)
    expect(tiles(page)).to_have_count(50)
    assert headings(page) == ["Exactly 10", "Close 40", "Relevance ends here"]
    page.get_by_role("button", name="Show less related pictures").click()
    expect(tiles(page).nth(89)).to_be_attached()
    scroll_to_the_end(page)
    expect(page.locator("#end")).to_have_text("That is all: 131 pictures.")
    assert len(set(page.locator("#results a.open").evaluate_all("all => all.map(a => a.dataset.id)"))) == 131


def test_where_all_is_relevant_no_line_is_drawn(page, site):
    judged(page, bands(18, 0, 0))
    page.goto(site + "?q=blue&fold=false" + FEW)
    expect(tiles(page)).to_have_count(18)
    assert headings(page) == ["Exactly 18"]
    expect(page.locator("#end")).to_have_text("That is all: 18 pictures.")


def test_going_back_shows_the_rest_where_it_was_shown(page, site):
    judged(page, bands(1, 1, 1))
    page.goto(site + "?q=blue&fold=false" + FEW)
    page.get_by_role("button", name="Show 15 less related").click()
    expect(tiles(page)).to_have_count(18)
    page.locator("#query").fill("green")
    page.locator("#query").press("Enter")
    expect(page.locator("#results-title")).to_contain_text("green")
    page.go_back()
    expect(tiles(page)).to_have_count(18)
    expect(page.get_by_role("button", name="Hide the less related")).to_be_visible()


@pytest.mark.parametrize(
    ("belief", "said"), [(0.95, "Close to"), (0.7, "Probably close to"), (0.2, "Perhaps close to")]
)
def test_the_large_view_says_how_well_it_fits_and_ends_with_relevance(page, site, belief, said):
    judged(page, bands(1, 1, 0), belief=belief)
    page.goto(site + "?q=blue&fold=false")
    tiles(page).first.locator("a.open").click()
    expect(page.locator("#detail-fit")).to_contain_text("xactly what was asked for")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#detail-fit")).to_have_text(f"{said} what was asked for")
    expect(page.locator("#detail-place")).to_have_text("2 of 2")
    expect(page.locator("#detail-after")).to_be_disabled()


def test_nothing_relevant_is_said_with_what_to_try(page, site):
    judged(page, bands(0, 0, 0), belief=0.02)
    page.goto(site + "?q=a redd circle&fold=false")
    title = page.get_by_role("heading", name="Nothing relevant found")
    expect(title).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("Nothing relevant found")
    expect(page.locator("#nothing-text")).to_contain_text("None of the 131 pictures fits well")
    expect(tiles(page)).to_have_count(0)
    assert headings(page) == []
    page.get_by_role("button", name="Show the nearest anyway").click()
    expect(tiles(page)).to_have_count(30)
    expect(page.locator("#results h2")).to_contain_text("The nearest, although they hardly fit")
    page.get_by_role("button", name="Search for red in place of redd").click()
    expect(page.locator("#query")).to_have_value("a red circle")


def test_nothing_relevant_among_the_filtered_leads_out_of_the_filter(page, site):
    judged(page, lambda asked: bands(0, 0, 0) if "where" in asked else bands(3, 2, 0))
    page.goto(site + "?q=blue&fold=false" + FEW)
    expect(page.locator("#nothing-text")).to_contain_text("None of the pictures that pass the filters fits")
    page.get_by_role("button", name="Remove the filters: 5 pictures then").click()
    expect(page.get_by_role("heading", name="Exactly 3")).to_be_visible()
    expect(page.locator("#nothing")).to_be_hidden()
    expect(page).not_to_have_url(re.compile("where"))


def test_a_filter_that_lets_nothing_through_can_be_removed(page, site):
    judged(page, lambda asked: bands(0, 0, 0) if "where" in asked else bands(3, 2, 0))
    page.goto(site + "?q=blue&where=year > 3000")
    page.get_by_role("button", name="Remove the filters: 5 pictures then").click()
    expect(tiles(page)).to_have_count(5)


def test_more_like_a_picture_shows_the_nearest_even_if_none_is_relevant(page, site):
    judged(page, bands(0, 0, 0))
    page.goto(site + "?like=007&fold=false")
    expect(page.locator("#results-title")).to_have_text("Similar pictures")
    expect(tiles(page)).to_have_count(30)
    assert headings(page) == ["Nothing is much like it; these are the nearest 30+"]
    expect(page.locator("#nothing")).to_be_hidden()


def test_pictures_whose_texts_hold_a_word_are_offered(page, site):
    judged(page, lambda asked: None if "q" not in asked else bands(0, 0, 0))
    page.goto(site + "?q=endless yellow quaternions")
    offered = page.get_by_role("button", name=re.compile("captions mention “yellow”"))
    offered.click()
    expect(page.locator("#results .caption").first).to_contain_text("yellow")
    expect(page.get_by_role("button", name=re.compile("quaternions"))).to_have_count(0)


def test_the_end_can_be_switched_off(page, site):
    judged(page, lambda asked: None if asked.get("end") == ["false"] else bands(1, 0, 0))
    page.goto(site + "?q=blue&fold=false" + FEW)
    expect(tiles(page)).to_have_count(1)
    page.locator("#add-filter").click()
    page.get_by_label("Stop where relevance ends").uncheck()
    page.get_by_role("button", name="Show pictures").click()
    expect(tiles(page)).to_have_count(18)
    expect(page).to_have_url(re.compile("end=false"))
    assert headings(page) == []
