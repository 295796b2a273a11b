"""Comparison of two results: options, and the function of Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.output import short_repr
from rungwise.jobs._job import JobOptions, function_of
from rungwise.jobs._options import ADVANCED, AnyPath, Given, PathOrNone, Texts, given
from rungwise.jobs._terminal import say

if TYPE_CHECKING:
    from rungwise.evaluation import Comparison, Result

    ResultGiven = Given[Result | AnyPath, Result | Path]
else:
    ResultGiven = Path


@dataclass
class Compare(JobOptions):
    """Whether one model ranks better than another, or whether the difference may be chance.

    Attributes:
        first: Result A, a JSON file that evaluate --out wrote.
        second: Result B, on the same data under the same protocol.
        measures: Numbers to compare, such as t2i/R@1. All that both have when left out.
        level: Of the intervals.
        draws: Of the bootstrap, and of the randomisation test.
        seed: Of the draws.
        by: Measure that queries are listed by, such as MRR.
        out: Write everything as JSON here.
    """

    first: Annotated[tyro.conf.Positional[ResultGiven], tyro.conf.arg(metavar="A")] = given(MISSING)
    second: Annotated[tyro.conf.Positional[ResultGiven], tyro.conf.arg(metavar="B")] = given(MISSING)
    measures: Texts = given(())
    level: float = field(default=0.95, metadata=ADVANCED)
    draws: int = field(default=2000, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)
    by: str | None = None
    out: PathOrNone = given(None, WRITTEN_FILE)

    __repr__ = short_repr


def _show_nothing(_: Comparison) -> None:
    pass


def compared_results(asked: Compare, show: Callable[[Comparison], None] = _show_nothing) -> Comparison:
    """Compare two results, ``show`` the comparison, and write it where that is asked for."""
    from rungwise.evaluation import Result
    from rungwise.evaluation import compare as compare_results

    given = (asked.first, asked.second)
    first, second = (one if isinstance(one, Result) else Result.from_json(one) for one in given)
    found = compare_results(
        first,
        second,
        asked.measures or None,
        level=asked.level,
        draws=asked.draws,
        seed=asked.seed,
        by=asked.by,
        labels=("A", "B") if isinstance(given[0], Result) else (str(given[0]), str(given[1])),
    )
    show(found)
    if asked.out is not None:
        found.to_json(asked.out)
        say(f"written: {asked.out}")
    return found


compare = function_of(
    "compare",
    Compare,
    compared_results,
    """
    Returns:
        Comparison with a difference, its interval and a p-value for each number.

    Raises:
        UserError: If the results are of other data, protocols or degrees, or hold no values per query.

    >>> import numpy as np, rungwise
    >>> rng = np.random.default_rng(0)
    >>> a, b = (rungwise.evaluate(similarity=rng.normal(size=(9, 9)), image_of_caption=range(9)) for _ in "ab")
    >>> rungwise.compare(a, b, ["i2t/R@1"]).differences[0].name
    'i2t/R@1'
    """,
)
