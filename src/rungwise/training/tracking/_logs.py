"""Files and services that receive a run's numbers besides its history."""

from __future__ import annotations

import importlib.util
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rungwise.core import UserError, read_text, require
from rungwise.core.disk import appending, replacing
from rungwise.core.disk.sealed_lines import sealed
from rungwise.data import Issue
from rungwise.training._run_folder import STEPS
from rungwise.training.config import TrainConfig
from rungwise.training.tracking._reports import EpochReport, StepReport, Watcher, of_epoch, of_step
from rungwise.training.tracking._services import MLflow, Service, ServiceWatcher, WeightsAndBiases

SERVICES: dict[str, type[Service]] = {"wandb": WeightsAndBiases, "mlflow": MLflow}

_COLUMNS = (
    "total_step", "epoch", "loss", "learning_rate", "gradient_norm", "spread", "pairs_per_second", "seconds",
    "data_seconds",
)  # fmt: skip
"""Columns of the lines of steps."""

_LIVE_SECONDS = 1.0
"""Seconds between two writes of steps, unless a checkpoint follows: each write waits for the disk."""


def check_logs(config: TrainConfig) -> None:
    """Refuse logs that cannot be written, before anything is computed."""
    for name in config.logs:
        if name in SERVICES:
            require(name, f"logs: {name}", otherwise=f", or leave {name} out of logs")


def open_watchers(config: TrainConfig, out: Path, first_step: int, say: Callable[[str], None]) -> list[Watcher]:
    """Open the watchers that write a run's numbers, as its configuration says.

    Args:
        config: Configuration of the run.
        out: Folder of the run.
        first_step: First step that will be reported; earlier entries of this and later steps are replaced, as a resumed
            run repeats them.
        say: Called with sentences for a person.
    """
    found: list[Watcher] = []
    for name in config.logs:
        if name == "tensorboard":
            if importlib.util.find_spec("tensorboard") is None:
                say("no TensorBoard events: pip install 'rungwise[tensorboard]' to have them")
                continue
            found.append(TensorBoardWatcher(out / "tensorboard", first_step, say))
        elif name == "jsonl":
            found.append(StepsWatcher(out / STEPS, first_step, say))
        else:
            found.append(ServiceWatcher(SERVICES[name](out), config, say))
    return found


class _FileWatcher(Watcher):
    """Watcher that writes files. If that fails, the run goes on without it, and says so."""

    what: str

    def __init__(self, place: Path, say: Callable[[str], None]) -> None:
        self.place = place
        self._silent = False
        self._say = say

    def _unless_it_failed(self, write: Callable[[], Any]) -> Any:
        """Call a writer; after one failure it is not called again."""
        if self._silent:
            return None
        try:
            return write()
        except (OSError, UserError, UnicodeError) as error:  # a name that a library cannot write
            self._silent = True
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            self._say(f"{self.place}: no more {self.what} ({reason}); the run goes on without them")
            return None


class StepsWatcher(_FileWatcher):
    """Writes the numbers of steps as lines of JSON."""

    what = "lines of steps"

    def __init__(
        self,
        path: Path,
        first_step: int,
        say: Callable[[str], None] = print,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Continue (or start) the lines of a run.

        Lines of ``first_step`` and later ones are dropped, as a resumed run repeats them; so is a line that was cut
        off. A link, or something other than a file, is refused.
        """
        super().__init__(path, say)
        self._lines: list[str] = []
        self._clock = clock
        self._written = clock()
        if path.is_symlink():
            raise UserError(f"{path}: a link stands here; remove it, or name another folder")
        if path.exists():
            text = read_text(path, "text_bytes")
            kept = "".join(f"{line}\n" for line in _before(text, first_step))
            if kept != text:
                with replacing(path) as draft:
                    draft.write_text(kept, encoding="utf-8")

    def step(self, report: StepReport) -> None:
        """Add a line, and write all lines once in a while."""
        numbers = {name: getattr(report, name) for name in _COLUMNS}
        plain = {name: one if math.isfinite(one) else None for name, one in numbers.items()}
        self._lines.append(sealed(plain).decode())
        if self._clock() - self._written >= _LIVE_SECONDS:
            self.saving()

    def saving(self) -> None:
        """Write the lines: a run that is resumed from the checkpoint does not repeat them."""
        lines, self._lines = self._lines, []
        if lines:
            self._unless_it_failed(lambda: self._write(lines))
        self._written = self._clock()

    def close(self) -> None:
        """Write the remaining lines."""
        self.saving()

    def _write(self, lines: list[str]) -> None:
        with appending(self.place) as file:
            file.write("".join(lines).encode())


def _before(text: str, first_step: int) -> Iterator[str]:
    """Complete lines of the steps before one."""
    for line in text.splitlines():
        try:
            step = json.loads(line)["total_step"]
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
        if isinstance(step, int) and step < first_step:
            yield line


class TensorBoardWatcher(_FileWatcher):
    """Writes step and epoch numbers as TensorBoard events; needs the extra ``rungwise[tensorboard]``."""

    what = "TensorBoard events"

    def __init__(self, folder: Path, first_step: int, say: Callable[[str], None] = print) -> None:
        """Continue (or start) the events of a run.

        Events of ``first_step`` and later ones are replaced, as a resumed run repeats them.

        Raises:
            ImportError: If the package ``tensorboard`` is not installed.
        """
        from torch.utils.tensorboard import SummaryWriter

        super().__init__(folder, say)
        # The events are written by a thread, whose errors come back at the next call; it also prints them.
        self._hook = threading.excepthook
        threading.excepthook = self._without_the_writers
        self.writer = self._unless_it_failed(lambda: SummaryWriter(str(folder), purge_step=first_step))

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """Record the number of skipped items."""
        self._add({"data/skipped": len(issues)}, 0)

    def step(self, report: StepReport) -> None:
        """Record loss and speed."""
        self._add(of_step(report), report.total_step)

    def epoch(self, report: EpochReport) -> None:
        """Record the validation measures."""
        self._add(of_epoch(report), report.total_step)
        self._unless_it_failed(lambda: self.writer.flush())

    def close(self) -> None:
        """Finish the file, and end the thread that writes it."""
        self._unless_it_failed(lambda: self.writer.close())
        threading.excepthook = self._hook

    def _add(self, numbers: dict[str, float], step: int) -> None:
        def write() -> None:
            for name, value in numbers.items():
                self.writer.add_scalar(name, value, step)

        self._unless_it_failed(write)

    def _without_the_writers(self, failed: threading.ExceptHookArgs) -> None:
        ours = type(failed.thread).__module__.startswith("tensorboard.") and issubclass(failed.exc_type, OSError)
        if not ours:
            self._hook(failed)
