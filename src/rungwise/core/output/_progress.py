"""Progress of a long job and the time left: a bar in a terminal, a line now and then anywhere else."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rungwise.core.output._printable import printable

if TYPE_CHECKING:
    from rich.console import Console

QUIET_SECONDS = 10.0
"""Seconds between two lines, where no bar can be shown."""

_SPACING, _WINDOW = 0.5, 120
"""Seconds between two moments that are remembered, and their number: the rate is that of the last minute."""


class Pace:
    """Estimates the time left from the rate of the last minute.

    Args:
        total: Amount of work.
        clock: Clock in seconds.
        done: Amount that was done before.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic, done: int = 0) -> None:
        self.total = total
        self._clock = clock
        self._moments = deque([(clock(), done)], maxlen=_WINDOW)

    def left(self, done: int) -> float | None:
        """Seconds until all is done, given the amount done so far; None while nothing is known."""
        now = self._clock()
        before, was_done = self._moments[0]
        if now - self._moments[-1][0] >= _SPACING:
            self._moments.append((now, done))
        if done <= was_done or now <= before:
            return None
        return max(0, self.total - done) * (now - before) / (done - was_done)


def format_duration(seconds: float) -> str:
    """A duration in words, to a useful precision.

    >>> [format_duration(one) for one in (0.254, 41.2, 130, 4000, 200000, float("nan"))]
    ['0.25 s', '41 s', '2 min', '1 h 7 min', '2 days 7 h', 'unknown']
    """
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 99.5:
        return f"{seconds:.2g} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} day{'s' if days > 1 else ''} {hours} h"


def line(title: str, done: int, total: int, left: float | None) -> str:
    """The progress of a job as one line."""
    share = f", {100 * done // total} %" if total else ""
    return f"{title} {done}/{total}{share}{'' if left is None else f', {format_duration(left)} left'}"


class Progress:
    """Shows the progress of a job, in a terminal with a bar that vanishes when it is done.

    A notebook shows the same bar. Where neither the results nor the messages go to a terminal, the messages get a line
    every ten seconds. A console that is quiet shows nothing.

    Args:
        title: Name of what is counted, such as ``"pictures"``.
        total: Amount of work.
        console: Console of the results.
        clock: Clock in seconds.
        done: Amount that was done before.

    >>> with Progress("pictures", 3) as progress:
    ...     progress.advance(2)
    """

    def __init__(
        self,
        title: str,
        total: int,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        done: int = 0,
    ) -> None:
        self.title = title
        self.total = total
        self.done = done
        self._clock = clock
        self._idle = 0.0
        self._pace = Pace(total, lambda: clock() - self._idle, done)
        self._latest = clock()
        self._quiet = console is not None and console.quiet
        nothing: tuple[Any, Any] = (None, None)
        self._bar, self._task = nothing if self._quiet else _bar(title, total, console)

    def advance(self, more: int = 1) -> None:
        """Add ``more`` to the amount done."""
        self.at(self.done + more)

    def idle(self, seconds: float) -> None:
        """Leave seconds since the last call out of the rate, which went to something that is not counted."""
        self._idle += seconds

    def at(self, done: int, title: str | None = None, detail: str = "", later: float = 0.0) -> None:
        """Set the amount done.

        Args:
            done: Amount done of the total.
            title: Name of what is done now; None keeps the last one.
            detail: Other numbers, beside the bar.
            later: Seconds of uncounted work that is still to come.
        """
        self.done, self.title = done, self.title if title is None else title
        left = self._pace.left(done)
        left = None if left is None else left + later
        if self._bar is not None:
            shown = "" if left is None else f"{format_duration(left)} left"
            self._bar.update(self._task, completed=done, description=self.title, left=shown, detail=detail)
        elif not self._quiet and self._clock() - self._latest >= QUIET_SECONDS and done < self.total:
            self._latest = self._clock()
            print(printable(line(self.title, done, self.total, left)), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bar(title: str, total: int, console: Console | None) -> tuple[Any, Any]:
    """A bar and its task, where it can be seen and there is something to do; else None."""
    seen = console is not None and (console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None))
    if total <= 0 or not (seen or (sys.stderr and sys.stderr.isatty())):
        return None, None
    from rich.console import Console as OnTerminal
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    where = console if seen else OnTerminal(stderr=True)
    bar = Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(16),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[detail]}", markup=False),
        console=where,
        transient=True,
    )
    task = bar.add_task(printable(title), total=total, left="", detail="")
    bar.start()
    return bar, task
