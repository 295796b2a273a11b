"""Curves of runs and results: options, and the function of Python."""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from rungwise.core import UserError
from rungwise.core.disk import require_writable_file
from rungwise.core.disk.folders import WRITTEN_FILE
from rungwise.core.output import short_repr
from rungwise.core.text import IdleCase, idle_where
from rungwise.jobs._job import JobOptions, function_of
from rungwise.jobs._options import ADVANCED, AnyPath, Given, PathOrNone, Paths, Several, Texts, given
from rungwise.jobs._python_values import Form, refused
from rungwise.jobs._terminal import say, shortest
from rungwise.jobs.results._systems import absolute, names_for, refuse_input

if TYPE_CHECKING:
    from rungwise.evaluation import Result
    from rungwise.runs import SystemRuns
    from rungwise.runs.curves import CurvePlot

    RunsGiven = Given[Several[Result | AnyPath] | Result | AnyPath, tuple[Result | str, ...]]
else:
    RunsGiven = Annotated[tuple[str, ...], Form.LIST_OF_ANY]


@dataclass
class Plot(JobOptions):
    """Curves of runs in one picture: by epoch, recall by K, degree by rank, and a measure by a setting.

    Runs that differ in their seed alone make one line with a band. What cannot be drawn is listed.

    Attributes:
        runs: Folders of runs, or of many runs, such as seeds; and results, JSON files that evaluate --out wrote.
        kind: Some of epochs, recall, degrees and setting. Default: setting where --by is given, else all of the others
            that the runs hold the numbers of.
        measures: Columns of the history for epochs, and numbers of the results for setting. Such as loss, rsum,
            i2t/R@1, learning_rate of the one, and R@1 or t2i/R@1 of the other.
        by: Setting on the x axis, such as loss.negative_set or data.share.
        protocol: Protocol of the results; default that of most runs.
        split: Split of the results; default that of most runs.
        names: Names of the curves, in the order of their first runs.
        out: Files of the picture, which end with .svg, .png or .pdf.
        csv: Write every point as comma-separated values here.
        width: Width of the picture in inches.
        height: Height of each row of panels in inches.
        draws: Of the bootstrap over pictures, for runs of one seed; 0 draws no such bands.
    """

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        idle_where("by", lambda asked: asked.kind and "setting" not in asked.kind, "without {kind} setting"),
        idle_where(
            "protocol split draws",
            lambda asked: set(asked.kind) == {"epochs"},
            "with {kind} epochs, which reads histories and no results",
        ),
        idle_where(
            "measures",
            lambda asked: asked.kind and not {"epochs", "setting"} & set(asked.kind),
            "without {kind} epochs or setting",
        ),
    )

    runs: Annotated[tyro.conf.Positional[RunsGiven], tyro.conf.arg(metavar="RUN")] = given(MISSING)
    kind: Texts = given(())
    measures: Texts = given(())
    by: str = ""
    protocol: str = ""
    split: str = ""
    names: Texts = given(())
    out: Paths = given(())
    csv: PathOrNone = given(None, WRITTEN_FILE)
    width: float = 9.0
    height: float = 3.2
    draws: int = field(default=1000, metadata=ADVANCED)

    __repr__ = short_repr


def plotted(asked: Plot) -> CurvePlot:
    """Read the runs and results, make their curves, and write the files that are asked for."""
    if not asked.runs:
        raise UserError("no run is named; name folders of runs, or results")
    from rungwise.runs.curves import draw, form_of

    written = [absolute(one) for one in (*asked.out, *((asked.csv,) if asked.csv else ()))]
    if len(set(written)) < len(written):
        raise UserError("--out and --csv name one file twice; give each its own")
    for option, path in (*(("--out", one) for one in asked.out), ("--csv", asked.csv)):
        refuse_input(option, path, asked.runs)
    for path in asked.out:
        form_of(path)
        require_writable_file(path)
    systems, results, unreadable = _read(asked.runs)
    systems, results = _named(asked.names, systems, results)
    found = draw(
        systems,
        asked.kind,
        results=results,
        measures=asked.measures,
        by=asked.by,
        protocol=asked.protocol,
        split=asked.split,
        draws=asked.draws,
        width=asked.width,
        height=asked.height,
    )
    found = replace(found, left_out=(*unreadable, *found.left_out))
    for line in found.left_out:
        say(f"left out: {line}")
    for path in asked.out:
        say(f"written: {shortest(found.save(path))}")
    if asked.csv is not None:
        found.to_csv(asked.csv)
        say(f"written: {shortest(asked.csv)}")
    return found


def _read(given: tuple[Result | str, ...]) -> tuple[tuple[SystemRuns, ...], dict[str, Result], tuple[str, ...]]:
    """Systems of the folders, results of the files by their names, and a line for each that cannot be read."""
    from rungwise.evaluation import Result
    from rungwise.runs import find_runs, systems_of

    folders: list[Path] = []
    results: dict[str, Result] = {}
    unreadable: list[str] = []
    for place, one in enumerate(given, 1):
        if isinstance(one, Result):
            results[f"result {place}"] = one
            continue
        if not isinstance(one, str | os.PathLike):
            raise refused("runs", one, "folders of runs, results, or their files")
        path = Path(one)
        if path.is_dir() or not path.exists():
            folders.append(path)
            continue
        try:
            results[_name_of(path, results)] = Result.from_json(path)
        except UserError as error:
            unreadable.append(str(error))
    runs, lines = find_runs(folders) if folders else ((), ())
    if not runs and not results:
        first, *others = (*unreadable, *lines)
        raise UserError(f"{first}{f'; and {len(others)} more' if others else ''}")
    return systems_of(runs) if runs else (), results, (*unreadable, *lines)


def _name_of(path: Path, taken: dict[str, Any]) -> str:
    """Name of a result: that of its file, or its path where two files have one name."""
    return path.stem if path.stem not in taken else str(path)


def _named(
    names: tuple[str, ...], systems: tuple[SystemRuns, ...], results: dict[str, Result]
) -> tuple[tuple[SystemRuns, ...], dict[str, Result]]:
    """Systems and results under the names that a person gave, or under their own, each once."""
    if not names and (double := {one.name for one in systems} & results.keys()):
        return systems, {f"{name}.json" if name in double else name: one for name, one in results.items()}
    given = names_for([*(one.name for one in systems), *results], names)
    renamed = tuple(replace(one, name=name) for one, name in zip(systems, given, strict=False))
    return renamed, dict(zip(given[len(systems) :], results.values(), strict=True))


plot = function_of(
    "plot",
    Plot,
    plotted,
    """
    Returns:
        CurvePlot, which a notebook shows; ``save(path)`` writes the picture, ``to_frame()`` and ``to_csv()`` give its
        points, and ``left_out`` says what is not drawn.

    Raises:
        UserError: If a folder holds no run, an option does not fit, nothing can be drawn, or matplotlib is not
            installed where a picture is to be written.

    >>> import numpy as np, rungwise
    >>> rng = np.random.default_rng(0)
    >>> results = [rungwise.evaluate(similarity=rng.normal(size=(9, 9)), image_of_caption=range(9)) for _ in "ab"]
    >>> rungwise.plot(results, names=["first", "second"], quiet=True).kinds
    ('recall',)
    """,
)
"""``rungwise plot``."""
