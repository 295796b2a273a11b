"""Runs in folders, and the systems that they are of: one or several runs that differ in their seed alone."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rungwise.core import UserError, digest_of_json, to_plain, unreadable
from rungwise.core.output import short_repr
from rungwise.evaluation import Result, ResultQuestion
from rungwise.runs._finished_run import FinishedRun
from rungwise.runs._results import is_run_folder, kept_results
from rungwise.training import CONFIG
from rungwise.training.config import AnyRunConfig, load_run_config

SAME_NUMBERS = (
    "preset", "modules", "packages", "seed", "checkpoint_steps", "compile", "logs", "gradient_checkpointing",
    "data.path",
)  # fmt: skip
"""Settings that do not change what is trained: runs are of the same system with any of them."""

_DEEPEST = 4
"""Number of folders below a given one in which runs are looked for."""
_SEED = re.compile(r"seed-\d+")


@dataclass(frozen=True)
class RunWithResults:
    """A run in a folder, or one of which a file is left.

    Attributes:
        folder: Folder of the run; where a file is left, the place where it would be.
        config: Configuration of the run.
        results: Results of its model, where it was evaluated.
        epochs: Numbers of its epochs where a file is left; None where the folder has them.
        data_hash: Hash of the data where a file is left, which does not say where they lay.
    """

    folder: Path
    config: AnyRunConfig
    results: tuple[Result, ...]
    epochs: tuple[Mapping[str, Any], ...] | None = None
    data_hash: str = ""

    __repr__ = short_repr


@dataclass(frozen=True)
class SystemRuns:
    """Runs that differ in their seed alone, by their seeds.

    Attributes:
        name: Name of the system, made of the folders of its runs.
        runs: The runs, one for each seed.
    """

    name: str
    runs: tuple[RunWithResults, ...]

    __repr__ = short_repr

    @property
    def config(self) -> AnyRunConfig:
        """Configuration of the first run, whose seed alone is its own."""
        return self.runs[0].config

    def results(self) -> dict[ResultQuestion, tuple[Result, ...]]:
        """Results by their question, one for each run that has one, in the order of the seeds."""
        found: dict[ResultQuestion, list[Result]] = {}
        for run in self.runs:
            for result in by_question(run.results):
                found.setdefault(ResultQuestion.of(result), []).append(result)
        return {question: tuple(own) for question, own in found.items()}


def find_runs(folders: Iterable[Path]) -> tuple[tuple[RunWithResults, ...], tuple[str, ...]]:
    """The runs in some folders, and a line for each that cannot be read, such as one with a loss that is not imported.

    Each folder is a run, or holds some, such as the seeds of a run. Files of finished runs count like their folders.

    Raises:
        UserError: If a folder is missing or holds no run.
    """
    found: dict[Path, RunWithResults] = {}
    broken: dict[Path, str] = {}
    for folder in folders:
        if not folder.is_dir() and not FinishedRun.is_one(folder):
            raise UserError(f"{folder}: is no folder; name one that rungwise train wrote, or one of several runs")
        closed: dict[Path, str] = {}
        own = list(_below(folder, _DEEPEST, closed))
        broken |= closed
        if not own and not closed:
            raise UserError(f"{folder}: holds no run with a model; name a folder that rungwise train wrote")
        for one in own:
            try:
                found[one.resolve()] = _read(one)
            except UserError as error:
                broken[one.resolve()] = f"{one}: cannot be read: {error}"
    return tuple(found.values()), tuple(broken.values())


def _read(place: Path) -> RunWithResults:
    """The run in a folder or a file."""
    if place.is_dir():
        results = tuple(kept.result for kept in kept_results(place))
        return RunWithResults(place, load_run_config(place / CONFIG), results)
    finished = FinishedRun.from_json(place)
    return RunWithResults(
        place.with_suffix(""),
        finished.config(place),
        tuple(finished.measured.values()),
        finished.history,
        str(finished.record.get("data_hash", "")),
    )


def systems_of(runs: Sequence[RunWithResults]) -> tuple[SystemRuns, ...]:
    """The systems that some runs are of, in the order of their first run.

    Two runs of one configuration and one seed are two systems: which of them stands for the seed nobody said.
    """
    groups: dict[tuple[str, int], list[RunWithResults]] = {}
    seen: Counter[tuple[str, int]] = Counter()
    for run in runs:
        what = _settings(run.config) + run.data_hash
        again = seen[what, run.config.seed]
        seen[what, run.config.seed] += 1
        groups.setdefault((what, again), []).append(run)
    own = [tuple(sorted(group, key=lambda run: run.config.seed)) for group in groups.values()]
    return tuple(SystemRuns(name, group) for name, group in zip(_names(own), own, strict=True))


def by_question(results: Iterable[Result]) -> list[Result]:
    """One result for each question, with the measures of all results of that question.

    Measures that read no degrees belong to the results with degrees as well, of whatever source.
    """
    found: dict[ResultQuestion, Result] = {}
    for one in results:
        question = ResultQuestion.of(one)
        found[question] = found[question].joined(one) if question in found else one
    for question in [one for one in found if not one.relevance]:
        graded = [key for key in found if key.relevance and key._replace(relevance="") == question]
        for key in graded:
            found[key] = found[question].joined(found[key])
        if graded:
            del found[question]
    return list(found.values())


def _settings(config: AnyRunConfig) -> str:
    """Digest of the settings that change what is trained."""
    plain = to_plain(config)
    for name in SAME_NUMBERS:
        take_out(plain, name)
    return digest_of_json(plain)


def take_out(settings: dict[str, Any], name: str) -> None:
    """Remove a setting by its dotted name, where it is there."""
    *groups, last = name.split(".")
    part: Any = settings
    for group in groups:
        part = part.get(group, {})
    if isinstance(part, dict):
        part.pop(last, None)


def _names(groups: Sequence[Sequence[RunWithResults]]) -> list[str]:
    """Names of systems: their folders, without what all have in common."""
    places = [_place(group) for group in groups]
    double = {place for place, count in Counter(places).items() if count > 1}
    places = [
        group[0].folder.absolute() if place in double else place for place, group in zip(places, groups, strict=True)
    ]
    if len(places) < 2:
        return [place.name for place in places]
    common = Path(os.path.commonpath([place.parent for place in places]))
    return [place.relative_to(common).as_posix() for place in places]


def _place(group: Sequence[RunWithResults]) -> Path:
    """The folder that a system is named after: that of its seeds, or that of its only or first run."""
    folders = [run.folder.absolute() for run in group]
    if all(_SEED.fullmatch(folder.name) for folder in folders) and len({folder.parent for folder in folders}) == 1:
        return folders[0].parent
    return folders[0]


def _below(folder: Path, depth: int, closed: dict[Path, str]) -> Iterator[Path]:
    """Runs in a folder; folders inside a run are not searched. ``closed`` gets a line for each that cannot be read."""
    if is_run_folder(folder) or FinishedRun.is_one(folder):
        yield folder
        return
    if not depth:
        return
    try:
        with os.scandir(folder) as entries:
            shown = [one for one in entries if one.name[:1] != "."]
            inner = sorted(one.name for one in shown if one.is_dir(follow_symlinks=False))
            files = sorted(one.name for one in shown if FinishedRun.is_one(Path(one.path)))
    except OSError as error:
        closed[folder.resolve()] = str(unreadable(folder, error))
        return
    # A folder beside its file was begun anew, and is not done.
    yield from (folder / name for name in files)
    for name in inner:
        if f"{name}.json" not in files:
            yield from _below(folder / name, depth - 1, closed)
