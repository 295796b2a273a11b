"""What the doctor says: findings, each with its numbers and its cure, and the report that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rungwise.data.collection import Issue

EXAMPLES = 5
"""Places that a finding names."""

Severity = Literal["fault", "advice"]
"""``fault``: what is measured or trained is wrong with it. ``advice``: it can be better, or should be known."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong or could be better.

    Attributes:
        name: Short and always the same for the same kind of thing.
        severity: How bad it is.
        what: One sentence with the numbers.
        cure: What to do about it.
        places: The first few examples, by their names.

    >>> Finding("empty captions", "fault", "2 captions are empty.", "Remove them.", ("a.jpg#1",)).severity
    'fault'
    """

    name: str
    severity: Severity
    what: str
    cure: str
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What was examined, and what was found.

    Attributes:
        subject: What was examined, in one line.
        examined: The things that were looked at, a line each.
        left_out: Why something could not be looked at, a line each.
        findings: Faults first.
        unreadable: Pictures and features that could not be read.
    """

    subject: str
    examined: tuple[str, ...]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]
    unreadable: tuple[Issue, ...] = ()

    @property
    def has_faults(self) -> bool:
        """Whether a finding is a fault.

        >>> Report("photos", (), (), (Finding("no test pictures", "advice", "None.", "Name some."),)).has_faults
        False
        """
        return any(finding.severity == "fault" for finding in self.findings)

    def to_plain(self) -> dict[str, Any]:
        """As plain values, for JSON.

        >>> sorted(Report("photos", ("2 pictures",), (), ()).to_plain())
        ['examined', 'faults', 'findings', 'left_out', 'subject', 'unreadable']
        """
        return {
            "subject": self.subject,
            "faults": sum(finding.severity == "fault" for finding in self.findings),
            "findings": [asdict(finding) for finding in self.findings],
            "examined": list(self.examined),
            "left_out": list(self.left_out),
            "unreadable": [asdict(issue) for issue in self.unreadable],
        }


def faults_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """In their order, faults before advice.

    >>> [one.name for one in faults_first((Finding("a", "advice", "", ""), Finding("b", "fault", "", "")))]
    ['b', 'a']
    """
    return tuple(sorted(findings, key=lambda finding: finding.severity != "fault"))


def first(places: Sequence[str]) -> tuple[str, ...]:
    """The examples that a finding names.

    >>> first(["a", "b", "c", "d", "e", "f"])
    ('a', 'b', 'c', 'd', 'e')
    """
    return tuple(places[:EXAMPLES])


def share(part: float, whole: float) -> str:
    """A share for a sentence.

    >>> share(3, 40), share(1, 3000), share(0, 0)
    ('7.5 %', '0.033 %', '0 %')
    """
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.2g} %" if percent < 1 else f"{percent:.3g} %"
