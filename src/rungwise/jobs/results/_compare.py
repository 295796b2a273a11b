"""Comparison of systems: options, and the function of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.output import short_repr
from rungwise.jobs._job import JobOptions, function_of
from rungwise.jobs._options import ADVANCED, AnyPath, Given, PathOrNone, Texts, given
from rungwise.jobs._python_values import Form
from rungwise.jobs._terminal import say
from rungwise.jobs.results._systems import Wanted, candidates_of, named, of_one_question, refuse_input

if TYPE_CHECKING:
    from rungwise.evaluation import Comparison, Result, System
    from rungwise.jobs._options import Several

    AnySystem = Result | System | AnyPath | Several[Result] | Several[AnyPath]
    """A system: a result or its file, a run, a folder of runs, or a list of results, one for each training."""
    SystemsGiven = Given[Several[AnySystem], tuple[Any, ...]]
else:
    SystemsGiven = Annotated[tuple[str, ...], Form.LIST_OF_ANY]


@dataclass
class Compare(JobOptions):
    """Whether one system ranks better than another, or whether the difference may be chance.

    Attributes:
        systems: Runs, folders of seeds or of runs, or results (JSON files that evaluate --out wrote); two systems or
            more. The first is the baseline.
        measures: Numbers to compare, such as t2i/R@1. All that the systems have in common when left out.
        primary: The number by which the systems are judged, named before the numbers are seen; default rsum, or else
            the first. All others are descriptive.
        pairs: Compare each system with the first, or all with one another.
        names: Names of the systems, in their order.
        protocol: Compare results under this protocol, where there are several.
        split: Compare results of this split, where there are several; default test.
        relevance: Compare results by these degrees, where there are several; the beginning of their name is enough.
        level: Of the intervals.
        draws: Of the bootstrap; default 2,000, or for many systems as many as their correction needs.
        seed: Of the draws.
        by: Measure that queries are listed by, such as MRR.
        out: Write everything as JSON here.
    """

    systems: Annotated[tyro.conf.Positional[SystemsGiven], tyro.conf.arg(metavar="A B [C ...]")] = given(MISSING)
    measures: Texts = given(())
    primary: str | None = None
    pairs: Literal["first", "all"] = "first"
    names: Texts = given(())
    protocol: str | None = field(default=None, metadata=ADVANCED)
    split: str | None = field(default=None, metadata=ADVANCED)
    relevance: str | None = field(default=None, metadata=ADVANCED)
    level: float = field(default=0.95, metadata=ADVANCED)
    draws: int | None = field(default=None, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)
    by: str | None = None
    out: PathOrNone = given(None, WRITTEN_FILE)

    __repr__ = short_repr


def compared_results(asked: Compare, show: Callable[[Comparison], None] | None = None) -> Comparison:
    """Compare systems, ``show`` the comparison, and write it where that is asked for."""
    from rungwise.evaluation import compare as compare_systems

    if asked.seed < 0:
        raise UserError(f"--seed must be 0 or more, got {asked.seed}")
    refuse_input("--out", asked.out, asked.systems)
    candidates, unreadable = candidates_of(asked.systems)
    if len(candidates) < 2:
        if unreadable and not candidates:
            raise UserError(unreadable[0])
        there = f"there is one system, {candidates[0].name}" if candidates else "no system is named"
        more = f"; {unreadable[0]}" if unreadable else ""
        raise UserError(f"{there}; name two or more to compare: results, runs, or folders of runs{more}")
    systems, remarks = of_one_question(candidates, Wanted(asked.protocol, asked.split, asked.relevance))
    found = compare_systems(
        named(_apart(systems), asked.names),
        asked.measures or None,
        primary=asked.primary,
        pairs=asked.pairs,
        level=asked.level,
        draws=asked.draws,
        seed=asked.seed,
        by=asked.by,
    )
    found = replace(found, remarks=(*found.remarks, *remarks, *unreadable))
    if show is not None:
        show(found)
    if asked.out is not None:
        found.to_json(asked.out)
        say(f"written: {asked.out}")
    return found


def _apart(systems: Sequence[System]) -> list[System]:
    """The systems, where one is named twice with its place behind its name."""
    names = [one.name for one in systems]
    return [
        replace(one, name=f"{one.name} ({place})") if names.count(one.name) > 1 else one
        for place, one in enumerate(systems, 1)
    ]


_compare = function_of("compare", Compare, compared_results, "")


def compare(
    *systems: AnySystem,
    measures: Several[str] | str = (),
    primary: str | None = None,
    pairs: Literal["first", "all"] = "first",
    names: Several[str] | str = (),
    protocol: str | None = None,
    split: str | None = None,
    relevance: str | None = None,
    level: float = 0.95,
    draws: int | None = None,
    seed: int = 0,
    by: str | None = None,
    out: AnyPath | None = None,
    quiet: bool = False,
) -> Comparison:
    """Whether one system ranks better than another, or whether the difference may be chance.

    Args:
        systems: Results or their files, runs, folders of seeds or of runs, or lists of results that are trainings of
            one system; two or more. The first is the baseline.
        measures: Numbers to compare, such as t2i/R@1. All that the systems have in common when left out.
        primary: The number by which the systems are judged, named before the numbers are seen; default rsum, or else
            the first. All others are descriptive.
        pairs: Compare each system with the first, or all with one another.
        names: Names of the systems, in their order.
        protocol: Compare results under this protocol, where there are several.
        split: Compare results of this split, where there are several; default test.
        relevance: Compare results by these degrees, where there are several; the beginning of their name is enough.
        level: Confidence level of the intervals.
        draws: Number of draws of the bootstrap; default 2,000, or for many systems as many as their correction needs.
        seed: Seed of the draws.
        by: Measure that queries are listed by, such as MRR.
        out: Write everything as JSON here.
        quiet: Print nothing; errors are raised all the same.

    Returns:
        Comparison with a difference, its tests and a verdict for each number and two systems.

    Raises:
        UserError: If the results are of other data, protocols or degrees, or hold no values per query.

    >>> import numpy as np, rungwise
    >>> rng = np.random.default_rng(0)
    >>> a, b = (rungwise.evaluate(similarity=rng.normal(size=(9, 9)), image_of_caption=range(9)) for _ in "ab")
    >>> rungwise.compare(a, b, measures="i2t/R@1").differences[0].name
    'i2t/R@1'
    """
    if systems and isinstance(systems[-1], list | tuple) and _are_measures(systems[-1]):
        raise UserError(f"compare(): {systems[-1]!r} are no systems; give the measures as measures=")
    return _compare(
        systems,
        measures=measures,
        primary=primary,
        pairs=pairs,
        names=names,
        protocol=protocol,
        split=split,
        relevance=relevance,
        level=level,
        draws=draws,
        seed=seed,
        by=by,
        out=out,
        quiet=quiet,
    )


def _are_measures(given: Sequence[Any]) -> bool:
    from rungwise.evaluation.statistics import is_known

    return bool(given) and all(isinstance(one, str) and is_known(one) for one in given)
