"""What a server keeps of queries, from memory to the disk."""

import asyncio
import logging
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.index.layout import read_queries
from rungwise.serving.state import KeptQueries
from rungwise.serving.state import _kept_queries as module
from tests.colour_model import ColourModel, colour_pictures

DAY = date(2999, 5, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index").folder


def kept(folder: Path) -> dict[str, int]:
    return {one.text: one.times for one in read_queries(folder, DAY).kept}


def test_a_text_counts_once_in_each_writing(folder: Path) -> None:
    asked = KeptQueries(folder, 30, 100, lambda: DAY)
    for text in ("red  boat", " red boat ", "blue", " "):
        asked.note(text)
    assert kept(folder) == {}
    asked.write()
    assert kept(folder) == {"red boat": 1, "blue": 1}
    asked.note("blue")
    asked.write()
    asked.write()
    assert kept(folder) == {"red boat": 1, "blue": 2}


def test_several_servers_lose_nothing_of_one_another(folder: Path) -> None:
    servers = [KeptQueries(folder, 30, 100, lambda: DAY) for _ in range(3)]
    for one in servers:
        one.note("red")
    for one in servers:
        one.write()
    assert kept(folder) == {"red": 3}


def test_nothing_is_written_where_nothing_was_asked_on_a_day_that_was_written(folder: Path) -> None:
    days = [date(2024, 5, 1)]
    asked = KeptQueries(folder, 1, 100, lambda: days[-1])
    asked.note("old")
    asked.write()
    before = (folder / "queries.jsonl").stat().st_ino
    asked.write()
    assert (folder / "queries.jsonl").stat().st_ino == before
    days.append(date(2024, 5, 3))
    asked.write()
    assert not (folder / "queries.jsonl").exists()


def test_what_cannot_be_written_is_said_and_tried_again(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = KeptQueries(folder, 30, 100, lambda: DAY)
    asked.note("secret words")
    (folder / "queries.jsonl").mkdir()
    with caplog.at_level(logging.WARNING):
        asked.write()
    assert "queries could not be kept this time" in caplog.text
    assert "secret" not in caplog.text
    (folder / "queries.jsonl").rmdir()
    asked.write()
    assert kept(folder) == {"secret words": 1}
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 2)
    for text in "abc":
        asked.note(text)
    asked.write()
    assert set(kept(folder)) == {"secret words", "a", "b"}


def test_a_writing_for_which_there_was_no_thread_is_made_up_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = KeptQueries(folder, 30, 100, lambda: DAY)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.0)

    async def served() -> None:
        tries, again = 0, asyncio.Event()

        async def to_thread(write: Callable[[], object]) -> None:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise RuntimeError("can't start new thread")
            write()
            again.set()

        monkeypatch.setattr(asyncio, "to_thread", to_thread)
        asked.note("boats")
        async with asked.written_at_times():
            await again.wait()

    asyncio.run(served())
    assert kept(folder) == {"boats": 1}


def test_what_is_forgotten_is_not_written_later(folder: Path) -> None:
    asked = KeptQueries(folder, 30, 100, lambda: DAY)
    asked.note("red")
    asked.write()
    asked.note("blue")
    assert asked.forget() == 1
    asked.write()
    assert kept(folder) == {}


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_days_have_bounds(folder: Path, days: int) -> None:
    with pytest.raises(UserError, match=f"keep_queries={days}: give the days for which a query is kept, 1 to 3650"):
        KeptQueries(folder, days, 100)
