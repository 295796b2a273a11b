"""Titles, descriptions, ratings, keywords, people, times and places from XMP files and Google Takeout's JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath

from rungwise.core import UserError, parse_json, read_bytes
from rungwise.data._collection import NOT_READ, ImageCaptions, Issue
from rungwise.data._columns import Column, Value
from rungwise.data.layouts import NotRead, PictureFolder, readable_name
from rungwise.data.sidecars._owners import Owners
from rungwise.data.sidecars._takeout import PictureNames, columns_of_takeout, is_takeout
from rungwise.data.sidecars._xmp import read_xmp

_Values = dict[str, Value]


def with_descriptions(data: ImageCaptions, files: PictureFolder) -> ImageCaptions:
    """A collection with the further columns that files beside its pictures hold.

    Of XMP: ``title``, ``description``, ``rating`` and ``tags``. Of Google Takeout: ``description``, ``people`` and
    ``favourite``; and where the picture's own file does not say them, ``taken``, ``year``, ``latitude`` and
    ``longitude``. Where both describe a picture, XMP counts.
    A column that the collection has stays as it is, and an issue says so.
    What is left out becomes an issue of ``files``.

    >>> import tempfile
    >>> from rungwise.data.layouts import read_folder
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "a.jpg").touch()
    >>> _ = (root / "a.jpg.json").write_text('{"title": "a.jpg", "photoTakenTime": {"timestamp": "1600000000"},'
    ...     '"description": "At sea."}')
    >>> files = PictureFolder(root)
    >>> data = with_descriptions(read_folder(files), files)
    >>> data.columns["description"], data.fallbacks["year"]
    (('At sea.',), (2020,))
    """
    said: dict[Path, _Values] = {}
    fallback: dict[Path, _Values] = {}
    _read_takeout(files, said, fallback)
    for picture, values in _read_xmp_files(files).items():
        said[picture] = said.get(picture, {}) | values
    if not (said or fallback):
        return data
    position = {path: at for at, path in enumerate(data.paths) if isinstance(path, Path)}
    columns = _columns(said, files.root, position, len(data))
    for name in sorted(columns.keys() & data.columns.keys()):
        files.note(Issue("column left out", name, "files beside the pictures say it too; the captions' column stays"))
    own = {name: column for name, column in columns.items() if name not in data.columns}
    fallbacks = _columns(fallback, files.root, position, len(data))
    return replace(data, columns={**data.columns, **own}, fallbacks={**data.fallbacks, **fallbacks})


def _columns(
    said: Mapping[Path, Mapping[str, Value]], root: Path, position: Mapping[Path, int], count: int
) -> dict[str, Column]:
    held: dict[str, dict[int, Value]] = defaultdict(dict)
    for picture, values in said.items():
        if (at := position.get(root / picture)) is not None:
            for name, value in values.items():
                held[name][at] = value
    return {name: tuple(values.get(at) for at in range(count)) for name, values in sorted(held.items())}


def _read_xmp_files(files: PictureFolder) -> dict[Path, _Values]:
    """What XMP files say of the pictures that they belong to; ``a.jpg.xmp`` goes before ``a.xmp``."""
    paths = [path for path in files.others if path.suffix.lower() == ".xmp"]
    owners = Owners(files, paths)
    alone = NotRead("XMP file", "XMP files", "each needs a picture of its name that is read")
    damaged = NotRead("damaged XMP file", "damaged XMP files", "write them anew, or remove them")
    found: dict[Path, tuple[str, _Values]] = {}
    for path in paths:
        files.take(path)
        try:
            said = read_xmp(read_bytes(files.root / path, "sidecar_bytes"))
        except UserError as error:
            files.leave_out(path, str(error).removeprefix(f"{files.root / path}: "))
            continue
        pictures = owners.of(path)
        if said.extension and PurePath(path.stem).suffix == "":
            pictures = [one for one in pictures if one.suffix.lower() == f".{said.extension.lower()}"]
        if len(pictures) > 1:
            named = " or ".join(one.name for one in pictures[:3])
            files.note(Issue("ambiguous picture", readable_name(path), f"may be of {named}; {_shown(said.columns)}"))
        elif not pictures or not owners.is_read(pictures[0]):
            alone.add(path, ending=False)
        elif not said.is_whole:
            damaged.add(path, ending=False)
        else:
            (picture,) = pictures
            base = path.stem
            if picture not in found or base == picture.name:
                found[picture] = base, said.columns
    files.note(*alone.issues(), *damaged.issues())
    return {picture: values for picture, (_, values) in found.items()}


def _shown(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {value!r}"[:100] for name, value in values.items()) or "it says nothing"


def _read_takeout(files: PictureFolder, said: dict[Path, _Values], fallback: dict[Path, _Values]) -> None:
    paths = [path for path in files.others if path.suffix.lower() == ".json" and not files.is_taken(path)]
    if not paths:
        return
    folders = {path.parent for path in paths}
    listed: dict[Path, list[str]] = defaultdict(list)
    for one in files.pictures:
        if one.parent in folders:
            listed[one.parent].append(one.name)
    named = {folder: PictureNames(names) for folder, names in listed.items()}
    alone = NotRead("Google Takeout file", "Google Takeout files", "each needs a picture of its name that is read")
    doubled: list[Path] = []
    for path in paths:
        if path.parent not in named:
            continue
        try:
            content = parse_json(read_bytes(files.root / path, "sidecar_bytes"), path, finite=False)
        except UserError as error:
            if isinstance(error.__cause__, OSError):
                files.leave_out(path, str(error).removeprefix(f"{files.root / path}: "))
            continue  # else it is counted among the other files
        if not is_takeout(content):
            if isinstance(content, dict) and isinstance(content.get("title"), str) and "access" in content:
                files.take(path)  # of an album
                alone.add(path, ending=False)
            continue
        files.take(path)
        pictures = [path.parent / name for name in named[path.parent].of(path.name, content["title"])]
        if not pictures:
            alone.add(path, ending=False)
        own, where_unknown = columns_of_takeout(content)
        for picture in pictures:
            if picture in said:
                # An edited copy may have a file of its own too.
                if picture == pictures[0] and (said[picture], fallback[picture]) != (own, where_unknown):
                    doubled.append(path)
            else:
                said[picture], fallback[picture] = dict(own), dict(where_unknown)
    files.note(*alone.issues())
    if doubled:
        more = f" and {len(doubled) - 1} more" if len(doubled) > 1 else ""
        where = f"{readable_name(doubled[0])}{more}"
        files.note(Issue(NOT_READ, where, "another Google Takeout file of the same picture was read before"))
