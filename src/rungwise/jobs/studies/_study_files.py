"""The tables and the curves of a study, and the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import MissingExtraError, UserError
from rungwise.core.disk import replacing
from rungwise.evaluation import Result, ResultQuestion, System
from rungwise.evaluation.tables import ResultTable, SystemsBlock, TableFormat, systems_table
from rungwise.jobs.results import title_of
from rungwise.runs import RunWithResults, SystemRuns, by_question

if TYPE_CHECKING:
    from rungwise.runs.study import PlannedRun

TABLES: Mapping[str, TableFormat] = {"table.md": "markdown", "table.tex": "latex", "table.csv": "csv"}
"""Files of the table in the folder of a study, and their formats."""
_CURVES = "curves.svg"


def study_table(
    results: Mapping[str, Sequence[Sequence[Result]]], title: str, notes: Sequence[str]
) -> ResultTable | None:
    """The table of a study: a block for each question, a line for each system; None without systems.

    Args:
        results: For each system the results of each of its runs, one for each question.
        title: Title of the table.
        notes: What a reader should know besides, one line each.
    """
    found: dict[ResultQuestion, dict[str, list[Result]]] = {}
    for name, runs in results.items():
        for run in runs:
            for result in by_question(run):
                found.setdefault(ResultQuestion.of(result), {}).setdefault(name, []).append(result)
    if not found:
        return None
    blocks = [
        SystemsBlock(
            title_of(next(iter(own.values()))[0]), tuple(System(name, tuple(each)) for name, each in own.items())
        )
        for own in found.values()
    ]
    table = systems_table(blocks)
    return replace(table, title=title, marks=(*table.marks, *notes))


def write_table(out: Path, table: ResultTable) -> tuple[Path, ...]:
    """Write the table in each of its formats; returns the files."""
    paths = []
    for name, form in TABLES.items():
        paths.append(out / name)
        with replacing(paths[-1]) as draft:
            draft.write_text(table.to_format(form).removesuffix("\n") + "\n", encoding="utf-8")
    return tuple(paths)


def _with_results(run: PlannedRun, results: Sequence[Result]) -> RunWithResults:
    finished = run.finished()
    return RunWithResults(run.folder, run.config, tuple(results), None if finished is None else finished.history)


def write_curves(
    out: Path,
    systems: Mapping[str, Sequence[PlannedRun]],
    results: Mapping[str, Sequence[Sequence[Result]]],
    settings: Sequence[str],
) -> tuple[tuple[Path, ...], str]:
    """Write the curves of a study, by epoch, by K and by rank, and by each setting that its systems differ in.

    Returns:
        The files, and one line on what could not be drawn; empty where all was.
    """
    from rungwise.runs.curves import draw

    runs = [
        SystemRuns(name, tuple(_with_results(*one) for one in zip(systems[name], own, strict=True)))
        for name, own in results.items()
    ]
    written, missing = [], ""
    for name, by in ((_CURVES, ""), *((f"curves-by-{one}.svg", one) for one in settings)):
        try:
            written.append(draw(runs, by=by).save(out / name))
        except MissingExtraError as error:
            return (), f"no curves are drawn: {error}"
        except UserError as error:
            missing = f"{name} is not drawn: {error}"
    return tuple(written), missing
