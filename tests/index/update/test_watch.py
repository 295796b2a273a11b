"""Files that change are noticed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rungwise.index.update import changes_below

ADDED, MODIFIED, DELETED = 1, 2, 3


class Told:
    """What watchfiles would tell: one list of changes after the other, each time the folder is watched.

    Attributes:
        begun: How often the folder was watched.
        paused: Seconds that were waited for between.
    """

    def __init__(self, *watches: Any) -> None:
        self._watches = list(watches)
        self.begun = 0
        self.paused: list[float] = []

    def watch(
        self, *roots: Path, watch_filter: Callable[[int, str], bool], **how: Any
    ) -> Iterator[set[tuple[int, str]]]:
        assert how["yield_on_timeout"]
        self.begun += 1
        said = self._watches.pop(0)
        if isinstance(said, Exception):
            raise said
        for changes in said:
            yield {(kind, str(path)) for kind, path in changes if watch_filter(kind, str(path))}


def noticed(told: Told, folder: Path, without: Path) -> Iterator[bool]:
    return changes_below([folder], without, watch=told.watch, pause=told.paused.append)


def test_changes_are_noticed_but_for_hidden_ones_and_our_own(tmp_path: Path) -> None:
    index = tmp_path / "index"
    told = Told(
        [
            [],
            [(ADDED, index / "index.json"), (ADDED, tmp_path / ".hidden"), (MODIFIED, tmp_path / ".git" / "x")],
            [(ADDED, tmp_path / "sub" / "a.jpg"), (ADDED, index)],
            [(MODIFIED, index / "a.jpg")],
            [(DELETED, tmp_path / "sub" / "a.jpg")],
        ]
    )
    found = noticed(told, tmp_path, index)
    assert [next(found) for _ in range(5)] == [False, False, True, False, True]
    assert (told.begun, told.paused) == (1, [])


def test_a_folder_that_was_away_is_watched_again(tmp_path: Path) -> None:
    moved, photo = (DELETED, tmp_path), (ADDED, tmp_path / "a.jpg")
    told = Told([[], [moved], [photo]], FileNotFoundError(), FileNotFoundError(), [[], []])
    found = noticed(told, tmp_path, tmp_path / "index")
    assert [next(found) for _ in range(2)] == [False, True]
    assert [next(found) for _ in range(2)] == [False, False], "it is away"
    assert (told.begun, told.paused) == (3, [2.0, 2.0])
    assert [next(found) for _ in range(2)] == [True, False], "it is back, whatever was changed meanwhile"
    assert told.begun == 4


def test_a_name_that_is_no_text_ends_no_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The system's watch ends there; what changed is looked for now and then, and the log says so once."""
    fault = RuntimeError('Unable to decode path "b\\xFFd" to string')
    told = Told(fault, [[], [(ADDED, tmp_path / "a.jpg")]], fault)
    found = noticed(told, tmp_path, tmp_path / "index")
    first = [next(found) for _ in range(31)]
    assert first == [False] * 30 + [True]
    assert [next(found) for _ in range(2)] == [False, True]
    assert told.paused == [2.0] * 30
    assert [message.partition("; ")[2] for message in caplog.messages] == [
        "changes are looked for now and then instead"
    ]


@pytest.mark.smoke
def test_files_in_a_real_folder_are_noticed(tmp_path: Path) -> None:
    found, number = changes_below([tmp_path], tmp_path / "index"), 0
    while not next(found):  # as the first time, when nothing has changed
        (tmp_path / f"{number}.jpg").touch()
        number += 1
    assert number
    found.close()


@pytest.mark.slow
def test_a_real_folder_that_was_away_is_watched_again(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    found = changes_below([photos], tmp_path / "index")
    assert next(found) is False
    photos.rename(tmp_path / "away")
    (tmp_path / "away").rename(photos)
    while not next(found):
        pass
    (photos / "a.jpg").touch()
    while not next(found):
        pass
    found.close()
