"""Pictures that visitors sent to search with: their vectors and thumbnails, on disk for a while.

The pictures themselves are not kept. What is kept lets an address with such a picture be opened again, also after a
restart of the server, and by somebody else who received the address. Nobody can list the pictures: an address names one
by 128 bits of a keyed hash of its content.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, read_bytes
from rungwise.core.disk import replacing
from rungwise.core.formats import opened_npz
from rungwise.core.output import short_repr
from rungwise.index.update import SIDE

THUMBNAIL = SIDE
"""Longest side of a thumbnail in pixels, as in an index."""

_NAME = re.compile(r"[0-9a-f]{32}")
_KEY = "key"
_KEY_BYTES = 32
_ROOM_AFTER_SWEEP = 0.9


@dataclass(frozen=True)
class KeptPicture:
    """Data kept of a picture.

    Attributes:
        vector: (D,) vector of the picture.
        thumbnail: A small JPEG of it.
        model: Fingerprint of the model that made the vector.
    """

    vector: NDArray[np.float32]
    thumbnail: bytes
    model: str

    __repr__ = short_repr


class KeptPictures:
    """Data of pictures by name, in a folder that only its owner can read.

    Args:
        folder: Folder, made with the first picture. Several servers may share it.
        room: Number of bytes to keep; pictures unused for longest go first.
        seconds: Time for which a picture is kept after its last use.
        clock: Function that gives seconds since 1970, which are the times of the files.

    >>> import tempfile
    >>> kept = KeptPictures(Path(tempfile.mkdtemp()) / "sent", room=1 << 20, seconds=60)
    >>> name = kept.keep(b"the bytes of a file", np.array([0.6, 0.8], np.float32), b"a small JPEG", "9a3f")
    >>> kept.get(name).thumbnail, kept.get(name).model, kept.get("../../etc/passwd") is None
    (b'a small JPEG', '9a3f', True)
    """

    def __init__(self, folder: Path, *, room: int, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self.seconds = seconds
        self._clock = clock
        self._folder = folder
        self._room = room
        self._lock = Lock()
        self._size: int | None = None

    def keep(self, picture: bytes, vector: NDArray[np.float32], thumbnail: bytes, model: str) -> str:
        """Store the data of a picture; returns its name, which is the same for the same picture and model.

        Args:
            picture: Bytes of the picture's file.
            vector: (D,) vector of the picture.
            thumbnail: A small JPEG of it.
            model: Fingerprint of the model that made the vector.

        Raises:
            UserError: If the folder cannot be written.
        """
        with self._lock:
            if not self._folder.is_dir():
                self._folder.mkdir(parents=True, exist_ok=True)
                self._folder.chmod(0o700)
            name = hashlib.blake2b(model.encode() + b"\0" + picture, key=self._key(), digest_size=16).hexdigest()
            path = self._path(name)
            with replacing(path) as draft:
                with draft.open("wb") as file:
                    np.savez(
                        file,
                        vector=np.asarray(vector, np.float32),
                        thumbnail=np.frombuffer(thumbnail, np.uint8),
                        model=np.frombuffer(model.encode(), np.uint8),
                    )
                self._touch(draft)
            if self._size is not None:
                self._size += path.stat().st_size
            if self._size is None or self._size > self._room:
                self._sweep()
        return name

    def get(self, name: str) -> KeptPicture | None:
        """Data under a name; None if there is nothing any more."""
        if not _NAME.fullmatch(name):
            return None
        path = self._path(name)
        try:
            if path.stat().st_mtime < self._clock() - self.seconds:
                path.unlink(missing_ok=True)
                return None
            with opened_npz(path) as found:
                small, model = (found[name].astype(np.uint8).tobytes() for name in ("thumbnail", "model"))
                kept = KeptPicture(found["vector"].astype(np.float32), small, model.decode())
            self._touch(path)
        except (OSError, UserError, ValueError, KeyError):
            return None
        return kept

    def _touch(self, path: Path) -> None:
        now = self._clock()
        with suppress(PermissionError):  # a file system may let its owner alone set the time
            os.utime(path, (now, now))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.npz"

    def _key(self) -> bytes:
        """Secret without which nobody can tell from an address which picture was sent; made once."""
        path = self._folder / _KEY
        if not path.exists():
            with replacing(path) as draft:
                draft.write_bytes(secrets.token_bytes(_KEY_BYTES))
        return read_bytes(path, "settings_bytes")[:_KEY_BYTES]

    def _sweep(self) -> None:
        """Remove what is too old, and then what was unused for longest until there is room again."""
        oldest, kept = self._clock() - self.seconds, 0
        for used, size, path in sorted(self._stored(), reverse=True):
            if used < oldest or kept + size > _ROOM_AFTER_SWEEP * self._room:
                path.unlink(missing_ok=True)
            else:
                kept += size
        self._size = kept

    def _stored(self) -> Iterator[tuple[float, int, Path]]:
        for path in self._folder.glob("*.npz"):
            try:
                about = path.stat()
            except OSError:  # another server has swept it
                continue
            yield about.st_mtime, about.st_size, path
