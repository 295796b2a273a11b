"""What a run reports while it trains: to a terminal, to TensorBoard, to a test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from rungwise.core.printable import printable
from rungwise.core.progress import Progress
from rungwise.data.collection import Issue


@dataclass(frozen=True)
class StepReport:
    """The last few steps.

    Attributes:
        total_step: Steps finished in the run.
        epoch: From 1.
        step: Steps finished in the epoch.
        steps: Of the epoch.
        loss: Per pair.
        pairs_per_second: Of training steps alone.
        batch_loss: Per pair, of the last full batch alone; nan before there was one.
        spread: Of its embeddings, see :func:`rungwise.training.collapse.spread`.
        epochs: Of the run.
    """

    total_step: int
    epoch: int
    step: int
    steps: int
    loss: float
    pairs_per_second: float
    batch_loss: float
    spread: float
    epochs: int = 1


@dataclass(frozen=True)
class EpochReport:
    """A finished epoch.

    Attributes:
        total_step: Steps finished in the run.
        epoch: From 1.
        epochs: Of the run.
        numbers: ``loss`` per pair, ``pairs_per_second``, ``learning_rate`` and the validation measures.
        best: Whether this is the best snapshot so far.
    """

    total_step: int
    epoch: int
    epochs: int
    numbers: dict[str, float]
    best: bool


class Watcher:
    """Receives a run's reports; a kind of watcher overrides what it cares for.

    >>> Watcher().say("nobody listens")
    """

    def say(self, message: str) -> None:
        """A sentence for a person."""

    def work(self, title: str, done: int, total: int) -> None:
        """Progress of something that is not training: ``done`` more of ``total`` items."""

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """Items the run goes on without."""

    def step(self, report: StepReport) -> None:
        """Some steps are done."""

    def epoch(self, report: EpochReport) -> None:
        """An epoch is done."""

    def close(self) -> None:
        """The run is over, or stopped."""


class TerminalWatcher(Watcher):
    """A bar with the time left for the whole run, and a line for each epoch that fits 80 columns.

    >>> watcher = TerminalWatcher(Console(width=80, force_terminal=False))
    >>> watcher.say("2 pictures")
    2 pictures
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self.progress: Progress | None = None
        self.title = ""
        self.rsum = float("nan")

    def say(self, message: str) -> None:
        """Print a sentence."""
        self.console.print(printable(message), highlight=False, markup=False, soft_wrap=True)

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """List what is left out, the first few by name."""
        for issue in issues[:10]:
            self.say(f"skipped: {issue.where}: {issue.detail}")
        if len(issues) > 10:
            self.say(f"skipped: and {len(issues) - 10} more (all in skipped.txt)")

    def work(self, title: str, done: int, total: int) -> None:
        """Advance a plain bar."""
        progress = self._started(title, total)
        progress.advance(done)
        if progress.done >= total:
            self.close()

    def step(self, report: StepReport) -> None:
        """Advance the bar of the run."""
        progress = self._started("steps", report.steps * report.epochs)
        rsum = "" if self.rsum != self.rsum else f"  rsum {self.rsum:.1f}"
        progress.at(
            (report.epoch - 1) * report.steps + report.step,
            f"epoch {report.epoch}/{report.epochs}, step",
            f"loss {report.loss:.4f}{rsum}",
        )

    def epoch(self, report: EpochReport) -> None:
        """Print the epoch's line."""
        numbers = report.numbers
        self.rsum = numbers["rsum"]
        self.say(
            f"epoch {report.epoch:>2}/{report.epochs}  lr {numbers['learning_rate']:.0e}  loss {numbers['loss']:.4f}"
            f"  {numbers['pairs_per_second']:>6.0f} pairs/s  val rsum {numbers['rsum']:6.1f}"
            f"{'  kept' if report.best else ''}"
        )
        if report.epoch == report.epochs:
            self.close()

    def close(self) -> None:
        """Remove the bar."""
        if self.progress is not None:
            self.progress.close()
        self.progress, self.title = None, ""

    def _started(self, title: str, total: int, done: int = 0) -> Progress:
        """The bar of this title, which takes the place of another one."""
        if self.progress is None or self.title != title:
            self.close()
            self.progress, self.title = Progress(title, total, self.console, done=done), title
        return self.progress


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
