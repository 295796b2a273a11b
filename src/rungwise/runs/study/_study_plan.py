"""The runs of a study with their folders: which are done, begun or missing, and how long the rest takes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from statistics import mean
from typing import Any

from rungwise.core import UserError, is_regular, parse_json, read_text, to_plain
from rungwise.core.disk.locks import LOCKS
from rungwise.core.disk.staging import is_draft
from rungwise.core.output import short_repr
from rungwise.evaluation import Result
from rungwise.runs._finished_run import FinishedRun, seconds_of
from rungwise.runs._results import RESULTS, is_run_folder
from rungwise.runs.study._run_keys import RunIdentity, changes
from rungwise.runs.study._study_record import RUN_RECORD, StudyRun
from rungwise.training import CHECKPOINT, CONFIG, HISTORY, MODEL, STAGES, STEPS, is_begun
from rungwise.training.config import TrainConfig

_OF_A_RUN = frozenset({CONFIG, CHECKPOINT, MODEL, HISTORY, STAGES, STEPS, RESULTS, RUN_RECORD, "tensorboard"}) | {
    "skipped.txt", "wandb_id.txt", "mlflow_id.txt",
}  # fmt: skip
"""Names of what a run of a study consists of."""
_MOST_CHANGES = 4


@dataclass(frozen=True)
class StudyRunState:
    """How far a run of a study is.

    Attributes:
        word: done, begun or missing.
        epoch: Number of finished epochs.
        seconds: Seconds that these took, as the history has them.
    """

    word: str
    epoch: int = 0
    seconds: float = 0.0

    __repr__ = short_repr


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study.

    Attributes:
        system: Name of its system.
        config: Its configuration, with its seed.
        folder: Its folder.
        identity: What it depends on.
    """

    system: str
    config: TrainConfig
    folder: Path
    identity: RunIdentity

    __repr__ = short_repr

    @property
    def name(self) -> str:
        """Name for lines: that of its system, and of its own folder."""
        return f"{self.system}/{self.folder.name}"

    @cached_property
    def epochs(self) -> int:
        """Number of epochs of all its stages."""
        return sum(one.total_epochs for one in [stage for _, stage in self.config.stage_configs()] or [self.config])

    def state(self, *, again: bool = False) -> StudyRunState:
        """How far it is.

        Args:
            again: Whether a run with other settings counts as missing, because it is to be trained again.

        Raises:
            UserError: If its folder holds something else, or a run with other settings.
        """
        if (finished := self.finished()) is not None:
            self._check_key(StudyRun.of_plain(finished.record), self.file, again=again)
            if finished.record.get("key") == self.identity.key:
                return StudyRunState("done", len(finished.history), finished.seconds)
        if not self.folder.exists():
            return StudyRunState("missing")
        if not self.folder.is_dir():
            raise UserError(f"{self.folder}: a file stands where the run is to be; move it, or name another --out")
        record = StudyRun.read(self.folder)
        if record is None:
            if others := sorted(one.name for one in self.folder.iterdir() if not _passes(one.name)):
                raise UserError(
                    f"{self.folder}: holds {others[0]}, which this study did not make; move the folder, or name another"
                    " --out"
                )
            return StudyRunState("missing")
        self._check_key(record, self.folder, again=again)
        if record.key != self.identity.key:
            return StudyRunState("missing")
        history = history_of(self.folder)
        epoch, seconds = len(history), seconds_of(history)
        if record.finished and is_run_folder(self.folder):
            return StudyRunState("done", epoch, seconds)
        if is_begun(self.folder):
            return StudyRunState("begun", epoch, seconds)
        return StudyRunState("missing")

    @property
    def file(self) -> Path:
        """The file that stands for its folder once it is finished, where the study keeps results alone."""
        return FinishedRun.file_of(self.folder)

    def finished(self) -> FinishedRun | None:
        """What that file holds; None where there is none."""
        if not is_regular(self.file):
            return None
        now = self.file.stat()
        return _finished(self.file, now.st_mtime_ns, now.st_size)

    def record(self) -> StudyRun | None:
        """What the study keeps of it, in its file or in its folder; None where it was not begun."""
        finished = self.finished()
        return StudyRun.read(self.folder) if finished is None else StudyRun.of_plain(finished.record)

    def _check_key(self, record: StudyRun, where: Path, *, again: bool) -> None:
        """Refuse a run of other settings, unless it is to be trained again."""
        if record.key == self.identity.key or again:
            return
        found = changes(record.identity, self.identity)
        more = [f"{len(found) - _MOST_CHANGES} more"] if len(found) > _MOST_CHANGES else []
        raise UserError(
            f"{where}: is of other settings: {'; '.join([*found[:_MOST_CHANGES], *more])}; --again trains it anew,"
            " another --out keeps it"
        )


@lru_cache(maxsize=8)
def _finished(file: Path, changed: int, size: int) -> FinishedRun:
    """What a file holds; one that was not changed since is not read again, since several questions are asked of it."""
    return FinishedRun.from_json(file)


def remove_run(run: PlannedRun) -> None:
    """Remove the run with other settings that stands in the place of a run; one with the same settings stays.

    Raises:
        UserError: If there are files in its folder that no run writes.
    """
    if (finished := run.finished()) is not None and finished.record.get("key") != run.identity.key:
        run.file.unlink()
    record = StudyRun.read(run.folder) if run.folder.is_dir() else None
    if record is None or record.key == run.identity.key:
        return
    _remove_folder(run.folder)


def keep_as_file(run: PlannedRun) -> None:
    """Write the file of a finished run and what was measured, then remove its folder with the model.

    Raises:
        UserError: If a result cannot be read, or there are files in its folder that no run writes.
    """
    record = StudyRun.read(run.folder)
    if record is None:
        return
    results = {asked: Result.from_json(run.folder / place) for asked, place in record.answers.items()}
    FinishedRun.of(to_plain(replace(record, answers={})), history_of(run.folder), results).to_json(run.file)
    _remove_folder(run.folder)


def _remove_folder(folder: Path) -> None:
    """Remove the folder of a run, and nothing that no run writes."""
    if others := sorted(one.name for one in folder.iterdir() if one.name not in _OF_A_RUN and not _passes(one.name)):
        raise UserError(f"{folder}: holds {others[0]}, which no run writes; move it elsewhere, then train again")
    shutil.rmtree(folder)


def remaining_seconds(runs: Iterable[PlannedRun], states: Iterable[StudyRunState]) -> tuple[float, int]:
    """Seconds that the runs take which are not done, one after the other, and the number of runs that nobody timed.

    A run takes what the finished ones of its system took on average, or what its own finished epochs let expect.
    """
    planned = list(zip(runs, states, strict=True))
    timed: dict[str, list[float]] = {}
    for run, state in planned:
        if state.word == "done" and state.seconds:
            timed.setdefault(run.system, []).append(state.seconds)
    total, unknown = 0.0, 0
    for run, state in planned:
        if state.word == "done":
            continue
        if state.epoch and state.seconds:
            total += state.seconds / state.epoch * max(0, run.epochs - state.epoch)
        elif run.system in timed:
            total += mean(timed[run.system])
        else:
            unknown += 1
    return total, unknown


def _passes(name: str) -> bool:
    """Whether a name in a folder is of nobody: a lock, or the draft of a killed run."""
    return name in LOCKS or is_draft(name)


def history_of(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Numbers of the finished epochs of a run; of a run of stages those of all."""
    paths = [folder / HISTORY] if not (folder / STAGES).is_dir() else sorted((folder / STAGES).glob(f"*/{HISTORY}"))
    return tuple(
        parse_json(line, path) for path in paths if path.exists() for line in read_text(path, "text_bytes").splitlines()
    )
