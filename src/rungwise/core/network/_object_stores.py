"""Object stores: addresses such as ``s3://bucket/prefix``, and the objects there.

An address may come as a text or as a path, which has one slash less. Settings of S3 are read from the environment,
under the names that LanceDB reads too.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from rungwise.core._errors import SCHEMES, UserError

_ADDRESS = re.compile(rf"({SCHEMES}):/{{1,2}}([^/].*)", re.DOTALL)
_BUFFER = 1 << 20
"""Bytes that are fetched at a time by many small reads."""
_SETTINGS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")


def address_of(place: Path | str) -> str | None:
    """A place as an address, with both of its slashes; None for a folder.

    >>> address_of(Path("s3://bucket/pets")), address_of("s3://bucket/pets/"), address_of(Path("pets"))
    ('s3://bucket/pets', 's3://bucket/pets', None)
    >>> address_of("C:/pets") is None, address_of("hf:/models/clip") is None
    (True, True)
    """
    text = str(place)
    if ":/" not in text:
        return None
    found = _ADDRESS.fullmatch(text)
    return f"{found[1]}://{found[2].rstrip('/')}" if found else None


def file_system(address: str) -> tuple[Any, str]:
    """The pyarrow file system of an address, and the path in it."""
    scheme, _, path = address.partition("://")
    if scheme == "s3":
        return _s3(*(os.environ.get(name) for name in _SETTINGS)), path
    from pyarrow import fs

    files, path = fs.FileSystem.from_uri(address)
    return files, path


@cache
def _s3(endpoint: str | None, endpoint_url: str | None, region: str | None, default_region: str | None) -> Any:
    from pyarrow import fs

    options = {
        "endpoint_override": endpoint or endpoint_url,
        "region": region or default_region,
        # Small files go in one request, which also takes empty ones.
        "allow_delayed_open": True,
    }
    return fs.S3FileSystem(**{name: value for name, value in options.items() if value})


@contextmanager
def errors_in_one_line(address: str) -> Iterator[None]:
    """Turn errors of an object store, or of the way to it, into one line; FileNotFoundError passes."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise UserError(f"{address}: {said}; check the address, the credentials and the store's state") from error


def object_stamp(address: str) -> tuple[int, int]:
    """Size in bytes of an object, and its time of writing in nanoseconds since 1970.

    Raises:
        FileNotFoundError: If there is none.
        UserError: If the store refuses.
    """
    from pyarrow import fs

    with errors_in_one_line(address):
        files, path = file_system(address)
        found = files.get_file_info(path)
        if found.type != fs.FileType.File:
            raise FileNotFoundError(address)
    return int(found.size), int(found.mtime_ns or 0)


def objects_below(address: str) -> list[str]:
    """Addresses of all objects under an address, sorted; the address itself where it is an object.

    Raises:
        UserError: If there are none, or the store refuses.
    """
    scheme = address.partition("://")[0]
    objects = sorted(f"{scheme}://{one.path}" for one in _objects(address))
    if not objects:
        raise UserError(f"{address}: nothing lies there; correct the address")
    return objects


def bytes_below(address: str) -> int:
    """Bytes of all objects under an address; 0 where there are none, a UserError where the store refuses."""
    return sum(int(one.size) for one in _objects(address))


def _objects(address: str) -> list[Any]:
    from pyarrow import fs

    with errors_in_one_line(address):
        files, path = file_system(address)
        found = [files.get_file_info(path)]
        if found[0].type != fs.FileType.File:
            found = files.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
    return [one for one in found if one.type == fs.FileType.File]


@contextmanager
def opened_object(address: str) -> Iterator[io.BufferedReader[Any]]:
    """An object, open for reading anywhere in it; only the parts that are read are fetched, at least a mebibyte each.

    Raises:
        FileNotFoundError: If there is none.
        UserError: If the store refuses.
    """
    with errors_in_one_line(address):
        files, path = file_system(address)
        found = files.open_input_file(path)
    with found, io.BufferedReader(_Readable(found), _BUFFER) as reader:
        yield reader


class _Readable(io.RawIOBase):
    """A file of pyarrow as a raw file for Python's buffered reader."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._file.tell(), os.SEEK_END: self._file.size()}[whence]
        # Beyond its end nothing is read, as in any file; pyarrow would refuse.
        self._file.seek(min(max(0, start + offset), self._file.size()))
        return int(self._file.tell())

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
