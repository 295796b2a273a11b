"""WebDataset shards: tar archives whose members of one key belong to one picture.

**Layout**: ``00000.tar``, ``00001.tar``, or ``pets-train-000000.tar``. The key of a member is its name to the first dot
of its last part, or with ``key="stem"`` to the last one. The picture of ``dog`` is ``dog.jpg`` (``.png``, ``.webp``,
...), and there may be ``dog.txt`` (captions, one a line), ``dog.json`` and ``dog.cls`` (a label). ``dog.json`` is a
text or a list of texts, or an object: its ``caption`` and ``captions``, else the first of the other usual names of
captions, are captions, and all further fields are columns. ``dog.depth.png`` is something else of ``dog``, which is
left out. So is a key with two pictures or with two texts of one kind, since nobody can tell which belong together. The
split is what the archive's name says, or that of its folders.

Nothing is unpacked: a collection holds the place of each picture in its archive
(:class:`~rungwise.data.files.TarMember`), and names in an archive are names alone. Links, devices and
sparse members are left out.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from rungwise.core import UserError, limits, opened_file, parse_json, readable, too_large, unreadable
from rungwise.core.output import printable
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import TarMember
from rungwise.data.layouts._folder import PICTURE_SUFFIXES, PictureFolder, folder_name
from rungwise.data.layouts._gatherer import Gatherer, left_out, split_in_words
from rungwise.data.layouts._json_captions import without_notes
from rungwise.data.layouts._table_files import CAPTION_COLUMNS, TITLE

SHARD_SUFFIX = ".tar"
PACKED_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
"""Suffixes of archives in which no member can be read by its place."""

Key = Literal["dot", "stem"]
"""How far the key of a member goes: to the first dot of its name, or to the last."""

_CAPTIONS = ("caption", "captions")
_TEXT_SUFFIXES = (".txt", ".json", ".cls")
_HEADER_BYTES = 1 << 20
"""Largest header of a member, with its long names; no honest archive has a larger one."""
_DAMAGE = (tarfile.TarError, ValueError, EOFError, KeyError, OverflowError, RecursionError)
"""Errors that Python's reader raises for senseless headers."""
_TO_THE_LAST = '--key stem (of train --data.key stem, in Python key="stem") takes names to their last dot'
"""The remedy for names with several dots."""
_LOOKED_AT = 64
"""Number of first members that are searched for a picture, to tell a shard from any other archive."""


def shards(files: PictureFolder) -> list[Path]:
    """The tar archives below a folder that have pictures or texts of samples among their first members.

    None counts unless one of them has a picture. An archive that cannot be read becomes an issue of the folder.
    """
    found: list[Path] = []
    has_pictures = False
    for path in files.others:
        if path.suffix.lower() == SHARD_SUFFIX:
            try:
                suffixes = _first_suffixes(files.root / path)
            except UserError as error:
                files.leave_out(path, str(error))
                continue
            found += [files.root / path] if suffixes else []
            has_pictures |= not suffixes.isdisjoint(PICTURE_SUFFIXES)
    return found if has_pictures else []


def read_shards(paths: Sequence[Path], root: Path, captions_only: bool = False, key: Key = "dot") -> ImageCaptions:
    r"""The pictures of some shards with their captions.

    Image ids are the keys; where one stands in several shards, the shard's name comes before it (``"00001/dog"``).

    Args:
        paths: The archives.
        root: The folder; the folders between it and an archive may tell the split.
        captions_only: Leave the pictures out.
        key: How far the key of a member goes: to the first dot of the last part of its name, or to the last dot.

    Returns:
        The collection. It is empty where all pictures have further dots in their names and ``key`` is ``"dot"``: the
        issues then say so.

    >>> import io, tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> with tarfile.open(root / "pets-train-000000.tar", "w") as archive:
    ...     for name, data in (("dog.jpg", b"..."), ("dog.txt", b"A dog.\nA pup."), ("dog.depth.png", b".")):
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(data)
    ...         archive.addfile(member, io.BytesIO(data))
    >>> data = read_shards([root / "pets-train-000000.tar"], root)
    >>> data.image_ids, data.captions, data.splits, data.paths[0].read()
    (('dog',), ('A dog.', 'A pup.'), ('train',), b'...')
    >>> [issue.kind for issue in data.issues]
    ['picture left out']
    """
    gatherer = Gatherer(None)
    others: Counter[str] = Counter()
    read = [(path, _samples(path, key, gatherer, others)) for path in paths]
    ids = _ids(read, root)
    has_pictures = False
    for path, samples in read:
        relative = path.relative_to(root)
        folders = [split_in_words(part) for part in reversed(relative.parts[:-1])]
        split = split_in_words(path.stem) or next((one for one in folders if one), "")
        for name, sample in samples.items():
            has_pictures |= bool(sample.pictures or sample.longer)
            where = f"{path}, {name}"
            sample.leave_out_longer(name, gatherer)
            if sample.leave_out_unclear(name, where, gatherer):
                continue
            [(_, picture)] = sample.pictures
            captions = [text for one in sample.texts for text in one.captions]
            position = gatherer.packed(ids[path, name], None if captions_only else picture, where, captions)
            if position is not None:
                gatherer.split(position, split, where)
                gatherer.label(position, [label for one in sample.texts for label in one.labels], where)
                for one in sample.texts:
                    for column, value in one.columns.items():
                        gatherer.column(position, column, value, one.where)
                seen: list[str] = []
                for one in sorted(sample.texts, key=lambda one: one.suffix, reverse=True):  # .txt before .json
                    # Programs that fetch pictures write the caption into the JSON file a second time.
                    new = [text for text in one.captions if text not in seen]
                    for text in new:
                        gatherer.caption(position, text, one.where)
                    seen = new
    if others:
        counts = ", ".join(f"{count} {ending}" for ending, count in sorted(others.items()))
        gatherer.issue("files of other kinds", str(root), f"{counts}; a sample is a picture with .txt, .json or .cls")
    return gatherer.collection(folder_name(root), "webdataset", may_be_empty=has_pictures)


def _ids(read: Sequence[tuple[Path, dict[str, _Sample]]], root: Path) -> dict[tuple[Path, str], str]:
    """The id of each sample: its key, with the name of its shard before it where that is needed."""
    keys = Counter(name for _, samples in read for name in samples)
    every = [(path, name) for path, samples in read for name in samples]
    shard = {path: path.relative_to(root) for path, _ in read}
    short = [name if keys[name] == 1 else f"{shard[path].with_suffix('').as_posix()}/{name}" for path, name in every]
    # A folder in one archive may be called as another archive is. With its ending no folder is.
    if len(set(short)) < len(short):
        short = [f"{shard[path].as_posix()}/{name}" for path, name in every]
    return dict(zip(every, short, strict=True))


@dataclass
class _Text:
    """What a ``.txt``, ``.json`` or ``.cls`` says; the place is for messages."""

    where: str
    suffix: str
    captions: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Sample:
    """The members of one key.

    Attributes:
        pictures: Place of each picture that the key names, None for a link or the like.
        texts: Texts that the key names.
        longer: Name after the key, and picture (as its place) or text, of each member with further dots.
    """

    pictures: list[tuple[str, TarMember | None]] = field(default_factory=list)
    texts: list[_Text] = field(default_factory=list)
    longer: list[tuple[str, str | _Text]] = field(default_factory=list)

    def leave_out_longer(self, key: str, gatherer: Gatherer) -> None:
        """List the members with further dots in their names."""
        for rest, one in self.longer:
            reason = f"its key is {key!r}, to the first dot, and {rest!r} no picture or text of that; {_TO_THE_LAST}"
            if isinstance(one, str):
                gatherer.issue("picture left out", one, reason)
            else:
                gatherer.issue("caption left out", one.where, f"{reason}{left_out(one.captions)}")

    def leave_out_unclear(self, key: str, where: str, gatherer: Gatherer) -> bool:
        """List the members of a sample that lacks a picture, or whose members may belong to several; whether it does.

        Such a sample is left out as a whole: nobody can tell which of two pictures a text was written for.
        """
        kinds = Counter(one.suffix for one in self.texts)
        twice = next((suffix for suffix, count in kinds.items() if count > 1), "")
        pictures = len(self.pictures)
        if pictures == 1 and not twice:
            [(_, picture)] = self.pictures
            if picture is None:
                self._leave_out_texts("missing picture", "", f"the picture of {key!r} is no regular file", gatherer)
            return picture is None
        if not pictures and not self.texts:
            return True
        if pictures > 1 or twice:
            what = f"{pictures} pictures" if pictures > 1 else f"{kinds[twice]} members {twice}"
            reason = f"{key!r} has {what}, and nothing says which belong together; keep one, or rename them"
            for place, _ in self.pictures:
                gatherer.issue("picture left out", place, reason)
            self._leave_out_texts("caption left out", "", reason, gatherer)
        else:
            self._leave_out_texts("missing picture", where, f"no picture named {key!r}", gatherer)
        return True

    def _leave_out_texts(self, kind: str, where: str, reason: str, gatherer: Gatherer) -> None:
        """An issue for each caption; where there is none, one for the sample if a place is given."""
        for one in self.texts:
            if one.captions:
                gatherer.issue(kind, one.where, f"{reason}{left_out(one.captions)}")
        if where and not any(one.captions for one in self.texts):
            gatherer.issue(kind, where, reason)


class _Headers:
    """A file for Python's tar reader that serves only headers, and none of senseless size."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _HEADER_BYTES:
            raise UserError(
                f"{self._path}: the header of a member claims more than {readable(_HEADER_BYTES)}; write the archive"
                " anew"
            )
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Iterator[tarfile.TarInfo], IO[bytes]]]:
    """The members of an archive, and the archive itself; errors of Python's reader become one line."""
    with opened_file(path, None) as file:
        try:
            # A third party's archive, read for its headers alone: extraction filters have nothing to do.
            with tarfile.open(fileobj=_Headers(file, path), mode="r:", errors="backslashreplace") as archive:  # type: ignore[call-overload]
                yield _members(archive, file), file
        except _DAMAGE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UserError(
                f"{path}: not a readable tar archive ({reason}); copy it again, or write it anew"
            ) from error
        except OSError as error:
            raise unreadable(path, error) from error


def _members(archive: tarfile.TarFile, file: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, checked: Python's reader takes damage for the end, and accepts negative sizes."""
    before = -1
    while (member := archive.next()) is not None:
        if member.offset <= before or member.size < 0:
            raise ValueError(f"the header at {member.offset} claims a size below nothing")
        before = member.offset
        yield member
        archive.members.clear()  # type: ignore[attr-defined]  # it keeps all of them otherwise
    at = archive.offset
    file.seek(at)
    if any(file.read(tarfile.BLOCKSIZE)):
        raise ValueError(f"what stands at {at} is no header of a member")


def _first_suffixes(path: Path) -> set[str]:
    """Endings of the first members that are pictures or texts of samples."""
    with _opened(path) as (members, _):
        first = [member for member, _ in zip(members, range(_LOOKED_AT), strict=False) if member.isreg()]
    return {_suffix(member.name) for member in first} & {*PICTURE_SUFFIXES, *_TEXT_SUFFIXES}


def _samples(path: Path, by: Key, gatherer: Gatherer, others: Counter[str]) -> dict[str, _Sample]:
    """The samples of an archive by their keys; members of other kinds are counted by their endings."""
    samples: dict[str, _Sample] = {}
    texts = 0
    with _opened(path) as (members, file):
        size = file.seek(0, 2)
        for member in members:
            name = printable(member.name).replace("\n", "\\n")
            where = f"{path}, {name}"
            key, rest = _key(name, by)
            suffix = _suffix(rest)
            if member.isdir() or _is_note(name):
                continue
            is_regular = member.isreg() and not member.issparse()
            if not is_regular:
                gatherer.issue("not a regular file", where, "a link, a device or a sparse file, of which none is read")
            elif member.offset_data + member.size > size:
                raise UserError(f"{where}: the archive ends within it; copy the archive again")
            is_picture, is_text = suffix in PICTURE_SUFFIXES, suffix in _TEXT_SUFFIXES
            if not (is_picture or is_text):
                others[suffix.removesuffix(".") or "without an ending"] += is_regular
                continue
            sample = samples.setdefault(key, _Sample())
            text = _Text(where, suffix)
            if is_text and is_regular:
                texts += member.size
                if texts > limits().text_bytes:
                    raise too_large(f"{path}, its texts", texts, "text_bytes")
                file.seek(member.offset_data)
                _read_text(text, file.read(member.size), gatherer)
            if not key or "." in rest:
                sample.longer.append((rest, where if is_picture else text))
            elif is_picture:
                picture = TarMember(path, member.offset_data, member.size, name) if is_regular else None
                sample.pictures.append((where, picture))
            else:
                sample.texts.append(text)
    return samples


def _key(name: str, by: Key) -> tuple[str, str]:
    """The key of a member, and what follows its dot; the key is empty where nothing stands before that dot."""
    folder, slash, last = name.rpartition("/")
    stem, dot, rest = last.partition(".") if by == "dot" else last.rpartition(".")
    return (f"{folder}{slash}{stem}" if stem and dot else ""), rest if dot else ""


def _suffix(rest: str) -> str:
    return f".{rest.rpartition('.')[2]}".lower()


def _is_note(name: str) -> bool:
    """Whether a member is a note of the archive's writer: ``__meta__`` of this format, ``._dog.jpg`` of a Mac."""
    last = name.rpartition("/")[2]
    return last.startswith("._") or last.partition(".")[0] == "__meta__"


def _read_text(text: _Text, data: bytes, gatherer: Gatherer) -> None:
    where = text.where
    try:
        if text.suffix == ".json":
            said = parse_json(data, where, finite=False, join_texts=True)
            if isinstance(said, dict):
                _read_object(text, said, gatherer)
            else:
                text.captions = _texts(said, where, gatherer)
            return
        decoded = data.decode("utf-8-sig")
    except (UserError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix(f"{where}: ")
        if isinstance(error, UnicodeDecodeError):
            reason = f"the byte at {error.start} is not UTF-8"
        said = data.decode("utf-8", "backslashreplace")
        gatherer.issue("malformed text", where, f"{reason}{left_out([said])}")
        return
    lines = [line for line in map(str.strip, decoded.split("\n")) if line]
    if text.suffix == ".cls":
        text.labels = lines
    else:
        text.captions = lines or [""]


def _read_object(text: _Text, said: dict[str, Any], gatherer: Gatherer) -> None:
    """Captions and columns of a ``.json``."""
    written = {name.strip().lower(): name for name in reversed(said)}
    captions = [written[name] for name in _CAPTIONS if name in written]
    if not captions:
        others = (written[name] for name in CAPTION_COLUMNS if name in written)
        captions = [name for name in others if _are_words(said[name])][:1]
    for name in captions:
        text.captions += _texts(said[name], f"{text.where}, {name}", gatherer)
    # A title is a column besides, as in tables.
    left = {name for name in captions if name != written.get(TITLE)}
    text.columns = {name: value for name, value in without_notes(said).items() if name not in left}


def _are_words(value: object) -> bool:
    """Whether a value is a text or a list of texts, and not empty."""
    values = value if isinstance(value, list) else [value]
    texts = [one for one in values if isinstance(one, str)]
    return len(texts) == len(values) and any(text.strip() for text in texts)


def _texts(value: Any, where: str, gatherer: Gatherer) -> list[str]:
    """The captions in a value of JSON; null is an empty one, and anything else but texts becomes an issue."""
    found = []
    for one in value if isinstance(value, list) else [value]:
        if one is None or isinstance(one, str):
            found.append((one or "").strip())
        else:
            gatherer.issue("malformed text", where, f"no text{left_out([repr(one)])}")
    return found
