"""Paths of the hits of a search, for other programs to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.core.output import printable
from rungwise.jobs import say


def print_paths(answered: SearchOutput, separator: bytes = b"\n") -> None:
    r"""Print the path of each hit, or its address at a server, and say what was not printed and why.

    Args:
        answered: The hits, and what is remarked on them.
        separator: End of each path, ``b"\n"`` or ``b"\0"``.
    """
    printed, left_out, on_terminal = [], [], sys.stdout.isatty()
    for hit in answered.hits:
        reason = _without_path(hit, separator)
        if reason or hit.path is None:
            left_out.append(" ".join(f"not printed: {hit.id} ({reason})".split()))
        else:
            printed.append(os.fsencode(printable(hit.path) if on_terminal else hit.path) + separator)
    # As bytes: a name that is no text of the terminal's encoding must arrive as the file system has it.
    sys.stdout.flush()
    sys.stdout.buffer.write(b"".join(printed))
    for line in (*answered.unknown, *left_out, *_remarks(answered), *answered.notes):
        say(line)


def _without_path(hit: SearchedPage, separator: bytes) -> str:
    """Why a hit has no path that another program could read; empty where it has one."""
    if hit.path is None:
        return "it has no picture file"
    if hit.packed:
        return f"it is part of a larger file, {hit.path}; --copy-to makes a file of it"
    if "\n" in hit.path and separator == b"\n":
        return "its path has a line break; --print0 prints it"
    return ""


def _remarks(answered: SearchOutput) -> Iterator[str]:
    """What to know of an answer without hits."""
    if answered.hits:
        return
    if answered.end is None or not answered.left_out:
        yield "nothing found"
    elif answered.end.nothing:
        yield f"nothing relevant found; {answered.left_out} less related: --all prints them"
        yield from answered.end.advice
    else:
        yield f"relevance ends after {answered.end.shown}; {answered.left_out} less related: --all prints them"
