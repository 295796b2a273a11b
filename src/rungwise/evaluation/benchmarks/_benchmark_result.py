"""Result of a benchmark: its numbers, and the value of each question, from which they follow."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.formats import IN_FILE, CheckedJson, Number, as_json
from rungwise.core.output import InTables, TextTable, in_few_lines, one_line, some_of
from rungwise.evaluation.statistics import Interval, Intervals, interval_of, number_text, wilson

if TYPE_CHECKING:
    from rich.table import Table

_CELLS = 1 << 21
"""Number of drawn questions held in memory at a time."""
_SAME = 1e-9


@dataclass(frozen=True)
class BenchmarkResult(InTables, CheckedJson):
    """Numbers of a benchmark by name, such as ``group``, ``accuracy(add_att)``, ``mAP@5`` or ``P@1``.

    It stands beside :class:`rungwise.evaluation.Result`, which holds rankings of two galleries, and prints, saves and
    gives intervals as that does.

    Attributes:
        benchmark: Name of the layout: ``winoground``, ``sugarcrepe``, ``circo`` or ``mmeb``.
        numbers: Values by name.
        units: Units by name; all are ``"percent"``.
        protocol: What counts as right.
        data_name: Name of the folder.
        data_hash: Hash of texts, names of pictures and questions.
        model_hash: Hash of the model.
        seed: Seed of the model's training, if it is known.
        version: Version of rungwise that measured.
        warnings: What makes the numbers other than published ones, one line each.
        left_out: Number of examples that were left out, by reason.
        means: Numbers that are means of other numbers, with the names of these.
        per_question: Value of each question or example, by the name of every other number.
        question_ids: Ids of these questions or examples.

    >>> result = BenchmarkResult("mmeb", {"P@1": 50.0, "P@1(a)": 50.0}, {"P@1": "percent", "P@1(a)": "percent"},
    ...     means={"P@1": ("P@1(a)",)}, per_question={"P@1(a)": (0.0, 100.0)}, question_ids={"P@1(a)": ("1", "2")})
    >>> result["P@1"], result.per_query("P@1(a)"), BenchmarkResult.from_json(result.to_json()) == result
    (50.0, array([  0., 100.]), True)
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-benchmark/1"
    remedy: ClassVar[str] = "evaluate again"

    benchmark: str
    numbers: Mapping[str, Number]
    units: Mapping[str, str]
    protocol: str = ""
    data_name: str = ""
    data_hash: str = ""
    model_hash: str = ""
    seed: int | None = None
    version: str = ""
    warnings: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    means: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_question: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)
    question_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """Value of the number with this name; KeyError lists what was measured."""
        if name not in self.numbers:
            raise KeyError(f"{name!r} was not measured; there are {', '.join(self.numbers)}")
        return self.numbers[name]

    def __contains__(self, name: object) -> bool:
        """Whether the number with this name was measured."""
        return name in self.numbers

    def __iter__(self) -> Iterator[str]:
        """Names of the numbers, so that ``dict(result)`` gives the numbers by name."""
        return iter(self.numbers)

    def keys(self) -> KeysView[str]:
        """Names of the numbers."""
        return self.numbers.keys()

    def per_query(self, name: str) -> NDArray[np.float64]:
        """(questions,) value of each question or example, ordered as :attr:`question_ids`.

        Raises:
            KeyError: If there is no such number, or it is a mean of other numbers.
        """
        if name not in self.per_question:
            raise KeyError(f"{name!r} has no values per question; there are {', '.join(self.per_question)}")
        return np.array(self.per_question[name], dtype=np.float64)

    def interval(self, name: str, level: float = 0.95, draws: int = 1000, seed: int = 0) -> Interval:
        """Bootstrap interval of a number, with questions (or examples) drawn anew.

        Those of a mean of other numbers are drawn within each of these. Where every question has the smallest or the
        largest value, the interval is Wilson's.

        Raises:
            KeyError: If the number was not measured.
            UserError: If the level is not between 0 and 1, or ``draws`` is not positive.
        """
        if draws < 1:
            raise UserError(f"draws must be at least 1, got {draws}")
        value = self[name]
        parts = [self.per_query(one) for one in self.means.get(name, (name,))]
        together = np.concatenate(parts)
        if (together == 0).all() or (together == 100).all():
            low, high = wilson(value / 100, len(together), level)
            return Interval(100 * low, 100 * high)
        generator = np.random.default_rng(seed)
        return interval_of(np.mean([_drawn(own, draws, generator) for own in parts], axis=0), level)

    def intervals(
        self, names: Iterable[str] | None = None, level: float = 0.95, draws: int = 1000, seed: int = 0
    ) -> dict[str, Interval]:
        """Bootstrap intervals of several numbers, by default of all; fails as :meth:`interval`."""
        return {name: self.interval(name, level, draws, seed) for name in (self.numbers if names is None else names)}

    def count(self, name: str) -> int:
        """Number of questions or examples that a number is of."""
        return sum(len(self.per_question[one]) for one in self.means.get(name, (name,)))

    def title(self) -> str:
        """One line for the head of a table: the data and the benchmark."""
        return f"{self.data_name}, {self.benchmark}" if self.data_name else self.benchmark

    def notes(self) -> list[str]:
        """Notes below a table: what is right, which numbers are means, what was left out, and warnings."""
        notes = [self.protocol] if self.protocol else []
        notes += [f"{name} is the mean of {len(parts)} numbers" for name, parts in self.means.items()]
        notes += [f"left out: {count:,} with {reason}" for reason, count in self.left_out.items()]
        return [*notes, *(f"warning: {warning}" for warning in self.warnings)]

    def in_tables(self, intervals: Intervals | None = None) -> list[TextTable]:
        """The numbers as they print, with the bounds of intervals beside them where these are given."""
        rows = []
        for name, value in self.numbers.items():
            bounds = (
                "" if intervals is None else f" [{', '.join(number_text(one, 'percent') for one in intervals[name])}]"
            )
            rows.append((name, f"{number_text(value, 'percent')}{bounds}", f"{self.count(name):,}"))
        return [TextTable(("measure", "percent", "of"), rows, frozenset({"measure"}))]

    def __repr__(self) -> str:
        shown = [f"{name} {number_text(value, 'percent')}" for name, value in self.numbers.items()]
        facts = [
            ("numbers", some_of(shown, 92)),
            ("left out", some_of([str(dict(self.left_out))] if self.left_out else [])),
        ]
        facts.append(("warnings", some_of(self.warnings) if self.warnings else ""))
        return in_few_lines(f"BenchmarkResult: {one_line(self.title(), 70)}", facts)

    def _title(self) -> str:
        return self.title()

    def _tables(self) -> list[TextTable]:
        return self.in_tables(self.intervals())

    def _below(self) -> list[str]:
        return [*self.notes(), "in brackets: 95 % bootstrap intervals over questions"]

    def _check_parts(self) -> None:
        if self.units.keys() != self.numbers.keys():
            raise ValueError("units are not those of the numbers")
        if unknown := (self.per_question.keys() | self.means.keys()) ^ self.numbers.keys():
            raise ValueError(f"{min(unknown)} is no number with values per question, and no mean of such")
        for name, value in self.numbers.items():
            if (parts := self.means.get(name)) is not None:
                if not parts or any(one not in self.per_question for one in parts):
                    raise ValueError(f"{name} is the mean of numbers that are not there")
                found = float(np.mean([self.numbers[one] for one in parts]))
            else:
                own = self.per_question[name]
                if not own or len(own) != len(self.question_ids.get(name, ())):
                    raise ValueError(f"{name}: {len(own)} values and {len(self.question_ids.get(name, ()))} ids")
                if not all(0 <= one <= 100 + _SAME for one in own):
                    raise ValueError(f"{name}: a value is not in 0..100")
                found = float(np.mean(own))
            if not math.isclose(value, found, rel_tol=_SAME, abs_tol=_SAME):
                raise ValueError(f"{name} is {value:.10g}, but its values give {found:.10g}")


def format_benchmark(result: BenchmarkResult, form: Literal["markdown", "latex", "csv", "json"]) -> str:
    """Text of a benchmark's numbers with their intervals: as a table, or with unrounded numbers as CSV or JSON."""
    if form == "markdown":
        return result.to_markdown()
    if form == "latex":
        return result.to_latex()
    bounds = result.intervals()
    if form == "json":
        content = as_json(result) | {"intervals": as_json({name: list(one) for name, one in bounds.items()})}
        return json.dumps(content, indent=1)
    file = io.StringIO(newline="")
    table = csv.writer(file, lineterminator="\n")
    table.writerow(("benchmark", "name", "value", "unit", "low", "high", "questions"))
    for name, value in result.numbers.items():
        table.writerow((result.benchmark, name, repr(value), result.units[name], *bounds[name], result.count(name)))
    return file.getvalue()


def render_benchmark(result: BenchmarkResult, intervals: Intervals | None = None) -> Table:
    """Table of a benchmark's numbers for the terminal, with the notes below."""
    from rich.table import Table

    table = Table(title=result.title(), caption="\n".join(result.notes()))
    (own,) = result.in_tables(intervals)
    for name in own.head:
        table.add_column(name, justify="left" if name in own.left else "right", overflow="fold")
    for row in own.rows:
        table.add_row(*row)
    return table


def _drawn(values: NDArray[np.float64], draws: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """(draws,) means of values that are drawn with replacement."""
    step = max(1, _CELLS // len(values))
    parts = [
        values[generator.integers(0, len(values), (min(step, draws - begin), len(values)))].mean(axis=1)
        for begin in range(0, draws, step)
    ]
    return np.concatenate(parts)
