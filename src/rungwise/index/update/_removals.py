"""When pictures that are gone stay in an index: a folder that is not mounted looks like one that was emptied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from rungwise.core.disk import mounts_below
from rungwise.data.files import is_of_programs

MOST_REMOVED = 0.1
"""Largest share of an index that one update removes without being asked to."""
FEW_REMOVED = 20
"""Number of pictures below which an update removes also a larger share."""


def mounted_folders(roots: Sequence[Path], folders: Iterable[Path]) -> tuple[Path, ...]:
    """The topmost of these folders, or of folders between them and their root, that lie on another file system.

    Args:
        roots: Folders of a collection.
        folders: Folders below them that hold pictures.

    Returns:
        Mount points, and links to folders of another file system, sorted.

    >>> mounted_folders([Path("/proc")], [Path("/proc/1")])
    ()
    """
    found: set[Path] = set()
    devices: dict[Path, int | None] = {}
    for root in roots:
        points = mounts_below(root)
        for folder in folders:
            if not folder.is_relative_to(root) or folder == root:
                continue
            between = [folder, *(one for one in folder.parents if one != root and one.is_relative_to(root))]
            for one in reversed(between):
                if one in points or _device(one, devices) != _device(root, devices):
                    found.add(one)
                    break
    return tuple(sorted(found))


def is_empty(folder: Path) -> bool:
    """Whether a folder is not there, cannot be read, or holds nothing but what systems and programs keep there."""
    try:
        return all(is_of_programs(one.name) or one.name.startswith(".") for one in folder.iterdir())
    except OSError:
        return True


def is_away(folder: Path) -> bool:
    """Whether a folder that was mounted is no longer there, holds nothing, or is part of the file system around it."""
    if is_empty(folder):
        return True
    try:
        if folder.stat().st_dev != folder.parent.stat().st_dev:
            return False
    except OSError:
        return True
    return folder not in mounts_below(folder.parent)


def _device(folder: Path, known: dict[Path, int | None]) -> int | None:
    if folder not in known:
        try:
            known[folder] = os.stat(folder).st_dev  # noqa: PTH116  # as Path.stat, which is slower
        except OSError:
            known[folder] = None
    return known[folder]


def why_withheld(lost: int, known: int, left: int, collection: str, away: Sequence[Path]) -> str:
    """Why pictures that are gone are not removed from an index; empty where they are.

    Args:
        lost: Number of pictures that are gone, without those that came under another id in the same update.
        known: Number of pictures of the index.
        left: Number of pictures that the collection holds now.
        collection: Name of the collection.
        away: Folders that were mounted when the pictures were taken in, held some of them, and are not mounted now.

    >>> why_withheld(3, 21, 18, "photos", [])
    ''
    >>> why_withheld(21, 21, 3, "photos", [])
    'they are all pictures of the index'
    >>> why_withheld(30, 200, 170, "photos", [])
    'they are more than a tenth of the 200 pictures of the index'
    """
    if lost and not left:
        return f"{collection} is not there or holds no pictures now"
    if away:
        more = f" and {len(away) - 1} more" if len(away) > 1 else ""
        return f"{away[0]}{more} is empty or gone, perhaps not mounted"
    if not lost:
        return ""
    if lost == known:
        return "they are all pictures of the index"
    if lost >= FEW_REMOVED and lost > MOST_REMOVED * known:
        return f"they are more than a tenth of the {known} pictures of the index"
    return ""
