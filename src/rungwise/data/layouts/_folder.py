"""Folders of pictures: their files, the file that a caption's name means, and the bare folder as a collection."""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from rungwise.core import UserError, is_regular, opened_file, unreadable
from rungwise.core.disk import digest_of
from rungwise.core.text import normalised
from rungwise.data._collection import NO_SPLIT, NOT_READ, ImageCaptions, Issue
from rungwise.data.files import (
    HEIF_SUFFIXES,
    IGNORE_FILE,
    RAW_SUFFIXES,
    SIGNATURE_BYTES,
    VIDEO_SUFFIXES,
    Exclusions,
    has_known_ending,
    is_of_programs,
    is_other_picture,
    picture_suffix,
    read_exclusions,
)

PICTURE_SUFFIXES = frozenset(
    {
        ".avif",
        ".bmp",
        ".gif",
        ".heic",
        ".heif",
        ".hif",
        ".j2c",
        ".j2k",
        ".jfif",
        ".jp2",
        ".jpe",
        ".jpeg",
        ".jpf",
        ".jpg",
        ".jpx",
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


_MOST_LOOKED_INTO = 100_000
"""Files without a known ending whose first bytes are looked at; each has to be opened."""
_INDEX_FILE, _INDEX_FORMAT, _INDEX_BYTES = "index.json", b'"rungwise-index"', 1 << 16
_MOST_COPIES = 16
"""Pictures that one name may mean whose contents are compared."""
_STORES_OF_INDEX = frozenset({"pictures", "pictures.lance"})
_MOST_OF_INDEX = 100
_SHOWN_ENDINGS = 4
_MOST_ENDINGS = 1000

_NOT_PICTURES = {
    "RAW": ("RAW picture", "RAW pictures", "save them as JPEG, or keep the JPEG that the camera writes beside them"),
    "HEIF": ("HEIC or HEIF picture", "HEIC or HEIF pictures", "to read them: pip install 'rungwise[heif]'"),
    "other picture": ("picture of another format", "pictures of other formats", "save them as JPEG or PNG"),
    "video": ("video", "videos", "save single frames of them as JPEG"),
    "other": ("other file", "other files", "neither pictures nor captions that are recognised"),
}
_CAPTIONS_SUFFIXES = frozenset(
    {".csv", ".json", ".jsonl", ".list", ".mat", ".md", ".ndjson", ".npy", ".parquet", ".tar", ".token", ".tsv", ".txt"}
)
"""Endings of files that a reader of captions may have read, or lists by itself."""


class NotRead:
    """Files of one sort that are not read: their number, their endings and an example, for one issue.

    Args:
        one: What one of them is called.
        several: What several of them are called.
        remedy: How to have them read, or why they are not.

    >>> films = NotRead("video", "videos", "save single frames of them as JPEG")
    >>> for name in ("b.mp4", "a.mov", "c.mp4"):
    ...     films.add(Path(name))
    >>> films.issues()[0].where
    '3 videos (.mp4 2, .mov 1), such as a.mov'
    """

    def __init__(self, one: str, several: str, remedy: str) -> None:
        self._names, self._remedy = (one, several), remedy
        self._count = 0
        self._example = ""
        self._endings: Counter[str] = Counter()

    def add(self, path: Path, *, ending: bool = True) -> None:
        """Count a file; ``ending`` says whether its ending tells something."""
        self._count += 1
        name = readable_name(path)
        self._example = min(self._example or name, name)
        suffix = path.suffix.lower() if ending else ""
        if suffix in self._endings or (suffix and len(self._endings) < _MOST_ENDINGS):
            self._endings[suffix] += 1

    def issues(self) -> list[Issue]:
        """One issue of all of them, or none where there are none."""
        if not self._count:
            return []
        shown = ", ".join(
            f"{readable_name(Path(ending))} {count}" if len(self._endings) > 1 else readable_name(Path(ending))
            for ending, count in sorted(self._endings.items(), key=lambda one: (-one[1], one[0]))[:_SHOWN_ENDINGS]
        )
        more = ", ..." if len(self._endings) > _SHOWN_ENDINGS else ""
        endings = f" ({shown}{more})" if shown else ""
        name = self._names[self._count > 1]
        return [Issue(NOT_READ, f"{self._count} {name}{endings}, such as {self._example}", self._remedy)]


class PictureFolder:
    """All files below a folder, listed once; what is hidden, of programs or excluded is counted and left out.

    A file without a known ending counts as a picture where its first bytes are those of one. Links are followed, as
    picture folders are often linked into place. Only regular files count: pipes, devices, sockets and links that lead
    nowhere become issues, as do folders that cannot be read.

    Args:
        root: The folder.
        exclude: Patterns as in ``.gitignore`` of what is left out. The lines of files called ``.rungwiseignore`` are
            such patterns too, for their folder and all below.

    Attributes:
        root: The folder.
        pictures: Regular files that are pictures by ending or content, relative to the root, sorted.
        others: All other regular files, relative to the root, sorted.

    Raises:
        UserError: If the folder or a ``.rungwiseignore`` cannot be read, or a pattern is none.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("a.JPG", "b/a.png", "notes.txt", "drafts/d.png"):
    ...     (root / name).parent.mkdir(exist_ok=True)
    ...     (root / name).touch()
    >>> (root / "c.png").symlink_to("nowhere.png")
    >>> found = PictureFolder(root, exclude=["drafts/"])
    >>> [path.as_posix() for path in found.pictures], [path.as_posix() for path in found.others]
    (['a.JPG', 'b/a.png'], ['notes.txt'])
    >>> [path.relative_to(root).as_posix() for path in found.find("a.jpg")]
    ['a.JPG']
    >>> found.issues
    [Issue(kind='not a regular file', where='c.png', detail='a link that leads nowhere')]
    >>> [issue.where for issue in found.not_read()]
    ['1 excluded file or folder, such as drafts', '1 other file (.txt), such as notes.txt']
    """

    def __init__(self, root: Path, exclude: Sequence[str] = ()) -> None:
        self.root = self._top = root
        listing = _Listing(root, [exclude] if isinstance(exclude, str) else exclude)
        self._left_out, self._not_listed = listing.issues, listing.not_read
        self._unreadable: dict[Path, Issue] = {}
        self._outside: dict[Path, str] = {}
        self._sought_outside: set[Path] = set()
        self._views: dict[Path, PictureFolder] = {}
        self._noted: list[Issue] = []
        self._described: set[Path] = set()
        self.pictures: list[Path] = []
        self.others: list[Path] = []
        self._looked_into = 0
        for path in listing.files:
            (self.pictures if self._is_picture(path) else self.others).append(path)

    def _is_picture(self, path: Path) -> bool:
        suffix = path.suffix.lower()
        if suffix in PICTURE_SUFFIXES:
            return True
        if has_known_ending(path.name) or self._looked_into >= _MOST_LOOKED_INTO:
            return False
        self._looked_into += 1
        return picture_suffix(self.head(path, SIGNATURE_BYTES)) in PICTURE_SUFFIXES

    def note(self, *issues: Issue) -> None:
        """Add to :attr:`issues` what a reader of files beside pictures found odd."""
        self._noted += issues

    def take(self, path: Path) -> None:
        """Note that a file of ``others`` was read, or counted, for what it says of a picture."""
        self._described.add(path)

    def is_taken(self, path: Path) -> bool:
        """Whether :meth:`take` was told of a file."""
        return path in self._described

    def not_read(self, *, captions_read: bool = False, listed: Collection[str] = ()) -> list[Issue]:
        """One issue for each sort of files that are not read, with their number and an example.

        Args:
            captions_read: Captions were read by a reader of its own, which lists what it leaves out of its own sort.
            listed: Names of files that other issues list, relative to the root or whole.
        """
        sorts = {sort: NotRead(*names) for sort, names in _NOT_PICTURES.items()}
        for path in self.others:
            suffix = path.suffix.lower()
            if path in self._described or path in self._unreadable or (captions_read and suffix in _CAPTIONS_SUFFIXES):
                continue
            if listed and (readable_name(path) in listed or str(self.root / path) in listed):
                continue
            sorts[sort_of_other(path)].add(path)
        return [issue for one in (*self._not_listed, *sorts.values()) for issue in one.issues()]

    # Nobody asks for these in a folder without captions, where they would take more memory than all else.
    @cached_property
    def _written(self) -> set[Path]:
        return set(self.pictures)

    @cached_property
    def _other_files(self) -> set[Path]:
        return set(self.others)

    @cached_property
    def _by_parts(self) -> dict[tuple[str, ...], list[Path]]:
        found: dict[tuple[str, ...], list[Path]] = defaultdict(list)
        for path in self.pictures:
            found[_parts(path.as_posix())].append(path)
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = defaultdict(list)
        for path in self.pictures:
            for name in {_last(path.name).lower(), _last(path.stem).lower()}:
                found[name].append(path)
        return found

    @property
    def issues(self) -> list[Issue]:
        """Files and folders that were left out so far, and one issue for pictures taken from outside the folder."""
        found = [*self._left_out, *self._unreadable.values(), *self._noted]
        if self._outside:
            path, reference = next(iter(self._outside.items()))
            more = f", with {len(self._outside) - 1} more" if len(self._outside) > 1 else ""
            found.append(Issue("pictures outside the folder", str(path), f"named {reference!r}{more}"))
        return found

    @property
    def looked_outside(self) -> bool:
        """Whether a name led out of the folder, so that what lies elsewhere decides which picture it is."""
        return bool(self._sought_outside)

    def is_there(self, path: Path) -> bool:
        """Whether a regular file is there; that one outside of the folder was asked for is noted."""
        whole = Path(os.path.normpath(self._top.absolute()))
        if not self._sought_outside and not Path(os.path.normpath(path.absolute())).is_relative_to(whole):
            self._sought_outside.add(path)
        return is_regular(path)

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

    def leave_out(self, relative: Path, reason: str, kind: str = "unreadable file") -> None:
        """Note that a file of ``others`` is not read, so that it is listed among the issues once."""
        self._unreadable[relative] = Issue(kind, readable_name(relative), reason)

    def within(self, folder: Path) -> PictureFolder:
        """The pictures of one folder below, relative to it: a view in which names are looked up there alone."""
        if (view := self._views.get(folder)) is None:
            view = self._views[folder] = copy(self)
            view.root = self.root / folder
            view.pictures = [path.relative_to(folder) for path in self.pictures if path.is_relative_to(folder)]
            view.others = [path.relative_to(folder) for path in self.others if path.is_relative_to(folder)]
            view._views = {}
            for name in ("_written", "_other_files", "_by_parts", "_by_name"):
                view.__dict__.pop(name, None)
        return view

    def exact(self, reference: str) -> list[Path]:
        """The pictures whose path below the folder is this, letter by letter, else but for the form of its Unicode."""
        if (relative := Path(reference)) in self._written:
            return [self.root / relative]
        return [self.root / path for path in self._by_parts.get(_parts(reference), [])]

    def find(self, reference: str) -> list[Path]:
        r"""The picture that a caption file calls ``reference``; several if that is ambiguous, none if it is missing.

        A picture whose path is the reference itself comes first, from the root or in full; it may lie outside the root,
        which one issue counts. Else composed and decomposed Unicode are the same name, blanks around it do not count,
        ``\`` is ``/``, and the letters' case matters only where it decides between two files. Such a reference may
        leave out leading folders or the ending. It may carry leading folders of the machine that it was written on;
        where no folder of it is one of ours, its last name alone leads to a picture only if no other file has that
        name, or if it is a full path.
        """
        if found := self._led_to(reference):
            return [found]
        wanted = _parts(reference)
        if not wanted or Path(reference) in self._other_files:  # a file that is no picture is not one of like name
            return []
        named = self._by_name.get(wanted[-1].lower(), [])
        return self.exact(reference) or [self.root / path for path in _best(named, wanted)]

    def _led_to(self, reference: str) -> Path | None:
        """The picture of the path ``reference``, from the root or in full, letter by letter; None if there is none."""
        if (relative := Path(reference)) in self._written:
            return self.root / relative
        outside = self.root / reference
        leads_away = ".." in _parts(reference) or relative.is_absolute()
        # Whoever wrote the captions may name any file here: one that is no picture is not even looked at.
        if not (leads_away and outside.suffix.lower() in PICTURE_SUFFIXES and self.is_there(outside)):
            return None
        # Not Path.resolve, which would also follow links and so lead away from files of the folder.
        straight, root = (Path(os.path.normpath(path.absolute())) for path in (outside, self.root))
        if straight.is_relative_to(root) and straight.relative_to(root) in self._written:
            return self.root / straight.relative_to(root)
        self._outside.setdefault(outside, reference)
        return outside


def one_of_copies(paths: Sequence[Path]) -> Sequence[Path]:
    """Of pictures whose files are the same, byte for byte, the one of the shortest path; else all of them.

    So a copy of a folder beside it makes no name ambiguous.
    """
    if not 2 <= len(paths) <= _MOST_COPIES:
        return paths
    try:
        sizes = {path.stat().st_size for path in paths}
        if len(sizes) > 1 or sizes == {0} or len({digest_of(path) for path in paths}) > 1:
            return paths
    except (OSError, UserError):
        return paths
    return [min(paths, key=lambda path: (len(str(path)), str(path)))]


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

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "a.jpg").touch()
    >>> data = read_folder(PictureFolder(root))
    >>> data.image_ids, data.splits
    (('a.jpg',), ('none',))
    """
    if not files.pictures:
        some = ", ".join(sorted(PICTURE_SUFFIXES))
        unread = "".join(f"; {issue.where}: {issue.detail}" for issue in files.not_read())
        raise UserError(f"{files.root}: no pictures in this folder or below ({some}); give another folder{unread}")
    return ImageCaptions(
        image_ids=tuple(map(picture_id, files.pictures)),
        captions=(),
        image_of_caption=np.empty(0, np.int64),
        paths=tuple(files.root / path for path in files.pictures),
        splits=(NO_SPLIT,) * len(files.pictures),
        name=folder_name(files.root),
        layout="folder",
    )


def sort_of_other(path: Path) -> str:
    """Sort of a file that is not read as a picture: RAW, HEIF, other picture, video or other.

    >>> [sort_of_other(Path(name)) for name in ("a.CR2", "a.heic", "a.svg", "a.mov", "a.pdf")]
    ['RAW', 'HEIF', 'other picture', 'video', 'other']
    """
    suffix = path.suffix.lower()
    known = (("RAW", RAW_SUFFIXES), ("HEIF", HEIF_SUFFIXES), ("video", VIDEO_SUFFIXES))
    found = next((sort for sort, suffixes in known if suffix in suffixes), "")
    return found or ("other picture" if is_other_picture(path.name) else "other")


def folder_name(folder: Path) -> str:
    """Name of a folder, for the collection that is read from it."""
    return readable_name(Path(os.path.realpath(folder).rpartition(os.sep)[2]))


class _Listing:
    """All regular files below a folder, relative and sorted, issues of what is no file, and counts of what is left out.

    Raises:
        UserError: If the folder or a ``.rungwiseignore`` cannot be read, or a pattern is none.
    """

    def __init__(self, root: Path, exclude: Iterable[str]) -> None:
        self._root = root
        self.files: list[Path] = []
        self.issues: list[Issue] = []
        self._hidden = NotRead(
            "hidden file or folder",
            "hidden files and folders",
            "what begins with a dot is hidden; rename it to have it read",
        )
        self._of_programs = NotRead(
            "file or folder of a system or program",
            "files and folders of systems and programs",
            "left out by their names, which docs/guide/data/data.md lists",
        )
        self._excluded = NotRead(
            "excluded file or folder",
            "excluded files and folders",
            f"a pattern given or in {IGNORE_FILE} excludes them",
        )
        self._indexes = NotRead(
            "index that rungwise wrote",
            "indexes that rungwise wrote",
            "no file of an index is a picture of the collection",
        )
        self.not_read = (self._excluded, self._hidden, self._of_programs, self._indexes)
        self._given = Exclusions(exclude, "exclude")
        self._walk()
        self.issues.sort(key=lambda issue: issue.where)
        self.files.sort(key=lambda path: path.as_posix())

    def _walk(self) -> None:
        visited: set[tuple[int, int]] = set()
        rules: tuple[tuple[str, Exclusions], ...] = ()
        # Linked folders come last: a picture is called by the folder that it lies in where both lie below the root.
        folders, linked = deque([(Path(), rules)]), deque[tuple[Path, tuple[tuple[str, Exclusions], ...]]]()
        while folders or linked:
            relative, rules = folders.popleft() if folders else linked.popleft()
            try:
                about = (self._root / relative).stat()
                if (about.st_dev, about.st_ino) in visited:  # a loop of links, or a second link to the same folder
                    continue
                visited.add((about.st_dev, about.st_ino))
                with os.scandir(self._root / relative) as entries:
                    inside = list(entries)
            except OSError as error:
                if relative == Path():
                    raise unreadable(self._root, error) from error
                detail = f"{_reason(error)}; what is in it is left out"
                self.issues.append(Issue("unreadable folder", readable_name(relative), detail))
                continue
            names = {entry.name for entry in inside} if len(inside) <= _MOST_OF_INDEX else set()
            if relative != Path() and _INDEX_FILE in names and names & _STORES_OF_INDEX and self._is_index(relative):
                self._indexes.add(relative, ending=False)
                continue
            if any(entry.name == IGNORE_FILE for entry in inside):
                start = "" if relative == Path() else f"{relative.as_posix()}/"
                rules = (*rules, (start, read_exclusions(self._root / relative / IGNORE_FILE)))
            for entry in inside:
                path = relative / entry.name
                try:
                    is_folder = entry.is_dir()
                    if self._is_left_out(entry.name, path, is_folder, rules):
                        continue
                    if is_folder:
                        (linked if entry.is_symlink() else folders).append((path, rules))
                    elif entry.is_file():
                        self.files.append(path)
                    else:
                        self.issues.append(Issue("not a regular file", readable_name(path), _what(entry)))
                except OSError as error:
                    self.issues.append(Issue("unreadable file", readable_name(path), _reason(error)))

    def _is_index(self, folder: Path) -> bool:
        try:
            with opened_file(self._root / folder / _INDEX_FILE, None) as file:
                return _INDEX_FORMAT in file.read(_INDEX_BYTES)
        except (UserError, OSError):
            return False

    def _is_left_out(self, name: str, path: Path, is_folder: bool, rules: tuple[tuple[str, Exclusions], ...]) -> bool:
        """Whether a file or folder is left out, which is counted."""
        if is_of_programs(name):
            if name != IGNORE_FILE:
                self._of_programs.add(path, ending=False)
            return True
        said = None
        if self._given or rules:
            whole = path.as_posix() + "/" * is_folder
            said = self._given.verdict(whole)
            for start, rule in reversed(rules):  # those of a folder go before those of the folders around it
                if said is None:
                    said = rule.verdict(whole.removeprefix(start))
        if said:
            self._excluded.add(path, ending=False)
        elif name.startswith("."):
            self._hidden.add(path, ending=False)
        return bool(said) or name.startswith(".")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


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
    by_name_alone = len(paths) == 1 or wanted[0].startswith("/") or wanted[0].endswith(":")
    # A reference without an extension is compared with candidates stripped of theirs.
    if PurePosixPath(wanted[-1]).suffix.lower() not in PICTURE_SUFFIXES:
        paths += [(path, (*parts[:-1], PurePosixPath(parts[-1]).stem)) for path, parts in paths]
    for folded in (False, True):
        target = _fold(wanted) if folded else wanted
        compared = [(path, _fold(parts) if folded else parts) for path, parts in paths]
        if below := [path for path, parts in compared if parts[-len(target) :] == target]:
            return below
        above = [(len(parts), path) for path, parts in compared if target[-len(parts) :] == parts]
        if above:
            longest = max(length for length, _ in above)
            return [path for length, path in above if length == longest and (length > 1 or by_name_alone)]
    return []


def _fold(parts: tuple[str, ...]) -> tuple[str, ...]:
    # Not casefold, for which "straße" and "strasse" are one name: no file system takes them for one.
    return tuple(part.lower() for part in parts)
