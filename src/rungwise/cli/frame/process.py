"""The process around a command: its streams, and what libraries say.

A command prints with ``print`` and :mod:`rungwise.cli.frame.terminal`. Here is what makes that safe whatever the
streams are: of another encoding, closed, full, or a pipe whose reader has gone.
"""

from __future__ import annotations

import _thread
import getpass
import io
import logging
import os
import select
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from rungwise.core.errors import RungwiseWarning
from rungwise.core.output.printable import printable

_QUIET: Mapping[str, str] = MappingProxyType(
    {
        "GLOG_minloglevel": "3",
        "GRPC_VERBOSITY": "NONE",
        "HF_HUB_VERBOSITY": "critical",
        "LANCE_LOG": "off",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TORCH_CPP_LOG_LEVEL": "FATAL",
        "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
        "TRANSFORMERS_VERBOSITY": "critical",
    }
)
"""Settings of libraries that print lines of their own; whoever sets one of them reads these lines."""


@contextmanager
def streams() -> Iterator[None]:
    r"""Within it, a character that the encoding of an output lacks is written as its escape, such as ``\u4e2d``."""
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # what is still to be written cannot be: whoever writes next is told
                before = stream.errors
                stream.reconfigure(errors="backslashreplace")
                changed.append((stream, before))
    try:
        yield
    finally:
        if failure_of_output() is not None:
            drop(sys.stdout)
        for stream, before in changed:
            with suppress(OSError, ValueError):
                stream.reconfigure(errors=before)


def failure_of_output() -> OSError | None:
    """Why what was printed cannot be written to the standard output; None where all of it is written."""
    try:
        print(end="", flush=True)
    except OSError as error:
        return error
    return None


def is_unread() -> bool:
    """Whether the standard output is a pipe whose reader has gone."""
    with suppress(OSError, ValueError, AttributeError):  # no file, or a system without poll
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
        return bool(watched.poll(0))
    return True


def drop(stream: Any) -> None:
    """Let go of what a stream still holds and of what comes: it cannot be written, and the interpreter would complain.

    Args:
        stream: Of the process.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def complain(line: str) -> None:
    """Print a line to the standard error; where nobody can read it, the status has to say it."""
    with suppress(OSError, ValueError):
        print(printable(line), file=sys.stderr, flush=True)


class _Messages(io.TextIOWrapper):
    """The standard error, of which a line that cannot be written ends no work."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(stream.buffer, stream.encoding, "backslashreplace", line_buffering=True)
        self._stream = stream  # it would close what both write to

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            drop(self)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            drop(self)
            super().flush()


def own_process(traced: bool) -> None:
    """Prepare a process that is there for one command alone.

    Args:
        traced: What libraries say is shown.
    """
    _open_streams()
    _name_the_user()
    sys.unraisablehook = _unraised
    if not traced:
        threading.excepthook = _of_a_thread
        _silence_libraries()


def _open_streams() -> None:
    """Give a closed stream somewhere to go, or the next file that is opened would take its place."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Messages(sys.stderr)


def _name_the_user() -> None:
    """Give a user whom the system knows by number alone that number as a name: torch ends where there is none."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = str(os.getuid())


def _unraised(about: Any) -> None:
    """An error where Python can only complain, such as while an object is thrown away."""
    if about.exc_type is KeyboardInterrupt:  # once more, a moment later, where it can be raised
        _thread.start_new_thread(_thread.interrupt_main, ())


def _of_a_thread(about: Any) -> None:
    """An error that ends a thread alone; one of the standard output is said once, when the command ends."""
    if not isinstance(about.exc_value, OSError) or failure_of_output() is None:
        reason = " ".join(str(about.exc_value).split())
        complain(f"rungwise: a part of it ended: {about.exc_type.__name__}: {reason}; --traceback shows more")


def _silence_libraries() -> None:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    # Libraries change what is filtered, but not how it is shown.
    warnings.showwarning = _show_ours
    if logging.lastResort is not None:
        logging.lastResort.addFilter(logging.Filter("rungwise"))


def _show_ours(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, RungwiseWarning):
        complain(str(message))
