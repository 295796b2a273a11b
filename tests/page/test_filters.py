"""Filters: fields for columns, expressions, chips."""

import re
from dataclasses import replace

import pytest

from tests.page.browser import expect
from tests.page.collection import collection

pytestmark = pytest.mark.slow


def opened(page, site, query="?q=blue&fold=false&end=false"):
    page.goto(site + query)
    expect(page.locator("#results a.open").first).to_be_visible()
    page.locator("#add-filter").click()
    expect(page.locator("#filters")).to_be_visible()


def shown(page):
    page.get_by_role("button", name="Show pictures").click()


def test_a_range_of_numbers(page, site):
    opened(page, site)
    page.get_by_label("year from").fill("2020")
    page.get_by_label("year to").fill("2021")
    shown(page)
    expect(page.locator("#end")).to_have_text("That is all: 10 pictures.")
    expect(page.locator("#chips .filter")).to_have_text([re.compile("year from 2020"), re.compile("year to 2021")])
    page.get_by_role("button", name="Remove filter year to 2021").click()
    expect(page.locator("#end")).to_have_text("That is all: 20 pictures.")
    page.reload()
    expect(page.locator("#chips .filter")).to_have_count(1)


def test_tags_choices_truth_dates_and_words(page, site):
    opened(page, site)
    page.get_by_label("warm").check()
    page.get_by_label("kind").select_option("poster (44)")
    page.get_by_label("for sale").select_option(label="no")
    page.get_by_label("day from").fill("2020-02-01")
    page.get_by_label("day to").fill("2020-12-15")
    page.get_by_label("captions", exact=True).fill("ON YELLOW")
    shown(page)
    expect(page.locator("#chips .filter")).to_have_count(6)
    expect(page.locator("#results a.open .caption").first).to_contain_text("on yellow")
    page.locator("#add-filter").click()
    expect(page.get_by_role("checkbox", name="warm")).to_be_checked()
    expect(page.get_by_role("combobox", name="for sale")).to_have_value("no")
    expect(page.get_by_label("day to", exact=True)).to_have_value("2020-12-15")
    expect(page.get_by_label("captions", exact=True)).to_have_value("ON YELLOW")
    expect(page.locator("#typed-where")).to_have_value("")
    page.get_by_role("button", name="Remove all").click()
    expect(page.locator("#chips .filter")).to_have_count(0)
    expect(page.locator("#query")).to_have_value("blue")


def test_of_many_tags_the_others_are_typed(page, site):
    tags = [{"value": f"tag {number}", "rows": 9, "inner": False} for number in range(30)]

    def with_many(route):
        about = route.fetch().json()
        columns = [
            {**column, "values": tags, "more": True} if column["name"] == "tags" else column
            for column in about["columns"]
        ]
        route.fulfill(json={**about, "columns": columns})

    page.route("**/about", with_many)
    opened(page, site)
    page.get_by_label("another of tags").fill("war")
    expect(page.locator("datalist option")).to_have_attribute("value", "warm")
    page.get_by_label("another of tags").fill("warm")
    shown(page)
    expect(page.locator("#chips .filter")).to_have_text(re.compile("tags: warm"))


def test_fields_come_into_a_sheet_that_was_opened_before_them(page, site):
    held = []
    page.route("**/about", lambda route: held.append(route))
    page.goto(site + "?where=year+%3E%3D+2020+and+(year+%3C+2001+or+tags+has+'warm')&fold=false")
    page.locator("#add-filter").click()
    expect(page.locator("#filters")).to_be_visible()
    expect(page.locator("#typed-where")).to_have_value("year >= 2020 and (year < 2001 or tags has 'warm')")
    page.locator("#fold").check()
    held[0].continue_()
    expect(page.get_by_label("year from", exact=True)).to_have_value("2020")
    expect(page.locator("#typed-where")).to_have_value("(year < 2001 or tags has 'warm')")
    expect(page.locator("#fold")).to_be_checked()
    shown(page)
    expect(page.locator("#chips .filter")).to_have_count(2)


def test_an_expression_that_fields_cannot_say(page, site):
    opened(page, site)
    typed = "year in (2001, 2002) or captions contains 'red'"
    page.locator("#typed-where").fill(typed)
    shown(page)
    expect(page.locator("#results a.open").first).to_be_visible()
    expect(page.locator("#chips .filter .chip-text")).to_have_text(typed)
    page.locator("#chips .filter .chip-text").click()
    expect(page.locator("#typed-where")).to_have_value(typed)
    page.keyboard.press("Escape")
    expect(page.locator("#filters")).to_be_hidden()


def test_a_filter_without_a_query_shows_the_newest(page, site):
    page.goto(site + "?where=year+%3D%3D+2003")
    expect(page.locator("#results a.open")).to_have_count(6)
    expect(page.locator("#results-title")).to_have_text("Pictures, newest first")
    page.goto(site + "?where=tags+has+'warm'")
    expect(page.locator("#chips .filter")).to_have_text("tags: warm")


def test_nothing_fits(page, site):
    page.goto(site + "?q=red&where=year+%3E+3000")
    expect(page.locator("#results-title")).to_contain_text("Remove a filter")
    expect(page.locator("#announcer")).to_contain_text("Remove a filter")


def test_how_to_search(page, site):
    opened(page, site, "?q=blue&end=false")
    page.locator("#fold").uncheck()
    page.locator("#variety").check()
    page.locator("#words").select_option("off")
    shown(page)
    expect(page.locator("#results a.open").first).to_be_visible()
    assert {"fold=false", "diversity=0.5", "words=off"} <= set(page.url.partition("?")[2].split("&"))
    expect(page.locator(".folded")).to_have_count(0)


def test_a_tag_in_the_large_view_filters(page, site):
    page.goto(site + "?q=blue&end=false&show=001")
    page.locator("#detail-facts .tag", has_text="warm").click()
    expect(page.locator("#detail")).to_be_hidden()
    expect(page.locator("#chips .filter")).to_contain_text("tags: warm")


def test_peoples_own_columns_come_first_and_constant_ones_not_at_all(page, site):
    opened(page, site)
    expect(page.get_by_label("captions", exact=True)).to_be_visible()
    names = page.locator("#columns > .column > span:first-child, #columns > .column > legend").all_inner_texts()
    assert names[0] == "tags"
    assert {"title", "year", "kind", "for sale", "day", "captions"} <= set(names)
    assert not {"bytes", "width", "height", "format", "file", "modified", "folder"} & set(names)
    assert "format" not in page.locator("#further-columns").inner_text()  # all are PNG
    expect(page.locator("#further-columns")).to_be_hidden()
    page.get_by_text("More filters").click()
    expect(page.get_by_label("width from")).to_be_visible()


def test_a_filter_on_a_technical_column_is_seen_at_once(page, site):
    opened(page, site, "?q=blue&fold=false&end=false&where=width > 100")
    expect(page.locator("#typed-where")).to_have_value("width > 100")
    page.goto(site + "?q=blue&fold=false&end=false&where=width >= 100")
    expect(page.locator("#results a.open").first).to_be_visible()
    page.locator("#add-filter").click()
    expect(page.get_by_role("spinbutton", name="width from")).to_have_value("100")


def in_folders(count=101, deep=("trips/Rome", "trips/Pisa/tower")):
    """Makes a collection of one picture in each of many folders, and of two in folders within others."""

    def made(folder):
        data = collection(folder, count=count + 2 * len(deep))
        names = [f"{number:03}" for number in range(count)] + [one for one in deep for _ in range(2)]
        names += ["000"] * (len(data) - len(names))
        return replace(data, columns={**data.columns, "folder": tuple(names)})

    return made


def test_folders_stand_below_their_parents_with_all_pictures_below_them(page, new_index_site):
    opened(page, new_index_site(in_folders(count=4)))
    folders = page.get_by_role("group", name="folder")
    expect(folders.locator("li")).to_have_text(["any", "0002", "0011", "0021", "0031", "trips4"])
    page.get_by_role("button", name="folders in trips").click()
    expect(folders.locator("ul ul > li")).to_have_text(["Pisa2", "Rome2"])
    page.get_by_role("button", name="folders in Pisa").click()
    page.get_by_label("tower").check()
    page.get_by_role("button", name="folders in trips").click()  # what is chosen stays so while its folder is closed
    expect(folders.locator("ul ul")).to_have_count(0)
    shown(page)
    expect(page.locator("#chips .filter")).to_contain_text("folder is trips/Pisa/tower")
    expect(page.locator("#end")).to_have_text("That is all: 2 pictures.")
    page.locator("#add-filter").click()
    expect(folders.get_by_label("trips/Pisa/tower")).to_be_checked()


def test_a_folder_that_is_not_listed_is_typed(page, new_index_site):
    opened(page, new_index_site(in_folders()))
    folders = page.get_by_role("group", name="folder")
    expect(folders.get_by_label("029")).to_be_visible()
    expect(folders.get_by_label("087")).to_have_count(0)
    page.get_by_label("find in folder").fill("87")
    expect(folders.locator("li")).to_have_text(["any", "0871"])
    page.keyboard.press("Enter")  # the only one that is left
    expect(folders.get_by_label("087")).to_be_checked()
    page.get_by_label("find in folder").fill("nowhere")
    expect(folders.get_by_role("status")).to_have_text("No folder has “nowhere” in it.")
    expect(folders.get_by_label("087")).to_be_checked()
    page.get_by_label("find in folder").fill("")
    page.get_by_role("button", name="all folders").click()
    expect(folders.get_by_label("100")).to_be_visible()
    expect(folders.get_by_label("087")).to_be_checked()
    shown(page)
    expect(page.locator("#chips .filter")).to_have_text("folder is 087")
    expect(page.locator("#end")).to_have_text("That is all: 1 picture.")


def test_no_number_is_shown_until_pictures_are_counted(page, site):
    counted = []

    def uncounted(route):
        about = route.fetch().json()
        if not counted:
            about["columns"] = [
                {**one, "rows": None, "values": [], "least": None, "most": None} for one in about["columns"]
            ]
        route.fulfill(json=about)

    page.route("**/about", uncounted)
    opened(page, site)
    expect(page.locator("#counting")).to_be_visible()
    expect(page.get_by_label("kind")).to_have_attribute("placeholder", "contains…")
    expect(page.get_by_label("year from")).to_have_attribute("placeholder", "")
    counted.append(True)
    expect(page.locator("#counting")).to_be_hidden()
    expect(page.get_by_role("combobox", name="kind")).to_be_visible()


def test_numbers_of_some_pictures_are_about_so(page, site):
    def drawn(route):
        about = route.fetch().json()
        columns = [{**one, "about": True, "least": None, "most": None} for one in about["columns"]]
        route.fulfill(json={**about, "columns": columns})

    page.route("**/about", drawn)
    opened(page, site)
    page.get_by_label("kind").select_option("poster (about 44)")
    expect(page.get_by_role("checkbox", name=re.compile(r"warm about \d+"))).to_be_visible()


def test_new_columns_come_into_an_open_sheet_that_nobody_has_touched(page, site):
    opened(page, site)

    def with_new(route):
        about = route.fetch().json()
        column = {"name": "shop", "type": "text", "examples": [], "rows": 8, "least": None, "most": None}
        values = [{"value": "Rome", "rows": 4, "inner": False}, {"value": "Pisa", "rows": 4, "inner": False}]
        column |= {"values": values, "about": False, "more": False}
        route.fulfill(json={**about, "columns": [*about["columns"], column]})

    page.route("**/about", with_new)
    expect(page.get_by_label("shop")).to_be_visible()
