"""``rungwise evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import join
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from rungwise.cli.frame import parse, with_ray
from rungwise.core.text import idle_where
from rungwise.jobs import console, messages_apart, say
from rungwise.jobs.evaluation import IDLE_CASES, Evaluate
from rungwise.parts import named_modules

if TYPE_CHECKING:
    from rungwise.evaluation.benchmarks import BenchmarkResult
    from rungwise.jobs.evaluation import Shown

_EXAMPLES = (
    "rungwise evaluate run/model photos",
    "rungwise evaluate run/model photos --measures R@1 rsum --out result.json",
    "rungwise evaluate photos --image-embeddings i.npy --text-embeddings t.npy",
    "rungwise evaluate MODEL photos --shards 16 --ray",
    "rungwise evaluate run/model photos --rerank scan/model --top 50",
)


@dataclass
class EvaluateCommand(Evaluate):
    """How well a model ranks the captions of pictures and the pictures of captions.

    Give MODEL DATA, or DATA and files of scores, or files of scores alone. A result that evaluate --out wrote may stand
    in place of a model, and is printed anew. Of a folder that holds a benchmark (Winoground, SugarCrepe, CIRCO, MMEB),
    its own measures are printed, always with intervals.

    FILE:KEY names one array of several.

    Attributes:
        format: What to print: table, markdown, latex, csv or json.
        intervals: Print 95 % bootstrap intervals over pictures, too. The report has them in any case.
    """

    format: Annotated[Literal["table", "markdown", "latex", "csv", "json"], tyro.conf.arg(metavar="FORMAT")] = "table"
    intervals: bool = False

    IDLE = (
        *IDLE_CASES,
        idle_where(
            "names",
            lambda asked: asked.format == "table" and asked.report is None and not asked.paper,
            "without {report} or {paper}, or a {format} other than table",
        ),
    )


def main(arguments: list[str]) -> int:
    """Evaluate, print and write the result."""
    asked = parse(EvaluateCommand, with_ray(arguments), "rungwise evaluate", examples=_EXAMPLES)
    from rungwise.jobs.evaluation import benchmark_evaluated, benchmark_of, evaluated

    modules = [word for name in named_modules() for word in ("--module", name)]
    typed = join(["rungwise", "evaluate", *arguments, *modules])
    with messages_apart(asked.format != "table"):
        if (layout := benchmark_of(asked)) is not None:
            _print_benchmark(asked, benchmark_evaluated(asked, layout))
            return 0
        evaluated(asked, intervals=asked.intervals, show=lambda shown: _print(asked, shown), command=typed)
    return 0


def _print_benchmark(asked: EvaluateCommand, result: BenchmarkResult) -> None:
    from rungwise.core.output import printable
    from rungwise.evaluation.benchmarks import format_benchmark, render_benchmark

    if asked.format == "table":
        console.print(render_benchmark(result, result.intervals()))
    else:
        print(printable(format_benchmark(result, asked.format)))


def _print(asked: EvaluateCommand, shown: Shown) -> None:
    from rungwise.core.output import printable
    from rungwise.evaluation import format_result, render_by_class, render_change, render_published, render_table

    if asked.format != "table":
        print(printable(format_result(shown.result, asked.format, shown.rows, asked.names[0], shown.intervals)))
        return
    for table in (render_table(shown.result, shown.intervals), *render_by_class(shown.result)):
        console.print(table)
    if shown.rows:
        say(render_published(shown.result, asked.names[0], shown.rows))
    if (change := render_change(shown.result)) is not None:
        console.print(change)
