"""Pictures that a visitor gives: chosen, dropped, pasted, joined to a query, shared."""

import base64
import re

import pytest

from tests.page.browser import expect, expect_drawn

pytestmark = pytest.mark.slow

DROP = """([kind, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "mine.png", { type: "image/png" }));
  const send = (name) => document.body.dispatchEvent(
    new DragEvent(name, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  if (kind === "paste") {
    document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
    return;
  }
  send("dragenter");
  send("dragover");
  if (kind === "drop") send("drop");
  if (kind === "leave") send("dragleave");
}"""


def given(page):
    expect(page).to_have_url(re.compile(r"\?picture=\w+$"))
    expect(page.locator("#source-title")).to_have_text("More like your picture")
    expect(page.locator("#results a.open").first).to_contain_text("on blue")
    expect(page.locator("#fitting-list li").first).to_be_visible()
    expect_drawn(page.locator("#source-picture"), 90)


def test_choosing(page, site, picture):
    page.goto(site)
    with page.expect_file_chooser() as chooser:
        page.locator("#choose").click()
    chooser.value.set_files(picture)
    given(page)


def test_dropping_shows_where_and_pasting_does_the_same(page, site, picture):
    page.goto(site)
    data = base64.b64encode(picture.read_bytes()).decode()
    page.evaluate(DROP, ["enter", data])
    expect(page.locator("#drop")).to_be_visible()
    page.evaluate(DROP, ["leave", data])
    page.evaluate(DROP, ["drop", data])
    expect(page.locator("#drop")).to_be_hidden()
    given(page)
    page.goto(site)
    page.evaluate(DROP, ["paste", data])
    given(page)


def test_the_address_of_a_given_picture_can_be_shared(page, new_page, site, picture):
    page.goto(site)
    page.locator("#file").set_input_files(picture)
    given(page)
    other = new_page()
    other.goto(page.url)
    given(other)


def test_a_given_picture_joins_words(page, site, picture):
    page.goto(site + "?q=red&end=false")
    expect(page.locator("#results a.open").first).to_be_visible()
    with page.expect_file_chooser() as chooser:
        page.locator("#add-picture").click()
    chooser.value.set_files(picture)
    expect(page.locator("#chips .chip")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"q=red&picture="))
    page.locator("#chips .chip", has=page.locator("img")).get_by_role("button", name=re.compile("change")).click()
    expect(page.locator("#chips .chip.less img")).to_be_visible()


def test_what_is_no_picture_is_said(page, site, tmp_path):
    page.expected.append("422")
    page.goto(site + "?q=red&end=false")
    expect(page.locator("#results a.open").first).to_be_visible()
    (tmp_path / "notes.png").write_text("no picture")
    page.locator("#file").set_input_files(tmp_path / "notes.png")
    expect(page.locator("#message")).to_contain_text("picture")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.locator("#results a.open").first).to_be_visible()


def test_what_is_too_large_is_not_sent(page, site, tmp_path):
    page.goto(site)
    expect(page.locator("#about")).to_contain_text("squares")
    with (tmp_path / "huge.jpg").open("wb") as file:
        file.truncate(21 * 1024 * 1024)
    page.locator("#file").set_input_files(tmp_path / "huge.jpg")
    expect(page.locator("#message")).to_have_text("huge.jpg is larger than 20 MiB. Choose a smaller one.")


def test_a_given_picture_that_is_no_longer_kept_is_said(page, site):
    page.expected.append("404")
    page.goto(site + "?picture=" + "0" * 32)
    expect(page.locator("#message")).to_contain_text("send it again")
