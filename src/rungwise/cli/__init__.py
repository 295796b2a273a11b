"""The command line, thin: a command is a module that parses, calls and prints; only the one asked for is imported."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from rungwise import __version__
from rungwise.errors import UserError

COMMANDS = {
    "demo": "make pictures, train, measure, and search them in the browser",
    "inspect": "what a folder of pictures and captions holds, and what is odd in it",
    "train": "train a joint embedding from a preset or a configuration file",
    "evaluate": "how good a model's rankings are",
    "compare": "whether one model ranks better than another beyond chance",
    "relevance": "degrees of relevance from captions, models, labels or people",
    "index": "make pictures searchable",
    "search": "find pictures by a text or by a picture",
    "serve": "the search page",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 when done; 2 for bad input, said in one line; 130 when interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["--version"]:
        print(f"rungwise {__version__}")
        return 0
    if not given or given[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if given[0] not in COMMANDS:
        print(f"rungwise: no command {given[0]!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        code: int = importlib.import_module(f"rungwise.cli.{given[0]}").main(given[1:])
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"rungwise {given[0]}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nrungwise {given[0]}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _overview() -> str:
    lines = ["usage: rungwise COMMAND ...", ""]
    lines += [f"  {name:<9} {what}" for name, what in COMMANDS.items()]
    lines += ["", "rungwise COMMAND --help says more. rungwise --version tells the version."]
    return "\n".join(lines)
