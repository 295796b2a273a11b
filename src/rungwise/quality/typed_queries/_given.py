"""A file of a person's own queries: one a line, or JSON lines that also name the relevant pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rungwise.core import UserError, check_length, parse_json
from rungwise.core.output import short_repr
from rungwise.data.files import read_lines

_FIELDS = {"query", "relevant"}


@dataclass(frozen=True)
class GivenQuery:
    """A query that somebody asked.

    Attributes:
        text: What was typed.
        relevant: Ids of the relevant pictures; None where captions and columns are to tell.
        kind: Name of its kind: ``"given"`` in a file, or ``"asked"`` of a server.
    """

    text: str
    relevant: tuple[str, ...] | None = None
    kind: str = "given"

    __repr__ = short_repr


def read_queries(path: Path) -> tuple[GivenQuery, ...]:
    r"""Queries of a file, each once; a line that begins with a brace is JSON, with the fields query and relevant.

    Raises:
        UserError: If the file has no query, or a line is no such JSON; the line is named.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "queries.txt"
    >>> _ = path.write_text('wallet\n\n{"query": "black belt", "relevant": ["7.jpg"]}\n')
    >>> read_queries(path)
    (GivenQuery(text='wallet', relevant=None, kind='given'),
     GivenQuery(text='black belt', relevant=('7.jpg',), kind='given'))
    """
    found: dict[str, GivenQuery] = {}
    for number, line in read_lines(path):
        text = line.strip()
        if text:
            where = f"{path}, line {number}"
            query = _from_json(text, where) if text.startswith("{") else GivenQuery(text)
            check_length(query.text, f"{where}: the query")
            found.setdefault(query.text, query)
    return tuple(found.values())


def _from_json(line: str, where: str) -> GivenQuery:
    value = parse_json(line, where)
    text, relevant = (value.get("query"), value.get("relevant")) if isinstance(value, dict) else (None, None)
    if not isinstance(text, str) or not text.strip() or set(value) - _FIELDS:
        raise UserError(
            f'{where}: give the fields query and relevant, as in {{"query": "wallet", "relevant": ["7.jpg"]}}'
        )
    if relevant is not None and not (isinstance(relevant, list) and all(isinstance(one, str) for one in relevant)):
        raise UserError(f"{where}: relevant is no list of ids; give the ids of the relevant pictures, as texts")
    return GivenQuery(text.strip(), None if relevant is None else tuple(relevant))
