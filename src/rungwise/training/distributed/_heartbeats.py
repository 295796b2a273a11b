"""Heartbeats: when one process of a run is lost, the others notice it, say so in one line, and end.

A process that dies closes its connections, which the others see at once. A machine that loses its power or its network
closes nothing, and the others would wait for hours: a process may have to wait that long for one that reads or
validates. So every process shows at short intervals that it lives, and looks for the others' signs of life.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import Any, Protocol

import torch.distributed as dist

LOST_AFTER = 120.0
"""Seconds without a sign of life after which a process counts as lost."""

LOST = 75
"""Exit status of a process that ends because another one is lost; a temporary failure (EX_TEMPFAIL) in sysexits."""

_BEATS = 10
"""Number of signs of life within that time, so that a late one is not taken for death."""

_LONGEST_INTERVAL = 5.0
_SECONDS_FOR_A_REASON = 2.0


class Board(Protocol):
    """A store of notes that all processes read, such as :class:`torch.distributed.Store`."""

    def set(self, key: str, value: str) -> None:
        """Write a note."""

    def get(self, key: str) -> bytes:
        """Read a note; waits until it exists."""
        ...

    def check(self, keys: list[str]) -> bool:
        """Whether all these notes exist."""
        ...


class Heartbeats:
    """Shows that this process lives, and notices when another one no longer does.

    Args:
        board: Store of the signs of life.
        rank: Rank of this process.
        world: Number of processes.
        lost_after: Seconds without a sign of life after which a process counts as lost.
        lost: Called once, from a thread, with what happened; it must end the process.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self,
        board: Board,
        rank: int,
        world: int,
        *,
        lost_after: float,
        lost: Callable[[str], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board, self._rank, self._lost_after, self._lost = board, rank, lost_after, lost
        self._clock = clock
        self._interval = min(_LONGEST_INTERVAL, lost_after / _BEATS)
        self._parent = os.getppid()
        self._over = threading.Event()
        now = clock()
        self._heard = dict.fromkeys((other for other in range(world) if other != rank), now)
        self._seen: dict[int, bytes] = {}
        self._beats = 0
        self._answered = now
        self._failure = ""
        # Two threads: one that waits for the board cannot look at the clock.
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._beat_on, self._watch)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop, so that nobody counts as lost any more."""
        self._over.set()

    def beat(self) -> None:
        """Show a sign of life, and look for those of the others."""
        try:
            self._beats += 1
            self._board.set(f"alive/{self._rank}", str(self._beats))
            for other in self._heard:
                if self._board.check([f"alive/{other}"]):
                    sign = self._board.get(f"alive/{other}")
                    if self._seen.get(other) != sign:
                        self._seen[other], self._heard[other] = sign, self._clock()
            self._answered = self._clock()
        except RuntimeError as error:
            self._failure = str(error)

    def _beat_on(self) -> None:
        """Beat at intervals, as long as the board answers."""
        while not self._over.is_set() and not self._failure:
            self.beat()
            self._over.wait(self._interval)

    def _watch(self) -> None:
        """Check the clock at intervals."""
        while not self._over.wait(self._interval):
            if happened := self.happened():
                if not self._over.is_set():
                    self._lost(happened)
                return

    def happened(self) -> str:
        """What is wrong, in words; empty while all processes live."""
        now, world = self._clock(), len(self._heard) + 1
        if os.getppid() != self._parent:
            return f"what started process {self._rank} of {world} is gone"
        if self._failure or now - self._answered > self._lost_after:
            return f"process {self._rank} of {world} no longer reaches the machine that all processes meet at"
        silent = [str(other) for other, heard in self._heard.items() if now - heard > self._lost_after]
        if silent:
            which = f"process {silent[0]} of {world} has" if len(silent) == 1 else f"{len(silent)} of {world} have"
            return f"{which} not been heard of for {self._lost_after:g} s"
        return ""


@contextmanager
def heartbeats(
    rank: int, world: int, wait: Callable[[], None], *, lost_after: float, go_on: Callable[[], str]
) -> Iterator[None]:
    """Context in which the loss of another process ends this one, with one line.

    Args:
        rank: Rank of this process.
        world: Number of processes.
        wait: Function that returns when all processes have called it.
        lost_after: Seconds without a sign of life after which a process counts as lost.
        go_on: Function that tells, in words, how a person resumes.

    Raises:
        SystemExit: With status :data:`LOST`, if a process that this one communicates with is gone. While nothing is
            communicated, the process ends at once with that status.
    """
    stores: Any = dist  # which mypy finds no stores in
    store = stores.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=False,
        timeout=timedelta(seconds=lost_after),
    )
    # Runs that follow one another in the same processes meet at the same place, and so do those that torchrun restarts.
    _joined.append(rank)
    board = stores.PrefixStore(f"rungwise/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}/{len(_joined)}", store)

    def say(happened: str) -> None:
        print(f"rungwise train: {happened}; {go_on()}", file=sys.stderr, flush=True)

    def end(happened: str) -> None:
        say(happened)
        os._exit(LOST)

    hearts = Heartbeats(board, rank, world, lost_after=lost_after, lost=end)
    hearts.start()
    with _termination_as_exit():
        try:
            yield
            wait()
        except BaseException as error:
            _ignore_termination()
            hearts.stop()
            reason = next(filter(None, map(reason_of_loss, _with_causes(error))), None)
            if reason is None:
                _leave_word(board, rank)
                raise
            ended = _ended(board, rank, world)
            which = "another process is gone" if ended is None else f"process {ended} of {world} ended with an error"
            say(f"{which} ({reason})")
            raise SystemExit(LOST) from None
        finally:
            hearts.stop()


@contextmanager
def _termination_as_exit() -> Iterator[None]:
    """Context in which the first SIGTERM becomes SystemExit.

    torchrun sends one as soon as it has lost a process, and there must be time left to say what happened.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return

    def leave(number: int, frame: FrameType | None) -> None:
        _ignore_termination()
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ignore_termination() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An error and the errors in whose handling it was raised."""
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__


_joined: list[int] = []


def reason_of_loss(error: BaseException) -> str | None:
    """Message of a broken connection to another process; None for an error that has another cause.

    >>> reason_of_loss(RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:4711"))
    'Connection closed by peer [10.0.0.2]:4711'
    """
    text = " ".join(str(error).split())
    if not isinstance(error, dist.DistError) and not (isinstance(error, RuntimeError) and "gloo" in text):
        return None
    return text.rpartition("] ")[2] if text.startswith("[") and "pair.cc" in text else text[:200]


def _leave_word(board: Board, rank: int) -> None:
    """Tell the others that this process ends by an error of its own."""
    try:
        board.set(f"ended/{rank}", "1")
    except RuntimeError:
        return


def _ended(
    board: Board,
    rank: int,
    world: int,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> int | None:
    """Rank of a process that told that it ends; None if none did within a while."""
    until = clock() + _SECONDS_FOR_A_REASON
    try:
        while clock() < until:
            for other in range(world):
                if other != rank and board.check([f"ended/{other}"]):
                    return other
            sleep(0.1)
    except RuntimeError:
        return None
    return None
