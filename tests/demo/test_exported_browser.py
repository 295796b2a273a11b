"""The exported page in a browser: it shows what the demo answers, from any web server and from a disk."""

import functools
import http.server
import threading
from pathlib import Path

import pytest

from tests.demo.conftest import QUERIES
from tests.demo.test_page import LOOKS, ready
from tests.page.browser import expect

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plain_server(exported):
    """Address of a server that sends the files and nothing else."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    handler = functools.partial(Quiet, directory=exported)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page(new_page, plain_server):
    opened = new_page()
    opened.goto(plain_server)
    ready(opened)
    return opened


def shown(page, answer):
    """Wait until the page shows an answer, and compare both columns with it."""
    expect(page.locator("#query")).to_have_value(answer.query)
    for place, column in enumerate(answer.columns):
        own = page.locator(".column").nth(place)
        expect(own.locator("h2")).to_have_text(column.title)
        expect(own.locator(".tile")).to_have_count(len(column.hits))
        steps = own.locator(".tile").evaluate_all("tiles => tiles.map(tile => tile.dataset.step ?? null)")
        assert steps == [None if hit.degree is None else str(int(hit.degree * 4 + 1e-6)) for hit in column.hits]
        words = own.locator(".tile [role=img]").evaluate_all("all => all.map(one => one.ariaLabel.split(':')[0])")
        assert words == [f"{hit.true} of {answer.facts} true" if answer.facts else "not known" for hit in column.hits]


def test_both_columns_are_there_and_another_query_is_chosen(page, demo, known):
    texts = [one["query"] for one in known["answers"]]
    shown(page, demo.comparison.answer(texts[0]))
    page.locator("#query").click()
    expect(page.locator("#queries li:visible")).to_have_count(QUERIES)
    page.locator("#query").fill("elephant purple")
    expect(page.locator("#count")).to_have_text(f"1 of {QUERIES} queries have these words")
    page.locator("#queries li:visible").click()
    shown(page, demo.comparison.answer("a purple elephant"))
    page.locator("#query").press("ArrowDown")
    page.locator("#query").press("ArrowDown")
    page.locator("#query").press("Enter")
    shown(page, demo.comparison.answer(texts[1]))
    page.locator("#next").click()
    shown(page, demo.comparison.answer(texts[2]))
    page.go_back()
    shown(page, demo.comparison.answer(texts[1]))
    page.locator("#query").fill("nothing like this")
    page.locator("#query").press("Escape")
    expect(page.locator("#query")).to_have_value(texts[1])


def test_a_picture_is_shown_large_with_what_is_true_of_it(page, demo, known):
    answer = demo.comparison.answer(known["answers"][0]["query"])
    page.locator(".tile .frame:visible").first.click()
    expect(page.locator("#picture")).to_contain_text(
        f"of the {answer.facts} facts of the query are true of this picture."
    )
    expect(page.locator("#picture")).to_contain_text("A caption of this picture: “")
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#picture")).to_be_hidden()


def test_a_query_of_an_address_that_the_page_does_not_know_is_said(new_page, plain_server):
    page = new_page()
    page.goto(f"{plain_server}#q=a%20blue%20whale")
    expect(page.locator("#message")).to_contain_text(f"This page knows {QUERIES} queries, and “a blue whale” is none")


def test_the_page_opens_from_the_disk(chromium, exported, demo, known):
    page = chromium.new_page()
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto((exported / "index.html").as_uri())
    ready(page)
    page.locator("#next").click()
    shown(page, demo.comparison.answer(known["answers"][1]["query"]))
    page.close()
    assert not complaints


@pytest.mark.parametrize("look", LOOKS)
def test_no_rule_of_axe_is_broken_and_nothing_is_too_wide(new_page, plain_server, look):
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = next(Path(package.__path__[0]).rglob("axe.min.js")).read_text(encoding="utf-8")
    page = new_page(reduced_motion="reduce", **LOOKS[look])
    page.goto(plain_server)
    ready(page)

    def check():
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        broken = [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found["violations"]]
        assert not broken, broken

    check()
    page.locator("#query").click()
    page.locator("#query").press("ArrowDown")
    check()
    page.locator("#query").press("Escape")
    page.locator(".tile .frame:visible").first.click()
    check()
