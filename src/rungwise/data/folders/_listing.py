"""What stands in the folders of a collection, in one digest, by which an index of it is known to be up to date."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from rungwise.core import is_settled, limits
from rungwise.core.network import address_of
from rungwise.core.version import __version__
from rungwise.data._collection import CollectionSource
from rungwise.data.layouts import folder_of_pictures

_EXTRAS = ("pillow_heif",)
"""Packages that let more files be read."""


def listing_of(source: CollectionSource, *, without: Path) -> str:
    """Digest of the names, sizes and times of all files in the folders of a collection, whatever they are.

    Files are not opened. As long as the digest is the same, reading the collection gives the same, provided that a file
    of the same size and time is the same file, and that nothing was read from elsewhere. Limits of what is read, and
    the version of rungwise, are part of it.

    Args:
        source: Where the collection is read from.
        without: Folder that does not count, such as that of an index.

    Returns:
        The digest; empty where it cannot tell: of addresses, of folders that cannot be read, and of files that were
        written within the last two seconds.
    """
    found = hashlib.blake2b(digest_size=20)
    extras = [find_spec(one) is not None for one in _EXTRAS]
    found.update(repr((__version__, sorted(asdict(limits()).items()), extras)).encode())
    files = [path for path in map(Path, source.paths) if path.is_file()]
    captions = [Path(source.captions)] if source.captions else []
    places = dict.fromkeys([*source.folders, *map(folder_of_pictures, files), *captions])
    try:
        for place in places:
            if address_of(place) is not None:
                return ""
            if not _add(found, place, os.path.realpath(without)):
                return ""
    except OSError:
        return ""
    return found.hexdigest()


def _add(found: hashlib.blake2b, place: Path, without: str) -> bool:
    """Add a file, or a folder with all that is below it; false where a file is too new to tell."""
    if not place.is_dir():
        return _add_stamp(found, str(place), place.stat())
    left, seen = [str(place)], {os.path.realpath(place)}
    while left:
        folder = left.pop()
        with os.scandir(folder) as entries:
            inside = sorted(entries, key=lambda one: one.name)
        for entry in inside:
            try:
                is_folder = entry.is_dir()
                status = None if is_folder else entry.stat()
            except FileNotFoundError:  # a link to nothing
                is_folder, status = False, entry.stat(follow_symlinks=False)
            if status is not None:
                if not _add_stamp(found, entry.path, status):
                    return False
                continue
            real = os.path.realpath(entry.path)
            if real == without:
                continue
            # A second way to a folder counts too: the first may be hidden or excluded, so that it is read by this one.
            found.update(b"%s/\0%s\0" % (os.fsencode(entry.path), os.fsencode(real)))
            if real not in seen:
                seen.add(real)
                left.append(entry.path)
    return True


def _add_stamp(found: hashlib.blake2b, path: str, status: os.stat_result) -> bool:
    # The time of the last change tells of new rights, and of a file whose time of writing was set back.
    times = status.st_mtime_ns, status.st_ctime_ns
    found.update(b"%s\0%d %d %d\0" % (os.fsencode(path), status.st_size, *times))
    return is_settled(status.st_mtime_ns)
