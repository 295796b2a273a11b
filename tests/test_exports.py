"""Tests rungwise._exports: what a room exports is loaded when it is asked for."""

import importlib
import sys
from pathlib import Path

import pytest

from rungwise._exports import exporting
from tests.house import exports_of, modules

ROOMS = [one for one, path in modules().items() if path.with_suffix(".pyi").is_file()]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A room with two modules, of which nothing is imported yet."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from rungwise._exports import exporting\n\n__all__, __getattr__, __dir__ = exporting(__name__, __file__)\n"
    )
    (folder / "__init__.pyi").write_text("from ._books import Book as Book\nfrom ._maps import draw as sketch\n")
    (folder / "_books.py").write_text("class Book:\n    pass\n")
    (folder / "_maps.py").write_text("def draw():\n    return 'a map'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "shelf"
    for name in [one for one in sys.modules if one.partition(".")[0] == "shelf"]:
        del sys.modules[name]


def test_a_name_loads_its_own_module_and_no_other(shelf: str) -> None:
    room = importlib.import_module(shelf)
    assert room.__all__ == ["Book", "sketch"]
    assert not {"shelf._books", "shelf._maps"} & sys.modules.keys()
    assert room.Book.__module__ == "shelf._books"
    assert "shelf._maps" not in sys.modules
    assert room.sketch() == "a map"
    assert dir(room) == ["Book", "sketch"]


def test_a_name_that_is_replaced_in_its_module_is_found_replaced(shelf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room = importlib.import_module(shelf)
    assert room.sketch() == "a map"
    monkeypatch.setattr("shelf._maps.draw", lambda: "another")
    assert room.sketch() == "another"


def test_what_is_not_listed_is_not_there(shelf: str) -> None:
    with pytest.raises(AttributeError, match="module 'shelf' has no attribute 'draw'"):
        importlib.import_module(shelf).draw()


def test_everything_comes_with_a_star(shelf: str) -> None:
    found: dict[str, object] = {}
    exec("from shelf import *", found)
    assert {"Book", "sketch"} <= found.keys()


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_has_what_it_lists(room: str) -> None:
    listed, load, names = exporting(room, str(modules()[room]))
    assert sorted(exports_of(room)) == listed == names()
    for name in listed:
        load(name)
