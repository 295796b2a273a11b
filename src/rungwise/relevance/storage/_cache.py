"""Cache of numbers that sources have computed of captions: vectors, or weights of their words.

Degrees of all pairs are far too many to keep, 29,000 images x 145,000 captions are 17 GB. What they are computed from
is small and quick to read, and a block of a training batch takes a few milliseconds. An entry is a folder that appears
as a whole, is known by a hash of all that it depends on, and is compared with its checksums whenever it is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, read_json, require_regular
from rungwise.core.disk import check_seal
from rungwise.core.disk.folders import refuse_strangers, replacing_folder
from rungwise.core.disk.locks import writing_alone
from rungwise.core.formats import NpyWriter, mapped
from rungwise.core.output import short_repr

MOST_BYTES = 8 << 30
"""Largest size of the folder: beyond it, entries that were not used for the longest time are removed."""

HEADER = "kept.json"
VERSION = 1
_PARTS = frozenset({HEADER, "*.npy"})
_WHAT = "kept relevance"
_ENTRY = re.compile(r"[a-z-]{1,32}-[0-9a-f]{16}")
_NAME = re.compile(r"[a-z_]{1,32}")
_DTYPES = ("<f4", "<i4", "<i8")
_DAY = 86400.0


@dataclass(frozen=True)
class CachedSource:
    """Facts and arrays that are kept of a source.

    Attributes:
        facts: Values that JSON can hold.
        arrays: Arrays of float32, int32 or int64 by name.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    __repr__ = short_repr


class KeptFolder:
    """Entries of many sources and collections in one folder.

    Args:
        folder: Folder of the entries, made when something is kept.
        most_bytes: Largest size of all entries: beyond it, those not used for the longest time are removed. None keeps
            all.
    """

    def __init__(self, folder: Path, most_bytes: int | None = MOST_BYTES) -> None:
        self.folder = folder.expanduser()
        self.most_bytes = most_bytes

    def place(self, kind: str, key: str) -> Path:
        """Folder of an entry, whether it is there or not.

        Args:
            kind: Kind of the source, such as ``tfidf``.
            key: Hash of all that the entry depends on, 64 hexadecimal digits.
        """
        return self.folder / f"{kind}-{key[:16]}"

    def find(self, kind: str, key: str) -> CachedSource | None:
        """An entry whose files are as they were written; None where there is none.

        Raises:
            UserError: If it is damaged, was altered, or belongs to another key.
        """
        place = self.place(kind, key)
        if not place.is_dir():
            return None
        check_seal(place)
        header = read_json(place / HEADER)
        if not isinstance(header, dict) or header.get("version") != VERSION or header.get("key") != key:
            raise UserError(f"{place / HEADER}: is of another entry or version; remove the folder")
        facts, names = header.get("facts"), header.get("arrays")
        if not isinstance(facts, dict) or not isinstance(names, list):
            raise UserError(f"{place / HEADER}: damaged; remove the folder")
        arrays = {}
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise UserError(f"{place / HEADER}: names an array {str(name)[:40]!r}; remove the folder")
            try:
                # In memory, so that what was looked at is what is computed with.
                array = np.array(mapped(place / f"{name}.npy"))
            except (OSError, ValueError) as error:
                raise UserError(f"{place / name}.npy: damaged ({error}); remove the folder") from error
            if array.dtype.str not in _DTYPES:
                raise UserError(f"{place / name}.npy: holds {array.dtype}; remove the folder")
            arrays[name] = array
        with suppress(OSError):  # a folder that may not be written is good for reading all the same
            os.utime(place / HEADER)
        return CachedSource(facts, arrays)

    def keep(self, kind: str, key: str, kept: CachedSource) -> Path:
        """Write an entry, whole or not at all, make room for it, and return its folder.

        Raises:
            UserError: If the disk is full, the place may not be written or holds a stranger's file, or the entry alone
                is larger than the limit.
        """
        place = self.place(kind, key)
        size = sum(array.nbytes for array in kept.arrays.values())
        if self.most_bytes is not None and size > self.most_bytes:
            raise UserError(f"{place}: {size / 2**30:.1f} GiB, more than the {self.most_bytes / 2**30:.1f} kept in all")
        with replacing_folder(place, _PARTS, _WHAT, header=HEADER) as draft:
            for name, array in kept.arrays.items():
                with NpyWriter(draft / f"{name}.npy", array.shape[1:], array.dtype) as writer:
                    writer.append(array)
            header = {"version": VERSION, "key": key, "facts": dict(kept.facts), "arrays": list(kept.arrays)}
            (draft / HEADER).write_text(json.dumps(header, indent=1), encoding="ascii")
        if self.most_bytes is not None:
            self._make_room(place, self.most_bytes)
        return place

    @contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Lock an entry while it is made: another process waits, and then finds it."""
        # One lock for each first digit: few files, and two runs that make different things seldom wait.
        with writing_alone(self.folder, _DAY, name=f"making-{key[0]}.lock"):
            yield

    def _make_room(self, newest: Path, most: int) -> None:
        """Remove entries that were not used for the longest time until all fit; never a folder with foreign files."""
        entries = []
        for place in self.folder.iterdir():
            with suppress(OSError):  # another process may remove it meanwhile
                if _ENTRY.fullmatch(place.name) and place.is_dir() and not place.is_symlink():
                    used = (place / HEADER).stat().st_mtime
                    entries.append((used, place, sum(file.stat().st_size for file in place.iterdir())))
        total = sum(size for _, _, size in entries)
        for _, place, size in sorted(entries):
            if total <= most:
                return
            if place == newest:
                continue
            with suppress(UserError, OSError):
                refuse_strangers(place, _PARTS, _WHAT)
                require_regular(place / HEADER)
                shutil.rmtree(place)
                total -= size
