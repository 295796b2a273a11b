"""What the commands print with."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rungwise.core.compute.devices import choose_device
from rungwise.core.output.printable import printable
from rungwise.core.output.progress import Progress

if TYPE_CHECKING:
    from rungwise.data.collection import Issue


_QUIET_SECONDS = 5.0
_MOST_ISSUES = 10
"""Between two lines of progress."""


class _Terminal(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """File names and captions may hold codes that steer a terminal; styles are no part of a segment's text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Rich would end the process as failed; the command line knows that a reader may have seen enough."""
        raise BrokenPipeError


console = _Terminal(markup=False, emoji=False)
"""For results; names of files and collections may look like its markup."""


def say(text: str) -> None:
    """Print a line as it is: no markup, no colours of numbers, no wrapping."""
    console.print(printable(text), highlight=False, markup=False, soft_wrap=True)


class Seldom:
    """Says a line of progress if the last one is some seconds old.

    Args:
        clock: Says how late it is, in seconds.

    >>> seldom = Seldom()
    >>> seldom("one of many")
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._latest = clock()

    def __call__(self, line: str) -> None:
        """Say it, or leave it out."""
        if self._clock() - self._latest > _QUIET_SECONDS:
            self._latest = self._clock()
            say(line)


def chosen_device(asked: str | None) -> str:
    """Where a command computes; it is printed where the command chose another device than the processor.

    Raises:
        UserError: See :func:`rungwise.core.compute.devices.choose_device`.
    """
    device = choose_device(asked)
    if asked is None and device != "cpu":
        say(f"computing on {device}; --device cpu computes on the processor instead")
    return device


@contextmanager
def messages_apart(apart: bool = True) -> Iterator[None]:
    """Within it, lines and bars keep out of the standard output, where a program reads the result."""
    before, console.stderr = console.stderr, apart
    try:
        yield
    finally:
        console.stderr = before


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left, which vanishes when done, or a line now and then; yields what advances it."""
    with Progress(title, total, console) as progress:
        yield progress.advance


def program(here: Path | None = None) -> str:
    """How this program is called from a shell, for commands that are printed to be pasted.

    Args:
        here: The folder that the shell is in; default the present one.
    """
    installed = Path(sys.executable).parent / "rungwise"
    found = shutil.which("rungwise")
    if not installed.is_file():
        return f"{quote(sys.executable)} -m rungwise"
    if found is not None and Path(found).samefile(installed):
        return "rungwise"
    return quote(shortest(installed, here))


def shortest(path: Path, here: Path | None = None) -> str:
    """A path as short as it can be pasted: relative where it lies in or beside the present folder.

    Args:
        path: Absolute, or relative to the present folder.
        here: The folder that the shell is in; default the present one.

    >>> shortest(Path("/photos/dogs/a.jpg"), Path("/photos")), shortest(Path("/photos/a.jpg"), Path("/work of mine"))
    ('dogs/a.jpg', '/photos/a.jpg')
    """
    whole = os.path.abspath(path)  # noqa: PTH100 - links are not followed: people arrange files by them
    relative = os.path.relpath(whole, here or Path.cwd())
    return relative if len(relative) < len(whole) and not relative.startswith("../..") else whole


def say_issues(issues: Sequence[Issue]) -> None:
    """Count and list what was skipped or doubted."""
    for issue in issues[:_MOST_ISSUES]:
        say(f"{issue.kind}: {issue.where}{': ' if issue.detail else ''}{issue.detail}")
    if len(issues) > _MOST_ISSUES:
        say(f"... and {len(issues) - _MOST_ISSUES} more")
