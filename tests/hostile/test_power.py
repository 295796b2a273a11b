"""A power cut after every call of every writer: old or new stands, and new once the writer has returned."""

from pathlib import Path
from random import Random

import pytest

from tests.hostile import shim
from tests.hostile.conftest import assert_nothing_bad, in_parts, with_shim, write_in_a_process
from tests.hostile.disk import CUTS, Cut, after, put, some_writes
from tests.hostile.shim import Operation


@with_shim
@pytest.mark.long
@in_parts(30)
def test_no_power_cut_loses_anything(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("power", part, tmp_path, 30)


WATCHED = """
import sys
from pathlib import Path
from rungwise.core.disk import replacing
from tests.hostile import shim
place = Path(sys.argv[1])
print((place / "a").stat().st_ino, file=sys.stderr)
shim.arm(place, log=place.with_name("log"))
with replacing(place / "a") as draft:
    draft.write_text("new")
"""


@with_shim
@pytest.mark.smoke
def test_a_power_cut_after_any_call_of_a_write_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    place, run = write_in_a_process(WATCHED, tmp_path)
    assert run.returncode == 0, run.stderr
    before = tmp_path / "before"
    before.mkdir()
    (before / "a").write_text("old")
    calls = shim.operations(tmp_path / "log")
    assert {"w", "s", "r"} <= {one.kind for one in calls}
    for count in range(len(calls) + 1):
        disk = after(before, {"a": int(run.stderr)}, place, calls[:count])
        for number, cut in enumerate(CUTS):
            put(disk, cut, left := tmp_path / f"{count} {number}")
            assert (left / "a").read_text() in (["new"] if count == len(calls) else ["old", "new"])


def _overwritten(place: Path) -> list[Operation]:
    """Of a writer that makes a new file, writes it, syncs it, puts it in the old one's place, and syncs the folder."""
    draft, target = f"{place}/draft", f"{place}/a"
    return [
        Operation("o", (2, 1, 0), draft, "", b""),
        Operation("w", (2, 0, 0), draft, "", b"new"),
        Operation("s", (2, 0, 0), draft, "", b""),
        Operation("r", (0, 0, 0), draft, target, b""),
        Operation("s", (9, 1, 0), str(place), "", b""),
    ]


def _left(tmp_path: Path, calls: list[Operation], cut: Cut, journal: int | None = None) -> dict[str, bytes]:
    before, place = tmp_path / "before", tmp_path / "place"
    before.mkdir(exist_ok=True)
    (before / "a").write_bytes(b"old")
    put(after(before, {"a": 1}, place, calls, journal), cut, place)
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize(
    ("count", "cut", "left"),
    [
        (5, 0, {"a": b"new"}),
        (4, 0, {"a": b"old"}),
        (4, 1, {"a": b"new"}),
        (2, 1, {"a": b"old", "draft": bytes(3)}),
        (2, 2, {"a": b"old", "draft": b""}),
        (2, 0, {"a": b"old"}),
    ],
)
def test_a_cut_leaves_what_was_synced(tmp_path: Path, count: int, cut: int, left: dict[str, bytes]) -> None:
    assert _left(tmp_path, _overwritten(tmp_path / "place")[:count], CUTS[cut]) == left


def test_a_journal_at_an_earlier_moment_has_the_old_names_and_some_of_the_new_bytes(tmp_path: Path) -> None:
    calls = _overwritten(tmp_path / "place")[:4]
    cut = Cut("some", lambda folder: folder.now, some_writes(Random(0)))
    assert _left(tmp_path, calls, cut, journal=3) == {"a": b"old", "draft": b"new"}


def test_an_exchange_of_two_names_is_undone_or_done(tmp_path: Path) -> None:
    place = tmp_path / "place"
    calls = [*_overwritten(place)[:3], Operation("r", (2, 0, 0), f"{place}/draft", f"{place}/a", b"")]
    assert _left(tmp_path, calls, CUTS[0]) == {"a": b"old"}
    assert _left(tmp_path, [*calls, _overwritten(place)[4]], CUTS[0]) == {"a": b"new", "draft": b"old"}
