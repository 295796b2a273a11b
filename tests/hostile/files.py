"""Hostile files under every reader: each case copies a good folder, spoils one file of it, and reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.hostile.choice import Choice
from tests.hostile.counting import Case, Verdict
from tests.hostile.damage import damages
from tests.hostile.forked import Outcome, outcomes, without_privileges
from tests.hostile.places import FILES, FOLDERS, Place
from tests.hostile.readers import Subject, subjects

FAMILY = "files"

_LINES = frozenset({".txt", ".csv", ".tsv", ".jsonl", ".list"})
"""Of files that may end anywhere."""


class Attack(NamedTuple):
    """One case to be run.

    Attributes:
        subject: Whose file.
        file: Relative to the subject's folder; empty for the folder itself.
        name: Of the attack.
        data: New bytes of the file; None where ``place`` is put there.
        place: What is put there.
        detectable: An answer that differs in silence is wrong.
    """

    subject: Subject
    file: str
    name: str
    data: bytes | None = None
    place: Place | None = None
    detectable: bool = False

    def __str__(self) -> str:
        return f"{self.subject.name}: {self.file}: {self.name}"


def attacks(subject: Subject, world: Path, seed: int) -> Iterator[Attack]:
    """All attacks on a reader."""
    for file in subject.files:
        path = world / subject.folder / file
        if path.is_file():
            yield from _on_file(subject, file, path, seed)
    if subject.whole:
        yield from (Attack(subject, "", place.name, place=place) for place in FOLDERS)


def _on_file(subject: Subject, file: str, path: Path, seed: int) -> Iterator[Attack]:
    sealed = subject.cover == "seal"
    good = path.read_bytes()
    for damage in damages(path.name, good, Random(f"{seed} {subject.name} {file}")):
        if damage.data != good:
            counted = subject.cover == "structure" and path.suffix not in _LINES
            covered = sealed or damage.kind == "bomb" or (counted and damage.kind == "structure")
            yield Attack(subject, file, damage.name, data=damage.data, detectable=covered)
    for place in FILES:
        yield Attack(subject, file, place.name, place=place, detectable=place.harmless)


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Carry out the attacks and judge their outcomes."""
    readers = subjects()
    jobs = [partial(one.read, world / one.folder) for one in readers]
    for subject, good in zip(readers, list(outcomes(jobs)), strict=True):
        assert good.ending == "returned", f"{subject.name} cannot read the good file: {good}"
        found = [one for one in attacks(subject, world, choice.seed) if choice.takes(str(one))]
        for as_nobody in (False, True) if without_privileges() is not None else (False,):
            yield from _judged(found, world, scratch, good.value, as_nobody)


def _judged(found: Sequence[Attack], world: Path, scratch: Path, good: Any, as_nobody: bool) -> Iterator[Case]:
    some = [one for one in found if bool(one.place and one.place.as_nobody) == as_nobody]
    jobs = [partial(carry_out, one, world, scratch / str(number)) for number, one in enumerate(some)]
    for attack, outcome in zip(some, outcomes(jobs, as_nobody=as_nobody and bool(without_privileges())), strict=True):
        verdict, detail = judged(attack, outcome, good)
        yield Case(FAMILY, attack.subject.name, f"{attack.file}: {attack.name}", verdict, detail)
    for left in scratch.iterdir():
        shutil.rmtree(left, ignore_errors=True)


def carry_out(attack: Attack, world: Path, folder: Path) -> Any:
    """The answer of the reader, in a copy of its folder."""
    shutil.copytree(world / attack.subject.folder, folder, symlinks=True, copy_function=shutil.copyfile)
    try:
        target = folder / attack.file if attack.file else folder
        if attack.data is not None:
            target.write_bytes(attack.data)
        elif attack.place is not None:
            attack.place.put(target)
        return attack.subject.read(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        shutil.rmtree(folder.with_name(f"{folder.name}.moved"), ignore_errors=True)
    else:
        folder.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


def judged(attack: Attack, outcome: Outcome, good: Any) -> tuple[Verdict, str]:
    """What an outcome means."""
    if outcome.ending == "died":
        return "traceback", f"the process died with status {outcome.value}: {outcome.text}"
    if outcome.ending == "raised":
        return "traceback", "\n    ".join(_last(outcome.text))
    if outcome.ending == "refused":
        return ("clean", outcome.text) if outcome.text.strip() else ("traceback", "a refusal without a word")
    answer = outcome.value
    if answer == good:
        return "accepted", "the same answer"
    if answer.get("issues", 0) > good.get("issues", 0):
        return "accepted", "another answer, and an issue that says so"
    if attack.detectable:
        return "wrong", "another answer without a word"
    return "accepted", "another answer"


def _last(trace: str) -> Sequence[str]:
    """The end of a traceback: the last frame of the package, and the error."""
    lines = trace.rstrip().splitlines()
    frames = [line.strip() for line in lines if line.strip().startswith("File ") and "/rungwise/" in line]
    where = [frames[-1].partition("/rungwise/")[2]] if frames else []
    return [*where, lines[-1][:300] if lines else ""]
