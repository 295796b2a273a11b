"""Saying how well pictures fit: right, close or wrong."""

import re
from collections.abc import Iterator

import pytest

from rungwise.index import Index
from rungwise.serving import ServerSettings, background
from tests.page.browser import expect, expect_told
from tests.page.collection import PaletteModel, collection
from tests.page.ends import bands, judged

pytestmark = pytest.mark.slow


@pytest.fixture
def graded_site(tmp_path) -> Iterator[str]:
    """A server whose grades are no other test's; asked for before a page, so that it ends after it."""
    index = Index.build(collection(tmp_path / "pictures", count=12), PaletteModel(), tmp_path / "index")
    with background(index, PaletteModel()) as address:
        yield address


def grading_mode(page):
    """Presses the button of grading mode, which stands in a menu."""
    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name="Grading mode").click()


def tile(page, place):
    return page.locator("#results .tile").nth(place)


def test_a_grade_is_kept_at_once_shown_and_taken_back(graded_site, page, new_page):
    judged(page, bands(3, 3, 0))
    page.goto(graded_site + "?q=blue")
    expect(page.locator("#judged")).to_be_hidden()
    tile(page, 0).hover()
    tile(page, 0).get_by_role("button", name="right").click()
    expect(tile(page, 0).get_by_role("button", name="right")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#judged-count")).to_have_text("1 search judged")
    expect(page.locator("#learn")).to_be_hidden()
    expect(page.locator("#announcer")).to_have_text("Kept: right")
    other = new_page()
    other.goto(graded_site + "?q=blue&end=false")
    pressed = other.locator('.grades button[aria-pressed="true"]')
    expect(pressed).to_have_count(1)
    expect(pressed).to_have_text("right")
    tile(page, 0).hover()
    tile(page, 0).get_by_role("button", name="right").click()
    expect(page.locator('.grades button[aria-pressed="true"]')).to_have_count(0)
    expect(page.locator("#judged")).to_be_hidden()


def test_the_large_view_and_the_tile_say_the_same(graded_site, page):
    judged(page, bands(3, 3, 0))
    page.goto(graded_site + "?q=blue")
    tile(page, 1).locator("a.open").click()
    group = page.locator("#detail-grades")
    group.get_by_role("button", name="close").click()
    group.get_by_role("button", name="wrong").click()
    expect(group.locator('[aria-pressed="true"]')).to_have_text("wrong")
    page.keyboard.press("Escape")
    expect(tile(page, 1).locator('.grades [aria-pressed="true"]')).to_have_text("wrong")


def test_the_keyboard_reaches_all_three_with_one_stop(graded_site, page):
    judged(page, bands(3, 3, 0))
    page.goto(graded_site + "?q=blue")
    buttons = tile(page, 0).locator(".grades button")
    expect(buttons).to_have_count(3)
    assert buttons.evaluate_all("all => all.map(one => one.tabIndex)") == [0, -1, -1]
    buttons.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(buttons.last).to_be_focused()
    page.keyboard.press("Enter")
    expect(buttons.last).to_have_attribute("aria-pressed", "true")


def test_a_grade_that_cannot_be_kept_is_said_and_not_shown(graded_site, page):
    page.expected.append("ERR_")
    judged(page, bands(3, 3, 0))
    page.route("**/grades", lambda route: route.abort())
    page.goto(graded_site + "?q=blue")
    tile(page, 0).hover()
    tile(page, 0).get_by_role("button", name="right").click()
    expect(page.locator("#toast")).to_contain_text("The server does not answer")
    expect(page.locator('.grades [aria-pressed="true"]')).to_have_count(0)


def test_the_page_learns_from_enough_of_them(graded_site, page):
    judged(page, bands(3, 3, 0))
    given = {"grades": [], "more": False, "queries": 23, "needed": 20}
    lines = ["7 of 8 pictures that were called right or close are shown before the end; it was 5."]
    learnt = {"index_version": "x", "queries": 23, "source": "the grades", "changes": lines, "kept": True}
    page.route("**/grades?*", lambda route: route.fulfill(json=given))
    page.route("**/calibration", lambda route: route.fulfill(json=learnt))
    page.goto(graded_site + "?q=blue")
    expect(page.locator("#judged-count")).to_have_text("23 searches judged")
    with page.expect_response("**/search?*"):  # what is shown is judged anew
        page.locator("#learn").click()
    expect(page.locator("#learnt")).to_have_text(f"Where relevance ends is now judged by 23 searches. {lines[0]}")
    expect(tile(page, 0)).to_be_visible()


def test_what_would_harm_is_not_kept_and_the_page_says_so(graded_site, page):
    judged(page, bands(3, 3, 0))
    given = {"grades": [], "more": False, "queries": 23, "needed": 20}
    lines = ["What judges now stays: harm cannot be excluded."]
    learnt = {"index_version": "x", "queries": 23, "source": "the grades", "changes": lines, "kept": False}
    page.route("**/grades?*", lambda route: route.fulfill(json=given))
    page.route("**/calibration", lambda route: route.fulfill(json=learnt))
    page.goto(graded_site + "?q=blue")
    page.locator("#learn").click()
    expect(page.locator("#learnt")).to_have_text(lines[0])


def test_too_few_to_learn_from_is_said(graded_site, page):
    page.expected.append("422")
    judged(page, bands(3, 3, 0))
    page.route(
        "**/grades?*", lambda route: route.fulfill(json={"grades": [], "more": False, "queries": 23, "needed": 1})
    )
    page.goto(graded_site + "?q=blue")
    page.locator("#learn").click()
    expect(page.locator("#learnt")).to_contain_text("20")


@pytest.mark.parametrize("query", ["?like=twin", "?by=newest", "?where=year < 2003"])
def test_what_has_no_words_is_not_judged(graded_site, page, query):
    page.goto(graded_site + query)
    expect(page.locator("#results a.open").first).to_be_visible()
    expect(page.locator(".grades button")).to_have_count(0)


def test_who_may_not_judge_sees_no_buttons(page, index):
    with background(index, PaletteModel(), settings=ServerSettings(allowed_hosts=["pictures.example"])) as address:
        page.goto(address + "?q=blue&end=false")
        expect(page.locator("#about")).to_have_text(re.compile("131 pictures"))
        expect(page.locator("#results a.open").first).to_be_visible()
        expect(page.locator(".grades button")).to_have_count(0)
        page.locator("#results a.open").first.click()
        expect(page.locator("#detail-grades")).to_be_hidden()
        page.goto("about:blank")  # it asks nothing more of a server that ends now


def test_grading_mode_takes_grades_by_keys_from_picture_to_picture(graded_site, page):
    judged(page, bands(3, 3, 0))
    page.goto(graded_site + "?q=blue")
    mode = page.locator("#grading-mode")
    expect(mode).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("1")  # not yet
    grading_mode(page)
    expect(mode).to_have_attribute("aria-pressed", "true")
    expect(tile(page, 0).locator("a.open")).to_be_focused()
    for place in range(6):
        expect(tile(page, place).locator(".grades")).to_have_css("opacity", "1")
        expect(tile(page, place).locator(".grades button")).to_have_count(3)
    page.keyboard.press("1")
    page.keyboard.press("3")
    expect(tile(page, 2).locator("a.open")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("2")
    page.keyboard.press("2")
    pressed = page.locator('#results .grades [aria-pressed="true"]')
    expect(pressed).to_have_text(["right", "wrong", "close", "close"])
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("0")
    expect(pressed).to_have_text(["right", "wrong", "close"])
    page.keyboard.press("2")  # again
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("2")
    page.keyboard.press("3")  # and what was said already stays
    expect(pressed).to_have_text(["right", "wrong", "close", "close", "wrong"])
    page.get_by_role("button", name="Stop grading").click()
    page.keyboard.press("1")
    page.mouse.move(0, 0)
    expect(tile(page, 2).locator(".grades")).to_have_css("opacity", "0")


def test_two_names_grade_apart_and_the_browser_keeps_the_name(graded_site, page, new_page):
    judged(page, bands(3, 3, 0))
    page.goto(graded_site + "?q=blue")
    grading_mode(page)
    page.get_by_label("Your name").fill(" Ada ")
    page.keyboard.press("1")  # a letter of the name
    page.keyboard.press("Tab")
    expect(page.get_by_label("Your name")).to_have_value("Ada 1")
    page.get_by_label("Your name").fill("Ada")
    page.keyboard.press("Tab")
    tile(page, 0).locator("a.open").focus()
    page.keyboard.press("1")
    pressed = page.locator('#results .grades [aria-pressed="true"]')
    expect(pressed).to_have_count(1)
    page.reload()
    expect(pressed).to_have_count(1)
    grading_mode(page)
    expect(page.get_by_label("Your name")).to_have_value("Ada")
    page.get_by_label("Your name").fill("Bo")
    page.keyboard.press("Tab")
    expect(pressed).to_have_count(0)
    with page.expect_response(lambda answer: answer.request.method == "POST"):  # the button is pressed before that
        tile(page, 0).get_by_role("button", name="wrong").click()
    expect(pressed).to_have_text("wrong")
    given = page.request.get(graded_site + "grades?q=blue").json()["grades"]
    assert [(one["who"], one["grade"]) for one in given] == [("Bo", "wrong"), ("Ada", "right")]


@pytest.mark.parametrize("query", ["?like=twin", "?by=newest"])
def test_there_is_no_grading_mode_where_nothing_is_judged(graded_site, page, query):
    page.goto(graded_site + query)
    expect(page.locator("#results a.open").first).to_be_visible()
    expect(page.locator("#grading")).to_be_hidden()


def test_there_is_no_grading_mode_where_nothing_is_found(graded_site, page):
    judged(page, bands(0, 0, 0), belief=0.02)
    page.goto(graded_site + "?q=a redd circle")
    expect(page.locator("#nothing")).to_be_visible()
    expect_told(page)
    page.get_by_label("More", exact=True).click()
    expect(page.locator("#grading-mode")).to_be_hidden()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Show the nearest anyway").click()
    grading_mode(page)
    expect(page.get_by_role("button", name="Stop grading")).to_be_visible()


def test_a_phone_grades_below_whole_pictures_and_is_told_of_no_keys(graded_site, new_page):
    page = new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    judged(page, bands(3, 3, 0))
    page.goto(graded_site + "?q=blue")
    expect_told(page)
    grading_mode(page)
    expect(page.locator(".keys")).to_be_hidden()
    for place in range(6):
        frame, grades = (tile(page, place).locator(one).bounding_box() for one in (".frame", ".grades"))
        assert grades["y"] >= frame["y"] + frame["height"]
    tile(page, 0).get_by_role("button", name="right").click()
    page.get_by_role("button", name="Stop grading").click()
    expect(tile(page, 1).locator(".grades")).to_be_hidden()
    frame, grades = (tile(page, 0).locator(one).bounding_box() for one in (".frame", ".grades"))
    assert grades["y"] >= frame["y"] + frame["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
