"""One process at a time changes a folder: others are refused at once, or wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from rungwise.core.disk.files import explained, make_folder
from rungwise.core.errors import UserError

LOCK = "lock"
"""The file in a folder whose lock is held; it stays when the lock is given back."""
UPDATE_LOCK = "update.lock"
"""The same for those who keep others from a long piece of work, and let them write in between."""
GRADES_LOCK = "grades.lock"
"""The same for those who append to a file that is no part of what the first one guards."""
LOCKS = frozenset({LOCK, UPDATE_LOCK, GRADES_LOCK})

_SECONDS_TO_WAIT = 60.0
_SECONDS_BETWEEN_TRIES = 0.05


@contextmanager
def alone(folder: Path, what: str, name: str = LOCK) -> Iterator[None]:
    """Within it, no other process (nor thread) of rungwise writes in a folder; a second one is refused at once.

    The lock ends with the process, however it ends.

    Args:
        folder: Made if missing.
        what: Who writes, for the message, such as ``"a training run"``.
        name: Of the lock's file.

    Raises:
        UserError: If another one writes there, or the place cannot be written.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with alone(folder, "a training run"):
    ...     with alone(folder, "a training run"):
    ...         pass
    Traceback (most recent call last):
    rungwise.core.errors.UserError: ...: a training run writes here now; wait until it has ended, or name another folder
    """
    with _held(folder, lambda: False, name, f"{what} writes here now; wait until it has ended, or name another folder"):
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
    """Within it, this process alone changes a folder; others wait for it.

    Args:
        folder: Made if missing.
        seconds: How long to wait for another process; a minute if None.
        name: Of the lock's file.
        clock: Seconds from any moment on.
        sleep: Waits for so many seconds.

    Raises:
        UserError: If another process does not finish in time, or the place cannot be written.

    >>> import tempfile
    >>> with writing_alone(Path(tempfile.mkdtemp())):
    ...     pass
    """
    seconds = _SECONDS_TO_WAIT if seconds is None else seconds
    message = f"another process has been writing here for {seconds:.0f} s; try again when it has finished"
    until = clock() + seconds

    def wait() -> bool:
        if clock() >= until:
            return False
        sleep(_SECONDS_BETWEEN_TRIES)
        return True

    with _held(folder, wait, name, message):
        yield


@contextmanager
def _held(folder: Path, wait: Callable[[], bool], name: str, refusal: str) -> Iterator[None]:
    """Within it, the lock is held; ``wait`` is called while another has it, and says whether to try again."""
    with explained(folder):
        make_folder(folder)
        lock = FileLock(folder / name, timeout=0)
        while True:
            try:
                lock.acquire()
                break
            except Timeout:
                if not wait():
                    raise UserError(f"{folder}: {refusal}") from None
            except NotImplementedError:
                raise UserError(f"{folder}: this file system keeps no locks; choose another place") from None
    try:
        with explained(folder):
            yield
    finally:
        lock.release()
