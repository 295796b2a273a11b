"""Tables: of a paper, with ours below its rows, or of our own systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from rungwise.core import UserError
from rungwise.core.disk import replacing
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.output import short_repr
from rungwise.core.text import IdleCase, idle_where
from rungwise.jobs._job import JobOptions, function_of
from rungwise.jobs._options import ADVANCED, Given, PathOrNone, Texts, given
from rungwise.jobs._python_values import Form
from rungwise.jobs._terminal import say
from rungwise.jobs.results._systems import Wanted, candidates_together, folders_of, of_each_question, refuse_input

if TYPE_CHECKING:
    from rungwise.evaluation.tables import ResultTable, TableFormat
    from rungwise.jobs._options import Several
    from rungwise.jobs.results._compare import AnySystem

    RunsGiven = Given[Several[AnySystem] | AnySystem, tuple[Any, ...]]
else:
    RunsGiven = Annotated[tuple[str, ...], Form.LIST_OF_ANY]
    TableFormat = Literal["table", "markdown", "latex", "csv", "json", "html"]


@dataclass
class TableOptions(JobOptions):
    """A table of your own runs, or a printed table of a paper with your runs below the rows that they stand for.

    Attributes:
        table: Paper and number, such as vsepp:1. The papers are vsepp, ladder_loss, sam, convse and cmal2r; today:1
            and today:2 are rows of present systems, fine-tuned and zero-shot. Left out, the table has the runs alone:
            mean and deviation over seeds, and what differs beyond chance.
        runs: Runs, folders of seeds or of runs; without a paper, also files of results.
        measures: Measures to print, such as R@1 t2i/nDCG@10 rsum; all when left out.
        average: Print mean and deviation over seeds, or the median run.
        protocol: Print results under this protocol alone.
        split: Print results of this split alone.
        relevance: Print results by these degrees alone; the beginning of their name is enough.
        level: Confidence level of what is called beyond chance.
        draws: Of the bootstrap over pictures; default 2,000, or for many systems as many as their correction needs.
        seed: Of the draws.
        out: Write the table here; the end of the name says the format: .md, .tex, .csv, .json, .html or .txt.
    """

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        idle_where(
            "measures average protocol split relevance level draws seed",
            lambda asked: asked.table,
            "beside a table of a paper, which says what stands in it",
            "leave one of them out",
        ),
    )

    table: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="[PAPER:TABLE]")] = ""
    runs: RunsGiven = given(())
    measures: Texts = given(())
    average: Literal["mean", "median"] = "mean"
    protocol: str | None = None
    split: str | None = None
    relevance: str | None = field(default=None, metadata=ADVANCED)
    level: float = field(default=0.95, metadata=ADVANCED)
    draws: int | None = field(default=None, metadata=ADVANCED)
    seed: int = field(default=0, metadata=ADVANCED)
    out: PathOrNone = given(None, WRITTEN_FILE)

    __repr__ = short_repr


_FORMATS: dict[str, TableFormat] = {
    ".md": "markdown", ".tex": "latex", ".csv": "csv", ".json": "json", ".html": "html", ".txt": "table",
}  # fmt: skip


def made_table(asked: TableOptions, show: Callable[[ResultTable], None] | None = None) -> ResultTable:
    """Make a table, ``show`` it, and write it where that is asked for."""
    if asked.out is not None and asked.out.suffix not in _FORMATS:
        raise UserError(f"--out {asked.out}: the end of the name says the format; end it in {', '.join(_FORMATS)}")
    found = _of_paper(asked) if asked.table else _of_runs(asked)
    if show is not None:
        show(found)
    if asked.out is not None:
        with replacing(asked.out) as draft:
            draft.write_text(found.to_format(_FORMATS[asked.out.suffix]).removesuffix("\n") + "\n", encoding="utf-8")
        say(f"written: {asked.out}")
    return found


def _of_paper(asked: TableOptions) -> ResultTable:
    from rungwise.evaluation.tables import PAPERS, paper_table, tables_of

    paper, colon, number = asked.table.partition(":")
    if paper not in PAPERS or not colon:
        known = (f"{one}:{table.removeprefix('Table ')}" for one in PAPERS for table in tables_of(one))
        raise UserError(f"{asked.table!r} names no table of a paper; there are {', '.join(known)}")
    table = paper_table(paper, number)
    if not asked.runs:
        return table
    from rungwise.runs import find_runs, ours_for  # torch, which a printed table does not need

    runs, unreadable = find_runs(folders_of(asked.runs))
    ours, without = ours_for(paper, number, runs)
    table = paper_table(paper, number, ours)
    return replace(table, left_out=(*table.left_out, *unreadable, *without))


def _of_runs(asked: TableOptions) -> ResultTable:
    from rungwise.evaluation.statistics import check_level
    from rungwise.evaluation.tables import SystemsBlock, systems_table
    from rungwise.metrics import parse_all

    if not asked.runs:
        raise UserError("nothing is named: name runs by --runs, or a table of a paper, such as vsepp:1")
    if asked.seed < 0:
        raise UserError(f"--seed must be 0 or more, got {asked.seed}")
    refuse_input("--out", asked.out, asked.runs)
    check_level(asked.level)
    if asked.draws is not None and asked.draws < 1:
        raise UserError(f"--draws must be at least 1, got {asked.draws}")
    candidates, unreadable = candidates_together(asked.runs)
    if not candidates:
        raise UserError("; ".join(unreadable))
    known = {name.rpartition("/")[2] for one in candidates for own in one.results.values() for name in own[0].numbers}
    parse_all(one for one in asked.measures if one.rpartition("/")[2] not in known and "/" not in one)
    by_question, remarks = of_each_question(candidates, Wanted(asked.protocol, asked.split, asked.relevance))
    blocks = [SystemsBlock(title_of(systems[0].results[0]), tuple(systems)) for systems in by_question.values()]
    return systems_table(
        blocks,
        asked.measures,
        average=asked.average,
        level=asked.level,
        draws=asked.draws,
        seed=asked.seed,
        left_out=(*remarks, *unreadable),
    )


def title_of(result: Any) -> str:
    """Head of a block: data, number of pictures, split, protocol, degrees."""
    parts = [result.data_name or result.dataset or "data without a name", f"{result.gallery['t2i'][0]:,} pictures"]
    parts += [f"split {result.split}"] if result.split else []
    parts += [f"protocol {result.protocol}"]
    parts += [f"degrees {result.degrees()}"] if result.relevance else []
    return ", ".join(parts)


table = function_of(
    "table",
    TableOptions,
    made_table,
    """
    Returns:
        The table, which turns into Markdown, LaTeX, CSV, JSON, HTML and a frame of pandas.

    Raises:
        UserError: If there is no such table, or nothing to print.

    >>> import rungwise
    >>> rungwise.table("sam:1").to_markdown().splitlines()[0]
    '**Table 1** of Is An Image Worth Five Sentences? A New Look into Semantics for Image-Text Matching'
    """,
)
