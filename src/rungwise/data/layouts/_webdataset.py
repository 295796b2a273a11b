"""WebDataset shards: tar archives whose members of one name belong to one picture.

**Layout**: ``00000.tar``, ``00001.tar``, or ``pets-train-000000.tar``. Of the members that share a name up to its
first dot, one is the picture (``.jpg``, ``.png``, ``.webp``, ...), and there may be ``.txt`` (captions, one a line),
``.json`` (``caption`` or ``captions``, a text or a list) and ``.cls`` (a label). The split is what the archive's name
says, or that of its folders.

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
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rungwise.core import UserError, limits, opened_file, parse_json, readable, too_large, unreadable
from rungwise.core.output import printable
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import TarMember
from rungwise.data.layouts._folder import PICTURE_SUFFIXES, PictureFolder, folder_name
from rungwise.data.layouts._gatherer import Gatherer, split_in_words

SHARD_SUFFIX = ".tar"
PACKED_SUFFIXES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
"""Suffixes of archives in which no member can be read by its place."""

_CAPTIONS = ("caption", "captions")
_TEXT_SUFFIXES = (".txt", ".json", ".cls")
_HEADER_BYTES = 1 << 20
"""Largest header of a member, with its long names; no honest archive has a larger one."""
_DAMAGE = (tarfile.TarError, ValueError, EOFError, KeyError, OverflowError, RecursionError)
"""Errors that Python's reader raises for senseless headers."""
_LOOKED_AT = 64
"""Number of first members that are searched for a picture, to tell a shard from any other archive."""


def shards(files: PictureFolder) -> list[Path]:
    """The tar archives below a folder that have a picture among their first members.

    An archive that cannot be read becomes an issue of the folder.
    """
    found = []
    for path in files.others:
        if path.suffix.lower() == SHARD_SUFFIX:
            try:
                found += [files.root / path] if _has_pictures(files.root / path) else []
            except UserError as error:
                files.leave_out(path, str(error))
    return found


def read_shards(paths: Sequence[Path], root: Path, captions_only: bool = False) -> ImageCaptions:
    r"""The pictures of some shards with their captions.

    Image ids are the names of the members up to the first dot; where one stands in several shards, the shard's name
    comes before it (``"00001/dog"``).

    Args:
        paths: The archives.
        root: The folder; the folders between it and an archive may tell the split.
        captions_only: Leave the pictures out.

    >>> import io, tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> with tarfile.open(root / "pets-train-000000.tar", "w") as archive:
    ...     for name, data in (("dog.jpg", b"..."), ("dog.txt", b"A dog.\nA pup.")):
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(data)
    ...         archive.addfile(member, io.BytesIO(data))
    >>> data = read_shards([root / "pets-train-000000.tar"], root)
    >>> data.image_ids, data.captions, data.splits, data.paths[0].read()
    (('dog',), ('A dog.', 'A pup.'), ('train',), b'...')
    """
    gatherer = Gatherer(None)
    read = [(path, _samples(path, gatherer)) for path in paths]
    keys = Counter(key for _, samples in read for key in samples)
    for path, samples in read:
        relative = path.relative_to(root)
        folders = [split_in_words(part) for part in reversed(relative.parts[:-1])]
        split = split_in_words(path.stem) or next((one for one in folders if one), "")
        for key, sample in samples.items():
            where = f"{path}, {key}"
            if sample.picture is None:
                gatherer.issue("missing picture", where, f"captions or a label, but no picture named {key!r}")
                continue
            image_id = key if keys[key] == 1 else f"{relative.with_suffix('').as_posix()}/{key}"
            position = gatherer.packed(image_id, None if captions_only else sample.picture, where)
            if position is not None:
                gatherer.split(position, split, where)
                gatherer.label(position, sample.labels, where)
                # Programs that fetch pictures write the caption into the JSON file a second time.
                for text in [*sample.captions, *(one for one in sample.described if one not in sample.captions)]:
                    gatherer.caption(position, text, where)
    return gatherer.collection(folder_name(root), "webdataset")


@dataclass
class _Sample:
    """Content of the members of one name: ``captions`` stand in ``.txt``, ``described`` are those in ``.json``."""

    picture: TarMember | None = None
    captions: list[str] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)


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


def _has_pictures(path: Path) -> bool:
    with _opened(path) as (members, _):
        return any(
            member.isreg() and PurePosixPath(member.name).suffix.lower() in PICTURE_SUFFIXES
            for member, _ in zip(members, range(_LOOKED_AT), strict=False)
        )


def _samples(path: Path, gatherer: Gatherer) -> dict[str, _Sample]:
    samples: dict[str, _Sample] = {}
    texts = 0
    with _opened(path) as (members, file):
        size = file.seek(0, 2)
        for member in members:
            name = printable(member.name).replace("\n", "\\n")
            where = f"{path}, {name}"
            key, suffix = _key(name)
            if member.isdir() or not key or _is_note(name):
                continue
            if not member.isreg() or member.issparse():
                gatherer.issue("not a regular file", where, "a link, a device or a sparse file, of which none is read")
                continue
            if member.offset_data + member.size > size:
                raise UserError(f"{where}: the archive ends within it; copy the archive again")
            is_picture, is_text = suffix in PICTURE_SUFFIXES, suffix in _TEXT_SUFFIXES
            if not (is_picture or is_text):
                continue
            sample = samples.setdefault(key, _Sample())
            if is_picture and sample.picture is not None:
                gatherer.issue("picture left out", where, f"the picture of {key!r} is {sample.picture.name}")
            elif is_picture:
                sample.picture = TarMember(path, member.offset_data, member.size, name)
            else:
                texts += member.size
                if texts > limits().text_bytes:
                    raise too_large(f"{path}, its texts", texts, "text_bytes")
                file.seek(member.offset_data)
                _read_text(sample, suffix, file.read(member.size), where, gatherer)
    return samples


def _key(name: str) -> tuple[str, str]:
    """The name up to the first dot of its last part, and the last suffix, in lower case."""
    folder, slash, last = name.rpartition("/")
    stem, dot, rest = last.partition(".")
    return (f"{folder}{slash}{stem}" if stem and dot else ""), f".{rest.rpartition('.')[2]}".lower()


def _is_note(name: str) -> bool:
    """Whether a member is a note of the archive's writer: ``__meta__`` of this format, ``._dog.jpg`` of a Mac."""
    last = name.rpartition("/")[2]
    return last.startswith(("__", "._"))


def _read_text(sample: _Sample, suffix: str, data: bytes, where: str, gatherer: Gatherer) -> None:
    try:
        if suffix == ".json":
            said = parse_json(data, where, finite=False)
            fields = said if isinstance(said, dict) else {}
            sample.described += [text.strip() for name in _CAPTIONS for text in _texts(fields.get(name))]
            return
        text = data.decode("utf-8-sig")
    except UserError as error:
        gatherer.issue("malformed text", where, str(error).removeprefix(f"{where}: "))
        return
    except UnicodeDecodeError as error:
        gatherer.issue("malformed text", where, f"the byte at {error.start} is not UTF-8")
        return
    lines = [line.strip() for line in text.split("\n")]
    (sample.labels if suffix == ".cls" else sample.captions).extend(line for line in lines if line)


def _texts(value: Any) -> list[str]:
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
