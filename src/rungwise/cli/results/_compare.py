"""``rungwise compare``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from rungwise.cli.frame import parse
from rungwise.core.text import IdleCase, idle_where
from rungwise.jobs import Compare, messages_apart, say

if TYPE_CHECKING:
    from rungwise.evaluation import Comparison

_EXAMPLES = (
    "rungwise compare first.json second.json",
    "rungwise compare runs/vsepp runs/ladder runs/sam --primary rsum",
    "rungwise compare first.json second.json --format latex",
)
_WIDEST = 120
"""Number of terminal columns that are used; longer lines are hard to follow."""


@dataclass
class CompareCommand(Compare):
    """Whether one system ranks better than another, or whether the difference may be chance.

    Attributes:
        most: Queries to list a direction. The JSON has them all.
        format: What to print: table, markdown, latex, csv or json.
    """

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        idle_where("most", lambda asked: asked.format != "table", "beside {format}, which lists all or none"),
    )

    most: int = 5
    format: Annotated[Literal["table", "markdown", "latex", "csv", "json"], tyro.conf.arg(metavar="FORMAT")] = "table"


def main(arguments: list[str]) -> int:
    """Print the table and the changed queries, or a text of another form, and write the JSON."""
    asked = parse(CompareCommand, arguments, "rungwise compare", examples=_EXAMPLES)
    from rungwise.core.output import printable
    from rungwise.jobs import compared_results

    def show(found: Comparison) -> None:
        if asked.format == "table":
            _show(found, asked.most)
        else:
            print(printable(_text(found, asked.format).removesuffix("\n")))

    with messages_apart(asked.format != "table"):
        compared_results(asked, show)
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
    from rungwise.evaluation import comparison_text

    say(comparison_text(found, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)))
    for one in found.changes:
        first, second = found.label(one.baseline), found.label(one.system)
        for word, lists in (("better", one.better), ("worse", one.worse)):
            for direction, changes in lists.items():
                say(f"{direction}: queries that are {word} in {second} than in {first} by {found.by}: {len(changes)}")
                for change in changes[: max(0, most)]:
                    say(f"  {change.first:g} -> {change.second:g}  {change.query}")
