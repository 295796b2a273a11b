"""``rungwise table``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from rungwise.cli.frame import parse
from rungwise.core.output import printable
from rungwise.jobs import TableOptions, messages_apart, say

if TYPE_CHECKING:
    from rungwise.evaluation.tables import ResultTable

_EXAMPLES = (
    "rungwise table --runs runs/vsepp runs/sam",
    "rungwise table --runs runs --measures R@1 rsum --format latex",
    "rungwise table vsepp:1 --runs runs",
)
_WIDEST = 120
"""Number of terminal columns that are used; longer lines are hard to follow."""


@dataclass
class TableCommand(TableOptions):
    """A table of your own runs, or a printed table of a paper with your runs below the rows that they stand for.

    Attributes:
        format: What to print: table, markdown, latex, csv, json or html.
    """

    format: Annotated[Literal["table", "markdown", "latex", "csv", "json", "html"], tyro.conf.arg(metavar="FORMAT")] = (
        "table"
    )


def main(arguments: list[str]) -> int:
    """Print the table, and write it where that is asked for."""
    asked = parse(TableCommand, arguments, "rungwise table", examples=_EXAMPLES)
    from rungwise.jobs import made_table

    def show(found: ResultTable) -> None:
        if asked.format == "table":
            say(found.to_text(min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)))
        else:
            print(printable(found.to_format(asked.format).removesuffix("\n")))

    with messages_apart(asked.format != "table"):
        made_table(asked, show)
    return 0
