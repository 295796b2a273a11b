"""Results of systems, and which of them stand in one plot: those that answer one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.evaluation import Result, ResultQuestion
from rungwise.evaluation.comparison import measure_of
from rungwise.evaluation.statistics import WAYS
from rungwise.metrics import PERCENT, Measure, Total
from rungwise.runs._systems import SystemRuns, by_question


@dataclass(frozen=True)
class MeasuredSystem:
    """A system with its results.

    Attributes:
        name: Name of the system.
        results: By question, a result for each seed that has one.
        plain: The same for measures that read no degrees, whatever the degrees of the result.
        folder: Folder of a run of the system, for command lines; RUN for a result from a file.
    """

    name: str
    results: Mapping[ResultQuestion, tuple[Result, ...]]
    plain: Mapping[ResultQuestion, tuple[Result, ...]]
    folder: str

    __repr__ = short_repr


@dataclass(frozen=True)
class ComparableResults:
    """Results that stand in one plot.

    Attributes:
        question: What they answer.
        of: Results by system, one for each seed.
        notes: Lines on other questions that were answered, too.
        left_out: A line for each system without a result.
    """

    question: ResultQuestion
    of: tuple[tuple[MeasuredSystem, tuple[Result, ...]], ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]

    __repr__ = short_repr


def measured_of(systems: Sequence[SystemRuns], results: Mapping[str, Result]) -> list[MeasuredSystem]:
    """Systems and single results, as a plot reads them."""
    found = [
        MeasuredSystem(one.name, one.results(), _plain([run.results for run in one.runs]), str(one.runs[0].folder))
        for one in systems
    ]
    found += [
        MeasuredSystem(name, {ResultQuestion.of(one): (one,)}, _plain([[one]]), "RUN") for name, one in results.items()
    ]
    return found


def chosen(
    measured: Sequence[MeasuredSystem], kind: str, protocol: str = "", split: str = "", graded: bool = False
) -> ComparableResults | None:
    """The question that most systems answer, the first one of several; None where no system has a result.

    Args:
        measured: The systems.
        kind: Kind of the curves, for the lines.
        protocol: Protocol to take; empty takes any.
        split: Split to take; empty takes any.
        graded: Whether degrees are read: results by other degrees are then apart, and those with degrees go first.

    Raises:
        UserError: If no system has a result under the protocol or on the split.
    """
    if not graded:
        measured = [replace(one, results=one.plain) for one in measured]
    every = dict.fromkeys(question for one in measured for question in one.results)
    fitting = [one for one in every if protocol in ("", one.protocol) and split in ("", one.split)]
    if every and not fitting:
        there = "; ".join(dict.fromkeys(one.text for one in every))
        raise UserError(
            f"{kind}: no result of --protocol {protocol or 'any'}, --split {split or 'any'}; there are {there}"
        )
    if not fitting:
        return None

    def weight(question: ResultQuestion) -> tuple[bool, int]:
        return graded and bool(question.relevance), sum(question in one.results for one in measured)

    best = max(fitting, key=weight)  # the first of those that weigh most
    of = tuple((one, one.results[best]) for one in measured if best in one.results)
    notes = [
        f"not drawn: results of {one.text} ({_systems(sum(one in own.results for own in measured))})"
        + ("; --protocol and --split choose" if (one.protocol, one.split) != (best.protocol, best.split) else "")
        for one in every
        if one != best
    ]
    left_out = [
        f"{kind}: {one.name}: has no result of {best.text}; rungwise evaluate {one.folder} DATA"
        f" --protocol {best.protocol}"
        for one in measured
        if best not in one.results
    ]
    return ComparableResults(best, of, tuple(notes), tuple(left_out))


def _plain(runs: Sequence[Sequence[Result]]) -> dict[ResultQuestion, tuple[Result, ...]]:
    """A result for each run by its question, whatever the degrees: of several, that with the most measures."""
    found: dict[ResultQuestion, list[Result]] = {}
    for run in runs:
        own: dict[ResultQuestion, Result] = {}
        for one in by_question(run):
            question = ResultQuestion.of(one)._replace(relevance="")
            if question not in own or len(one.numbers) > len(own[question].numbers):
                own[question] = one
        for question, one in own.items():
            found.setdefault(question, []).append(one)
    return {question: tuple(own) for question, own in found.items()}


def _systems(count: int) -> str:
    return "1 system" if count == 1 else f"{count} systems"


def labels_of(number: str) -> tuple[str, str]:
    """Title and y label of a number: its direction and measure in words, and its unit.

    >>> labels_of("i2t/R@1"), labels_of("rsum")
    (('R@1, image to text', 'R@1 (%)'), ('rsum', 'rsum, sum of 6 numbers in %'))
    """
    measure = known_measure(number)
    way, slash, name = number.partition("/")
    if isinstance(measure, Total):
        return number, f"{number}, sum of {2 * len(measure.terms)} numbers in %"
    title, name = (f"{name}, {WAYS[way]}", name) if slash and way in WAYS else (number, number)
    return title, name if measure is None else f"{name} ({'%' if measure.unit == PERCENT else measure.unit})"


def known_measure(number: str) -> Measure | Total | None:
    """The measure of a number; None for one that is not imported here, or for what is no measure."""
    try:
        return measure_of(number)
    except UserError:
        return None


def title_of(what: str, result: Result) -> str:
    """Two lines: what a plot shows; on which data, under which protocol, of how many pictures."""
    sizes = next(iter(result.notes()))
    name = result.data_name.removesuffix(f"/{result.split}") if result.split else result.data_name
    on = [name, f"split {result.split}" if result.split else "", f"protocol {result.protocol}", sizes]
    return f"{what}\n{', '.join(filter(None, on))}"
