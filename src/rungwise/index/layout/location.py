"""Where an index lies: in a folder, or under an address of an object store or of Milvus.

Small files of an index under an address are copied to a folder of this machine while they are read or written, and
files that were written are sent back whole.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rungwise.core import UnavailableError, UserError
from rungwise.core.disk import locks
from rungwise.core.network import address_of, errors_in_one_line, file_system
from rungwise.index.stores import is_milvus
from rungwise.index.stores.milvus import catalog

__all__ = ["alone", "at_hand", "forget_stamps", "require_there", "stamp", "writing_alone"]

_SMALL = 256 << 20
_SECONDS = 1.0
"""Seconds for which the stamp of a file is not asked for again."""
_stamps: dict[tuple[str, str], tuple[float, tuple[int, ...] | None]] = {}


def writing_alone(place: Path, name: str = locks.LOCK) -> AbstractContextManager[None]:
    """Take the lock of those that write in a folder; under an address the engine decides who was first."""
    return nullcontext() if address_of(place) else locks.writing_alone(place, name=name)


def require_there(place: Path, what: str) -> None:
    """Refuse to read or write what people keep where the folder is gone, as while another index takes its place.

    Whoever reads would take it for nothing kept. A lock of whoever writes would make the folder anew, and the other
    index, moved to that name, would come to lie inside it.
    """
    if address_of(place) is None and not place.is_dir():
        raise UnavailableError(f"{place}: no index here, in which {what} could be kept; try again once it is back")


def alone(place: Path, what: str, name: str) -> AbstractContextManager[None]:
    """Take a named lock of a folder, or refuse; under an address no lock is taken."""
    return nullcontext() if address_of(place) else locks.alone(place, what, name)


@contextmanager
def at_hand(place: Path, names: Sequence[str], *, writing: bool = False) -> Iterator[Path]:
    """A folder with the small files of a place: the place itself, or a copy for as long as the block lasts.

    Args:
        place: Place of an index.
        names: Names of the files; those that are not there are left out.
        writing: Send the files back when the block ends well, in this order.

    Raises:
        UserError: Whatever the block raises, with the address in place of the copy's name; or if the object store
            refuses.
    """
    address = address_of(place)
    if address is None:
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="rungwise-") as copy:
        for name in names:
            if (content := _read(address, name)) is not None:
                (Path(copy) / name).write_bytes(content)
        try:
            yield Path(copy)
        except UserError as error:
            raise type(error)(str(error).replace(copy, address)) from error
        if writing:
            for name in names:
                if (Path(copy) / name).exists():
                    _write(address, name, (Path(copy) / name).read_bytes())


def stamp(address: str, name: str) -> tuple[int, ...] | None:
    """Stamp by which a file differs from its successor; None if there is no file. It may be a second old."""
    known = _stamps.get((address, name))
    if known is None or time.monotonic() - known[0] > _SECONDS:
        content = _read(address, name)
        found = None if content is None else (int.from_bytes(hashlib.sha256(content).digest()[:8], "big"),)
        known = _stamps[address, name] = time.monotonic(), found
    return known[1]


def forget_stamps(address: str) -> None:
    """Ask for the stamps of the files of this place anew when they are next needed."""
    for one in [key for key in _stamps if key[0] == address]:
        _stamps.pop(one, None)


def _read(address: str, name: str) -> bytes | None:
    if is_milvus(address):
        return catalog.read_file(address, name)
    with errors_in_one_line(address):
        files, prefix = file_system(address)
        try:
            with files.open_input_stream(f"{prefix}/{name}") as stream:
                content = bytes(stream.read(_SMALL + 1))
        except FileNotFoundError:
            return None
    if len(content) > _SMALL:
        raise UserError(f"{address}/{name}: larger than {_SMALL} bytes; it is no file of an index")
    return content


def _write(address: str, name: str, content: bytes) -> None:
    _stamps.pop((address, name), None)
    if is_milvus(address):
        catalog.write_file(address, name, content)
        return
    with errors_in_one_line(address):
        files, prefix = file_system(address)
        # An object appears when the stream is closed, whole.
        with files.open_output_stream(f"{prefix}/{name}") as stream:
            stream.write(content)
