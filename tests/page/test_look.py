"""Widths, colours, motion, focus, what the page asks for, and the token."""

import re

import pytest

from rungwise.serving import ServerSettings, background
from tests.page.browser import expect
from tests.page.collection import PaletteModel
from tests.page.conftest import TOKEN

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
BRIGHTNESS = "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)"


@pytest.mark.parametrize(
    "query", ["", "?q=a+blue+square+on+red&end=false", '?q="blue"+-+"red"&end=false', "?q=blue&end=false&show=twin"]
)
def test_nothing_is_wider_than_a_phone(new_page, site, query):
    page = new_page(**PHONE)
    page.goto(site + query)
    expect(page.locator("a.open").nth(3)).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_phone_leaves_room_for_the_query(new_page, site):
    page = new_page(**PHONE)
    page.goto(site + "?q=a+blue+square+on+red&end=false")
    expect(page.locator("#results a.open").first).to_be_visible()
    assert page.locator("#query").bounding_box()["width"] >= 150
    assert page.locator("header").bounding_box()["height"] <= 72
    first, second = (page.locator("#results .tile").nth(place).bounding_box() for place in (0, 1))
    assert first["y"] == second["y"] < 300


@pytest.mark.parametrize("width", [360, 390])
def test_filters_fit_a_phone(new_page, site, width):
    page = new_page(**{**PHONE, "viewport": {"width": width, "height": 844}})
    page.goto(site + "?q=blue&end=false")
    expect(page.locator("#results a.open").first).to_be_visible()
    page.locator("#add-filter").click()
    for label in ("day from", "day to"):
        field = page.get_by_label(label, exact=True)
        assert field.bounding_box()["width"] >= 180
    assert page.locator("#filters").evaluate("sheet => sheet.scrollWidth - sheet.clientWidth") <= 0


def test_a_phone_is_told_of_nothing_that_it_lacks(new_page, site):
    page = new_page(**PHONE)
    page.goto(site)
    expect(page.locator("#start-note")).to_contain_text("search with a picture")
    assert "drop" not in page.locator("#start").inner_text().lower()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a picture, or take one").click()
    assert chooser.value.element.get_attribute("accept") == "image/*"


def test_a_second_visit_asks_for_no_script_style_or_picture_again(new_page, site):
    page = new_page()
    asked = []
    page.on("response", lambda answer: asked.append(answer))
    page.goto(site + "?q=blue&end=false")
    expect(page.locator("#results .frame img.here").nth(5)).to_be_visible()
    page.wait_for_load_state("networkidle")
    files = [one for one in asked if "/static/" in one.url or "/common/" in one.url]
    assert len(files) <= 3
    assert all(one.headers["cache-control"].endswith("immutable") for one in files)
    assert all(one.headers["content-encoding"] == "gzip" for one in files)
    asked.clear()
    page.goto(site + "?q=blue&end=false")
    expect(page.locator("#results .frame img.here").nth(5)).to_be_visible()
    page.wait_for_load_state("networkidle")
    # A browser names what it took from its own cache, too.
    sizes = page.evaluate(
        "performance.getEntriesByType('resource').map(one => [new URL(one.name).pathname, one.transferSize])"
    )
    again = [path for path, size in sizes if size and path.startswith(("/static", "/common", "/images"))]
    assert again == []


def test_light_and_dark(new_page, site):
    light, dark = (new_page(color_scheme=scheme) for scheme in ("light", "dark"))
    for page in (light, dark):
        page.goto(site + "?q=blue&end=false")
    assert light.locator("body").evaluate(BRIGHTNESS) > 600 > 200 > dark.locator("body").evaluate(BRIGHTNESS)


def test_reduced_motion(new_page, site):
    page = new_page(reduced_motion="reduce")
    page.goto(site + "?q=blue&end=false")
    frame = page.locator("#results .frame img").first
    expect(frame).to_be_visible()
    assert frame.evaluate("e => getComputedStyle(e).transitionDuration") in ("0s", "1e-05s")


def test_everything_is_reached_with_the_keyboard(page, site):
    page.goto(site + "?q=blue&end=false")
    expect(page.locator("#results a.open").first).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(16):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    wanted = ["skip", "home", "query", "clear", "choose", "go", "add-with", "add-without", "add-picture", "add-filter"]
    assert [name for name in reached if name in wanted] == wanted
    assert "open" in reached
    page.locator("body").press("/")
    expect(page.locator("#query")).to_be_focused()


def test_pictures_fill_rows_in_their_own_shape(page, site):
    page.goto(site + "?by=newest")
    for place in range(10):
        expect(page.locator("#results .frame").nth(place).locator("img.here")).to_be_visible()
    shapes = page.locator("#results .frame").evaluate_all(
        "frames => frames.slice(0, 10).map(f => { const i = f.querySelector('img');"
        " return [f.offsetWidth / f.offsetHeight, i.naturalWidth / i.naturalHeight]; })"
    )
    for frame, picture in shapes:
        assert frame == pytest.approx(picture, rel=0.03)


def test_the_page_asks_for_its_own_files_and_answers_alone(page, site):
    page.goto(site)
    expect(page.locator("a.open").first).to_be_visible()
    scripts = page.evaluate("performance.getEntriesByType('resource').map(entry => new URL(entry.name).pathname)")
    assert all(re.match(r"/(static|common|sample|about|images|search|favourites)", path) for path in scripts), scripts


def test_the_token_is_asked_for_again(new_page, index):
    page = new_page()
    page.expected += ["401", "ERR_"]  # of pictures still on their way when the server ends
    with background(index, PaletteModel(), settings=ServerSettings(token=TOKEN)) as address:
        page.goto(address + f"?token={TOKEN}&q=blue")
        expect(page.locator("#results a.open").first).to_be_visible()
        assert TOKEN not in page.url
        page.context.clear_cookies()
        page.locator("#query").fill("green")
        page.locator("#query").press("Enter")
        expect(page.locator("#locked")).to_be_visible()
        page.locator("#token").fill(TOKEN)
        page.get_by_role("button", name="Open", exact=True).click()
        expect(page.locator("#results a.open").first).to_contain_text("green")
        assert TOKEN not in page.url
