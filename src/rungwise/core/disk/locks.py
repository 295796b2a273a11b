"""Locks of folders: one process at a time changes a folder, others are refused at once, or wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from filelock import AcquireReturnProxy, FileLock, Timeout

from rungwise.core._errors import UserError
from rungwise.core.disk._files import explained, make_folder

__all__ = ["GRADES_LOCK", "LOCK", "LOCKS", "TURN_LOCK", "UPDATE_LOCK", "alone", "writing_alone"]

LOCK = "lock"
"""Name of a folder's lock file; it stays when the lock is released."""
UPDATE_LOCK = "update.lock"
"""Lock of a long piece of work, whose holder lets others write in between."""
GRADES_LOCK = "grades.lock"
"""Lock for appending to a file that :data:`LOCK` does not guard."""
TURN_LOCK = "turn.lock"
"""Held by the one who waits for :data:`LOCK` next."""
LOCKS = frozenset({LOCK, UPDATE_LOCK, GRADES_LOCK, TURN_LOCK})

_SECONDS_TO_WAIT = 60.0
_SECONDS_BETWEEN_TRIES = 0.05


@contextmanager
def alone(folder: Path, what: str, name: str = LOCK) -> Iterator[None]:
    """Hold a folder's lock within the block; a second process or thread of rungwise is refused at once.

    The lock ends with the process, however it ends.

    Args:
        folder: Folder to lock, made if missing.
        what: Name of the holder in the message, such as ``"a training run"``.
        name: Name of the lock file.

    Raises:
        UserError: If another one holds the lock, or the place cannot be written.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with alone(folder, "a training run"):
    ...     with alone(folder, "a training run"):
    ...         pass
    Traceback (most recent call last):
    rungwise.core.UserError: ...: a training run writes here now; wait until it has ended, or name another folder
    """
    refusal = f"{what} writes here now; wait until it has ended, or name another folder"
    with _acquired(folder, name, lambda: False, refusal), explained(folder):
        yield


@contextmanager
def writing_alone(
    folder: Path,
    seconds: float | None = None,
    name: str = LOCK,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold a folder's lock within the block; others wait for it.

    One who writes again and again keeps nobody out: whoever waits for :data:`LOCK` is the next.

    Args:
        folder: Folder to lock, made if missing.
        seconds: Time to wait for another process; None waits a minute.
        name: Name of the lock file.
        clock: Clock in seconds.
        sleep: Waits for a number of seconds.

    Raises:
        UserError: If another process does not finish in time, or the place cannot be written.
    """
    seconds = _SECONDS_TO_WAIT if seconds is None else seconds
    message = f"another process has been writing here for {seconds:.0f} s; try again when it has finished"
    until = clock() + seconds

    def wait() -> bool:
        if clock() >= until:
            return False
        sleep(_SECONDS_BETWEEN_TRIES)
        return True

    # Without turns, one who writes without a break would take the lock again before another, who sleeps, sees it free.
    with _acquired(folder, TURN_LOCK, wait, message) if name == LOCK else nullcontext():
        lock = _acquired(folder, name, wait, message)
    with lock, explained(folder):
        yield


def _acquired(folder: Path, name: str, wait: Callable[[], bool], refusal: str) -> AcquireReturnProxy[FileLock]:
    """Take a lock, which is let go at the end of ``with``.

    ``wait`` is called while another has it, and returns whether to try again.
    """
    with explained(folder):
        make_folder(folder)
        lock = FileLock(folder / name, timeout=0)
        while True:
            try:
                return lock.acquire()
            except Timeout:
                if not wait():
                    raise UserError(f"{folder}: {refusal}") from None
            except NotImplementedError:
                raise UserError(f"{folder}: this file system keeps no locks; choose another place") from None
