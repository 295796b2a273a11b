"""Output of the commands on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from rungwise.core import with_slashes
from rungwise.core.compute import choose_device
from rungwise.core.output import Progress, printable
from rungwise.parts import named_modules

if TYPE_CHECKING:
    from rungwise.data import Issue


_QUIET_SECONDS = 5.0
_MOST_ISSUES = 10
"""Largest number of issues that are listed."""


class _Terminal(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render with escaped control codes: file names and captions may hold codes that steer a terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, where rich would end the process as failed, since a reader may have seen enough."""
        raise BrokenPipeError


console = _Terminal(markup=False, emoji=False)
"""Console for results, without markup, which names of files and collections may resemble."""


def say(text: str) -> None:
    """Print a line as it is, addresses with both slashes: without markup, coloured numbers or wrapping."""
    console.print(printable(with_slashes(text)), highlight=False, markup=False, soft_wrap=True)


def say_now(line: str) -> None:
    """Print a line with the time of day, as commands do that stay."""
    say(f"{time.strftime('%H:%M:%S')} {line}")


class Seldom:
    """Prints a line of progress if the last one is some seconds old."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._latest = clock()

    def __call__(self, line: str) -> None:
        """Print the line, or leave it out."""
        if self._clock() - self._latest > _QUIET_SECONDS:
            self._latest = self._clock()
            say(line)


def chosen_device(asked: str | None) -> str:
    """Device of a command (:func:`rungwise.core.compute.choose_device`); a GPU chosen by default is printed."""
    device = choose_device(asked)
    if asked is None and device != "cpu":
        say(f"computing on {device}; --device cpu computes on the processor instead")
    return device


@contextmanager
def messages_apart(apart: bool = True) -> Iterator[None]:
    """Context in which messages and bars go to the standard error, where a program reads the standard output."""
    before, console.stderr = console.stderr, apart
    try:
        yield
    finally:
        console.stderr = before


@contextmanager
def quietly() -> Iterator[None]:
    """Context in which nothing is printed on the console, and no bar is shown."""
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Context with the function that advances a progress bar, or prints a line from time to time."""
    with Progress(title, total, console) as progress:
        yield progress.advance


def program(here: Path | None = None) -> str:
    """Command that calls this program from a shell in folder ``here``, with ``--module``, for commands to paste."""
    return " ".join([_command(here), *(f"--module {quote(one)}" for one in named_modules())])


def _command(here: Path | None) -> str:
    installed = Path(sys.executable).parent / "rungwise"
    found = shutil.which("rungwise")
    if not installed.is_file():
        return f"{quote(sys.executable)} -m rungwise"
    if found is not None and Path(found).samefile(installed):
        return "rungwise"
    return quote(shortest(installed, here))


def flag(name: str) -> str:
    """Command line option of a setting.

    >>> flag("relevant_from")
    '--relevant-from'
    """
    return f"--{name.replace('_', '-')}"


def pasted(path: Path | str) -> str:
    """A path as it is pasted behind a command: quoted for a shell, and never taken for an option.

    >>> pasted("my photos"), pasted("-old")
    ("'my photos'", './-old')
    """
    text = str(path)
    return quote(f"./{text}" if text.startswith("-") else text)


def shortest(path: Path, here: Path | None = None) -> str:
    """The shortest form of a path to paste: relative where it lies in or beside the current folder.

    >>> shortest(Path("/photos/dogs/a.jpg"), Path("/photos")), shortest(Path("/photos/a.jpg"), Path("/work of mine"))
    ('dogs/a.jpg', '/photos/a.jpg')
    """
    whole = os.path.abspath(path)  # noqa: PTH100 - links are not followed: people arrange files by them
    relative = os.path.relpath(whole, here or Path.cwd())
    return relative if len(relative) < len(whole) and not relative.startswith("../..") else whole


def say_issues(issues: Sequence[Issue]) -> None:
    """Print the first issues, the number of the others, and every line that counts files which are not read."""
    from rungwise.data import NOT_READ
    from rungwise.data.pictures import NEEDS_EXTRA

    lacking = [one for one in issues if one.kind == NEEDS_EXTRA]
    if len(lacking) > 1:  # all for one reason, which has one remedy
        more = replace(lacking[0], where=f"{lacking[0].where} and {len(lacking) - 1} more")
        issues = [more, *(one for one in issues if one.kind != NEEDS_EXTRA)]
    odd = [issue for issue in issues if issue.kind != NOT_READ]
    counts = [issue for issue in issues if issue.kind == NOT_READ]
    for issue in odd[:_MOST_ISSUES]:
        say(f"{issue.kind}: {issue.where}{': ' if issue.detail else ''}{issue.detail}")
    if len(odd) > _MOST_ISSUES:
        say(f"... and {len(odd) - _MOST_ISSUES} more")
    for issue in counts:
        say(f"{issue.kind}: {issue.where} ({issue.detail})")
