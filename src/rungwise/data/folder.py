"""Folders of pictures: what lies in them, which file a caption's name means, and the bare folder as a collection."""

from __future__ import annotations

import mimetypes
import os
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from rungwise.core.errors import UserError
from rungwise.data.collection import NO_SPLIT, ImageCaptions, Issue

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
    """Everything below a folder, looked up once; hidden files and folders are left out.

    Attributes:
        root: The folder.
        pictures: Files with the extension of a picture that can be read, relative to the root, sorted.
        others: All other files, relative to the root, sorted.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("a.JPG", "b/a.png", "notes.txt"):
    ...     (root / name).parent.mkdir(exist_ok=True)
    ...     (root / name).touch()
    >>> found = PictureFolder(root)
    >>> [path.as_posix() for path in found.pictures], [path.as_posix() for path in found.others]
    (['a.JPG', 'b/a.png'], ['notes.txt'])
    >>> [path.relative_to(root).as_posix() for path in found.find("a.jpg")]
    ['a.JPG']
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        files = _files_below(root)
        is_picture = [path.suffix.lower() in PICTURE_SUFFIXES for path in files]
        self.pictures = [path for path, yes in zip(files, is_picture, strict=True) if yes]
        self.others = [path for path, yes in zip(files, is_picture, strict=True) if not yes]
        self._exact = {_parts(path.as_posix()): path for path in self.pictures}
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for path in self.pictures:
            for name in {_parts(path.name)[-1].casefold(), _parts(path.stem)[-1].casefold()}:
                self._by_name[name].append(path)

    def find(self, reference: str) -> list[Path]:
        r"""The picture that a caption file calls ``reference``; several if that is ambiguous, none if it is missing.

        Composed and decomposed Unicode are the same name, ``\`` is ``/``, and the letters' case matters only where
        it decides between two files. A reference may leave out leading folders or the extension, may lead into a
        folder outside the root, and may carry the leading folders of the machine that it was written on.
        """
        wanted = _parts(reference)
        if not wanted:
            return []
        if wanted in self._exact:
            return [self.root / self._exact[wanted]]
        outside = self.root / reference
        if (".." in wanted or Path(reference).is_absolute()) and outside.is_file():
            # Not Path.resolve, which would also follow links and so lead away from files of the folder.
            straight, root = (Path(os.path.normpath(path.absolute())) for path in (outside, self.root))
            inside = _parts(straight.relative_to(root).as_posix()) if straight.is_relative_to(root) else ()
            return [self.root / self._exact[inside] if inside in self._exact else outside]
        named = self._by_name.get(wanted[-1].casefold(), [])
        return [self.root / path for path in _best(named, wanted)]


def picture_id(relative: Path) -> str:
    """The id of a picture that no caption file names: its path below the root.

    >>> picture_id(Path("holiday") / "beach.jpg")
    'holiday/beach.jpg'
    """
    # File names on POSIX are bytes; those that are no UTF-8 would break every output that shows the id.
    return os.fsencode(relative.as_posix()).decode("utf-8", "backslashreplace")


def read_folder(files: PictureFolder) -> ImageCaptions:
    """A folder of pictures without captions: ids are the paths below it, every split is ``none``.

    Files that are images by their extension, but of a kind that cannot be read, become issues.

    Raises:
        UserError: If there is no picture below the folder.

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
        name=files.root.resolve().name,
        layout="folder",
        issues=tuple(unsupported_pictures(files)),
    )


def unsupported_pictures(files: PictureFolder) -> list[Issue]:
    """One issue for each file that is an image by its extension but of a format that is not read.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "a.svg").touch()
    >>> unsupported_pictures(PictureFolder(root))[0].detail
    'image/svg+xml is not read; convert it to JPEG or PNG'
    """
    issues = []
    for path in files.others:
        kind, _ = mimetypes.guess_type(path.name)
        if kind and kind.startswith("image/"):
            detail = f"{kind} is not read; convert it to JPEG or PNG"
            issues.append(Issue("unsupported picture format", picture_id(path), detail))
    return issues


def _files_below(root: Path) -> list[Path]:
    found: list[Path] = []
    visited: set[str] = set()
    for folder, subfolders, names in os.walk(root, followlinks=True):
        # Links are followed, as picture folders are often linked into place; a loop of links ends here.
        real = os.path.realpath(folder)
        if real in visited:
            subfolders.clear()
            continue
        visited.add(real)
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        relative = Path(folder).relative_to(root)
        found += [relative / name for name in names if not name.startswith(".")]
    return sorted(found, key=lambda path: path.as_posix())


def _parts(reference: str) -> tuple[str, ...]:
    normal = unicodedata.normalize("NFC", reference.strip().replace("\\", "/"))
    return PurePosixPath(normal).parts


def _best(candidates: Sequence[Path], wanted: tuple[str, ...]) -> Sequence[Path]:
    """Prefer equal letter case to folded case, and a candidate below the wanted folders to one above them."""
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
