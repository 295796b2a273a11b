"""``rungwise compare``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from rungwise.cli.frame import ADVANCED, console, messages_apart, parse, say
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.output import printable

if TYPE_CHECKING:
    from rungwise.evaluation import Comparison

_EXAMPLES = ("rungwise compare first.json second.json", "rungwise compare first.json second.json --format latex")


@dataclass
class Compare:
    """Whether one model ranks better than another, or whether the difference may be chance.

    Attributes:
        first: Result A, a JSON file that evaluate --out wrote.
        second: Result B, on the same data under the same protocol.
        measures: Numbers to compare, such as t2i/R@1. All that both have when left out.
        level: Of the intervals.
        draws: Of the bootstrap, and of the randomisation test.
        seed: Of the draws.
        by: Measure that queries are listed by, such as MRR.
        most: Queries to list a direction. The JSON has them all.
        format: What to print: table, markdown, latex, csv or json.
        out: Write everything as JSON here.
    """

    first: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="A")]
    second: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="B")]
    measures: tuple[str, ...] = ()
    level: float = field(default=0.95, metadata=ADVANCED)
    draws: int = field(default=2000, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)
    by: str | None = None
    most: int = 5
    format: Annotated[Literal["table", "markdown", "latex", "csv", "json"], tyro.conf.arg(metavar="FORMAT")] = "table"
    out: Path | None = field(default=None, metadata=WRITTEN_FILE)


def main(arguments: list[str]) -> int:
    """Print the table and the changed queries, or a text of another form, and write the JSON."""
    asked = parse(Compare, arguments, "rungwise compare", examples=_EXAMPLES)
    with messages_apart(asked.format != "table"):
        return _run(asked)


def _run(asked: Compare) -> int:
    from rungwise.evaluation import Result, compare

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
    if asked.format == "table":
        _show(found, asked.most)
    else:
        print(printable(_text(found, asked.format).removesuffix("\n")))
    if asked.out:
        found.to_json(asked.out)
        say(f"written: {asked.out}")
    return 0


def _text(found: Comparison, form: str) -> str:
    match form:
        case "markdown":
            return found.to_markdown()
        case "latex":
            return found.to_latex()
        case "csv":
            return found.to_csv()
    return found.to_json()


def _show(found: Comparison, most: int) -> None:
    from rungwise.evaluation import render_comparison

    console.print(render_comparison(found))
    if found.only_in_one:
        say(f"only in one of them, not compared: {', '.join(found.only_in_one)}")
    for word, lists in (("better", found.better), ("worse", found.worse)):
        for direction, changes in lists.items():
            say(f"{direction}: {len(changes)} queries {word} in B by {found.by}")
            for change in changes[: max(0, most)]:
                say(f"  {change.first:g} -> {change.second:g}  {change.query}")
