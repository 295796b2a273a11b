"""One array in several numbered files, such as ``features-00000-of-00004.npy`` to ``features-00003-of-00004.npy``.

Their rows follow one another in the order of the numbers. Each file is mapped into memory by itself, so that a process
reads the rows that it needs, and a file can be written by a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rungwise.core import UserError, is_regular
from rungwise.data.files._feature_rows import FeatureRows, map_rows

_NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})(?P<ending>\.npy)")


def whole_name(name: str) -> str:
    """Name of a part's array if it were in one file."""
    found = _NUMBERED.fullmatch(name)
    return found["stem"] + found["ending"] if found else name


def first_parts(paths: Iterable[Path]) -> list[Path]:
    """The first file of each array, sorted; a file that is not numbered is its own array."""
    return sorted({path.with_name(_numbered(path, 0)) for path in paths})


def parts_of(path: Path) -> list[Path]:
    """The files of an array in their order, from any of them; a file that is not numbered is alone."""
    found = _NUMBERED.fullmatch(path.name)
    if not found:
        return [path]
    parts = [path.with_name(_numbered(path, number)) for number in range(int(found["count"]))]
    if path not in parts:
        raise UserError(f"{path}: its number is not below {int(found['count'])}; numbers count from 0")
    for part in parts:
        if not is_regular(part):
            raise UserError(f"{part}: is missing beside {path.name}; add it, since all parts together are one array")
    return parts


def map_parts(path: Path) -> FeatureRows:
    """The rows of an array in one file or in several, which stay in their files; ``path`` is any of them.

    >>> import tempfile
    >>> import numpy as np
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number in (0, 1):
    ...     np.save(folder / f"features-0000{number}-of-00002.npy", np.full((2, 3), number, np.float16))
    >>> map_parts(folder / "features-00000-of-00002.npy")[1:3].tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    return FeatureRows(*map(map_rows, parts_of(path)))


def _numbered(path: Path, number: int) -> str:
    found = _NUMBERED.fullmatch(path.name)
    return f"{found['stem']}-{number:05}-of-{found['count']}{found['ending']}" if found else path.name
