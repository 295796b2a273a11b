"""Processes that search beside the server's own, so that many visitors do not share one interpreter.

Each opens the index and loads the model by itself; the system holds what is mapped from files once for all of them. The
server sends them searches as lines of JSON, and gets answers as they are sent to visitors. What a process cannot answer
(another version of the index, a query that is refused) is searched in the server's own process, as without any.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, Self

from fastapi import HTTPException

from rungwise.core import UserError
from rungwise.core.compute import cores, shared_environment
from rungwise.index import Searcher
from rungwise.serving.searches._parameters import SearchParameters

STARTER_THREAD = "rungwise-search-process"
"""Name of the thread that starts a process in place of one that ended."""

_CODE = "from rungwise.serving.searches import answer_searches; answer_searches()"
_SECONDS_TO_END = 5.0

_log = logging.getLogger(__name__)


class VersionedSearch(NamedTuple):
    """A search in one version of the index."""

    version: str
    asked: SearchParameters


@dataclass(frozen=True)
class SentAnswer:
    """The answer of a search as it is sent.

    Attributes:
        content: JSON of :class:`~rungwise.serving.schemas.responses.FoundPictures`.
        nothing: Whether no picture fits.
        has_words: Whether the query has words.
    """

    content: bytes
    nothing: bool
    has_words: bool


class SearchProcesses:
    """Processes that search an index beside the server's own process; used as a context, which ends them.

    One that ends by itself is replaced. While there is none, the server's own process searches.

    Args:
        number: Number of processes.
        folder: Folder of the index.
        opener: Function of a module, which other processes can import. It is called as ``opener(index, **options)`` and
            makes the searcher.
        options: Arguments of ``opener``, as plain values of JSON.
        options_anew: The same for an index that takes the place of this one and was built by another model; None leaves
            its searches to the server's own process.
        store_seconds: Time for which stores on other machines may be waited for, by the searches done together; None
            sets no end.

    Attributes:
        number: Number of processes.

    Raises:
        UserError: If ``number`` is less than 1, or one does not start.
    """

    def __init__(
        self,
        number: int,
        folder: Path,
        opener: Callable[..., Searcher],
        options: Mapping[str, Any],
        *,
        options_anew: Mapping[str, Any] | None = None,
        store_seconds: float | None = None,
    ) -> None:
        if number < 1:
            raise UserError(f"processes must be at least 1, got {number}")
        self.number = number
        self._begins = json.dumps(
            {
                "folder": str(folder),
                "opener": [opener.__module__, opener.__qualname__],
                "options": options,
                "options_anew": options_anew,
                "store_seconds": store_seconds,
            }
        )
        self._lock = Lock()
        self._all: set[_Process] = set()
        self._idle: LifoQueue[_Process] = LifoQueue()
        self._closed = False
        try:
            for process in [self._new() for _ in range(number)]:  # all begin before the first is waited for
                process.wait_until_ready()
                self._idle.put(process)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> int:
        """Number of processes that run now, those that are starting included."""
        with self._lock:
            return sum(one.runs for one in self._all)

    def answers(self, searches: Sequence[VersionedSearch]) -> Iterator[SentAnswer | Exception | None]:
        """Let one process search; gives the answer to each search in order, as soon as it is there.

        An answer is None where the server's own process is to search. It is an error (status 503) where the process
        ended meanwhile.
        """
        process = self._free()
        if process is None:
            yield from [None] * len(searches)
            return
        whole, given = False, 0
        try:
            for answer in process.answers(searches):
                given += 1
                yield answer
            whole = given == len(searches)
        finally:
            if whole:
                self._idle.put(process)
            else:
                self._replace(process)
        if not whole:
            # It may have ended by this search, which is not to end the server, too.
            yield HTTPException(503, "the process that searched has ended; search again", {"Retry-After": "5"})
            yield from [None] * (len(searches) - given - 1)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            ending, self._all = self._all, set()
        for process in ending:
            process.ask_to_end()
        for process in ending:
            process.end()

    def _free(self) -> _Process | None:
        """A process that has nothing to do; those that have ended meanwhile are replaced."""
        with suppress(Empty):
            while not (process := self._idle.get_nowait()).runs:
                self._replace(process)
            return process
        return None

    def _new(self) -> _Process:
        process = _Process(self._begins, max(1, cores() // self.number))
        with self._lock:
            self._all.add(process)
            closed = self._closed
        if closed:
            process.end()
        return process

    def _replace(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
            if self._closed:
                return
        _log.warning("a process that searches ended (%s); another is started", process.end())
        with suppress(RuntimeError):  # the system starts no thread now; the others search on
            Thread(target=self._start_another, name=STARTER_THREAD, daemon=True).start()

    def _start_another(self) -> None:
        process = None
        try:
            process = self._new()
            process.wait_until_ready()
        except UserError as error:
            if process is not None:
                process.end()
                with self._lock:
                    self._all.discard(process)
            if not self._closed:
                _log.warning("%s; %d are left", error, self.alive)
        else:
            self._idle.put(process)


class _Process:
    """One process that searches. Its lines of errors go where those of the server go."""

    def __init__(self, begins: str, threads: int) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=shared_environment(threads),
                start_new_session=True,  # Ctrl-C reaches the server, which then ends it
            )
        except OSError as error:
            raise UserError(f"the system starts no process that searches ({error.strerror}); ask for fewer") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._answers = self._process.stdin, self._process.stdout
        with suppress(OSError):
            self._send(begins)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until it has opened the index and the model."""
        line = self._answers.readline()
        if not line:
            raise UserError(f"a process that searches did not start ({self.end()}); serve without --processes")
        if problem := json.loads(line)["problem"]:
            raise UserError(f"a process that searches did not start: {problem}")

    def answers(self, searches: Sequence[VersionedSearch]) -> Iterator[SentAnswer | None]:
        """Answers of the searches in order; fewer if it ends."""
        with suppress(OSError):
            self._send(json.dumps([[one.version, one.asked.model_dump()] for one in searches]))
            for _ in searches:
                head = self._answers.readline()
                if not head:
                    return
                about = json.loads(head)
                if about is None:
                    yield None
                    continue
                content = self._answers.read(about["bytes"])
                if len(content) < about["bytes"]:
                    return
                yield SentAnswer(content, about["nothing"], about["has_words"])

    def ask_to_end(self) -> None:
        """Let it end after the search that it is doing."""
        with suppress(OSError):
            self._asked.close()

    def end(self) -> str:
        """End it, and say how it ended."""
        self.ask_to_end()
        try:
            code = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"status {code}"

    def _send(self, line: str) -> None:
        self._asked.write(line.encode() + b"\n")
        self._asked.flush()
