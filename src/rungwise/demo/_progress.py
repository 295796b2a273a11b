"""Progress of both trainings: two bars in a terminal, a line from time to time anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rungwise.core.output import QUIET_SECONDS, Pace, format_duration, line, printable
from rungwise.demo._places import Name

if TYPE_CHECKING:
    from rich.console import Console


class Bars:
    """Two progress bars that fit 80 columns, and vanish when both are done.

    Args:
        titles: Title before each bar.
        console: Console for the bars; where it is no terminal, lines are printed.
        clock: Function that gives seconds from any moment on.
    """

    def __init__(
        self, titles: Mapping[Name, str], console: Console, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._titles = titles
        self._console = console
        self._clock = clock
        self._paces: dict[Name, tuple[str, Pace]] = {}
        self._lines: dict[Name, str] = {}
        self._said = clock()
        self._rsum: dict[Name, str] = {}
        self._bars: Any = None
        self._tasks: dict[Name, Any] = {}

    def show(self, name: Name, told: Mapping[str, Any]) -> None:
        """Show a report of a training: ``title``, ``done`` and ``total``, or ``rsum``."""
        if "rsum" in told:
            self._rsum[name] = f"rsum {float(told['rsum']):.0f}"
            return
        if "done" not in told:
            return
        title, done, total = str(told["title"]), int(told["done"]), int(told["total"])
        kind = title.split()[0]
        if name not in self._paces or self._paces[name][0] != kind:
            self._paces[name] = kind, Pace(total, self._clock)
        left = self._paces[name][1].left(done)
        if self._bars is not None:
            shown = "" if left is None else f"{format_duration(left)} left"
            self._bars.update(
                self._tasks[name],
                completed=done,
                total=total,
                step=printable(title),
                left=shown,
                rsum=self._rsum.get(name, ""),
            )
            return
        self._lines[name] = f"{self._titles[name]}: {line(title, done, total, left)}"
        if self._clock() - self._said >= QUIET_SECONDS:
            self._said = self._clock()
            for one in self._lines.values():
                print(printable(one), file=sys.stderr, flush=True)

    def __enter__(self) -> Bars:
        if self._console.is_terminal:
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(14),
                TaskProgressColumn(),
                TextColumn("{task.fields[step]}", markup=False),
                TextColumn("{task.fields[rsum]}", markup=False),
                TextColumn("{task.fields[left]}", markup=False),
                console=self._console,
                transient=True,
            )
            for name, title in self._titles.items():
                self._tasks[name] = self._bars.add_task(printable(title), total=None, step="", rsum="", left="")
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
