"""Limits on reading files of unknown origin: sane defaults, each raised by an environment variable.

Without a limit a stranger's file could fill the memory or hold up a program. A refusal names the variable that raises
the limit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Literal

from rungwise.core._errors import UserError

LimitName = Literal[
    "settings_bytes",
    "json_bytes",
    "text_bytes",
    "sidecar_bytes",
    "picture_bytes",
    "picture_pixels",
    "picture_work",
    "picture_memory",
    "unpacked_bytes",
    "line_bytes",
    "checked_bytes",
    "query_characters",
    "id_bytes",
    "table_columns",
    "column_depth",
]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,18})\s*(?:([KMGT])(?:i?B)?|B?)", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """The largest of each kind that is read.

    Attributes:
        settings_bytes: Size of a YAML file of settings, which is read slowly.
        json_bytes: Size of a JSON file that a program wrote: descriptions of folders, tokenizers, results.
        text_bytes: Size of a file of captions, judgements or ranked lists.
        sidecar_bytes: Size of a file beside a picture that says something of that picture alone.
        picture_bytes: Size of a picture file.
        picture_pixels: Number of pixels that the header of a picture may claim.
        picture_work: Steps that decoding may take beside the pixels, as :mod:`rungwise.data.pictures._decoding_cost`
            counts.
        picture_memory: Bytes of all pictures together that a process decodes at the same time.
        unpacked_bytes: Unpacked size of a compressed file (gzip, npz).
        line_bytes: Length of one line of a text file that is read line by line, or of one cell of a table.
        checked_bytes: Size of a file of vectors or degrees whose checksum is compared whenever it is opened; larger
            ones are opened without it, and ``rungwise verify`` compares them.
        query_characters: Length of a query or a filter as it is typed.
        id_bytes: Length of an id of an index's picture in UTF-8; the server's limit of a head has room for one.
        table_columns: Number of further columns that a collection carries.
        column_values: Number of different values of an index's column of which it is counted how many pictures have
            each; of a column with more, none is.
        counted_rows: Number of rows of a Milvus collection that are read to count columns; of a larger one, some rows
            are drawn at random, and what they say is marked with "about".
        column_depth: Number of objects inside one another whose entries become columns.

    >>> Limits().settings_bytes
    262144
    """

    settings_bytes: int = 1 << 18
    json_bytes: int = 256 << 20
    text_bytes: int = 2 << 30
    sidecar_bytes: int = 1 << 20
    picture_bytes: int = 256 << 20
    picture_pixels: int = 1 << 28
    picture_work: int = 8 << 30
    picture_memory: int = 6 << 30
    unpacked_bytes: int = 32 << 30
    line_bytes: int = 16 << 20
    checked_bytes: int = 4 << 30
    query_characters: int = 2000
    id_bytes: int = 4096
    table_columns: int = 200
    column_values: int = 20_000
    counted_rows: int = 100_000
    column_depth: int = 8


_current: Limits | None = None


def limits() -> Limits:
    """The present limits: those of :func:`limited`, or of the environment when they are first asked for."""
    global _current
    if _current is None:
        _current = from_environment(os.environ)
    return _current


def from_environment(variables: os._Environ[str] | dict[str, str]) -> Limits:
    """The defaults, overridden by variables such as ``RUNGWISE_MAX_TEXT_BYTES``.

    >>> from_environment({"RUNGWISE_MAX_TEXT_BYTES": "3 GiB"}).text_bytes
    3221225472
    >>> from_environment({"RUNGWISE_MAX_TEXT_BYTES": "much"})
    Traceback (most recent call last):
    rungwise.core.UserError: RUNGWISE_MAX_TEXT_BYTES: 'much' is no size; give a number such as 500000 or 2 GiB
    """
    found = {}
    for field in fields(Limits):
        name = variable(field.name)
        if (text := variables.get(name, "").strip()) == "":
            continue
        size = _SIZE.fullmatch(text)
        if size is None:
            raise UserError(f"{name}: {text[:40]!r} is no size; give a number such as 500000 or 2 GiB")
        found[field.name] = int(size[1]) * _UNITS[(size[2] or "").upper()]
    return replace(Limits(), **found)


def variable(name: str) -> str:
    """The environment variable that sets a limit."""
    return f"RUNGWISE_MAX_{name.upper()}"


@contextmanager
def limited(**changes: int) -> Iterator[Limits]:
    """Change limits within the block, in every thread of the process."""
    global _current
    before = limits()
    _current = replace(before, **changes)
    try:
        yield _current
    finally:
        _current = before


def too_large(what: object, found: int, name: LimitName) -> UserError:
    """The error of something that is larger than its limit.

    >>> str(too_large("a.csv", 3 << 30, "text_bytes"))
    'a.csv: 3.0 GiB, where at most 2.0 GiB are read; if it is meant, set RUNGWISE_MAX_TEXT_BYTES=3221225472'
    """
    most = getattr(limits(), name)
    counted = not name.endswith(("_bytes", "_memory"))
    shown = [f"{size:,}" if counted else readable(size) for size in (found, most)]
    unit = f" {name.rpartition('_')[2]}" if counted else ""
    return UserError(
        f"{what}: {shown[0]}{unit}, where at most {shown[1]} are read; if it is meant, set {variable(name)}={found}"
    )


def check_length(text: str, what: str) -> None:
    """Refuse a text, called ``what`` in the error, that is longer than the limit ``query_characters``."""
    if len(text) > limits().query_characters:
        raise too_large(what, len(text), "query_characters")


def beyond_limit(what: object, name: LimitName) -> UserError:
    """The error of something of unknown size that passes its limit."""
    most = readable(getattr(limits(), name))
    return UserError(f"{what}: goes on beyond {most}; if it is meant, set {variable(name)} higher")


def readable(size: int) -> str:
    """A number of bytes in short form.

    >>> readable(12), readable(5 << 20)
    ('12 bytes', '5.0 MiB')
    """
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
