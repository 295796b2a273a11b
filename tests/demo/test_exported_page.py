"""The exported page: its files hold what the demo answers, and no others are replaced."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import rungwise.cli._demo as command
from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data import read
from rungwise.demo import _exported_page as export
from rungwise.demo import export_demo
from rungwise.demo._examples import FROM_OUTSIDE
from rungwise.demo._exported_page import PARTS, choose_queries, refuse_export, sheets
from rungwise.scenes import load_scene_file
from tests.demo.conftest import COMMAND, QUERIES, answers_in
from tests.rooms import ROOT


def test_the_folder_holds_the_page_and_no_address_outside(exported):
    names = sorted(one.name for one in exported.iterdir())
    assert names == ["answers.js", "index.html", "page.css", "page.js", "page.svg", "pictures-1.png"]
    html = (exported / "index.html").read_text(encoding="utf-8")
    assert html.count(COMMAND) == 2
    assert 'type="module"' not in html
    for one in re.findall(r'(?:src|href)="([^"#]+)"', html):
        assert (exported / one).is_file()
    for name in ("index.html", "page.css", "page.js", "answers.js"):
        found = re.findall(r"https?://[^\s\"']+", (exported / name).read_text(encoding="utf-8"))
        assert set(found) <= {"http://www.w3.org/2000/svg"}, "a name of a vocabulary, which nothing asks for"


def test_answers_are_those_of_the_demo(made, known):
    demo, words = made[1], known["words"]
    assert len(known["answers"]) == QUERIES
    for packed in known["answers"]:
        answer = demo.comparison.answer(packed["query"])
        assert (packed["facts"], packed["relevant"]) == (answer.facts, answer.relevant)
        for own, column in zip(packed["columns"], answer.columns, strict=True):
            assert own["shown"] == column.shown
            assert [count / answer.facts for count in own["curve"]] == pytest.approx(column.curve, abs=1e-4)
            for (_, true, band, *wrong), hit in zip(own["hits"], column.hits, strict=True):
                assert (true, words[band], tuple(words[one] for one in wrong)) == (hit.true, hit.band, hit.wrong)


def test_queries_are_of_all_kinds_and_different(made, known):
    texts = [one["query"] for one in known["answers"]]
    assert len({*texts}) == QUERIES
    assert {*FROM_OUTSIDE} < {*texts}
    assert texts[: len(made[1].results.examples)] == [one.text for one in made[1].results.examples]
    assert len({one["kind"] for one in known["answers"]}) >= 5


def test_fewer_queries_where_there_are_no_more(made):
    places, demo = made
    data, file = read(places.scenes).split("test"), load_scene_file(places.scenes)
    found = choose_queries(demo, places, data, file, 10_000)
    assert len({one.text for one in found}) == len(found) < 10_000
    assert {*data.captions} <= {one.text for one in found}


def test_every_picture_lies_where_its_number_says(made, exported, known):
    places, demo = made
    data = read(places.scenes)
    cells = known["cells"]
    cell = cells["side"] + 2 * cells["margin"]
    sheet = np.asarray(Image.open(exported / "pictures-1.png"))
    for packed in known["answers"]:
        for own, column in zip(packed["columns"], demo.comparison.answer(packed["query"]).columns, strict=True):
            for (number, *_), hit in zip(own["hits"], column.hits, strict=True):
                y, x = (place * cell + cells["margin"] for place in divmod(number, cells["across"]))
                picture = Image.open(data.paths[data.image_ids.index(hit.id)]).convert("RGB")
                assert (sheet[y : y + cells["side"], x : x + cells["side"]] == np.asarray(picture)).all()
                place = data.image_ids.index(hit.id)
                assert known["pictures"][number] in [data.captions[one] for one in data.captions_of_image[place]]


def test_many_pictures_need_more_sheets(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_ACROSS", 2)
    monkeypatch.setattr(export, "_DOWN", 2)
    for number in range(5):
        Image.new("RGB", (8, 8), (50 * number, 0, 0)).save(tmp_path / f"{number}.png")
    first, second = sheets([tmp_path / f"{number}.png" for number in range(5)], 8)
    assert (first.shape, second.shape) == ((32, 32, 3), (16, 32, 3))
    assert [first[8, 8, 0], first[8, 24, 0], first[24, 8, 0], first[24, 24, 0], second[8, 8, 0]] == [
        0,
        50,
        100,
        150,
        200,
    ]


def test_a_page_replaces_an_earlier_one_and_nothing_else(made, tmp_path):
    places, demo = made
    folder = tmp_path / "site"
    export_demo(demo, places, folder, COMMAND, queries=6)
    export_demo(demo, places, folder, COMMAND, queries=7)
    assert (folder / "answers.js").read_text().count('"kind":') == 7
    (folder / "thesis.tex").write_text("years of work")
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    for refused in (
        lambda: refuse_export(folder, places),
        lambda: export_demo(demo, places, folder, COMMAND, queries=6),
    ):
        with pytest.raises(UserError, match="holds 'thesis.tex', which is no part of an exported demo; name a new or"):
            refused()
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before


def test_a_page_is_whole_or_absent(made, tmp_path, monkeypatch):
    def failing(*_):
        raise OSError("the disk")

    monkeypatch.setattr(export, "sheets", failing)
    with pytest.raises((OSError, UserError), match="the disk"):
        export_demo(made[1], made[0], tmp_path / "site", COMMAND, queries=6)
    assert not [*tmp_path.iterdir()]


def test_a_page_shares_no_folder_with_the_demo(made):
    folder = made[0].folder
    for place in (folder, folder / "site", folder.parent):
        with pytest.raises(UserError, match="would share a folder with the demo"):
            refuse_export(place, made[0])


def test_the_command_exports_and_serves_nothing(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rungwise.demo.EXPORTED_QUERIES", 8, raising=False)
    assert command.main(["--folder", str(made[0].folder), "--export", "site", "--device", "cpu"]) == 0
    said = capsys.readouterr()
    assert "exported: 8 queries" in said.out + said.err
    assert COMMAND in (tmp_path / "site" / "index.html").read_text()
    assert all(any(Path(one.name).match(part) for part in PARTS) for one in (tmp_path / "site").iterdir())


def test_what_an_export_has_no_use_for_is_refused(made, tmp_path, capsys):
    assert main(["demo", "--folder", str(made[0].folder), "--export", str(tmp_path), "--port", "1"]) == 2
    assert "--port changes nothing beside --export" in capsys.readouterr().err


def test_the_kept_answers_of_the_live_example_are_such_as_the_page_reads(known):
    """The page is written anew with the site; ``rungwise demo --export docs/live/demo`` makes new answers."""
    kept = answers_in(ROOT / "docs" / "live" / "demo")
    assert kept.keys() == known.keys()
    for name in ("about", "cells"):
        assert kept[name].keys() == known[name].keys()
    assert {frozenset(one) for one in kept["answers"]} == {frozenset(one) for one in known["answers"]}
    assert {frozenset(column) for one in kept["answers"] for column in one["columns"]} == {
        frozenset(column) for one in known["answers"] for column in one["columns"]
    }
