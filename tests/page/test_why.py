"""Why a picture was found: words as buttons, and the regions that answered the one that is chosen."""

import re
from collections.abc import Iterator

import pytest

from rungwise.index import Index
from rungwise.serving import Reranker, background
from tests.page.browser import expect
from tests.page.collection import COLOURS, PaletteModel
from tests.pointing_model import GRID, PointingModel

pytestmark = pytest.mark.slow

ASKED = "?q=a red square&fold=false&end=false"


@pytest.fixture(scope="module")
def placeless_site(index: Index) -> Iterator[str]:
    """The same with a model that does not know where regions lie."""
    with background(index, PaletteModel(), reranker=Reranker(PointingModel(COLOURS, boxes=False))) as address:
        yield address


def opened(page, site, place=0):
    page.goto(site + ASKED)
    page.locator("#results a.open").nth(place).click()
    expect(page.locator("#detail")).to_be_visible()
    return page


def words(page):
    return page.locator("#why-words button")


def word(page, text):
    return words(page).filter(has_text=re.compile(f"^{text}$"))


def test_the_page_says_that_hits_were_ranked_anew(page, why_site):
    page.goto(why_site + ASKED)
    expect(page.locator("#reading")).to_contain_text("reranked the first")


def test_words_are_buttons_and_the_most_decisive_one_is_shown(page, why_site):
    opened(page, why_site)
    expect(page.locator("#why-veil")).to_be_hidden()
    page.locator("#why-ask").click()
    expect(words(page)).to_have_text(["a", "red", "square"])
    expect(word(page, "red")).to_have_attribute("aria-pressed", "true")
    expect(word(page, "red")).to_be_focused()
    expect(page.locator("#why-note")).to_contain_text("cosine")
    expect(page.locator("#why-ask")).to_be_hidden()
    # A rectangle for each region, and one around the strongest.
    expect(page.locator("#why-veil rect")).to_have_count(GRID * GRID + 1)
    veils = page.locator("#why-veil rect:not(.best)").evaluate_all(
        "all => all.map(one => Number(one.getAttribute('fill-opacity')))"
    )
    assert min(veils) == 0
    assert max(veils) > 0.5


@pytest.mark.parametrize(
    "viewport", [{"width": 1200, "height": 800}, {"width": 1200, "height": 420}, {"width": 390, "height": 844}]
)
def test_what_is_drawn_lies_over_the_picture(new_page, why_site, viewport):
    page = opened(new_page(viewport=viewport), why_site)
    page.locator("#why-ask").click()
    expect(page.locator("#why-veil")).to_be_visible()
    over, under = (page.locator(one).bounding_box() for one in ("#why-veil", "#detail-picture"))
    for name in ("x", "y", "width", "height"):
        assert abs(over[name] - under[name]) <= 1, (name, over, under)


def test_another_word_shows_other_regions_and_pressed_again_the_picture(page, why_site):
    opened(page, why_site).locator("#why-ask").click()
    before = page.locator("#why-veil").inner_html()
    word(page, "square").click()
    expect(word(page, "square")).to_have_attribute("aria-pressed", "true")
    expect(word(page, "red")).to_have_attribute("aria-pressed", "false")
    assert page.locator("#why-veil").inner_html() != before
    word(page, "square").click()
    expect(page.locator("#why-veil")).to_be_hidden()
    expect(page.locator("#why-note")).to_contain_text("Choose a word")


def test_it_works_with_the_keyboard_alone(page, why_site):
    opened(page, why_site)
    page.locator("#why-ask").press("Enter")
    expect(word(page, "red")).to_be_focused()
    shown = page.url
    page.keyboard.press("ArrowRight")
    expect(word(page, "square")).to_be_focused()
    page.keyboard.press("Enter")
    expect(word(page, "square")).to_have_attribute("aria-pressed", "true")
    assert page.url == shown  # arrow keys did not go to another picture
    assert page.locator("#why-words button[tabindex='0']").count() == 1


def test_who_asked_once_sees_it_of_the_next_picture(page, why_site):
    opened(page, why_site).locator("#why-ask").click()
    expect(words(page)).to_have_count(3)
    note = page.locator("#why-note")
    with page.expect_response(re.compile("/why")):
        page.locator("#detail-after").click()
    expect(word(page, "red")).to_have_attribute("aria-pressed", "true")
    expect(note).to_contain_text("“red”")


def test_where_nothing_can_be_said_nothing_is_offered(page, site, why_site):
    opened(page, site)
    expect(page.locator("#why")).to_be_hidden()
    page.goto(why_site + "?by=newest&show=004")
    expect(page.locator("#detail-similar li").nth(2)).to_be_visible()
    expect(page.locator("#why")).to_be_hidden()


def test_without_places_words_are_still_said(page, placeless_site):
    opened(page, placeless_site).locator("#why-ask").click()
    expect(page.locator("#why-note")).to_contain_text("cosine")
    expect(page.locator("#why-veil")).to_be_hidden()


def test_what_goes_wrong_is_said_and_can_be_tried_again(page, why_site):
    page.expected.append("503")
    opened(page, why_site)
    page.route("**/why?*", lambda route: route.fulfill(status=503, json={"error": "there is too much to do"}))
    page.locator("#why-ask").click()
    expect(page.locator("#why-note")).to_have_text("there is too much to do")
    page.unroute_all()
    page.locator("#why-ask").click()
    expect(words(page)).to_have_count(3)
