"""Queries that people typed, kept in ``queries.jsonl`` of an index where its server was asked to keep them.

A line holds a text, how often it was asked, the day on which it was asked last and the day on which it leaves; nothing
says who asked. A line ends with a checksum of the rest. One that was cut off or damaged is listed, the others count,
and the next writing leaves it out. The file is written whole: it may be removed at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from rungwise.core import UserError, check_length
from rungwise.core.disk import explained, replacing, require_writable_file, sealed_lines, staging
from rungwise.core.disk.locks import GRADES_LOCK
from rungwise.core.output import short_repr
from rungwise.data import Issue
from rungwise.index.layout import location
from rungwise.index.layout._favourites import why_not_kept
from rungwise.index.layout.manifest import is_index

QUERIES = "queries.jsonl"
"""Name of the file in the folder of an index."""
MOST_BYTES = 32 << 20
"""Bytes of the largest file."""
MOST_DAYS = 3650
"""Days for which a query can be kept after it was asked last."""
_MOST_TIMES = 1 << 53


@dataclass(frozen=True)
class AskedQuery:
    """A query that was typed.

    Attributes:
        text: The query as it was typed, with single blanks.
        times: How often it was asked.
        day: Day in UTC on which it was asked last, as ISO 8601 has it.
        until: Last day on which it is kept.

    Raises:
        UserError: If the text is empty or too long, it was never asked, or a day is none.

    >>> AskedQuery("a red boat", 0, "2024-05-01", "2024-05-31")
    Traceback (most recent call last):
    rungwise.core.UserError: a kept query was asked 0 times; at least once is meant
    """

    text: str
    times: int
    day: str
    until: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UserError("a kept query is empty; it has words")
        check_length(self.text, "a kept query")
        if not 1 <= self.times <= _MOST_TIMES:
            raise UserError(f"a kept query was asked {self.times} times; at least once is meant")
        for day in (self.day, self.until):
            if not _is_day(day):
                raise UserError(f"{day[:40]!r} of a kept query is no day such as 2024-05-01")


@dataclass(frozen=True)
class AskedQueries:
    """The queries that an index keeps.

    Attributes:
        kept: Queries that are still kept on the given day, the most asked first, then by text.
        issues: One issue for each damaged line.
    """

    kept: tuple[AskedQuery, ...] = ()
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()


def read_queries(folder: Path | None, day: date | None = None) -> AskedQueries:
    """The queries that an index folder keeps on a day, today by default; none where no server was asked to keep any.

    >>> import tempfile
    >>> read_queries(Path(tempfile.mkdtemp()))
    AskedQueries(kept=(), issues=())
    """
    if folder is None or why_not_kept(folder):
        return AskedQueries()
    return _read(folder / QUERIES, day or today())


def require_kept(folder: Path | None) -> Path:
    """The folder of an index, in which queries can be kept.

    Raises:
        UserError: If the index is in no folder of this machine, or it cannot be written there.
    """
    if folder is None or why_not_kept(folder):
        raise UserError(f"queries cannot be kept: {why_not_kept(folder)}; serve a copy in a folder, or keep none")
    require_writable_file(folder / QUERIES)
    return folder


def add_queries(folder: Path, texts: Iterable[str], *, days: int, most: int, day: date | None = None) -> None:
    """Count each text as asked once on a day, and drop what has left; on the disk once this returns.

    Args:
        folder: Folder of an index. Where none stands there now, as while another takes its place, nothing is written.
        texts: Queries, each one once.
        days: Days for which a query is kept after it was asked last.
        most: Number of queries in the file. Those that were asked longest ago go first; so they do where the file would
            have more than :data:`MOST_BYTES`.
        day: Day on which they were asked; today by default.

    Raises:
        UserError: If the place cannot be written, or another process does not finish writing there.
    """
    day = day or today()
    if not is_index(folder):
        raise UserError(f"{folder}: no index here, in which queries could be kept; build one")
    path = folder / QUERIES
    with explained(path), location.writing_alone(folder, GRADES_LOCK):
        staging.sweep(path)  # of a process that died while it wrote the file
        before = _read(path, day)
        kept = {one.text: one for one in before.kept}
        until = (day + timedelta(days=days)).isoformat()
        for text in texts:
            had = kept.get(text)
            times = min(1 if had is None else had.times + 1, _MOST_TIMES)
            last = until if had is None else max(had.until, until)
            kept[text] = AskedQuery(text, times, day.isoformat(), last)
        if not kept:
            path.unlink(missing_ok=True)
            return
        with replacing(path) as draft:
            draft.write_bytes(b"".join(_lines(kept, most)))


def forget_queries(folder: Path) -> int:
    """Remove all queries that an index folder keeps, also what a killed process left of them; returns their number."""
    if why_not_kept(folder):
        return 0
    location.require_there(folder, "queries")
    path = folder / QUERIES
    with explained(path), location.writing_alone(folder, GRADES_LOCK):
        staging.sweep(path)
        found = _read(path, today())
        path.unlink(missing_ok=True)
    return len(found.kept)


def _lines(kept: Mapping[str, AskedQuery], most: int) -> list[bytes]:
    """Lines of the queries that were asked last, as many as there is room for."""
    newest = sorted(kept.values(), key=lambda one: (one.day, one.times), reverse=True)[:most]
    lines, room = [], MOST_BYTES
    for one in newest:
        line = sealed_lines.sealed(asdict(one))
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return lines


def _read(path: Path, day: date) -> AskedQueries:
    lines, damaged = sealed_lines.read_sealed(path, _parsed)
    found = {one.text: one for _, one in lines if one.until >= day.isoformat()}
    issues = (Issue("damaged query", f"{path}, line {number}", detail) for number, detail in damaged)
    kept = sorted(found.values(), key=lambda one: (-one.times, one.text))
    return AskedQueries(tuple(kept), tuple(issues))


def _parsed(plain: dict[str, Any]) -> AskedQuery:
    kinds = {"text": str, "times": int, "day": str, "until": str}
    if plain.keys() != kinds.keys() or any(type(plain[name]) is not kind for name, kind in kinds.items()):
        raise TypeError(f"it does not say {', '.join(kinds)}")
    return AskedQuery(**plain)


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
