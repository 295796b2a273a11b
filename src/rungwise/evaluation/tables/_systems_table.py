"""A table of our own systems: means and deviations over trainings, the best marked, and what differs beyond chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.evaluation.comparison import NOT_SHOWN, Comparison, System, compare, measure_of
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import is_known, median_place
from rungwise.evaluation.tables._paper_table import cell_of, number_in
from rungwise.evaluation.tables._result_table import MARKS, Block, ResultTable, TableLine, in_order
from rungwise.metrics import DIRECTIONS, Total


@dataclass(frozen=True)
class SystemsBlock:
    """Systems with results of one question, which may be compared.

    Attributes:
        title: Test set, split, protocol and source of degrees.
        systems: The systems.
    """

    title: str
    systems: tuple[System, ...]

    __repr__ = short_repr


def systems_table(
    blocks: Sequence[SystemsBlock],
    measures: Sequence[str] = (),
    *,
    average: Literal["mean", "median"] = "mean",
    level: float = 0.95,
    draws: int | None = None,
    seed: int = 0,
    left_out: Sequence[str] = (),
) -> ResultTable:
    """A line for each system, in blocks of one question each.

    The best number of a column is marked. Another one is marked where its difference from the best is shown beyond
    chance, by every test that :func:`rungwise.evaluation.compare` makes of two systems, with Holm's correction for all
    pairs of systems of the block.

    Args:
        blocks: Systems, by the question that their results answer.
        measures: Measures or numbers to print, such as ``R@1``, ``t2i/R@1`` or ``rsum``; empty prints all.
        average: ``"mean"`` prints mean and deviation over trainings, ``"median"`` the training with the median rsum, or
            where that was not measured the median of the first number.
        level: Confidence level of the tests.
        draws: Number of draws of the bootstrap; None takes as many as :func:`rungwise.evaluation.compare` does.
        seed: Seed of the draws.
        left_out: What stands nowhere in the table, with the reason, one line each.

    Raises:
        UserError: If no system has a number that was asked for.

    >>> import numpy as np
    >>> from rungwise.evaluation import System, evaluate
    >>> systems = [System(name, (evaluate(similarity=np.eye(2)[order], image_of_caption=[0, 1]),))
    ...     for name, order in (("one", [0, 1]), ("other", [1, 0]))]
    >>> table = systems_table([SystemsBlock("two pictures", tuple(systems))], ["rsum"])
    >>> table.blocks[0].lines[0].cells["rsum"]
    Cell(value=600.0, deviation=None, doubt='', mark='best')
    """
    missing = [*left_out, *_unmeasured(blocks, measures)]
    made: list[Block] = []
    tested: list[Comparison] = []
    several = False
    for block in blocks:
        systems = block.systems if average == "mean" else tuple(map(_median, block.systems))
        several = several or any(len(one.results) > 1 for one in systems)
        where = f", in {block.title}" if len(blocks) > 1 else ""
        names = _columns(block.systems, measures)
        whole = tuple(name for name in names if any(cell_of(one.results, name) is not None for one in systems))
        if partly := [name for name in names if name not in whole]:
            missing.append(
                f"{', '.join(partly)}: no system has it for all of its trainings{where}; evaluate the others"
            )
        names = whole
        found = _compared(systems, names, where, missing, level, draws, seed)
        tested += [found] if found is not None else []
        marks = _marks(systems, names, found)
        lines = tuple(
            TableLine(
                _named(system),
                {
                    name: replace(cell, mark=marks.get((system.name, name), ""))
                    for name in names
                    if (cell := cell_of(system.results, name)) is not None
                },
            )
            for system in systems
        )
        if names:
            made.append(Block(block.title, names, lines))
    if not made:
        raise UserError(f"nothing to print: {'; '.join(missing) or 'no system has a result'}")
    count = len({one.name for block in blocks for one in block.systems})
    title = f"{count} system{'s' if count > 1 else ''}" + (", the median run of each" if average == "median" else "")
    shown: set[str] = {cell.mark for block in made for line in block.lines for cell in line.cells.values()}
    return ResultTable(title, tuple(made), (), tuple(missing), tuple(_legend(shown, tested, several, level)))


def _legend(shown: set[str], tested: Sequence[Comparison], several: bool, level: float) -> Iterable[str]:
    if several:
        yield "±: standard deviation over seeds"
    if "best" in shown:
        yield f"{MARKS['best']} or bold: the best of a column"
    if not tested:
        return
    tests = {test.over: test for found in tested for one in found.differences for test in one.tests}
    by = "pictures (paired bootstrap" + (", of the mean over seeds)" if several else ")")
    if "seeds" in tests:
        by += " and by seeds (Student's t of paired differences)"
    if "differs" in shown:
        yield f"{MARKS['differs']}: differs from the best beyond chance, by {by}, {100 * level:g} %"
    else:
        yield f"no difference from the best is shown beyond chance, by {by}, {100 * level:g} %"
    pairs = max(len(found.pairs) for found in tested)
    if pairs > 1:
        yield f"corrected by Holm for the {pairs} pairs of systems, and not for the number of measures"
    yield from dict.fromkeys(said for found in tested for said in (found.too_few_draws(), *found.same) if said)


def _columns(systems: Sequence[System], measures: Sequence[str]) -> tuple[str, ...]:
    """Names of the numbers to print, of those that some system has."""
    results = [result for system in systems for result in system.results]
    own = dict.fromkeys(name for result in results for name in result.numbers)
    if not measures:
        return in_order(sorted(own, key=lambda name: not is_known(name)))
    names = [name for asked in measures for name in _meant(asked)]
    return tuple(name for name in dict.fromkeys(names) if any(not math.isnan(_value(one, name)) for one in results))


def _meant(asked: str) -> list[str]:
    """Names of the numbers that a measure stands for: in both directions where it names none, or of both together."""
    return [asked] if "/" in asked else [*(f"{way}/{asked}" for way in DIRECTIONS), asked]


def _unmeasured(blocks: Sequence[SystemsBlock], measures: Sequence[str]) -> Iterable[str]:
    """One line for each measure that was asked for and that some systems have under no question."""
    results: dict[str, list[Result]] = {}
    for block in blocks:
        for system in block.systems:
            results.setdefault(system.name, []).extend(system.results)
    for asked in measures:
        lacking = [
            name
            for name, own in results.items()
            if all(math.isnan(_value(one, number)) for one in own for number in _meant(asked))
        ]
        if lacking:
            of = ", ".join(lacking) if len(lacking) < len(results) else "any system"
            yield f"{asked} was not measured for {of}; evaluate with --measures {asked.rpartition('/')[2]}"


def _value(result: Result, name: str) -> float:
    """A number of a result; the sum of both directions where only its terms were measured, NaN where it has none."""
    if name in result.numbers or not is_known(name) or not isinstance(measure_of(name), Total):
        return result.numbers.get(name, math.nan)
    return number_in(result, name)


def _compared(
    systems: Sequence[System],
    names: Sequence[str],
    where: str,
    missing: list[str],
    level: float,
    draws: int | None,
    seed: int,
) -> Comparison | None:
    """Differences of all pairs of systems in the numbers that all have; None where they cannot be tested."""
    results = [result for system in systems for result in system.results]
    both = [
        name
        for name in names
        if is_known(name)
        and not any(math.isnan(one.numbers.get(name, math.nan)) for one in results)
        and all(one.has_values(name) for one in results)
    ]
    if len(systems) < 2 or not both:
        return None
    try:
        return compare(systems, both, pairs="all", level=level, draws=draws, seed=seed)
    except UserError as error:
        missing.append(f"differences are not tested{where}: {error}")
        return None


def _marks(
    systems: Sequence[System], names: Sequence[str], found: Comparison | None
) -> Mapping[tuple[str, str], Literal["best", "differs"]]:
    """Marks by system and number."""
    marks: dict[tuple[str, str], Literal["best", "differs"]] = {}
    for name in names:
        cells = {one.name: cell for one in systems if (cell := cell_of(one.results, name)) is not None}
        if len(cells) < 2 or not is_known(name):
            continue
        choose = max if measure_of(name).higher_is_better else min
        best = choose(cell.value for cell in cells.values())
        first = [own for own, cell in cells.items() if cell.value == best]
        if len(first) == len(cells):
            continue
        marks |= {(own, name): "best" for own in first}
        for one in found.differences if found is not None else ():
            pair = {one.baseline, one.system}
            if one.name == name and one.verdict != NOT_SHOWN and len(pair & set(first)) == 1:
                marks[(pair - set(first)).pop(), name] = "differs"
    return marks


def _named(system: System) -> str:
    count = len(system.results)
    return f"{system.name}, {count} seeds" if count > 1 else system.name


def _median(system: System) -> System:
    """The system by its median training alone."""
    first = system.results[0]
    name = "rsum" if not math.isnan(_value(first, "rsum")) else next(iter(first.numbers))
    chosen = system.results[median_place([_value(one, name) for one in system.results])]
    seed = "" if chosen.seed is None or len(system.results) == 1 else f", seed {chosen.seed} of {len(system.results)}"
    return System(f"{system.name}{seed}", (chosen,))
