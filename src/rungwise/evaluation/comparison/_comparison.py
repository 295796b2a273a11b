"""Comparison of systems on the same queries: differences, and tests paired over pictures and over seeds."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rungwise.core.formats import IN_FILE, CheckedJson, Number
from rungwise.core.output import InTables, TextTable, frame_of, in_few_lines, one_line, short_repr
from rungwise.evaluation.statistics import PairedTest, number_text

if TYPE_CHECKING:
    import pandas

Verdict = Literal["better", "worse", "no difference shown"]
"""What the tests of a difference show for the system that is compared."""

BETTER: Verdict = "better"
WORSE: Verdict = "worse"
NOT_SHOWN: Verdict = "no difference shown"
_FEW = 8
_ROUNDING = 1e-9
"""Number of numbers that a comparison prints in a session."""


@dataclass(frozen=True)
class ComparedSystem:
    """A system of a comparison.

    Attributes:
        name: Name of the system.
        seeds: Seed of each of its trainings; None where it is not known.
        means: Mean over the trainings, by the name of the number.
        deviations: Standard deviation over the trainings (n - 1), by the name of the number; empty for one training.
    """

    __pydantic_config__ = IN_FILE

    name: str
    seeds: tuple[int | None, ...]
    means: Mapping[str, Number]
    deviations: Mapping[str, Number]

    __repr__ = short_repr


@dataclass(frozen=True)
class Difference:
    """One number as two systems have it, with the difference between them.

    Attributes:
        name: Name of the number, such as ``t2i/R@1`` or ``rsum``.
        unit: ``"percent"``, ``"rank"``, ``"correlation"``, ``"fraction"`` or ``"degree"``.
        baseline: Name of the system that is compared with.
        system: Name of the system that is compared.
        first: Mean of the baseline.
        second: Mean of the system.
        difference: Mean of the system minus that of the baseline.
        pictures: Test over pictures: the bootstrap draws the same pictures for both.
        seeds: Test over the seeds that both have; None where they have fewer than two in common.
        verdict: ``"better"`` or ``"worse"`` where every test shows it for the system, else ``"no difference shown"``.
    """

    __pydantic_config__ = IN_FILE

    name: str
    unit: str
    baseline: str
    system: str
    first: Number
    second: Number
    difference: Number
    pictures: PairedTest
    seeds: PairedTest | None
    verdict: Verdict

    @property
    def tests(self) -> tuple[PairedTest, ...]:
        """The tests that were made."""
        return (self.pictures,) if self.seeds is None else (self.pictures, self.seeds)


@dataclass(frozen=True)
class Change:
    """The values of one query that fares differently under two systems."""

    __pydantic_config__ = IN_FILE

    direction: str
    query: str
    first: Number
    second: Number


@dataclass(frozen=True)
class QueryChanges:
    """Queries that fare differently under two systems.

    Attributes:
        baseline: Name of the system that is compared with.
        system: Name of the system that is compared.
        better: Per direction, the queries that fare better under the system, the most changed first.
        worse: Per direction, the queries that fare worse, the most changed first.
    """

    __pydantic_config__ = IN_FILE

    baseline: str
    system: str
    better: Mapping[str, tuple[Change, ...]]
    worse: Mapping[str, tuple[Change, ...]]

    __repr__ = short_repr


@dataclass(frozen=True)
class Comparison(InTables, CheckedJson):
    """Differences between systems, as :func:`compare` finds them.

    Attributes:
        protocol: Protocol of all results.
        level: Confidence level of the intervals.
        draws: Number of draws of the bootstrap.
        seed: Seed of the draws.
        primary: The number by which the systems are judged; all others are descriptive.
        named: Whether the primary number was named, and not taken by default.
        systems: The systems, the baseline first.
        differences: Differences of all compared numbers, pair by pair; the primary number first.
        only_in_some: Names of numbers that some result lacks or has as NaN; they are not compared.
        by: The measure whose values per query decide which queries fare better and worse.
        changes: Queries that fare differently under a system than under the first one.
        same: Systems or seeds that are the same model, or rank every query alike; one line each.
        remarks: What else a reader should know of the systems, one line each.
        ends: Methods of where relevance ends, by system, where a measure reads them and they differ; else empty.
        unknown: Names of numbers that all have and whose measures are not known here; they are not compared.
        without_values: Names of numbers without values per query in some result; they are not compared.

    >>> import numpy as np
    >>> from rungwise.evaluation import compare, evaluate
    >>> one, other = (evaluate(similarity=s, image_of_caption=[0, 1]) for s in (np.eye(2)[::-1], np.eye(2)))
    >>> found = compare([one, other])
    >>> found["rsum"].difference, [change.query for change in found.changes[0].better["t2i"]]
    (200.0, ['0', '1'])
    >>> Comparison.from_json(found.to_json()) == found
    True
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-comparison/1"
    remedy: ClassVar[str] = "compare again"

    protocol: str
    level: float
    draws: int
    seed: int
    primary: str
    named: bool
    systems: tuple[ComparedSystem, ...]
    differences: tuple[Difference, ...]
    only_in_some: tuple[str, ...]
    by: str
    changes: tuple[QueryChanges, ...]
    same: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    ends: Mapping[str, str] | None = None
    unknown: tuple[str, ...] = ()
    without_values: tuple[str, ...] = ()

    def __getitem__(self, name: str | tuple[str, str]) -> Difference:
        """Difference of a number: by its name, and by the name of the system where there are more than two.

        Raises:
            KeyError: If it was not compared, or the name of the system is missing.
        """
        number, system = (name, "") if isinstance(name, str) else name
        found = [one for one in self.differences if one.name == number and system in ("", one.system)]
        if len(found) == 1:
            return found[0]
        if found:
            raise KeyError(f"{number!r} of which system? Write [{number!r}, {found[0].system!r}]")
        names = ", ".join(dict.fromkeys(one.name for one in self.differences))
        raise KeyError(f"{name!r} was not compared; there are {names}")

    @property
    def pairs(self) -> dict[tuple[str, str], tuple[Difference, ...]]:
        """Differences by the names of baseline and system."""
        found: dict[tuple[str, str], list[Difference]] = {}
        for one in self.differences:
            found.setdefault((one.baseline, one.system), []).append(one)
        return {pair: tuple(own) for pair, own in found.items()}

    def label(self, name: str) -> str:
        """Letter of a system in tables: A for the first."""
        return label_of([one.name for one in self.systems].index(name))

    def legend(self) -> list[str]:
        """One line for each system: its letter in tables, its name and its seeds."""
        lines = []
        for one in self.systems:
            own, seeds = self.label(one.name), _seeds(one)
            name = "" if one.name == own else one.name
            lines.append(f"{own}: {', '.join(part for part in (name, seeds) if part) or 'a result'}")
        return lines

    def verdicts(self) -> list[str]:
        """One sentence for each two systems, on the primary number."""
        return [self._sentence(one) for one in self.differences if one.name == self.primary]

    def _sentence(self, one: Difference) -> str:
        first, second = self.label(one.baseline), self.label(one.system)
        told = f"{signed(one.difference, one.unit)} by {self.primary}"
        by = " and ".join(f"{test.count} {test.over}" for test in one.tests)
        if one.verdict != NOT_SHOWN:
            return f"{second} is {one.verdict} than {first}: {told}, shown by {by}"
        shown = [test for test in one.tests if test.shows(self.level)]
        if not shown:
            return f"no difference shown between {first} and {second}: {told}, tested by {by}"
        other = "seeds" if shown[0].over == "pictures" else "pictures"
        return (
            f"no difference shown between {first} and {second}: {told}; {shown[0].count} {shown[0].over} show one, and"
            f" other {other} may turn it"
        )

    def to_frame(self) -> pandas.DataFrame:
        """A row for each number and two systems, by its name: values, difference, intervals, p-values, verdict.

        Raises:
            UserError: If pandas is not installed.
        """
        return frame_of(self._columns(), "name")

    def to_csv(self) -> str:
        r"""The numbers of :meth:`to_frame` as comma-separated values, a line for each; what has no value is empty.

        >>> import numpy as np
        >>> from rungwise.evaluation import compare, evaluate
        >>> one, other = (evaluate(similarity=np.array([[0.9, score], [0.1, 0.3]]), image_of_caption=[0, 1],
        ...     measures=["R@1"]) for score in (0.5, 0.2))
        >>> compare([one, other]).to_csv().splitlines()[0][:57]
        'name,unit,baseline,system,first,second,difference,low,hig'
        """
        file = io.StringIO(newline="")
        table = csv.writer(file, lineterminator="\n")
        columns = self._columns()
        table.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            table.writerow("" if isinstance(one, float) and math.isnan(one) else one for one in row)
        return file.getvalue()

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.differences
        columns: dict[str, list[Any]] = {
            name: [getattr(one, name) for one in rows]
            for name in ("name", "unit", "baseline", "system", "first", "second", "difference")
        }
        for prefix, tests in (("", [one.pictures for one in rows]), ("seeds_", [one.seeds for one in rows])):
            columns |= {
                f"{prefix}low": [math.nan if one is None else one.interval.low for one in tests],
                f"{prefix}high": [math.nan if one is None else one.interval.high for one in tests],
                f"{prefix}p": [math.nan if one is None else one.p for one in tests],
                f"{prefix}p_holm": [math.nan if one is None else one.p_holm for one in tests],
            }
        columns["p_at_most"] = [one.pictures.at_most for one in rows]
        columns["seeds"] = [0 if one.seeds is None else one.seeds.count for one in rows]
        columns["verdict"] = [one.verdict for one in rows]
        columns["primary"] = [one.name == self.primary for one in rows]
        return columns

    def __repr__(self) -> str:
        facts = [("system", one_line(said, 90)) for said in self.legend()]
        facts += [("primary", f"{self.primary}{'' if self.named else ', by default'}")]
        facts += [("verdict", said) for said in self.verdicts()[:_FEW]]
        rows = [row for pair in self.pairs.values() for row in pair_cells(self, pair)[:_FEW]] if self._is_one() else []
        facts += [(row[0], f"{' -> '.join(row[1:3])}, {row[3]} [{row[4]}], p {row[5].strip()}") for row in rows]
        more = len(self.differences) - len(rows) if rows else 0
        facts.append(("further numbers", str(more) if more else ""))
        facts += [("remark", one_line(said, 100)) for said in (*self.same, *self.remarks)[:3]]
        return in_few_lines(f"Comparison: {one_line(self._title(), 90)}", facts)

    def _is_one(self) -> bool:
        return len(self.pairs) == 1

    def _title(self) -> str:
        count = len(self.systems)
        names = len({one.name for one in self.differences})
        said = "B - A" if count == 2 else f"{count} systems"
        return f"{said}, protocol {self.protocol}, {names} numbers"

    def _tables(self) -> list[TextTable]:
        return [
            TextTable(
                pair_head(self, pair),
                pair_cells(self, pair),
                frozenset({"measure"}),
                f"{self.label(two)} - {self.label(one)}: {two} against {one}",
            )
            for (one, two), pair in self.pairs.items()
        ]

    def _below(self) -> list[str]:
        lines = [*self.legend(), f"protocol {self.protocol}", *self.verdicts(), *self.said_below()]
        for one in self.changes:
            first, second = self.label(one.baseline), self.label(one.system)
            lines += [
                f"{way}: queries by {self.by}: {len(one.better[way])} better in {second} than in {first},"
                f" {len(one.worse[way])} worse"
                for way in one.better
            ]
        return [*lines, *self.left_out()]

    def said_below(self) -> list[str]:
        """Lines that say what intervals and p-values are, and the remarks."""
        systems, level = len(self.systems), f"{100 * self.level:g} %"
        named = "" if self.named else ", by default; --primary names another, before the numbers are seen"
        lines = [
            f"primary: {self.primary}{named}; all other numbers are descriptive",
            f"pictures: {level} interval and p by {self.draws} draws of the paired bootstrap over pictures"
            + (", of the mean over seeds" if any(len(one.seeds) > 1 for one in self.systems) else ""),
        ]
        if any(one.seeds is not None for one in self.differences):
            lines.append(f"seeds: {level} interval and p by Student's t of the seeds' paired differences")
        if len(self.pairs) > 1:
            lines.append(f"p: Holm's correction for the {len(self.pairs)} differences of a number, {systems} systems")
        if said := self.too_few_draws():
            lines.append(said)
        if any(test.at_most for one in self.differences for test in one.tests):
            lines.append("≤: p is at most this; the number of draws bounds it")
        if self.ends is not None:
            said = ", ".join(f"in {self.label(name)} by {one or 'nothing'}" for name, one in self.ends.items())
            lines.append(f"relevance ends {said}")
        return [*self.same, *lines, *self.remarks]

    def too_few_draws(self) -> str:
        """One line where so few draws were made that no difference can be shown; empty for most comparisons."""
        pairs = len(self.pairs)
        fewest = fewest_draws(pairs, self.level)
        if self.draws >= fewest:
            return ""
        least = min(1.0, 2 * pairs / (self.draws + 1))
        return (
            f"{self.draws} draws are too few to show a difference: no p-value is below {least:.4f}, corrected for"
            f" {pairs}; --draws {fewest} or more"
        )

    def left_out(self) -> list[str]:
        """Lines that name the numbers that were not compared, with the reason."""
        reasons = {
            "not in all of them, not compared": self.only_in_some,
            "of a measure that is not known here, not compared; name its module (--module)": self.unknown,
            "without values per query, not compared": self.without_values,
        }
        return [f"{reason}: {', '.join(names)}" for reason, names in reasons.items() if names]

    def _check_parts(self) -> None:
        known = [one.name for one in self.systems]
        if len(known) < 2 or len(set(known)) < len(known):
            raise ValueError("systems are fewer than two, or two have one name")
        for one in self.differences:
            if not {one.baseline, one.system} <= set(known):
                raise ValueError(f"{one.name}: is of a system that is not listed")
            for test in one.tests:
                if not (0 <= test.p <= 1 and 0 <= test.p_holm <= 1):
                    raise ValueError(f"{one.name}: a p-value is none: {test.p}, {test.p_holm}")
        for changes in self.changes:
            if changes.better.keys() != changes.worse.keys():
                raise ValueError("better and worse are of other directions")


def label_of(place: int) -> str:
    """Letter of a system by its place from 0: A to Z, then AA.

    >>> label_of(0), label_of(27)
    ('A', 'AB')
    """
    return ("" if place < 26 else label_of(place // 26 - 1)) + chr(ord("A") + place % 26)


def fewest_draws(pairs: int, level: float) -> int:
    """Smallest number of draws with which a difference can be shown among so many pairs of systems.

    >>> fewest_draws(1, 0.95), fewest_draws(91, 0.95)
    (40, 3640)
    """
    return math.floor(2 * pairs / (1 - level) + 1e-9)


def signed(value: float, unit: str) -> str:
    """A difference with its sign, as it prints.

    >>> signed(1.25, "percent"), signed(-0.0012, "correlation"), signed(0.0, "percent")
    ('+1.2', '-0.0012', '0.0')
    """
    text = number_text(value, unit)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def bounds_texts(interval: Sequence[float], unit: str) -> tuple[str, str]:
    """Both bounds of an interval of differences with their signs; one that is not 0 does not print as 0.

    >>> bounds_texts((0.031, 0.24), "percent"), bounds_texts((-1.25, 0.0), "percent")
    (('+0.03', '+0.2'), ('-1.2', '0.0'))
    """
    low, high = (_with_a_digit(bound, signed(bound, unit)) for bound in interval)
    return low, high


def _with_a_digit(value: float, text: str) -> str:
    if text.strip("0.") or abs(value) < _ROUNDING:
        return text
    return f"{value:+.{math.ceil(-math.log10(abs(value)))}f}"


def pair_head(comparison: Comparison, pair: Sequence[Difference]) -> list[str]:
    """Columns of the table of two systems."""
    first, second = comparison.label(pair[0].baseline), comparison.label(pair[0].system)
    head = ["measure", first, second, f"{second} - {first}", "pictures", "p"]
    seeds = next((one.seeds for one in pair if one.seeds is not None), None)
    return head if seeds is None else [*head, f"{seeds.count} seeds", "p (seeds)"]


def pair_cells(comparison: Comparison, pair: Sequence[Difference]) -> list[list[str]]:
    """Rows of the table of two systems; a star marks a p-value of the primary number that is small enough."""
    with_seeds = any(one.seeds is not None for one in pair)
    rows = []
    for one in pair:
        star = one.name == comparison.primary
        row = [one.name, number_text(one.first, one.unit), number_text(one.second, one.unit)]
        row.append(signed(one.difference, one.unit))
        for test in (one.pictures, one.seeds) if with_seeds else (one.pictures,):
            if test is None:
                row += ["-", "-"]
                continue
            low, high = bounds_texts(test.interval, one.unit)
            row += [f"{low}..{high}", test.p_text() + ("*" if star and test.shows(comparison.level) else " ")]
        rows.append(row)
    return rows


def _seeds(system: ComparedSystem) -> str:
    known = [str(one) for one in system.seeds if one is not None]
    if len(known) == len(system.seeds):
        return f"seed{'s' if known[1:] else ''} {' '.join(known)}"
    return f"{len(system.seeds)} results" if system.seeds[1:] else ""
