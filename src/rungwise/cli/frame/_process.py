"""The process of a command: its streams, and the messages of libraries.

A command prints with ``print`` and :mod:`rungwise.jobs._terminal`. This module makes that safe for streams of
another encoding, closed or full ones, and pipes whose reader has gone.
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

from rungwise.core import RungwiseWarning
from rungwise.core.output import printable, separate_native_lines

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
"""Settings against messages of libraries; a user who sets one of them sees these messages."""


@contextmanager
def streams() -> Iterator[None]:
    r"""Context in which characters that an output's encoding lacks are escaped, such as ``\u4e2d``."""
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
    """The error that prevents writing to the standard output; None where everything is written."""
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
    """Discard what a stream still holds and what follows, which the interpreter would complain about."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def complain(line: str) -> None:
    """Print a line to the standard error, ignoring failures; then only the exit status tells."""
    with suppress(OSError, ValueError):
        print(printable(line), file=sys.stderr, flush=True)


class _Messages(io.TextIOWrapper):
    """Standard error where a line that cannot be written ends no work."""

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
    """Prepare a process of one command; ``traced`` shows the messages of libraries."""
    _open_streams()
    _name_the_user()
    sys.unraisablehook = _unraised
    if not traced:
        threading.excepthook = _of_a_thread
        _silence_libraries()


def own_messages() -> None:
    """Give Python's messages a descriptor of their own, so that those of compiled code can be told from them."""
    if not isinstance(sys.stderr, _Messages):
        return
    with suppress(OSError):  # it is no file, or there are too many
        sys.stderr = _Messages(os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding))
        separate_native_lines()


def _open_streams() -> None:
    """Open closed streams on the null device, since otherwise the next opened file would take their place."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(handle)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Messages(sys.stderr)


def _name_the_user() -> None:
    """Name a user without a name by the number, since torch fails without a name."""
    try:
        getpass.getuser()
    except (KeyError, OSError):
        os.environ["LOGNAME"] = str(os.getuid())


def _unraised(about: Any) -> None:
    """Handle an error where Python can only complain, such as while an object is deleted."""
    if about.exc_type is KeyboardInterrupt:  # once more, a moment later, where it can be raised
        _thread.start_new_thread(_thread.interrupt_main, ())


def _of_a_thread(about: Any) -> None:
    """Report an error that ends only a thread; one of the standard output is reported when the command ends."""
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
