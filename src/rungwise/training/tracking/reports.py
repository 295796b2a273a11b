"""What a run reports while it trains, and who shows it to a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from rungwise.core.output.printable import printable
from rungwise.core.output.progress import Progress
from rungwise.data.collection import Issue
from rungwise.training.config.snapshots import shown


@dataclass(frozen=True)
class StageReport:
    """A run, or a stage of one, that begins.

    Attributes:
        epochs: Of the stage.
        name: Of the stage; empty where a run has no stages.
        number: Of the stage, from 1.
        of: How many stages there are.
    """

    epochs: int
    name: str = ""
    number: int = 1
    of: int = 1


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
        spread: Of its embeddings, see :func:`rungwise.training.engine.collapse.spread`.
        epochs: Of the run.
        gradient_norm: Of all gradients together, before they are cut; of the last step; nan where it is not known.
        learning_rate: Of the last step, before the factors of groups.
        seconds: Of the epoch's steps so far, since the process took it up.
        data_seconds: How many of these were spent waiting for data.
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
        total_step: Steps finished in the run.
        epoch: From 1.
        epochs: Of the run.
        numbers: ``loss`` per pair, ``pairs_per_second``, ``learning_rate``, the validation measures, the seconds that
            steps (``seconds``), data among them (``data_seconds``) and validation took, and the peaks of memory.
        best: Whether this is the best snapshot so far.
        measure: Which of the numbers chooses it.
    """

    total_step: int
    epoch: int
    epochs: int
    numbers: dict[str, float]
    best: bool
    measure: str = "rsum"


def of_step(report: StepReport) -> dict[str, float]:
    """The numbers of a report by the names that they have wherever runs are compared.

    >>> of_step(StepReport(10, 1, 10, 20, 0.5, 100.0, batch_loss=0.4, spread=0.1))["train/loss"]
    0.5
    """
    names = ("loss", "learning_rate", "gradient_norm", "spread", "pairs_per_second")
    return {f"train/{name}": getattr(report, name) for name in names}


def of_epoch(report: EpochReport) -> dict[str, float]:
    """The same of an epoch.

    >>> of_epoch(EpochReport(235, 1, 30, {"rsum": 512.0}, best=True))
    {'epoch/rsum': 512.0}
    """
    return {f"epoch/{name}": value for name, value in report.numbers.items()}


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

    def begin(self, report: StageReport) -> None:
        """A run, or a stage of it, was accepted and begins or goes on."""

    def step(self, report: StepReport) -> None:
        """Some steps are done."""

    def epoch(self, report: EpochReport) -> None:
        """An epoch is done."""

    def saving(self) -> None:
        """A checkpoint is about to be written: a resumed run does not repeat what was reported up to here."""

    def close(self) -> None:
        """The run is over, or stopped."""


def watchers_of(given: Watcher | Sequence[Watcher] | None) -> list[Watcher]:
    """Whoever is told of a run, where one, several or nobody was named.

    >>> len(watchers_of(None)), len(watchers_of(Watcher())), len(watchers_of([Watcher(), Watcher()]))
    (0, 1, 2)
    """
    return [given] if isinstance(given, Watcher) else list(given or ())


class AllOf(Watcher):
    """Passes everything on to others.

    >>> AllOf([Watcher(), Watcher()]).say("two that do not listen")
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = list(watchers)

    def say(self, message: str) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.say(message)

    def work(self, title: str, done: int, total: int) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.work(title, done, total)

    def skipped(self, issues: tuple[Issue, ...]) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.skipped(issues)

    def begin(self, report: StageReport) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.begin(report)

    def step(self, report: StepReport) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.step(report)

    def epoch(self, report: EpochReport) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.epoch(report)

    def saving(self) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.saving()

    def close(self) -> None:
        """Passed on."""
        for watcher in self.watchers:
            watcher.close()


WIDTH = 80
"""Columns that the line of an epoch keeps to."""


class TerminalWatcher(Watcher):
    """A bar with the time left for the run, or for its present stage, and a line for each epoch that fits 80 columns.

    >>> watcher = TerminalWatcher(Console(width=80, force_terminal=False))
    >>> watcher.say("2 pictures")
    2 pictures
    """

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

    def begin(self, report: StageReport) -> None:
        """Say which stage begins; the time left from here on is that of the stage."""
        self.validated, self.place = "", ""
        if report.name:
            self.place = f"stage {report.number}/{report.of}, "
            self.say(f"stage {report.number} of {report.of}, {report.name}: {report.epochs} epochs")

    def step(self, report: StepReport) -> None:
        """Advance the bar of the run."""
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
        before = (
            f"epoch {report.epoch:>2}/{report.epochs}  lr {numbers['learning_rate']:.0e}  loss {numbers['loss']:.4f}"
        )
        after = f"  val {report.measure} {value:>6}{'  kept' if report.best else ''}"
        # A measure with a long name takes the place of the speed, which the history has as well.
        self.say(before + (speed if len(before + speed + after) <= WIDTH else "") + after)
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
            self.progress, self.title = Progress(title, total, self.console, self._clock, done), title
        return self.progress
