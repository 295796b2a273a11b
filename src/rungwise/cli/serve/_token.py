"""``rungwise token``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.jobs import say
from rungwise.serving.access import Right, new_token, token_line

_EXAMPLES = ("rungwise token ada write >> tokens", "rungwise token monitor watch >> tokens")


@dataclass
class NewToken:
    """Make a token for one person or program, for rungwise serve --tokens.

    The line for the file goes to the standard output. It recognises the token, and lets nobody in who reads it. The
    token itself goes to the standard error, this once.

    Attributes:
        name: Who is to have it: a person, or what a program is for.
        right: What it may do: watch (is the server well, its counters), read (search and look), grade (also grade, mark
            favourites, save searches), write (everything).
    """

    name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="NAME")]
    right: tyro.conf.Positional[Right]


def main(arguments: list[str]) -> int:
    """Print a new token and its line."""
    asked = parse(NewToken, arguments, "rungwise token", examples=_EXAMPLES)
    token = new_token()
    line = token_line(asked.name, asked.right, token)
    print(f"the token of {asked.name}, which is shown this once: {token}", file=sys.stderr)
    say(line)
    return 0
