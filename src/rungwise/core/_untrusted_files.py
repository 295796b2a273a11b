"""Opening files of unknown origin: only regular files, of a bounded size, without ever waiting.

A pipe, a device or a socket in the place of a file would hold a reader for ever, and some files have no end. They are
refused in one line. A file that grows while it is read is read up to the size that it had when it was opened.
"""

from __future__ import annotations

import io
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rungwise.core._errors import UserError
from rungwise.core._limits import LimitName, limits, too_large
from rungwise.core.network import address_of, object_stamp, opened_object

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_BUFFER = 1 << 17
_SETTLED_NS = 2_000_000_000


class MissingFileError(UserError):
    """There is no such file."""

    __module__ = "rungwise.core"


@contextmanager
def opened_file(path: Path, limit: LimitName | None) -> Iterator[io.BufferedReader[Any]]:
    """A regular file, open for reading bytes up to its present size; or an object of an object store.

    Args:
        path: Path of the file; links are followed.
        limit: Limit of its size; None for files that are read in parts or mapped into memory.

    Raises:
        MissingFileError: If there is none.
        UserError: If it is no regular file, may not be read, or is larger than its limit.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "captions.txt"
    >>> _ = file.write_text("a dog")
    >>> with opened_file(file, "text_bytes") as reader:
    ...     reader.read()
    b'a dog'
    >>> with opened_file(file.parent, "text_bytes") as reader:
    ...     pass
    Traceback (most recent call last):
    rungwise.core.UserError: ...: is a folder, not a file; give a regular file
    """
    require_regular(path, limit)  # before opening: to open a device can already do something
    if address := address_of(path):
        try:
            with opened_object(address) as reader:
                yield reader
        except FileNotFoundError as error:
            raise unreadable(path, error) from error
        return
    try:
        # Between the two looks a pipe may have taken the file's place, and opening one would wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | _BINARY)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        about = os.fstat(handle)
        _check(path, about, limit)
        reader = io.BufferedReader(_Whole(handle, about.st_size), _BUFFER)
    except BaseException:
        os.close(handle)
        raise
    with reader:
        yield reader


_BINARY = getattr(os, "O_BINARY", 0)


class _Whole(io.RawIOBase):
    """The bytes of an open file up to a size; a pseudo file without a size is empty."""

    def __init__(self, handle: int, size: int) -> None:
        self._handle, self._size, self._at = handle, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._handle

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = os.lseek(self._handle, max(0, start + offset), os.SEEK_SET)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        most = min(len(buffer), max(0, self._size - self._at))
        if not most:
            return 0
        data = os.read(self._handle, most)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Everything that is left, in as few steps as the system allows; the inherited method reads 8 KB at a time."""
        parts = []
        while part := os.read(self._handle, max(0, self._size - self._at)):
            parts.append(part)
            self._at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()


def require_regular(path: Path, limit: LimitName | None = None) -> int:
    """Size in bytes of a file that a library will open by itself, after it was checked.

    Raises:
        MissingFileError: If there is none.
        UserError: If it is no regular file, or larger than its limit.
    """
    try:
        if address := address_of(path):
            size, _ = object_stamp(address)
            _check_size(path, size, limit)
            return size
        about = path.stat()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    _check(path, about, limit)
    return about.st_size


def is_regular(path: Path) -> bool:
    """Whether there is a regular file that can be examined; never an error."""
    try:
        if address := address_of(path):
            return bool(object_stamp(address))
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError, UserError):
        return False


def stamp(path: Path) -> tuple[int, ...] | None:
    """Numbers that tell a file from its replacement, without reading it; None where there is no file.

    If a stamp is the same before and after other files of a folder were read, and the folder is only ever replaced as a
    whole, all of them were files of one folder.
    """
    try:
        if address := address_of(path):
            return object_stamp(address)
        about = path.stat()
    except (OSError, ValueError, UserError):
        return None
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def is_settled(modified: int) -> bool:
    """Whether a file's time tells it from what is written into it from now on.

    Within two seconds after a write, a file may be written again in the same tick of its clock.

    Args:
        modified: Time of the last write, in nanoseconds since 1970.
    """
    return time.time_ns() - modified > _SETTLED_NS


def _check(path: Path, about: os.stat_result, limit: LimitName | None) -> None:
    if not stat.S_ISREG(about.st_mode):
        what = next((name for of, name in _KINDS if of(about.st_mode)), "something else")
        raise UserError(f"{path}: is {what}, not a file; give a regular file")
    _check_size(path, about.st_size, limit)


def _check_size(path: Path, size: int, limit: LimitName | None) -> None:
    if limit is not None and size > getattr(limits(), limit):
        raise too_large(path, size, limit)


def unreadable(path: Path, error: Exception) -> UserError:
    """The error of a file that the operating system does not let us read.

    >>> str(unreadable(Path("a.csv"), PermissionError(13, "Permission denied")))
    'a.csv: cannot be read (permission denied); correct the path or its permissions'
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingFileError(f"{path}: no such file; correct the path")
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    return UserError(f"{path}: cannot be read ({reason}); correct the path or its permissions")


def read_bytes(path: Path, limit: LimitName) -> bytes:
    """All bytes of a file; errors as :func:`opened_file`."""
    with opened_file(path, limit) as file:
        try:
            return file.read()
        except OSError as error:
            raise unreadable(path, error) from error


def read_text(path: Path, limit: LimitName) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Raises:
        UserError: For the reasons of :func:`opened_file`, and if it is not UTF-8; the place is named.
    """
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {data[error.start]:#04x} at offset {error.start} is not UTF-8; save the file as UTF-8"
        ) from error


def read_json(path: Path, limit: LimitName = "json_bytes", *, finite: bool = True) -> Any:
    """The content of a JSON file.

    Args:
        path: Path of the file.
        limit: Limit of its size.
        finite: Refuse ``NaN`` and ``Infinity``, which JSON does not have and Python's reader accepts.

    Raises:
        MissingFileError: If there is none.
        UserError: If it cannot be read or is not JSON.
    """
    return parse_json(read_text(path, limit), path, finite=finite)


def parse_json(text: str | bytes, where: object, *, finite: bool = True, join_texts: bool = False) -> Any:
    r"""The value of JSON text.

    Args:
        text: Text to parse.
        where: Place that an error names, usually the file.
        finite: Refuse ``NaN`` and ``Infinity``.
        join_texts: Give a key that stands several times in an object all of its texts, as a list; without it, the last
            value of such a key counts. Only where ``finite`` is False.

    Raises:
        UserError: If it is not JSON, is nested too deeply, or holds a number too long, or a key whose texts are to be
            joined has another value.

    >>> parse_json("[1,\n2", "a.json")
    Traceback (most recent call last):
    rungwise.core.UserError: a.json: not valid JSON (Expecting ',' delimiter, line 2, column 2); ...
    >>> parse_json('{"a.jpg": "A dog.", "a.jpg": ["A pup."]}', "a.json", finite=False, join_texts=True)
    {'a.jpg': ['A dog.', 'A pup.']}
    >>> parse_json("[NaN]", "a.json")
    Traceback (most recent call last):
    rungwise.core.UserError: a.json: not valid JSON (NaN is no number that JSON knows); ...
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))
        return (_STRICT if finite else _JOINING if join_texts else _LENIENT).decode(text)
    except RecursionError:
        reason = "nested too deeply"
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in error.doc.strip() else ""
        reason = f"{error.msg}, {line}column {error.colno}"
    except UnicodeDecodeError as error:
        reason = f"byte at offset {error.start} is not UTF-8"
    except ValueError as error:
        reason = "a number of too many digits" if "integer string" in str(error) else str(error)
    raise UserError(f"{where}: not valid JSON ({reason}); correct it, or copy or write it again")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON knows")


def _joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    times = Counter(name for name, _ in pairs)
    texts: dict[str, list[str]] = {name: [] for name, count in times.items() if count > 1}
    for name, value in pairs:
        if name in texts:
            several = value if isinstance(value, list) else [value]
            if not all(isinstance(one, str) for one in several):
                raise ValueError(f"the key {name[:80]!r} stands twice in an object")
            texts[name] += several
    return found | texts


# Made once: json.loads makes one for each call that asks for more than its defaults.
_STRICT, _LENIENT = json.JSONDecoder(parse_constant=_refuse_constant), json.JSONDecoder()
_JOINING = json.JSONDecoder(object_pairs_hook=_joined)


def require_there(path: Path) -> None:
    """Check that a user's path leads to something that can be examined."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{path}: no such file or folder; correct the path") from error
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def user_path(path: Path | str) -> Path:
    """A path as a user writes it, with ``~`` for a home folder; a UserError if ``~name`` is nobody here."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UserError(f"{path}: there is no such home folder; write the whole path") from error
