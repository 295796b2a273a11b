"""Counts of what happened to hostile cases, and the table of them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Verdict = Literal["clean", "accepted", "traceback", "hang", "lost", "wrong"]
VERDICTS: tuple[Verdict, ...] = ("clean", "accepted", "traceback", "hang", "lost", "wrong")
BAD: frozenset[Verdict] = frozenset({"traceback", "hang", "lost", "wrong"})
"""What must not happen: what is left over after a refusal in one line and a right answer."""


@dataclass(frozen=True)
class Case:
    """One hostile case and what became of it.

    Attributes:
        family: Which part of the kit, as its module is called: files, commands, kills, ...
        subject: What was attacked: a reader, a command, a writer.
        attack: How, in words that find it again.
        verdict: ``clean`` (refused with one line), ``accepted`` (and nothing wrong with it), or one of :data:`BAD`.
        detail: The message, or what shows the fault.
    """

    family: str
    subject: str
    attack: str
    verdict: Verdict
    detail: str = ""


@dataclass
class Report:
    """All cases of a run.

    Attributes:
        cases: In order.
        left_out: What this machine cannot do, with the reason.
    """

    cases: list[Case] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, found: Case | str) -> None:
        """A case, or the reason why some were left out."""
        if isinstance(found, str):
            self.left_out.append(found)
        else:
            self.cases.append(found)

    def bad(self, family: str | None = None) -> list[Case]:
        return [one for one in self.cases if one.verdict in BAD and family in (None, one.family)]

    @classmethod
    def read(cls, path: Path) -> Report:
        """What :func:`line` wrote."""
        report = cls()
        for text in path.read_text().splitlines():
            found = json.loads(text)
            report.add(found if isinstance(found, str) else Case(**found))
        return report

    def table(self) -> str:
        """Counts by family and subject, one line each, and their sum."""
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for case in self.cases:
            counts[case.family, case.subject][case.verdict] += 1
        width = max((len(f"{family}: {subject}") for family, subject in counts), default=0)
        lines = [" " * width + "".join(f"{word:>10}" for word in ("cases", *VERDICTS))]
        total: Counter[str] = Counter()
        for (family, subject), found in counts.items():
            total += found
            lines.append(_row(f"{family}: {subject}".ljust(width), found))
        lines.append(_row("all".ljust(width), total))
        lines += [f"left out: {one}" for one in self.left_out]
        return "\n".join(lines)

    def faults(self, most: int = 40) -> str:
        """The first bad cases, as lines."""
        found = self.bad()
        lines = [f"{one.verdict}: {one.family}: {one.subject}: {one.attack}\n    {one.detail}" for one in found[:most]]
        if len(found) > most:
            lines.append(f"... and {len(found) - most} more")
        return "\n".join(lines)


def line(found: Case | str) -> str:
    """A case, or the reason why some were left out, as a line of JSON."""
    return json.dumps(found if isinstance(found, str) else asdict(found))


def _row(name: str, found: Counter[str]) -> str:
    return name + "".join(f"{number:>10}" for number in (found.total(), *(found[word] for word in VERDICTS)))
