"""``rungwise compare``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.terminal import console, say
from rungwise.evaluation.compare import compare, render_comparison
from rungwise.evaluation.result import Result


@dataclass
class Compare:
    """Whether one model ranks better than another, or whether the difference may be chance.

    Attributes:
        first: Result A, a JSON file that evaluate --out wrote.
        second: Result B, on the same data under the same protocol.
        measures: Numbers to compare, such as t2i/R@1 or rsum; all that both have when left out.
        level: Of the intervals.
        draws: Of the bootstrap, and of the randomisation test.
        seed: Of the draws.
        by: Measure that the lists of queries go by, such as MRR or CS@100.
        most: How many queries to list a direction; the JSON has them all.
        out: Write everything as JSON here.
    """

    first: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="A")]
    second: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="B")]
    measures: tuple[str, ...] = ()
    level: float = 0.95
    draws: int = 2000
    seed: int = 0
    by: str | None = None
    most: int = 5
    out: Path | None = None


def main(arguments: list[str]) -> int:
    """Print the table and the queries that changed, write the JSON."""
    asked = tyro.cli(Compare, args=arguments, prog="rungwise compare")
    found = compare(
        Result.from_json(asked.first),
        Result.from_json(asked.second),
        asked.measures or None,
        level=asked.level,
        draws=asked.draws,
        seed=asked.seed,
        by=asked.by,
        labels=(str(asked.first), str(asked.second)),
    )
    say(f"A: {asked.first}")
    say(f"B: {asked.second}")
    console.print(render_comparison(found))
    if found.only_in_one:
        say(f"only in one of them, not compared: {', '.join(found.only_in_one)}")
    for word, lists in (("better", found.better), ("worse", found.worse)):
        for direction, changes in lists.items():
            say(f"{direction}: {len(changes)} queries {word} in B by {found.by}")
            for change in changes[: max(0, asked.most)]:
                say(f"  {change.first:g} -> {change.second:g}  {change.query}")
    if asked.out:
        found.to_json(asked.out)
        say(f"written: {asked.out}")
    return 0
