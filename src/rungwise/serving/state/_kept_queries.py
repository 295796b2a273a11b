"""Queries that people type, gathered in memory and written beside the index once a minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from threading import Lock

from rungwise.core import UserError
from rungwise.core.output import printable
from rungwise.index.layout import MOST_DAYS, add_queries, forget_queries, require_kept, today
from rungwise.serving.queues import repeated

_SECONDS_BETWEEN = 60.0
_MOST_AT_ONCE = 1000
"""Number of texts that wait for the next writing; what is typed beyond them within the minute is not kept."""

_log = logging.getLogger(__name__)


class KeptQueries:
    """What a server keeps of queries: the text, how often, and the day; nothing of who asked.

    A text counts once in each writing, however often it was asked since the one before. No search waits for the disk or
    fails because of it: where nothing can be written, the log says so, and the next writing tries again.

    Args:
        folder: Folder of the index; None where it is in none.
        days: Days for which a query is kept after it was asked last.
        most: Largest number of queries that are kept.
        day: Returns the day in UTC.

    Raises:
        UserError: If queries cannot be kept with this index, or not for so many days.
    """

    def __init__(self, folder: Path | None, days: int, most: int, day: Callable[[], date] = today) -> None:
        if not 1 <= days <= MOST_DAYS:
            raise UserError(
                f"keep_queries={days}: give the days for which a query is kept, 1 to {MOST_DAYS}",
                parameters={f"keep_queries={days}": "keep_queries"},
            )
        self.days = days
        self._folder = require_kept(folder)
        self._most = most
        self._day = day
        self._lock, self._writing = Lock(), Lock()
        self._waiting: dict[str, None] = {}
        self._written: date | None = None

    def note(self, text: str) -> None:
        """Remember a query until the next writing."""
        text = " ".join(text.split())
        with self._lock:
            if text and len(self._waiting) < _MOST_AT_ONCE:
                self._waiting[text] = None

    def write(self) -> None:
        """Write what was asked since the last writing; on a new day, also leave out what has been kept long enough."""
        day = self._day()
        with self._writing:
            with self._lock:
                texts = tuple(self._waiting)
            if not texts and day == self._written:
                return
            try:
                add_queries(self._folder, texts, days=self.days, most=self._most, day=day)
            except (UserError, OSError) as error:
                _log.warning("%s", printable(f"queries could not be kept this time: {error}"))
                return
            self._written = day
            with self._lock:
                for text in texts:
                    self._waiting.pop(text, None)

    def forget(self) -> int:
        """Remove all queries from the disk and from memory; returns how many were on the disk."""
        with self._writing:
            with self._lock:
                self._waiting.clear()
            return forget_queries(self._folder)

    @asynccontextmanager
    async def written_at_times(self) -> AsyncIterator[None]:
        """Write once a minute while the block runs, and at its end."""
        try:
            async with repeated(self.write, _SECONDS_BETWEEN):
                yield
        finally:
            await asyncio.to_thread(self.write)
