"""Comparison of two results: options, and the function of Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.core import UserError
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.output import short_repr
from rungwise.jobs._job import JobOptions, function_of
from rungwise.jobs._options import ADVANCED, AnyPath, Given, PathOrNone, Texts, given
from rungwise.jobs._python_values import refused
from rungwise.jobs._terminal import say

if TYPE_CHECKING:
    from rungwise.evaluation import Comparison, Result

    ResultGiven = Given[Result | AnyPath, Result | str]
else:
    ResultGiven = str


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


def compared_results(asked: Compare, show: Callable[[Comparison], None] | None = None) -> Comparison:
    """Compare two results, ``show`` the comparison, and write it where that is asked for."""
    from rungwise.evaluation import Result
    from rungwise.evaluation import compare as compare_results

    given = {"first": asked.first, "second": asked.second}
    for name, one in given.items():
        if not isinstance(one, Result | str):
            raise refused(name, one, "a result, its file, or the text of to_json()")
        # The text of a result is longer than a path may be, which Path.is_dir() raises for.
        if isinstance(one, str) and os.path.isdir(one):  # noqa: PTH112
            raise UserError(f"{one}: a folder; give results, such as those in the folder results of a run")
    if asked.seed < 0:
        raise UserError(f"--seed must be 0 or more, got {asked.seed}")
    first, second = (one if isinstance(one, Result) else Result.from_json(one) for one in given.values())
    labels = [one if isinstance(one, str) and not one.lstrip().startswith("{") else "" for one in given.values()]
    found = compare_results(
        first,
        second,
        asked.measures or None,
        level=asked.level,
        draws=asked.draws,
        seed=asked.seed,
        by=asked.by,
        labels=(labels[0] or "A", labels[1] or "B"),
    )
    if show is not None:
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
