"""The command line, thin: a command is a module that parses, calls and prints; only the one asked for is imported."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

from rungwise.core.errors import UserError
from rungwise.core.version import __version__

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
    name = f"rungwise {given[0]}" if given else "rungwise"
    try:
        code = _run(given)
        print(end="", flush=True)  # here, where a refusal is understood; a standard output that was closed is none
        return code
    except UserError as error:
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as head, has seen enough
        _drop_output()
        return 0
    except OSError as error:
        # What writes a file says so itself, which leaves the standard output.
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
            _drop_output()
            print(f"{name}: standard output: the disk is full; free some space, then run again", file=sys.stderr)
            return 2
        raise


def _run(given: list[str]) -> int:
    if given[:1] == ["--version"]:
        print(f"rungwise {__version__}")
        return 0
    if not given or given[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if given[0] not in COMMANDS:
        print(f"rungwise: no command {given[0]!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(f"rungwise.cli.{given[0]}").main(given[1:])
    return code


def _drop_output() -> None:
    """What is still in the buffer cannot be written, and the interpreter would complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _overview() -> str:
    lines = ["usage: rungwise COMMAND ...", ""]
    lines += [f"  {name:<9} {what}" for name, what in COMMANDS.items()]
    lines += ["", "rungwise COMMAND --help says more. rungwise --version tells the version."]
    return "\n".join(lines)
