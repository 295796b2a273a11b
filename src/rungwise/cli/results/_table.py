"""``rungwise table``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.core import UserError
from rungwise.core.output import printable
from rungwise.jobs import say

_EXAMPLES = (
    "rungwise table vsepp:1",
    "rungwise table vsepp:1 --runs runs",
    "rungwise table convse:I --runs runs/convse --markdown",
)
_WIDEST = 120
"""Number of terminal columns that are used; longer lines are hard to follow."""


@dataclass
class TableCommand:
    """A printed table of a paper, with ours below the rows that they stand for.

    A run stands below the row that its preset reproduces, once "rungwise evaluate RUN DATA" has measured it.

    Attributes:
        table: Paper and number. The papers are vsepp, ladder_loss, sam, convse and cmal2r.
        runs: Folders of runs, or of folders of runs, such as several seeds.
        json: Print JSON.
        markdown: Print Markdown.
    """

    table: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PAPER:TABLE")]
    runs: tuple[Path, ...] = ()
    json: bool = False
    markdown: bool = False


def main(arguments: list[str]) -> int:
    """Print the table."""
    asked = parse(TableCommand, arguments, "rungwise table", examples=_EXAMPLES)
    if asked.json and asked.markdown:
        raise UserError("--json and --markdown contradict each other; give one")
    from rungwise.evaluation.tables import PAPERS, paper_table, table_json, table_markdown, table_text, tables_of

    paper, colon, number = asked.table.partition(":")
    if paper not in PAPERS or not colon:
        known = (f"{one}:{table.removeprefix('Table ')}" for one in PAPERS for table in tables_of(one))
        raise UserError(f"{asked.table!r} names no table of a paper; there are {', '.join(known)}")
    table = paper_table(paper, number)
    if asked.runs:
        from rungwise.runs import find_runs, ours_for  # torch, which a printed table does not need

        runs, unreadable = find_runs(asked.runs)
        ours, without = ours_for(paper, number, runs)
        left_out = (*unreadable, *without)
        table = paper_table(paper, number, ours)
        table = replace(table, left_out=(*table.left_out, *left_out))
    if asked.json or asked.markdown:
        print(printable(table_json(table) if asked.json else table_markdown(table)))
        return 0
    say(table_text(table, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST)))
    return 0
