"""An event loop whose clock the program cannot tell from a real one, and for which nobody waits."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Impatient(selectors.DefaultSelector):
    """Looks for what has come in place of waiting for it, and then moves the clock by what it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(None if timeout is None else 0)
        if timeout is not None and not found:
            self.now += max(0.0, timeout)
        return found


class StillLoop(asyncio.SelectorEventLoop):
    """Time stands still as long as there is anything to do, and goes on to the next appointment when there is not.

    It knows nothing of other threads: while one of them works, an appointment may come before its result.
    """

    def __init__(self) -> None:
        self._own = _Impatient()
        super().__init__(self._own)

    def time(self) -> float:
        return self._own.now


def run(whole: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, on such a loop."""
    with asyncio.Runner(loop_factory=StillLoop) as runner:
        return runner.run(whole)
