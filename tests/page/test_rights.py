"""What a token may not do, the page does not offer; who grades is whom the token names."""

from collections.abc import Iterator

import pytest

from rungwise.index import Index
from rungwise.serving import ServerSettings, background
from rungwise.serving.access import parse_tokens
from tests.page.browser import expect, expect_told
from tests.page.collection import PaletteModel, collection
from tests.serving.conftest import PATIENT

pytestmark = pytest.mark.slow

TOKENS = "rita read token-of-rita; greta grade token-of-greta; wanda write token-of-wanda"


@pytest.fixture
def team_index(tmp_path) -> Index:
    return Index.build(collection(tmp_path / "pictures", count=24), PaletteModel(), tmp_path / "index")


@pytest.fixture
def team_site(team_index) -> Iterator[str]:
    settings = ServerSettings(tokens=parse_tokens(TOKENS, "here"), keep_queries=30, limits=PATIENT)
    with background(team_index, PaletteModel(), settings=settings) as address:
        yield address


def search_as(page, site, name):
    page.goto(f"{site}?token=token-of-{name}&q=red")
    expect_told(page)
    page.locator("#results .tile").first.wait_for()


def test_who_may_only_read_is_offered_nothing_else(team_site, page):
    search_as(page, team_site, "rita")
    expect(page.locator("#results .grades").first).to_be_hidden()
    expect(page.locator("#grading")).to_be_hidden()
    expect(page.locator("#save-search")).to_be_hidden()
    expect(page.locator("#not-kept")).to_be_hidden()
    page.locator("#results a.open").first.click()
    expect(page.locator("#detail")).to_be_visible()
    expect(page.locator("#favourite")).to_be_hidden()
    page.goto(team_site)
    expect(page.locator("#kept-queries")).to_be_visible()
    expect(page.locator("#forget-queries")).to_be_hidden()


def test_who_may_grade_does_so_under_the_name_of_the_token(team_site, team_index, page):
    search_as(page, team_site, "greta")
    page.locator("#menu > summary").click()
    expect(page.locator("#save-search")).to_be_visible()
    page.locator("#grading-mode").click()
    expect(page.locator("#grader")).to_be_hidden()
    button = page.locator("#results .tile button[data-grade=right]").first
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#judged")).to_be_visible()
    assert [one.who for one in team_index.grades().kept] == ["greta"]
    page.goto(team_site)
    expect(page.locator("#kept-queries")).to_be_visible()
    expect(page.locator("#forget-queries")).to_be_hidden()


def test_who_may_everything_may_delete_what_is_kept(team_site, page):
    search_as(page, team_site, "wanda")
    page.goto(team_site)
    expect(page.locator("#forget-queries")).to_be_visible()
