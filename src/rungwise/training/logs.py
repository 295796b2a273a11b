"""Where the numbers of a run are written besides its history."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rungwise.data.collection import Issue
from rungwise.training.reports import EpochReport, StepReport, Watcher


class TensorBoardWatcher(Watcher):
    """Writes step and epoch numbers as TensorBoard events; needs the extra ``rungwise[tensorboard]``.

    A run does not end because its events cannot be written: it goes on without them, and says so.
    """

    def __init__(self, folder: Path, first_step: int, say: Callable[[str], None] = print) -> None:
        """Continue (or start) the events of a run.

        Args:
            folder: Of the events.
            first_step: Events at this step and later are replaced, as a resumed run repeats them.
            say: Takes a sentence for a person.

        Raises:
            ImportError: If the package ``tensorboard`` is not installed.
        """
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        self._silent = False
        self._say = say
        # The events are written by a thread, whose errors come back at the next call; it also prints them.
        self._hook = threading.excepthook
        threading.excepthook = self._without_the_writers
        self.writer = self._unless_it_failed(lambda: SummaryWriter(str(folder), purge_step=first_step))

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """Record how many."""
        self._add({"data/skipped": len(issues)}, 0)

    def step(self, report: StepReport) -> None:
        """Record loss and speed."""
        numbers = {"loss": report.loss, "spread": report.spread, "pairs_per_second": report.pairs_per_second}
        self._add({f"train/{name}": value for name, value in numbers.items()}, report.total_step)

    def epoch(self, report: EpochReport) -> None:
        """Record the validation measures."""
        self._add({f"epoch/{name}": value for name, value in report.numbers.items()}, report.total_step)
        self._flush()

    def close(self) -> None:
        """Finish the file."""
        self._flush()
        threading.excepthook = self._hook

    def _add(self, numbers: dict[str, float], step: int) -> None:
        def write() -> None:
            for name, value in numbers.items():
                self.writer.add_scalar(name, value, step)

        self._unless_it_failed(write)

    def _flush(self) -> None:
        self._unless_it_failed(lambda: self.writer.flush())

    def _unless_it_failed(self, write: Callable[[], Any]) -> Any:
        """A writer that fails once fails for good."""
        if self._silent:
            return None
        try:
            return write()
        except OSError as error:
            self._silent = True
            reason = (error.strerror or str(error)).lower()
            self._say(f"{self.folder}: no more TensorBoard events ({reason}); the run goes on without them")
            return None

    def _without_the_writers(self, failed: threading.ExceptHookArgs) -> None:
        ours = type(failed.thread).__module__.startswith("tensorboard.") and issubclass(failed.exc_type, OSError)
        if not ours:
            self._hook(failed)
