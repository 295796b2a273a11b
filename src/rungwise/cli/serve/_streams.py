"""Standard streams for a protocol that another program speaks with a command."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2
_PIECE = 1 << 16


@contextmanager
def output_kept_free() -> Iterator[None]:
    """Lead what is printed while the block runs, by libraries too, to the standard error."""
    _flush()
    kept = os.dup(_OUTPUT)
    os.dup2(_ERRORS, _OUTPUT)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, _OUTPUT)
        os.close(kept)


@contextmanager
def input_until_interrupted() -> Iterator[None]:
    """Make Ctrl-C the end of the standard input while the block runs, and an exception after it.

    A thread that waits for a line of another program cannot be interrupted, and the process would wait for it.

    Raises:
        KeyboardInterrupt: After the block, if Ctrl-C came.
    """
    handler = signal.getsignal(signal.SIGINT)
    if os.name != "posix" or handler == signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False
    ours, theirs = socket.socketpair()
    kept = os.dup(_INPUT)

    def pass_on() -> None:
        with suppress(OSError):
            while piece := os.read(kept, _PIECE):
                ours.sendall(piece)
        end()

    def end() -> None:
        with suppress(OSError):
            ours.shutdown(socket.SHUT_WR)

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        end()

    os.dup2(theirs.fileno(), _INPUT)
    signal.signal(signal.SIGINT, interrupt)
    threading.Thread(target=pass_on, name="rungwise-input", daemon=True).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        os.dup2(kept, _INPUT)
    if interrupted:
        raise KeyboardInterrupt


def _flush() -> None:
    print(end="", flush=True)
