"""Reports of a run while it trains, and watchers that show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from rungwise.core.output import Progress, cut, printable, short_repr
from rungwise.data import Issue
from rungwise.training.config import shown


@dataclass(frozen=True)
class StageReport:
    """The start of a run, or of one of its stages.

    Attributes:
        epochs: Number of epochs of the stage.
        name: Name of the stage; empty where a run has no stages.
        number: Number of the stage, from 1.
        of: Number of stages.
    """

    epochs: int
    name: str = ""
    number: int = 1
    of: int = 1


@dataclass(frozen=True)
class StepReport:
    """Numbers of the last few steps.

    Attributes:
        total_step: Number of finished steps of the run.
        epoch: Number of the epoch, from 1.
        step: Number of finished steps of the epoch.
        steps: Number of steps of the epoch.
        loss: Mean loss per pair.
        pairs_per_second: Speed of training steps alone.
        batch_loss: Loss per pair of the last full batch; nan before there was one.
        spread: Spread of that batch's embeddings, see :func:`rungwise.training.engine.spread`.
        epochs: Number of epochs of the run.
        gradient_norm: Norm of all gradients of the last step together, before clipping; nan where it is not known.
        learning_rate: Learning rate of the last step, before the factors of groups.
        seconds: Seconds of the epoch's steps so far, since the process took it up.
        data_seconds: Seconds of these that were spent waiting for data.
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
    gradient_norm: float = float("nan")
    learning_rate: float = float("nan")
    seconds: float = 0.0
    data_seconds: float = 0.0


@dataclass(frozen=True)
class EpochReport:
    """A finished epoch.

    Attributes:
        total_step: Number of finished steps of the run.
        epoch: Number of the epoch, from 1.
        epochs: Number of epochs of the run.
        numbers: ``loss`` per pair, ``pairs_per_second``, ``learning_rate``, the validation measures, the seconds of
            steps (``seconds``), of waiting for data in them (``data_seconds``) and of validation, and the peaks of
            memory.
        best: Whether this is the best snapshot so far.
        measure: Name of the number that chooses the snapshot.
        loss_in_force: Name of the loss that the epoch trained with: that of the warm-up, or the configured one.
    """

    total_step: int
    epoch: int
    epochs: int
    numbers: dict[str, float]
    best: bool
    measure: str = "rsum"
    loss_in_force: str = "loss"

    __repr__ = short_repr


def of_step(report: StepReport) -> dict[str, float]:
    """Numbers of a step report, under the names by which runs are compared.

    >>> of_step(StepReport(10, 1, 10, 20, 0.5, 100.0, batch_loss=0.4, spread=0.1))["train/loss"]
    0.5
    """
    names = ("loss", "learning_rate", "gradient_norm", "spread", "pairs_per_second")
    return {f"train/{name}": getattr(report, name) for name in names}


def of_epoch(report: EpochReport) -> dict[str, float]:
    """Numbers of an epoch report, under the names by which runs are compared."""
    return {f"epoch/{name}": value for name, value in report.numbers.items()}


class Watcher:
    """Receives a run's reports; a subclass overrides the methods that it needs."""

    def say(self, message: str) -> None:
        """Receive a sentence for a person."""

    def work(self, title: str, done: int, total: int) -> None:
        """Receive progress of a task besides training: ``done`` more of ``total`` items."""

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """Receive the items that the run leaves out."""

    def begin(self, report: StageReport) -> None:
        """Receive the start or resumption of a run or stage."""

    def step(self, report: StepReport) -> None:
        """Receive the numbers of some steps."""

    def epoch(self, report: EpochReport) -> None:
        """Receive the numbers of an epoch."""

    def saving(self) -> None:
        """Prepare for a checkpoint: a resumed run does not repeat what was reported up to here."""

    def close(self) -> None:
        """End, as the run is over or stopped."""


def watchers_of(given: Watcher | Sequence[Watcher] | None) -> list[Watcher]:
    """A list of watchers from one, several or None."""
    return [given] if isinstance(given, Watcher) else list(given or ())


class AllOf(Watcher):
    """Forwards everything to several watchers."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = list(watchers)

    def say(self, message: str) -> None:
        """Forward the sentence."""
        for watcher in self.watchers:
            watcher.say(message)

    def work(self, title: str, done: int, total: int) -> None:
        """Forward the progress."""
        for watcher in self.watchers:
            watcher.work(title, done, total)

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """Forward the items."""
        for watcher in self.watchers:
            watcher.skipped(issues)

    def begin(self, report: StageReport) -> None:
        """Forward the start."""
        for watcher in self.watchers:
            watcher.begin(report)

    def step(self, report: StepReport) -> None:
        """Forward the report."""
        for watcher in self.watchers:
            watcher.step(report)

    def epoch(self, report: EpochReport) -> None:
        """Forward the report."""
        for watcher in self.watchers:
            watcher.epoch(report)

    def saving(self) -> None:
        """Forward the notice."""
        for watcher in self.watchers:
            watcher.saving()

    def close(self) -> None:
        """Forward the end."""
        for watcher in self.watchers:
            watcher.close()


WIDTH = 80
"""Number of columns for the line of an epoch."""


class TerminalWatcher(Watcher):
    """Shows a bar with the time left for the run or its stage, and a line of at most 80 columns for each epoch."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console or Console()
        self._clock = clock
        self.progress: Progress | None = None
        self.title = ""
        self.place = ""
        self.validation = 0.0
        self.validated = ""

    def say(self, message: str) -> None:
        """Print a sentence."""
        self.console.print(printable(message), highlight=False, markup=False, soft_wrap=True)

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """List the first few items by name."""
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

    def begin(self, report: StageReport) -> None:
        """Print which stage starts; the time left is then that of the stage."""
        self.validated, self.place = "", ""
        if report.name:
            self.place = f"stage {report.number}/{report.of}, "
            self.say(f"stage {report.number} of {report.of}, {report.name}: {report.epochs} epochs")

    def step(self, report: StepReport) -> None:
        """Advance the run's bar."""
        # A resumed run begins in its middle; what it did before says nothing of its pace now.
        at = (report.epoch - 1) * report.steps + report.step
        progress = self._started("steps", report.steps * report.epochs, at)
        progress.at(
            at,
            f"{self.place}epoch {report.epoch}/{report.epochs}, step",
            f"loss {report.loss:.4f}{self.validated}",
            later=self.validation * (report.epochs - report.epoch + 1),
        )

    def epoch(self, report: EpochReport) -> None:
        """Print the epoch's line."""
        numbers = report.numbers
        self.validation = numbers.get("validation_seconds", 0.0)
        if self.progress is not None:
            self.progress.idle(self.validation)
        value = shown(report.measure, numbers[report.measure])
        self.validated = f"  {report.measure} {value}"
        speed = f"  {numbers['pairs_per_second']:>6.0f} pairs/s"
        before = f"epoch {report.epoch:>2}/{report.epochs}  lr {numbers['learning_rate']:.0e}  "
        after = f"  val {report.measure} {value:>6}{'  kept' if report.best else ''}"
        loss = f" {numbers['loss']:.4f}"
        # A long name takes the place of the speed, which the history has as well; the longest are cut.
        room = max(WIDTH - len(before + loss + after), 4)
        line = before + cut(report.loss_in_force, room) + loss
        self.say(line + (speed if len(line + speed + after) <= WIDTH else "") + after)
        if report.epoch == report.epochs:
            self.close()

    def close(self) -> None:
        """Remove the bar."""
        if self.progress is not None:
            self.progress.close()
        self.progress, self.title = None, ""

    def _started(self, title: str, total: int, done: int = 0) -> Progress:
        """The bar of this title, in place of an earlier one."""
        if self.progress is None or self.title != title:
            self.close()
            self.progress, self.title = Progress(title, total, self.console, self._clock, done), title
        return self.progress
