"""Findings of the doctor, each with its numbers and its cure, and the report that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rungwise.core.output import short_repr
from rungwise.data import Issue

EXAMPLES = 5
"""Number of places that a finding names."""

Severity = Literal["fault", "advice"]
"""``fault``: something measured or trained is wrong. ``advice``: it can be better, or should be known."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong or could be better, with one sentence of numbers and the cure.

    ``name`` is the same for the same kind of problem; ``places`` are the names of the first few examples.
    """

    name: str
    severity: Severity
    what: str
    cure: str
    places: tuple[str, ...] = ()

    __repr__ = short_repr


@dataclass(frozen=True)
class Report:
    """What was examined and what could not be, one line each, and the findings, faults first."""

    subject: str
    examined: tuple[str, ...]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]
    unreadable: tuple[Issue, ...] = ()

    __repr__ = short_repr

    @property
    def has_faults(self) -> bool:
        """Whether a finding is a fault."""
        return any(finding.severity == "fault" for finding in self.findings)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "subject": self.subject,
            "faults": sum(finding.severity == "fault" for finding in self.findings),
            "findings": [asdict(finding) for finding in self.findings],
            "examined": list(self.examined),
            "left_out": list(self.left_out),
            "unreadable": [asdict(issue) for issue in self.unreadable],
        }


def faults_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in their order, faults before advice."""
    return tuple(sorted(findings, key=lambda finding: finding.severity != "fault"))


def first(places: Sequence[str]) -> tuple[str, ...]:
    """The examples that a finding names."""
    return tuple(places[:EXAMPLES])


def share(part: float, whole: float) -> str:
    """Text of a share in percent.

    >>> share(3, 40), share(1, 3000), share(0, 0)
    ('7.5 %', '0.033 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.2g} %" if percent < 1 else f"{percent:.3g} %"
