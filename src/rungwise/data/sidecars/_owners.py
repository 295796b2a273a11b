"""Which picture a file beside pictures belongs to, by its name alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePath

from rungwise.core.text import normalised
from rungwise.data.layouts import PictureFolder, sort_of_other

_PICTURES = ("RAW", "HEIF", "other picture")


class Owners:
    """The pictures of some folders by their names, with and without endings.

    Pictures that are not read count too: what is said of a RAW file is not said of the JPEG beside it.

    Args:
        files: The folder of pictures.
        beside: Files beside pictures, whose folders alone are looked at.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("a.jpg", "a.txt", "b.jpg", "b.png", "b.txt", "b.png.txt"):
    ...     (root / name).touch()
    >>> owners = Owners(PictureFolder(root), [Path("a.txt")])
    >>> [[one.name for one in owners.of(Path(name))] for name in ("a.txt", "b.txt", "b.png.txt", "c.txt")]
    [['a.jpg'], ['b.jpg', 'b.png'], ['b.png'], []]
    """

    def __init__(self, files: PictureFolder, beside: Iterable[Path]) -> None:
        beside = list(beside)
        folders = {path.parent for path in beside}
        self._given = {(path.parent, path.stem, path.suffix.lower()) for path in beside}
        self._exact: dict[tuple[Path, str], list[Path]] = defaultdict(list)
        self._composed: dict[tuple[Path, str], list[Path]] = defaultdict(list)
        self._unread: set[Path] = set()
        if not folders:
            return
        others = (path for path in files.others if sort_of_other(path) in _PICTURES)
        self._unread.update(path for path in others if path.parent in folders)
        for path in (*files.pictures, *sorted(self._unread)):
            if path.parent in folders:
                for name in dict.fromkeys((path.name, path.stem)):
                    self._exact[path.parent, name].append(path)
                    self._composed[path.parent, normalised(name, "NFC")].append(path)

    def of(self, beside: Path, base: str | None = None) -> list[Path]:
        """The pictures that a file may belong to: one, none, or several where its name does not decide.

        Composed and decomposed Unicode are the same name where no other file beside it has the picture's very name; the
        case of letters makes two.

        Args:
            beside: The file.
            base: Name of the picture, with or without its ending; by default that of the file without its own ending.
        """
        name = PurePath(beside.name).stem if base is None else base
        if found := self._exact.get((beside.parent, name)):
            return found
        alike = self._composed.get((beside.parent, normalised(name, "NFC")), [])
        return [one for one in alike if not self._has_its_own(one, beside.suffix.lower())]

    def _has_its_own(self, picture: Path, suffix: str) -> bool:
        return any((picture.parent, name, suffix) in self._given for name in (picture.name, picture.stem))

    def is_read(self, picture: Path) -> bool:
        """Whether a picture is one of those that are read."""
        return picture not in self._unread
