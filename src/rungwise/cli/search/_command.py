"""``rungwise search``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.cli.frame import parse
from rungwise.cli.search._options import SearchCommand
from rungwise.core import UserError
from rungwise.jobs import console, messages_apart, say
from rungwise.jobs.searches import check

if TYPE_CHECKING:
    from rungwise.cli.search._render import SearchOutput

_EXAMPLES = (
    'rungwise search photos.index "two dogs running through snow"',
    'rungwise search photos.index \'"a beach" - "people"\' --where "year >= 2020"',
    'rungwise search photos.index "a red boat" --paths',
    "rungwise search photos.index --image query.jpg --copy-to found",
)


def main(arguments: list[str]) -> int:
    """Search, print, copy and open the hits."""
    asked = parse(SearchCommand, arguments, "rungwise search", examples=_EXAMPLES)
    _check(asked)
    with messages_apart(asked.json or asked.paths):
        answered = _answer(asked)
        taken = answered if asked.all else answered.until_end()
        if asked.json:
            print(taken.as_json())
        elif asked.paths:
            from rungwise.cli.search._paths import print_paths

            print_paths(taken, b"\0" if asked.print0 else b"\n")
        else:
            width = console.width if console.is_terminal else None
            for line in answered.lines(width, Path.cwd(), everything=asked.all):
                say(line)
        if taken.more and not asked.json:
            say(f"for more: --offset {asked.offset + len(answered.hits)}{_of(answered)}")
        _take(asked, taken)
    return 0


def _answer(asked: SearchCommand) -> SearchOutput:
    if asked.is_remote:
        from rungwise.cli.search import _remote as remote

        return remote.search(asked)
    from rungwise.cli.search import _local as local

    return local.search(asked)


def _take(asked: SearchCommand, answered: SearchOutput) -> None:
    if asked.copy_to is None and not asked.open:
        return
    from rungwise.cli.search._save_hits import copy_to, open_hits

    if asked.copy_to is not None:
        copied = copy_to(asked.copy_to, answered.hits)
        for line in copied.failed:
            say(line)
        say(f"{copied}: {asked.copy_to}")
    if asked.open:
        say(f"opened: {open_hits(answered, asked.query or 'found')}")


def _of(answered: SearchOutput) -> str:
    """Remark on the number of hits before the end of relevance."""
    return "" if answered.end is None or answered.has_ended else f" ({answered.end.shown} before relevance ends)"


def _check(asked: SearchCommand) -> None:
    """Refuse meaningless options before anything is opened."""
    check(asked)
    if asked.paths and asked.json:
        raise UserError("--paths and --json contradict each other; give one")
