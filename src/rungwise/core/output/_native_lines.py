"""Lines that compiled parts of libraries write to the standard error, whatever Python has set.

They write to descriptor 2, whatever ``sys.stderr`` is. Where a command has given Python a descriptor of its own, what
comes through descriptor 2 is theirs alone, and can be dropped.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

_ERROR = 2


class _Held:
    """The redirected standard error; blocks of several threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = self._dropping = 0
        self.is_theirs_alone = False
        self._file: IO[bytes] | None = None
        self._terminal = -1

    def enter(self, drops: bool = False) -> None:
        with self._lock:
            self._dropping += drops
            if not self._blocks:
                with suppress(OSError):  # it is closed, or there is no room for what it says: then it goes its way
                    self._redirect()
            self._blocks += 1

    def _redirect(self) -> None:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the last block ends
        _flush()
        self._terminal = os.dup(_ERROR)
        os.dup2(file.fileno(), _ERROR)
        self._file = file

    def leave(self, failed: bool = False, drops: bool = False) -> str:
        """End a block: return what was written if it failed, else pass it on, unless a block drops it."""
        with self._lock:
            self._blocks -= 1
            dropped = self._dropping > 0
            self._dropping -= drops
            if self._file is None:
                return ""
            _flush()
            self._file.seek(0)
            said = self._file.read()
            self._file.seek(0)
            self._file.truncate()
            if said and not failed and not dropped:
                with suppress(OSError):
                    os.write(self._terminal, said)
            if not self._blocks:
                os.dup2(self._terminal, _ERROR)
                os.close(self._terminal)
                self._file.close()
                self._file = None
            return said.decode("utf-8", "backslashreplace") if failed else ""


_held = _Held()


@contextmanager
def lines_of_failure_kept() -> Iterator[None]:
    """Attach what compiled code writes to the standard error before it fails to the exception, as a note.

    A traceback shows it then; the terminal does not see it. Where nothing fails, it is written once the block ends. For
    short calls: what other threads write meanwhile takes the same way.

    >>> with lines_of_failure_kept():
    ...     os.write(2, b"thread 'unnamed' panicked") and None
    ...     raise ValueError("a panic")
    Traceback (most recent call last):
    ValueError: a panic
    thread 'unnamed' panicked
    """
    _held.enter()
    try:
        yield
    except BaseException as error:
        if said := _held.leave(failed=True).strip():
            error.add_note(said)
        raise
    else:
        _held.leave()


def separate_native_lines() -> None:
    """Take note that Python writes its messages to another descriptor than 2 in this process."""
    _held.is_theirs_alone = True


@contextmanager
def native_lines_dropped() -> Iterator[None]:
    """Drop what compiled code writes to descriptor 2 within the block, where Python does not write there.

    Decoders of pictures complain about files there. What matters of it is an error, too, which says which file it was.
    """
    if not _held.is_theirs_alone:
        yield
        return
    _held.enter(drops=True)
    try:
        yield
    finally:
        _held.leave(drops=True)


def _flush() -> None:
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
