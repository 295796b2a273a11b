"""The grading page in a browser: by keys alone, on a phone, by two people, and for everybody."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rungwise.grading import Questions, create_grading_app
from rungwise.relevance.human import read_judgements
from rungwise.serving import background_app
from tests.page.browser import expect, expect_drawn

pytestmark = pytest.mark.slow

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


def begin(page: Any, address: str, name: str = "Ada") -> None:
    page.goto(address)
    expect(page.locator("#name")).to_be_focused()
    expect(page.locator("#kept-in")).to_contain_text("judgements.jsonl")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(page.locator("#pair")).to_be_visible()  # before that, keys grade nothing


def press(page: Any, key: str, count: str) -> None:
    page.keyboard.press(key)
    expect(page.locator("#count")).to_have_text(count)


def test_thirty_seconds_with_the_keyboard_alone(address: str, new_page: Any, questions: Questions, out: Path) -> None:
    page = new_page()
    begin(page, address)
    expect(page.locator("#count")).to_have_text("0 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(0))
    expect(page.locator("#picture-role")).to_have_text("Picture, the query")
    expect_drawn(page.locator("#picture"), 32)
    press(page, "4", "1 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(1))
    expect(page.locator("#caption-role")).to_have_text("Caption, the query")
    expect(page.locator("#announcer")).to_have_text(f"1 of 4 graded. Caption, the query: {questions.text(1)}")
    page.keyboard.press("s")
    expect(page.locator("#caption")).to_have_text(questions.text(2))
    press(page, "1", "2 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(3))
    press(page, "Backspace", "1 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(2))
    press(page, "2", "2 of 4")
    press(page, "3", "3 of 4")
    expect(page.locator("#done-title")).to_have_text("3 pairs graded, 1 skipped")
    expect(page.locator("#done-title")).to_be_focused()
    page.locator("#skipped").press("Enter")
    expect(page.locator("#caption")).to_have_text(questions.text(1))
    press(page, "4", "4 of 4")
    expect(page.locator("#done-title")).to_have_text("All 4 pairs graded")
    assert page.locator("#counts dd").all_text_contents() == ["2", "1", "1", "0"]
    expect(page.locator("#next")).to_have_text("rungwise evaluate MODEL scenes --positives judgements.jsonl")
    press(page, "u", "3 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(1))
    press(page, "1", "4 of 4")
    own = read_judgements(out).by("Ada")
    assert [own[questions.ids(place)] for place in range(4)] == [4, 1, 2, 3]


def test_a_grader_goes_on_where_that_person_stopped(address: str, new_page: Any, questions: Questions) -> None:
    page = new_page()
    begin(page, address)
    press(page, "4", "1 of 4")
    press(page, "3", "2 of 4")
    page.reload()
    expect(page.locator("#count")).to_have_text("2 of 4")  # the browser knows the name
    expect(page.locator("#pair")).to_be_visible()
    expect(page.locator("#caption")).to_have_text(questions.text(2))
    press(page, "u", "1 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(1))
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#count")).to_have_text("0 of 4")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.keyboard.press("u")
    expect(page.locator("#caption")).to_have_text(questions.text(0))


def test_two_people_are_compared_and_see_nothing_of_each_other(
    address: str, new_page: Any, questions: Questions
) -> None:
    page = new_page()
    begin(page, address, "Ada")
    for place, key in enumerate("4112", start=1):
        press(page, key, f"{place} of 4")
    expect(page.locator("#agreement")).to_be_hidden()
    page.get_by_role("button", name="Someone else").click()
    expect(page.locator("#name")).to_have_value("Ada")
    page.locator("#name").fill("Bo")
    page.get_by_role("button", name="Begin").click()
    expect(page.locator("#count")).to_have_text("0 of 4")
    expect(page.locator("#caption")).to_have_text(questions.text(0))
    for place, key in enumerate("4122", start=1):
        expect(page.locator("#agreement")).to_be_hidden()  # it would tell with each grade what Ada gave
        press(page, key, f"{place} of 4")
    lines = page.locator("#agreement-list li")
    expect(lines).to_have_count(4)
    expect(lines.nth(2)).to_contain_text("Ada and Bo: 3 of 4 pairs alike, Cohen's kappa 0.64")
    expect(lines.nth(3)).to_contain_text("Krippendorff's alpha (ordinal)")


def test_buttons_do_what_keys_do_and_letters_in_the_name_grade_nothing(
    address: str, new_page: Any, questions: Questions, out: Path
) -> None:
    page = new_page(**LOOKS["phone"])
    page.goto(address)
    page.locator("#name").fill("")
    page.keyboard.type("us1234")
    assert not out.exists()
    page.get_by_role("button", name="Begin").tap()
    group = page.get_by_role("group", name="How well does the caption describe the picture?")
    group.get_by_role("button", name="has something to do with the picture").tap()
    expect(page.locator("#count")).to_have_text("1 of 4")
    assert read_judgements(out).by("us1234") == {questions.ids(0): 2}
    page.get_by_role("button", name="Skip").tap()
    expect(page.locator("#caption")).to_have_text(questions.text(2))
    for key in ("Control+1", "Alt+2", "5", "x"):
        page.keyboard.press(key)
    press(page, "1", "2 of 4")
    assert len(read_judgements(out)) == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_all_four_buttons_are_seen_at_once(address: str, new_page: Any) -> None:
    for look in LOOKS.values():
        page = new_page(**look)
        begin(page, address)
        expect(page.locator("#grades button")).to_have_count(4)
        bottom = page.locator("#grades button").last.evaluate("one => one.getBoundingClientRect().bottom")
        assert bottom < page.viewport_size["height"]


def test_a_grade_that_cannot_be_kept_is_said_and_not_counted(address: str, new_page: Any, questions: Questions) -> None:
    page = new_page()
    page.expected = ["ERR_", "409"]
    begin(page, address)
    page.route("**/grading/judgements", lambda route: route.abort())
    page.keyboard.press("4")
    expect(page.locator("#message")).to_contain_text("The server does not answer")
    expect(page.locator("#caption")).to_have_text(questions.text(0))
    page.unroute("**/grading/judgements")
    refusal = {"error": "this caption has another text by now"}
    page.route("**/grading/judgements", lambda route: route.fulfill(status=409, json=refusal))
    page.keyboard.press("4")
    expect(page.locator("#message")).to_contain_text("another text by now")
    page.unroute("**/grading/judgements")
    press(page, "4", "1 of 4")
    expect(page.locator("#message")).to_be_hidden()


def test_a_page_that_stood_open_while_other_pairs_came_grades_no_wrong_picture(
    address: str, new_page: Any, questions: Questions, out: Path
) -> None:
    turned = replace(questions, asked=questions.asked[::-1])
    page = new_page()
    page.expected = ["409"]
    begin(page, address)
    with background_app(lambda settings, _: create_grading_app(turned, out, settings=settings)) as other:

        def elsewhere(route: Any) -> None:
            route.fulfill(response=route.fetch(url=route.request.url.replace(address, other), headers={}))

        page.route("**/grading/*/*", elsewhere)
        page.route("**/grading/judgements", lambda route: _judge_there(route, other))
        page.keyboard.press("4")
        expect(page.locator("#message")).to_have_text("Other pairs are asked by now. Load the page again.")
        assert read_judgements(out).by("Ada") == {questions.ids(0): 4}  # which was read and seen
        for key in "su":
            page.keyboard.press(key)
            expect(page.locator("#message")).to_have_text("Other pairs are asked by now. Load the page again.")
        assert read_judgements(out).by("Ada") == {questions.ids(0): 4}
        page.goto("about:blank")


def _judge_there(route: Any, address: str) -> None:
    headers = {"Content-Type": "application/json"}
    url = f"{address}grading/judgements"
    route.fulfill(response=route.fetch(url=url, headers=headers, post_data=route.request.post_data, method="POST"))


def test_a_picture_that_is_gone_is_passed_over(address: str, new_page: Any, questions: Questions) -> None:
    page = new_page()
    page.expected = ["404"]
    page.route(re.compile("/grading/pictures/0"), lambda route: route.fulfill(status=404, json={"error": "gone"}))
    begin(page, address)
    expect(page.locator("#caption")).to_have_text(questions.text(1))
    expect(page.locator("#message")).to_have_text("A picture can no longer be shown; its pair was skipped.")


def test_markup_in_captions_and_names_is_text(new_page: Any, questions: Questions, out: Path) -> None:
    strange = "<img src=x onerror=alert(1)> & <b>bold</b>"
    data = replace(questions.data, captions=tuple(strange for _ in questions.data.captions))
    asked = replace(questions, data=data)
    with background_app(lambda settings, _: create_grading_app(asked, out, settings=settings)) as address:
        page = new_page()
        begin(page, address, "<i>Ada</i>")
        expect(page.locator("#caption")).to_have_text(strange)
        expect(page.locator("#who")).to_have_text("<i>Ada</i>")
        assert page.locator("main b, #who i").count() == 0
        page.goto("about:blank")  # it asks nothing more of a server that ends now


def test_a_name_of_the_command_line_is_not_asked_for(new_page: Any, questions: Questions, out: Path) -> None:
    with background_app(
        lambda settings, _: create_grading_app(questions, out, grader="Cy", settings=settings)
    ) as address:
        page = new_page()
        page.goto(address)
        expect(page.locator("#who")).to_have_text("Cy")
        expect(page.locator("#pair")).to_be_visible()
        expect(page.get_by_role("button", name="Someone else")).to_be_hidden()
        press(page, "2", "1 of 4")
        page.goto("about:blank")
    assert read_judgements(out).by("Cy") == {questions.ids(0): 2}


@pytest.fixture(scope="module")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return next(Path(package.__path__[0]).rglob("axe.min.js")).read_text(encoding="utf-8")


@pytest.mark.parametrize("look", LOOKS)
def test_no_rule_of_axe_is_broken(address: str, new_page: Any, axe: str, look: str) -> None:
    page = new_page(reduced_motion="reduce", **LOOKS[look])
    page.goto(address)
    expect(page.locator("#name-form")).to_be_visible()
    _check(page, axe, "name")
    for who in ("Ada", "Bo"):
        page.locator("#name").fill(who)
        page.keyboard.press("Enter")
        expect(page.locator("#pair")).to_be_visible()
        _check(page, axe, "pair")
        for place, key in enumerate("1234", start=1):
            press(page, key, f"{place} of 4")
        expect(page.locator("#done")).to_be_visible()
        _check(page, axe, "done")
        page.locator("#other").click()


def _check(page: Any, axe: str, place: str) -> None:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    broken = [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found["violations"]]
    assert not broken, (place, broken)
