"""Which pictures files of captions name, and which of the files that were only found in a folder are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TypeVar

from rungwise.core import UserError
from rungwise.data._collection import ImageCaptions
from rungwise.data.layouts._folder import PictureFolder, folder_name, readable_name

T = TypeVar("T")

_SETTING = "RUNGWISE_"


def is_path_of(name: str, path: Path, *folders: Path) -> bool:
    """Whether a name is the path of a picture, letter by letter: from one of the folders on, or in full."""
    # Most names are, as they are written; without this the paths of a large folder take longer than all else.
    if any(str(path) == f"{folder}/{name}" for folder in folders):
        return True
    # Links are not followed: people arrange folders by them.
    return any(os.path.abspath(folder / name) == os.path.abspath(path) for folder in folders)  # noqa: PTH100


def pictures_named(
    found: Mapping[str, Sequence[Path]], folder: Path, root: Path
) -> tuple[Path, set[tuple[object, bool]]]:
    """What a file of captions names, to compare it with others.

    Args:
        found: Each name in the file, with the pictures that it may mean.
        folder: The folder of the file's own pictures.
        root: The whole folder.

    Returns:
        The folder from which its names are paths: its own one, or the root if a name is a path from there on. And the
        pictures, each with whether its name is its path.

    >>> both = {"val/1.jpg": [Path("x/val/1.jpg")], "1.jpg": [Path("x/val/1.jpg")]}
    >>> start, named = pictures_named(both, Path("x/val"), Path("x"))
    >>> start.name, sorted(is_path for _, is_path in named)
    ('x', [False, True])
    """
    single = [(name, paths[0]) for name, paths in found.items() if len(paths) == 1]
    whole = any(path.is_relative_to(folder) and is_path_of(name, path, root) for name, path in single)
    start = root if whole else folder
    return start, {(path, is_path_of(name, path, start, root)) for name, path in single}


def claims(names: Mapping[T, Collection[tuple[object, bool]]]) -> dict[T, tuple[set[object], T | None]]:
    """What each file of captions may say something of: a path counts before all names that only resemble the picture.

    Args:
        names: Pictures that each file names, each with whether its name there is the picture's path.

    Returns:
        The pictures of each file; and where paths in other files leave it none, one of those files.
    """
    of_path = named_by_path(names)
    found: dict[T, tuple[set[object], T | None]] = {}
    for file, named in names.items():
        left = {picture for picture, is_path in named if is_path or picture not in of_path}
        found[file] = left, of_path[next(iter(named))[0]] if named and not left else None
    return found


def named_by_path(names: Mapping[T, Collection[tuple[object, bool]]]) -> dict[object, T]:
    """The pictures whose paths stand in files of captions, each with one such file; the names are as in :func:`claims`.

    A name in another file that only resembles such a picture means something else, whether or not the first is read.
    """
    return {picture: file for file, named in names.items() for picture, is_path in named if is_path}


def first_sound(
    paths: Sequence[Path], files: PictureFolder, reader: Callable[[Path], ImageCaptions]
) -> ImageCaptions | None:
    """The collection of the first file that can be read, of files that were only found in a folder.

    The file nearest to the top comes first, and of those the one of the shortest name. The others become issues of the
    folder, and a fault in one of them is no error.

    Args:
        paths: The files.
        files: The folder.
        reader: Reads a file; a UserError if it cannot be read or names no picture of the folder.

    Returns:
        None if none of them can be read.
    """
    data: ImageCaptions | None = None
    taken = ""
    for path in sorted(paths, key=lambda path: (len(path.parts), len(path.name), str(path))):
        if data is not None:
            leave_out(files, path, f"{taken} is read", instead=True)
            continue
        try:
            data, taken = reader(path), readable_name(path.relative_to(files.root))
        except UserError as error:
            leave_out(files, path, error)
    return data


def leave_out(
    files: PictureFolder, path: Path, why: str | UserError, kind: str = "captions left out", *, instead: bool = False
) -> None:
    """Note for a file of captions that was only found in a folder why it is not read, and how to have it read.

    Args:
        files: The folder.
        path: The file.
        why: Why it is not read. Of an error the file at its beginning is left out, and the remedy at its end unless
            that names a setting.
        kind: Kind of the issue.
        instead: It is sound, and another one was read.
    """
    reason = str(why)
    if isinstance(why, UserError):
        fault, _, last = reason.rpartition("; ")
        reason = fault if fault and _SETTING not in last else reason
    for start in (f"{path}", f"{folder_name(files.root)}: "):
        reason = reason.removeprefix(start).lstrip(":, ")
    remedy = "to read it in place of that" if instead else "if it holds your captions, correct it and give"
    files.leave_out(path.relative_to(files.root), f"{reason}; {remedy}: --captions {quote(str(path))}", kind)
