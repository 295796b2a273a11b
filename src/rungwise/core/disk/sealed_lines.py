"""Files of JSON lines that many processes append to, each line with a checksum of its own.

A line that was cut off or damaged is counted, and the others count. Writers need a lock, which is the caller's
business: :func:`append` checks whether a process died while writing the last line, and then begins a new one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rungwise.core._digests import digest_of_json, digest_of_parts
from rungwise.core._errors import UserError
from rungwise.core._limits import readable
from rungwise.core._untrusted_files import MissingFileError, opened_file, require_regular
from rungwise.core.disk._files import appending, replacing

__all__ = ["a_sealed_line", "append", "hash_of_text", "is_sealed", "read_sealed", "sealed", "unsealed"]

Parsed = TypeVar("Parsed")

_LONGEST_LINE = 1 << 18
_LOOKED_AT = 20
"""Number of first lines among which a sound one is sought."""
_SEAL, _DIGITS = "seal", 16
"""Name of the checksum in a line, and its number of digits of the hash of the rest."""


def hash_of_text(text: str) -> str:
    """SHA-256 of a text, by which a line records the text that somebody saw."""
    return digest_of_parts([text])


def sealed(plain: Mapping[str, Any]) -> bytes:
    r"""A line with the given values and their checksum.

    >>> sealed({"a": 1})
    b'{"a": 1, "seal": "f9d86028c6e0d64e"}\n'
    """
    return json.dumps({**plain, _SEAL: digest_of_json(plain)[:_DIGITS]}).encode("ascii") + b"\n"


def unsealed(line: bytes) -> dict[str, Any]:
    """The values of a line.

    Raises:
        ValueError: If it is no JSON, or its checksum does not match.
        TypeError: If it is no JSON object.
        RecursionError: If it is nested too deeply.
    """
    plain = json.loads(line)
    if not isinstance(plain, dict):
        raise TypeError("no JSON object")
    if plain.pop(_SEAL, None) != digest_of_json(plain)[:_DIGITS]:
        raise ValueError("its checksum is another")
    return plain


def is_sealed(line: bytes | str) -> bool:
    """Whether a line belongs to such a file, be it damaged or not."""
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(plain, dict) and _SEAL in plain


def read_sealed(
    path: Path, parse: Callable[[dict[str, Any]], Parsed]
) -> tuple[list[tuple[int, Parsed]], list[tuple[int, str]]]:
    """All lines of a file; none where there is no file.

    Args:
        path: Path of the file.
        parse: Parses the values of a line; a ValueError, TypeError or UserError means that the line is damaged.

    Returns:
        Sound lines with their numbers from 1, and the fault of each of the others with its number.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lines.jsonl"
    >>> _ = file.write_bytes(sealed({"a": 1}) + sealed({"a": 2})[:-5])
    >>> lines, damaged = read_sealed(file, lambda plain: plain["a"])
    >>> lines, [number for number, _ in damaged]
    ([(1, 1)], [2])
    """
    sound: list[tuple[int, Parsed]] = []
    damaged: list[tuple[int, str]] = []
    try:
        with opened_file(path, "text_bytes") as file:
            for number, line in enumerate(_lines(file), start=1):
                if not line.strip():
                    continue
                try:
                    sound.append((number, parse(unsealed(line))))
                except (ValueError, TypeError, RecursionError, UserError) as error:
                    damaged.append((number, " ".join(str(error).split())[:200]))
    except MissingFileError:
        return [], []
    return sound, damaged


def a_sealed_line(path: Path) -> bytes | None:
    """One of the first lines that is sealed, by which such a file is recognised; None where the file is another one."""
    with opened_file(path, "text_bytes") as file:
        return next((line for line in islice(_lines(file), _LOOKED_AT) if is_sealed(line)), None)


def append(path: Path, line: bytes, most: int, kept: Callable[[], Iterable[bytes]], what: str) -> None:
    """Add a line; once this returns it survives a power cut. The caller holds a lock.

    Args:
        path: Path of the file, made if missing.
        line: Line from :func:`sealed`.
        most: Size in bytes at which the file is written anew without lines that no longer count.
        kept: Returns the lines that count.
        what: Name of the lines in messages, in the plural.

    Raises:
        UserError: If the lines that count fill the file, or it may not be written.
        OSError: If the disk is full or the place may not be written.
    """
    if _size(path) >= most:
        with replacing(path) as draft:
            draft.write_bytes(b"".join(kept()))
        if _size(path) >= most:
            raise UserError(f"{path}: full of {what} ({readable(most)}); move the file away to begin another")
    cut_off = _is_cut_off(path)
    with appending(path) as file:
        file.write(b"\n" * cut_off + line)


def _lines(file: io.BufferedReader[Any]) -> Iterator[bytes]:
    """The lines of a file; of one that is longer than any of ours, its beginning."""
    while line := file.readline(_LONGEST_LINE):
        rest = line
        while len(rest) == _LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(_LONGEST_LINE)
        yield line


def _size(path: Path) -> int:
    try:
        return require_regular(path)
    except MissingFileError:
        return 0


def _is_cut_off(path: Path) -> bool:
    """Whether a process died while it wrote the last line."""
    if not _size(path):
        return False
    with opened_file(path, None) as file:
        file.seek(-1, io.SEEK_END)
        return file.read(1) != b"\n"
