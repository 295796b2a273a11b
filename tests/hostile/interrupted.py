"""What all attacks on writers share: a place with strangers in it, the two right states, and what comes afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rungwise.core import UserError
from tests.hostile import shim
from tests.hostile.counting import Case, Verdict
from tests.hostile.disk import inodes_in
from tests.hostile.files import _last
from tests.hostile.forked import MEMORY, Outcome, outcome_of
from tests.hostile.shim import Mode, Operation
from tests.hostile.writers import ABSENT, Writer, names_in, writers

STRANGERS = ("stranger.txt", ".hidden-stranger", "index.old", ".index.1.partial", ".result.json.7.partial")
REFUSED = "refused"


@dataclass(frozen=True)
class Prepared:
    """A writer with what is right for it.

    Attributes:
        writer: The writer.
        before: Folder as it stood, copied for each case.
        old: State before.
        new: State after.
        names: That may stand in a place afterwards.
        calls: What the writer asks of the file system, in order.
        place: Where every case is played, always the same path.
        inodes: Of the files that stood there before the calls.
    """

    writer: Writer
    before: Path
    old: Any
    new: Any
    names: frozenset[str]
    calls: Sequence[Operation]
    place: Path
    inodes: dict[str, int]


_known: dict[Path, Prepared] = {}


def all_prepared(world: Path, scratch: Path, only: str = "") -> Iterator[Prepared]:
    """Every writer whose name holds a text, ready to be attacked; the families of one run share them."""
    for number, writer in enumerate(writers(world)):
        folder = scratch / str(number)
        if only in writer.name:
            if folder not in _known:
                _known[folder] = _prepared(writer, folder)
            yield _known[folder]


def _prepared(writer: Writer, folder: Path) -> Prepared:
    """Make the old state, and see once how the writer goes its way undisturbed."""
    before, place, log = folder / "before", folder / "place", folder / "log"
    before.mkdir(parents=True)
    for name in STRANGERS:
        (before / name).write_text(f"{name} of a stranger")
    made = outcome_of(partial(_make, writer, before, place), memory=None)
    assert made.ending == "returned", f"{writer.name}: {made}"
    fresh(before, place)
    inodes = inodes_in(place)
    seen = outcome_of(partial(_watched, writer, place, log), memory=None)
    assert seen.ending == "returned", f"{writer.name}: {seen}"
    calls = shim.operations(log)
    names = frozenset([*made.value["names"], *seen.value["names"]])
    return Prepared(writer, before, made.value["state"], seen.value["state"], names, calls, place, inodes)


def _make(writer: Writer, before: Path, place: Path) -> Any:
    # At the place itself, since some files hold paths of others.
    shutil.copytree(before, place)
    writer.before(place)
    shutil.rmtree(before)
    shutil.copytree(place, before, symlinks=True)
    return {"state": writer.state_or_absent(place), "names": names_in(place)}


def _watched(writer: Writer, place: Path, log: Path) -> Any:
    shim.arm(place, Mode.WATCH, log=log)
    writer.write(place)
    shim.disarm()
    return {"state": writer.state_or_absent(place), "names": names_in(place)}


def fresh(before: Path, place: Path) -> None:
    """The place as it stood before."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(before, place, symlinks=True)


def attacked(one: Prepared, mode: Mode, at: int, error: int = 0) -> Outcome:
    """How the writer ends that is disturbed at a call, from the old state."""
    fresh(one.before, one.place)
    return outcome_of(partial(_armed, one, mode, at, error))


def _armed(one: Prepared, mode: Mode, at: int, error: int) -> Any:
    shim.arm(one.place, mode, at, error)
    try:
        one.writer.write(one.place)
    finally:
        shim.disarm()


def aftermath(one: Prepared, family: str, attack: str, *, done: bool = False, refusal: str = "") -> Case:
    """Read what stands in the place, finish the change, and judge both.

    Args:
        one: The writer.
        family: Of the case.
        attack: What was done to it.
        done: The change was acknowledged, so that the new state must stand.
        refusal: What the writer said, where it refused in one line.
    """
    # Threads of LanceDB reserve addresses that they never use: with a limit on these, they ended one case in 200.
    outcome = outcome_of(partial(_afterwards, one), memory=4 * MEMORY if one.writer.costly else MEMORY)
    verdict, detail = _judged(one, outcome, done)
    if verdict == "clean":
        verdict, detail = ("clean", refusal) if refusal else ("accepted", detail)
    return Case(family, one.writer.name, attack, verdict, detail)


def _afterwards(one: Prepared) -> Any:
    answer: dict[str, Any] = {}
    try:
        answer["first"] = one.writer.state_or_absent(one.place)
    except UserError as error:
        answer["first"], answer["why"] = REFUSED, str(error)
    one.writer.finish(one.place)
    answer["last"] = one.writer.state(one.place)
    answer["names"] = names_in(one.place)
    answer["strangers"] = [
        name
        for name in STRANGERS
        if not (one.place / name).is_file() or (one.place / name).read_text() != f"{name} of a stranger"
    ]
    return answer


def _judged(one: Prepared, outcome: Outcome, done: bool) -> tuple[Verdict, str]:
    if outcome.ending == "refused":
        return "lost", f"the next start refuses: {outcome.text}"
    if outcome.ending != "returned":
        return "traceback", "afterwards: " + "\n    ".join(_last(outcome.text))
    answer = outcome.value
    if answer["strangers"]:
        return "lost", f"a stranger's file: {answer['strangers'][0]}"
    first = answer["first"]
    if first == REFUSED and one.old != ABSENT:
        return "lost", f"refused: {answer['why']}"
    if done and first != one.new:
        return "lost", f"acknowledged, and gone: {str(first)[:200]}"
    right = first in (one.old, one.new, REFUSED) or (first != ABSENT and one.writer.between(first))
    if not right:
        return ("lost", "nothing is left") if first == ABSENT else ("wrong", f"neither old nor new: {str(first)[:200]}")
    if answer["last"] != one.new:
        return "wrong", f"finished, but not to the new state: {str(answer['last'])[:200]}"
    if left := sorted(set(answer["names"]) - one.names):
        return "wrong", f"left over after the next start: {left[0]}"
    return "clean", "old or new, then finished"
