"""Files of JSON lines that many processes append to, each line with a checksum of its own.

A line that was cut off or damaged is counted, and the others count. Two that append at once need a lock, which is the
caller's business: :func:`append` looks whether somebody died while writing the last line, and then begins a new one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from rungwise.core.digests import digest_of_json, digest_of_parts
from rungwise.core.disk.files import appending, replacing
from rungwise.core.errors import UserError
from rungwise.core.limits import readable
from rungwise.core.untrusted_files import MissingFileError, opened_file, require_regular

Parsed = TypeVar("Parsed")

_LONGEST_LINE = 1 << 18
_LOOKED_AT = 20
"""Lines among which a sound one is looked for."""
_SEAL, _DIGITS = "seal", 16
"""Name of the checksum in a line, and how much of the hash of the rest it is."""


def hash_of_text(text: str) -> str:
    """SHA-256 of a text, by which a line says what somebody saw.

    >>> hash_of_text("a")
    'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'
    """
    return digest_of_parts([text])


def sealed(plain: Mapping[str, Any]) -> bytes:
    r"""A line that holds what is given, and its checksum.

    >>> sealed({"a": 1})
    b'{"a": 1, "seal": "f9d86028c6e0d64e"}\n'
    """
    return json.dumps({**plain, _SEAL: digest_of_json(plain)[:_DIGITS]}).encode("ascii") + b"\n"


def unsealed(line: bytes) -> dict[str, Any]:
    """What a line holds.

    Raises:
        ValueError: If it is no JSON, or its checksum is another.
        TypeError: If it is no JSON object.
        RecursionError: If it is nested too deeply.

    >>> unsealed(sealed({"a": 1}))
    {'a': 1}
    >>> unsealed(sealed({"a": 1}).replace(b"1,", b"2,"))
    Traceback (most recent call last):
    ValueError: its checksum is another
    """
    plain = json.loads(line)
    if not isinstance(plain, dict):
        raise TypeError("no JSON object")
    if plain.pop(_SEAL, None) != digest_of_json(plain)[:_DIGITS]:
        raise ValueError("its checksum is another")
    return plain


def is_sealed(line: bytes | str) -> bool:
    """Whether a line is one of such a file, be it damaged or not.

    >>> is_sealed(sealed({"a": 1})), is_sealed("image,caption,grade")
    (True, False)
    """
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
        path: Of the file.
        parse: Makes something of what a line holds; a ValueError, TypeError or UserError says that it is damaged.

    Returns:
        Sound lines with their numbers from 1, and what is wrong with each of the others.

    Raises:
        UserError: If the file cannot be read.

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
    """A line by which such a file is known, among its first ones; None where the file is another one.

    Raises:
        UserError: If the file cannot be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lines.jsonl"
    >>> _ = file.write_bytes(b"damaged" + sealed({"a": 1}) + sealed({"a": 2}))
    >>> unsealed(a_sealed_line(file))
    {'a': 2}
    """
    with opened_file(path, "text_bytes") as file:
        return next((line for line in islice(_lines(file), _LOOKED_AT) if is_sealed(line)), None)


def append(path: Path, line: bytes, most: int, kept: Callable[[], Iterable[bytes]], what: str) -> None:
    """Add a line; it survives a power cut once this returns. Nobody else may append meanwhile.

    Args:
        path: Of the file, made if missing.
        line: As :func:`sealed` gives it.
        most: Bytes of the file, from which it is written anew without lines that no longer count.
        kept: The lines that count.
        what: They are, in the plural.

    Raises:
        UserError: If the file has so many bytes already, or may not be written.
        OSError: If the disk is full or the place may not be written.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "lines.jsonl"
    >>> for number in range(2):
    ...     append(file, sealed({"a": number}), 1000, list, "numbers")
    >>> file.read_bytes().count(b"seal")
    2
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
