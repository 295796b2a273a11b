"""Comparison of systems: differences, tests paired over pictures and over seeds, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.evaluation.comparison._comparison import (
    BETTER,
    NOT_SHOWN,
    WORSE,
    Change,
    ComparedSystem,
    Comparison,
    Difference,
    QueryChanges,
    fewest_draws,
    label_of,
)
from rungwise.evaluation.comparison._system import System, alike, refuse_other_questions
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import (
    Numbers,
    bootstrap,
    check_level,
    holm,
    interval_of_difference,
    is_known,
    number_text,
    over_pictures,
    over_seeds,
    seeds_to_show,
)
from rungwise.metrics import PERCENT, RANK, Measure, Total, parse


def compare(
    systems: Sequence[Result | System],
    names: Iterable[str] | None = None,
    *,
    primary: str | None = None,
    pairs: Literal["first", "all"] = "first",
    level: float = 0.95,
    draws: int | None = None,
    seed: int = 0,
    by: str | None = None,
) -> Comparison:
    """Paired comparison of systems on the same queries.

    Pictures are drawn with all their queries, since the captions of one image are not independent, and the same ones
    for all systems. Where systems have several seeds, their mean is compared, and the seeds that both have are tested
    beside the pictures. A difference is called better or worse where every test shows it.

    Args:
        systems: Two or more systems, the baseline first; a result stands for a system of one training.
        names: Names of the numbers to compare; None takes all that all results have.
        primary: The number by which the systems are judged; the others are descriptive. None takes rsum where it is
            compared, else the first number.
        pairs: ``"first"`` compares each system with the first one, ``"all"`` every two.
        level: Confidence level of the intervals.
        draws: Number of draws of the bootstrap; no p-value of it is smaller than 2 / (draws + 1). None takes 2,000, or
            for many pairs of systems as many as Holm's correction leaves small enough p-values.
        seed: Seed of the draws.
        by: The measure, without a direction, that decides which queries fare better. None takes MRR where it is there,
            else the first measure.

    Raises:
        UserError: If protocols, data, galleries, right answers or the degrees of graded measures differ, values per
            query are missing, there is no number of a known measure in all, or a name is not in all.
    """
    given = [one if isinstance(one, System) else System(label_of(place), (one,)) for place, one in enumerate(systems)]
    if len(given) < 2:
        raise UserError("one system alone cannot be compared; name two or more")
    if len({one.name for one in given}) < len(given):
        raise UserError(f"two systems have one name, of {', '.join(one.name for one in given)}; give each its own")
    check_level(level)
    refuse_other_questions(given)
    measured = _measured(given, names)
    asked, chosen = measured.asked, _primary(primary, measured.asked)
    asked = [chosen, *(name for name in asked if name != chosen)]
    _refuse_other_degrees(given, asked)
    two = list(combinations(given, 2)) if pairs == "all" else [(given[0], other) for other in given[1:]]
    draws = max(_DRAWS, 2 * fewest_draws(len(two), level)) if draws is None else draws
    drawn = _drawn(given, asked, draws, seed)
    found = [_difference(a, b, name, drawn, level) for a, b in two for name in asked]
    methods = {one.name: one.results[0].ends for one in given}
    reads_ends = any(measure_of(name).reads_ends for name in asked) and len(set(methods.values())) > 1
    measure = by or _measure_of_lists(measured.common)
    return Comparison(
        given[0].results[0].protocol,
        level,
        draws,
        seed,
        chosen,
        primary is not None,
        tuple(
            ComparedSystem(
                one.name,
                one.seeds,
                {name: one.mean(name) for name in asked},
                {name: one.deviation(name) for name in asked if len(one.results) > 1},
            )
            for one in given
        ),
        tuple(_corrected(found, level)),
        measured.only_in_some,
        measure,
        tuple(_changes(given[0], other, measure) for other in given[1:]),
        tuple(alike(given, asked)),
        tuple(_remarks(given, asked, found, chosen, level)),
        methods if reads_ends else None,
        measured.unknown,
        measured.without_values,
    )


_DRAWS = 2000
"""Usual number of draws of the bootstrap."""


def measure_of(name: str) -> Measure | Total:
    """The measure of a number, such as that of ``t2i/R@1``."""
    return parse(name.partition("/")[2] or name)


@dataclass(frozen=True)
class _Measured:
    """Numbers that are compared, and those that are not."""

    asked: list[str]
    common: list[str]
    only_in_some: tuple[str, ...]
    without_values: tuple[str, ...]
    unknown: tuple[str, ...]


def _measured(systems: Sequence[System], names: Iterable[str] | None) -> _Measured:
    results = [result for system in systems for result in system.results]
    every = dict.fromkeys(name for result in results for name in result.numbers)
    both = [name for name in every if not any(math.isnan(one.numbers.get(name, math.nan)) for one in results)]
    known = [name for name in both if is_known(name)]
    common = [name for name in known if all(one.has_values(name) for one in results)]
    if not both:
        raise UserError(
            f"{systems[0].name} and {systems[1].name} have no number in common: one has"
            f" {', '.join(results[0].numbers)}, the other {', '.join(systems[1].results[0].numbers)}; evaluate both"
            " with the same measures"
        )
    asked = common if names is None else list(dict.fromkeys(names))
    for name in asked:
        if name not in both:
            ways = [one for one in both if one.partition("/")[2] == name]
            meant = f"; write {' or '.join(ways)}" if ways else f"; in all are {', '.join(both)}"
            raise UserError(f"{name}: has no value in all results{meant}")
    if bare := [name for name in asked if name in known and name not in common]:
        raise UserError(f"{', '.join(bare)}: without values per query in some result; compare other numbers")
    if foreign := [name for name in (both if names is None and not common else asked) if name not in common]:
        raise UserError(
            f"{systems[0].name} and {systems[1].name} cannot be compared by {', '.join(foreign)}: not known here; name"
            " the module of the measure (--module), or import it in Python"
        )
    only = tuple(name for name in every if name not in both)
    unknown = tuple(name for name in both if name not in known)
    return _Measured(asked, common, only, tuple(name for name in known if name not in common), unknown)


def _primary(given: str | None, asked: Sequence[str]) -> str:
    if given is None:
        return "rsum" if "rsum" in asked else asked[0]
    if given not in asked:
        ways = [one for one in asked if one.partition("/")[2] == given]
        meant = f"; write {' or '.join(ways)}" if ways else f"; compared are {', '.join(asked)}"
        raise UserError(f"--primary {given} is not compared{meant}")
    return given


def _refuse_other_degrees(systems: Sequence[System], asked: Sequence[str]) -> None:
    graded = [name for name in asked if measure_of(name).graded]
    first = systems[0].results[0]
    for system in systems:
        for result in system.results:
            if graded and result.relevance != first.relevance:
                mine, theirs = (one.relevance or "unknown" for one in (first, result))
                raise UserError(
                    f"{system.name} cannot be compared with {systems[0].name} by {graded[0]}: degrees are {theirs}"
                    f" against {mine}; evaluate both with the same relevance, or compare other measures"
                )


def _drawn(systems: Sequence[System], asked: Sequence[str], draws: int, seed: int) -> dict[tuple[str, str], Numbers]:
    """(draws,) numbers of pictures drawn anew, means over trainings, by system and name."""
    results = [result for system in systems for result in system.results]
    drawn = bootstrap(results, asked, draws, seed)
    owner = [system.name for system in systems for _ in system.results]
    found: dict[tuple[str, str], Numbers] = {}
    for system in systems:
        own = np.array([name == system.name for name in owner])
        found |= {(system.name, name): drawn[name][own].mean(axis=0) for name in asked}
    return found


def _difference(
    first: System, second: System, name: str, drawn: Mapping[tuple[str, str], Numbers], level: float
) -> Difference:
    """A difference before Holm's correction, without a verdict."""
    draws = drawn[second.name, name] - drawn[first.name, name]
    one = first.results[0]
    interval = interval_of_difference(first.results, second.results, name, draws, level)
    pictures = len(np.unique(np.concatenate([one.image_of_query(way) for way in one.queries])))
    return Difference(
        name,
        one.units[name],
        first.name,
        second.name,
        first.mean(name),
        second.mean(name),
        second.mean(name) - first.mean(name),
        over_pictures(draws, pictures, interval),
        over_seeds(second.paired_differences(first, name), level),
        NOT_SHOWN,
    )


def _corrected(found: Sequence[Difference], level: float) -> list[Difference]:
    """The differences with Holm's correction within each number, and their verdicts."""
    new: dict[int, Difference] = {}
    for name in dict.fromkeys(one.name for one in found):
        own = [at for at, one in enumerate(found) if one.name == name]
        new |= dict(zip(own, judged_together([found[at] for at in own], level), strict=True))
    return [new[at] for at in range(len(found))]


def judged_together(found: Sequence[Difference], level: float = 0.95) -> list[Difference]:
    """Differences with Holm's correction over all of them, and the verdicts that remain.

    Args:
        found: Differences of any systems and numbers, such as those of all claims of a study.
        level: Confidence level.
    """
    p_holm: dict[tuple[int, str], float] = {}
    for over in ("pictures", "seeds"):
        tested = [(at, test) for at, one in enumerate(found) if (test := getattr(one, over)) is not None]
        corrected = holm([test.p for _, test in tested])
        p_holm |= {(at, over): p for (at, _), p in zip(tested, corrected, strict=True)}
    judged = []
    for at, one in enumerate(found):
        pictures = replace(one.pictures, p_holm=p_holm[at, "pictures"])
        seeds = None if one.seeds is None else replace(one.seeds, p_holm=p_holm[at, "seeds"])
        new = replace(one, pictures=pictures, seeds=seeds, verdict=NOT_SHOWN)
        if all(test.shows(level) for test in new.tests):
            higher = measure_of(one.name).higher_is_better
            new = replace(new, verdict=BETTER if (one.difference > 0) == higher else WORSE)
        judged.append(new)
    return judged


def _remarks(
    systems: Sequence[System], asked: Sequence[str], found: Sequence[Difference], primary: str, level: float
) -> Iterator[str]:
    """What a reader should know of the tests, one line each."""
    first = systems[0].results[0]
    if not first.data_hash:
        yield "no result names its data, so that only sizes could be compared"
    graded = any(measure_of(name).graded for name in asked)
    if graded and first.relevance.startswith("given") and ", hash " not in first.relevance:
        yield f"the degrees of all were {first.relevance}, which may be of several sources"
    own = [one for one in found if one.name == primary]
    untested = [one for one in own if one.seeds is None]
    if untested and all(len(one.results) == 1 for one in systems):
        yield "one training of each: whether other seeds would turn a difference is not tested"
    elif untested:
        yield "fewer than two seeds in common, or all with one difference: seeds are not tested for " + ", ".join(
            f"{one.system} against {one.baseline}" for one in untested
        )
    least = 1.0 if first.units[primary] in (PERCENT, RANK) else 0.01
    named = {one.name: one for one in systems}
    for one in own:
        if one.seeds is None:
            continue
        paired = named[one.system].paired_differences(named[one.baseline], primary)
        needed = seeds_to_show(least, float(np.std(paired, ddof=1)), level)
        many = "more than 10,000" if needed is None else f"about {needed}"
        width = number_text(one.seeds.interval.high - one.seeds.interval.low, one.unit)
        of = f", {one.system} against {one.baseline}" if len(own) > 1 else ""
        yield (
            f"{one.seeds.count} seeds: their interval of {primary} is {width} wide{of}; {many} would show a difference"
            f" of {least:g} in 4 of 5 studies"
        )


def _measure_of_lists(names: Sequence[str]) -> str:
    measures = [name.partition("/")[2] for name in names if "/" in name]
    return "MRR" if "MRR" in measures else measures[0]


def _changes(first: System, second: System, measure: str) -> QueryChanges:
    better: dict[str, tuple[Change, ...]] = {}
    worse: dict[str, tuple[Change, ...]] = {}
    one, other = first.results[0], second.results[0]
    shared = [name.partition("/") for name in one.numbers if name in other.numbers]
    known = dict.fromkeys(own for _, way, own in shared if way)
    if measure not in known:
        raise UserError(
            f"by={measure!r} is not a measure of both results; in both are {', '.join(known)}",
            parameters={f"by={measure!r}": "by"},
        )
    parsed = parse(measure)
    assert isinstance(parsed, Measure)
    sense = 1 if parsed.higher_is_better else -1
    for way in ("i2t", "t2i"):
        name = f"{way}/{measure}"
        if not all(name in result.numbers for system in (first, second) for result in system.results):
            continue
        a, b = (system.of_query(name, parsed) for system in (first, second))
        ids = one.query_ids(way)
        gain: NDArray[np.float64] = np.nan_to_num(sense * (b - a))
        order = np.argsort(-np.abs(gain), kind="stable")
        changes = [(gain[at], Change(way, ids[at], float(a[at]), float(b[at]))) for at in order if gain[at]]
        better[way] = tuple(change for size, change in changes if size > 0)
        worse[way] = tuple(change for size, change in changes if size < 0)
    return QueryChanges(first.name, second.name, better, worse)
