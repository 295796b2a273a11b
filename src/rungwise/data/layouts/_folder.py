"""Folders of pictures: their files, the file that a caption's name means, and the bare folder as a collection."""

from __future__ import annotations

import mimetypes
import os
import stat
from collections import defaultdict, deque
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from rungwise.core import UserError, is_regular, opened_file, unreadable
from rungwise.core.text import normalised
from rungwise.data._collection import NO_SPLIT, ImageCaptions, Issue

PICTURE_SUFFIXES = frozenset(
    {
        ".avif",
        ".bmp",
        ".gif",
        ".jfif",
        ".jpe",
        ".jpeg",
        ".jpg",
        ".pbm",
        ".pgm",
        ".png",
        ".pnm",
        ".ppm",
        ".tif",
        ".tiff",
        ".webp",
    }
)
"""Lower-case file extensions that count as pictures when a folder is searched."""


class PictureFolder:
    """All files below a folder, listed once; hidden files and folders are left out.

    Links are followed, as picture folders are often linked into place. Only regular files count: pipes, devices,
    sockets and links that lead nowhere become issues, as do folders that cannot be read.

    Attributes:
        root: The folder.
        pictures: Regular files with the extension of a picture, relative to the root, sorted.
        others: All other regular files, relative to the root, sorted.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("a.JPG", "b/a.png", "notes.txt"):
    ...     (root / name).parent.mkdir(exist_ok=True)
    ...     (root / name).touch()
    >>> (root / "c.png").symlink_to("nowhere.png")
    >>> found = PictureFolder(root)
    >>> [path.as_posix() for path in found.pictures], [path.as_posix() for path in found.others]
    (['a.JPG', 'b/a.png'], ['notes.txt'])
    >>> [path.relative_to(root).as_posix() for path in found.find("a.jpg")]
    ['a.JPG']
    >>> found.issues
    [Issue(kind='not a regular file', where='c.png', detail='a link that leads nowhere')]
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        files, self._left_out = _files_below(root)
        is_picture = [path.suffix.lower() in PICTURE_SUFFIXES for path in files]
        self.pictures = [path for path, yes in zip(files, is_picture, strict=True) if yes]
        self.others = [path for path, yes in zip(files, is_picture, strict=True) if not yes]
        self._unreadable: dict[Path, Issue] = {}
        self._outside: dict[Path, str] = {}

    # Nobody asks for these in a folder without captions, where they would take more memory than all else.
    @cached_property
    def _exact(self) -> dict[tuple[str, ...], Path]:
        return {_parts(path.as_posix()): path for path in self.pictures}

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = defaultdict(list)
        for path in self.pictures:
            for name in {_last(path.name).casefold(), _last(path.stem).casefold()}:
                found[name].append(path)
        return found

    @property
    def issues(self) -> list[Issue]:
        """Files and folders that were left out so far, and one issue for pictures taken from outside the folder."""
        found = [*self._left_out, *self._unreadable.values()]
        if self._outside:
            path, reference = next(iter(self._outside.items()))
            more = f", with {len(self._outside) - 1} more" if len(self._outside) > 1 else ""
            found.append(Issue("pictures outside the folder", str(path), f"named {reference!r}{more}"))
        return found

    def head(self, relative: Path, size: int) -> bytes:
        """The first ``size`` bytes of a file of ``others``; empty where it cannot be read, which becomes an issue."""
        return self._some(relative, size, from_end=False)

    def tail(self, relative: Path, size: int) -> bytes:
        """The last ``size`` bytes of a file of ``others``; empty where it cannot be read, which becomes an issue."""
        return self._some(relative, size, from_end=True)

    def _some(self, relative: Path, size: int, from_end: bool) -> bytes:
        try:
            with opened_file(self.root / relative, None) as file:
                if from_end:
                    file.seek(max(0, file.seek(0, os.SEEK_END) - size))
                return file.read(size)
        except (UserError, OSError) as error:
            self.leave_out(relative, str(error))
            return b""

    def leave_out(self, relative: Path, reason: str) -> None:
        """Note that a file of ``others`` cannot be read, so that it is listed among the issues once."""
        self._unreadable[relative] = Issue("unreadable file", readable_name(relative), reason)

    def find(self, reference: str) -> list[Path]:
        r"""The picture that a caption file calls ``reference``; several if that is ambiguous, none if it is missing.

        Composed and decomposed Unicode are the same name, ``\`` is ``/``, and the letters' case matters only where
        it decides between two files. A reference may leave out leading folders or the extension, may lead to a
        picture in a folder outside the root (one issue counts these), and may carry the leading folders of the machine
        that it was written on.
        """
        wanted = _parts(reference)
        if not wanted:
            return []
        if wanted in self._exact:
            return [self.root / self._exact[wanted]]
        outside = self.root / reference
        leads_away = ".." in wanted or Path(reference).is_absolute()
        # Whoever wrote the captions may name any file here: one that is no picture is not even looked at.
        if leads_away and outside.suffix.lower() in PICTURE_SUFFIXES and is_regular(outside):
            # Not Path.resolve, which would also follow links and so lead away from files of the folder.
            straight, root = (Path(os.path.normpath(path.absolute())) for path in (outside, self.root))
            inside = _parts(straight.relative_to(root).as_posix()) if straight.is_relative_to(root) else ()
            if inside in self._exact:
                return [self.root / self._exact[inside]]
            self._outside.setdefault(outside, reference)
            return [outside]
        named = self._by_name.get(wanted[-1].casefold(), [])
        return [self.root / path for path in _best(named, wanted)]


def picture_id(relative: Path) -> str:
    """The id of a picture that no caption file names: its path below the root."""
    return readable_name(relative)


def readable_name(path: Path) -> str:
    r"""A path as text that every output takes, with ``/`` between its parts.

    File names on POSIX are bytes; those that are no UTF-8 stand as ``\xff``.

    >>> readable_name(Path("caf\udce9.jpg"))
    'caf\\xe9.jpg'
    """
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def read_folder(files: PictureFolder) -> ImageCaptions:
    """A folder of pictures without captions: ids are the paths below it, every split is ``none``.

    Image files of a format that cannot be read become issues.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "a.jpg").touch(); (root / "b.svg").touch()
    >>> data = read_folder(PictureFolder(root))
    >>> data.image_ids, data.splits, [issue.kind for issue in data.issues]
    (('a.jpg',), ('none',), ['unsupported picture format'])
    """
    if not files.pictures:
        some = ", ".join(sorted(PICTURE_SUFFIXES))
        raise UserError(f"{files.root}: no pictures in this folder or below ({some}); give another folder")
    return ImageCaptions(
        image_ids=tuple(map(picture_id, files.pictures)),
        captions=(),
        image_of_caption=np.empty(0, np.int64),
        paths=tuple(files.root / path for path in files.pictures),
        splits=(NO_SPLIT,) * len(files.pictures),
        name=folder_name(files.root),
        layout="folder",
        issues=tuple(unsupported_pictures(files)),
    )


def unsupported_pictures(files: PictureFolder) -> list[Issue]:
    """One issue for each file that is an image by its extension but of a format that is not read."""
    issues = []
    for path in files.others:
        kind, _ = mimetypes.guess_type(path.name)
        if kind and kind.startswith("image/"):
            detail = f"{kind} is not read; convert it to JPEG or PNG"
            issues.append(Issue("unsupported picture format", picture_id(path), detail))
    return issues


def folder_name(folder: Path) -> str:
    """Name of a folder, for the collection that is read from it."""
    return readable_name(Path(os.path.realpath(folder).rpartition(os.sep)[2]))


def _files_below(root: Path) -> tuple[list[Path], list[Issue]]:
    """Regular files, relative and sorted, and issues of everything else."""
    found: list[Path] = []
    issues: list[Issue] = []
    visited: set[tuple[int, int]] = set()
    # Linked folders come last, so that a picture is called by the folder that it lies in where both lie below the root.
    folders, linked = deque([Path()]), deque[Path]()
    while folders or linked:
        relative = folders.popleft() if folders else linked.popleft()
        try:
            about = (root / relative).stat()
            if (about.st_dev, about.st_ino) in visited:  # a loop of links, or a second link to the same folder
                continue
            visited.add((about.st_dev, about.st_ino))
            with os.scandir(root / relative) as entries:
                inside = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError as error:
            if relative == Path():
                raise unreadable(root, error) from error
            reason = (error.strerror or str(error)).lower()
            issues.append(Issue("unreadable folder", readable_name(relative), f"{reason}; what is in it is left out"))
            continue
        for entry in inside:
            path = relative / entry.name
            try:
                if entry.is_dir():
                    (linked if entry.is_symlink() else folders).append(path)
                elif entry.is_file():
                    found.append(path)
                else:
                    issues.append(Issue("not a regular file", readable_name(path), _what(entry)))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                issues.append(Issue("unreadable file", readable_name(path), reason))
    issues.sort(key=lambda issue: issue.where)
    return sorted(found, key=lambda path: path.as_posix()), issues


def _what(entry: os.DirEntry[str]) -> str:
    try:
        mode = entry.stat().st_mode
    except FileNotFoundError:
        return "a link that leads nowhere"
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")


def _parts(reference: str) -> tuple[str, ...]:
    normal = normalised(reference.strip().replace("\\", "/"), "NFC")
    return PurePosixPath(normal).parts


def _last(name: str) -> str:
    """The last part of a file's name, which may hold backslashes or be blank."""
    return next(reversed(_parts(name)), "")


def _best(candidates: Sequence[Path], wanted: tuple[str, ...]) -> Sequence[Path]:
    """The best matches: equal letter case before folded case, candidates below the wanted folders before others."""
    paths = [(path, _parts(path.as_posix())) for path in candidates]
    # A reference without an extension is compared with candidates stripped of theirs.
    paths += [(path, (*parts[:-1], PurePosixPath(parts[-1]).stem)) for path, parts in paths]
    for folded in (False, True):
        target = _fold(wanted) if folded else wanted
        compared = [(path, _fold(parts) if folded else parts) for path, parts in paths]
        if below := [path for path, parts in compared if parts[-len(target) :] == target]:
            return below
        above = [(len(parts), path) for path, parts in compared if target[-len(parts) :] == parts]
        if above:
            longest = max(length for length, _ in above)
            return [path for length, path in above if length == longest]
    return []


def _fold(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in parts)
