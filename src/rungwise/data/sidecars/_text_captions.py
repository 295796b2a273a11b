"""Captions in a text file beside each picture, as img2dataset (``output_format=files``) and many programs write them.

``a.txt`` or ``a.jpg.txt`` holds captions of ``a.jpg``, one a line. ``a.json`` beside it may hold captions too, and
further columns. A text whose picture its name does not decide is listed with its words and given to none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rungwise.core import UserError, parse_json, read_bytes
from rungwise.data._collection import NOT_READ, ImageCaptions, Issue
from rungwise.data.files import read_text
from rungwise.data.layouts import Gatherer, PictureFolder, folder_name, left_out, readable_name, without_notes
from rungwise.data.sidecars._owners import Owners
from rungwise.data.sidecars._takeout import is_takeout

TEXT_FILES = "text-files"
TEXT_SUFFIXES = frozenset({".caption", ".txt"})
"""Lower-case endings of files that may hold captions of a picture."""
MOST_LINES = 50
"""Captions that one file may hold; a longer text is no list of captions."""
LONGEST_CAPTION = 2000
"""Characters of the longest line that counts as a caption."""

_LAYOUTS_OF_JSON = frozenset({"coco", "json", "karpathy"})
_CAPTIONS = ("caption", "captions")
_NUMBERS = re.compile(r"[\d\s.,;:+\-eE]*", re.ASCII)
_DEEPEST = 4


def read_text_captions(files: PictureFolder) -> ImageCaptions | None:
    r"""The captions of text files beside the pictures of a folder; None if there are none.

    Image ids are the paths below the folder, every split is ``none``, the layout is ``"text-files"``. Of a file whose
    name fits two pictures, of one without a picture, of a text that is longer than captions are, and of one of
    numbers alone, an issue says the words. Where most texts beside pictures are no captions, none is read.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("a.jpg", "b.jpg"):
    ...     (root / name).touch()
    >>> _ = (root / "a.txt").write_text("A dog.\nA pup.\n"), (root / "notes.txt").write_text("Buy film.")
    >>> data = read_text_captions(PictureFolder(root))
    >>> data.image_ids, data.captions
    (('a.jpg', 'b.jpg'), ('A dog.', 'A pup.'))
    """
    texts = [path for path in files.others if path.suffix.lower() in TEXT_SUFFIXES]
    described = [path for path in files.others if path.suffix.lower() == ".json"]
    if not (texts or described):
        return None
    owners = Owners(files, [*texts, *described])
    captions: dict[Path, tuple[Path, list[str]]] = {}
    unread: dict[Path, Issue] = {}
    for path in texts:
        found = _text(files, owners, path)
        if isinstance(found, Issue):
            unread[path] = found
        else:
            captions[path] = found
    no_captions = [path for path, issue in unread.items() if issue.kind == _NO_CAPTION]
    if len(no_captions) > len(captions):
        beside = sorted([*no_captions, *captions])
        for path in beside:
            files.take(path)
        name = f"{len(beside)} text file{'s' * (len(beside) > 1)} beside pictures, such as {readable_name(beside[0])}"
        files.note(Issue(NOT_READ, name, "most are longer than captions are, or hold numbers alone"))
        captions = {}
    fields = dict(_fields(files, owners, described))
    if not (captions or any(any(_captions_in(said)) for _, said in fields.values())):
        for path, issue in unread.items():
            if issue.kind in (_OF_SEVERAL, _OF_UNREAD):
                files.take(path)
                files.note(issue)
        return None
    for path in fields:
        files.take(path)
    for path in (*captions, *unread):
        files.take(path)
    files.note(*(issue for issue in unread.values() if captions or issue.kind != _NO_CAPTION))
    gatherer = Gatherer(files)
    position = {path: gatherer.file(path) for path in files.pictures}
    held: dict[Path, list[str]] = {}
    for path, (picture, lines) in captions.items():
        held.setdefault(picture, []).extend(lines)
        for line in lines:
            gatherer.caption(position[picture], line, readable_name(path))
    for path, (picture, said) in fields.items():
        _gather_fields(gatherer, position[picture], said, held.get(picture, []), readable_name(path))
    return gatherer.collection(folder_name(files.root), TEXT_FILES, unnamed=False)


def unread_texts(files: PictureFolder, layout: str, why: str) -> list[Issue]:
    """The issue that counts text files beside pictures, in a folder that was read in another layout, and says why."""
    suffixes = TEXT_SUFFIXES if layout in _LAYOUTS_OF_JSON else TEXT_SUFFIXES | {".json"}
    texts = [path for path in files.others if path.suffix.lower() in suffixes and not files.is_taken(path)]
    owners = Owners(files, texts)
    beside = [path for path in texts if owners.of(path)]
    for path in beside:
        files.take(path)
    if not beside:
        return []
    name = f"{len(beside)} text file{'s' * (len(beside) > 1)} beside pictures, such as {readable_name(beside[0])}"
    return [Issue(NOT_READ, name, why)]


_NO_CAPTION = "text that is no caption"
_OF_SEVERAL = "ambiguous picture"
_OF_UNREAD = "text of a picture that is not read"


def _text(files: PictureFolder, owners: Owners, path: Path) -> tuple[Path, list[str]] | Issue:
    """The picture of a text and its lines, or why it has none."""
    where, found = readable_name(path), owners.of(path)
    try:
        if found and not (files.root / path).stat().st_size:
            return Issue("empty caption", where)
        text = read_text(files.root / path, "sidecar_bytes")
    except OSError as error:
        return Issue("unreadable file", where, (error.strerror or str(error)).lower())
    except UserError as error:
        return Issue("unreadable file", where, str(error).removeprefix(f"{files.root / path}: "))
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    words = left_out(lines if len(lines) <= MOST_LINES else [text])
    if doubt := _doubt(owners, path, words):
        return doubt
    if _NUMBERS.fullmatch(text):
        return Issue(_NO_CAPTION, where, f"numbers alone{words}")
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_CAPTION:
        most = f"more than {MOST_LINES} lines, or one of more than {LONGEST_CAPTION} characters"
        return Issue(_NO_CAPTION, where, f"{most}{words}")
    return found[0], lines


def _doubt(owners: Owners, path: Path, words: str) -> Issue | None:
    """Why a text is given to no picture; None where its name decides."""
    where, found = readable_name(path), owners.of(path)
    if len(found) > 1:
        named = " or ".join(one.name for one in found[:3])
        return Issue(_OF_SEVERAL, where, f"may be of {named}{words}")
    if not found:
        return Issue("text without a picture", where, f"no picture of this name in its folder{words}")
    if not owners.is_read(found[0]):
        return Issue(_OF_UNREAD, where, f"of {found[0].name}{words}")
    return None


def _fields(
    files: PictureFolder, owners: Owners, paths: list[Path]
) -> Iterator[tuple[Path, tuple[Path, Mapping[str, Any]]]]:
    """JSON files that hold captions of one picture, each with its picture and its fields."""
    for path in paths:
        try:
            said = parse_json(read_bytes(files.root / path, "sidecar_bytes"), path, finite=False)
        except UserError:
            continue  # it is counted among the other files
        captions = list(_captions_in(said)) if isinstance(said, dict) else []
        is_of_picture = captions or (isinstance(said, dict) and said.keys() >= {"key", "status"})
        if not is_of_picture or is_takeout(said):
            continue
        doubt = _doubt(owners, path, left_out(captions))
        if doubt is None:
            yield path, (owners.of(path)[0], said)
        elif captions:
            files.take(path)
            files.note(doubt)


def _captions_in(said: Mapping[str, Any]) -> Iterator[str]:
    for name in _CAPTIONS:
        value = said.get(name)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text.strip():
                yield text.strip()


def _gather_fields(gatherer: Gatherer, image: int, said: Mapping[str, Any], held: list[str], where: str) -> None:
    """Add the captions of a JSON file that its text file does not hold, and its further fields as columns."""
    for text in dict.fromkeys(_captions_in(said)):
        if len(text) > LONGEST_CAPTION:
            gatherer.issue(_NO_CAPTION, where, f"more than {LONGEST_CAPTION} characters{left_out([text])}")
        elif text not in held:
            gatherer.caption(image, text, where)
    plain = {name: value for name, value in without_notes(said).items() if name not in _CAPTIONS}
    for name, value in plain.items():
        if not isinstance(value, dict):
            _gather_value(gatherer, image, name, value, where)
    for name, value in _flattened(plain):
        if name in plain:
            gatherer.issue("column left out", where, f"{name!r} stands within another field; the field itself is kept")
        else:
            _gather_value(gatherer, image, name, value, where)


def _gather_value(gatherer: Gatherer, image: int, name: str, value: object, where: str) -> None:
    if isinstance(value, str) and len(value) > LONGEST_CAPTION:
        gatherer.issue("value left out", where, f"{name!r}: more than {LONGEST_CAPTION} characters")
    else:
        gatherer.column(image, name, value, where)


def _flattened(said: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[tuple[str, object]]:
    """Fields of nested objects, by the names of all objects around them joined by dots."""
    for name, value in said.items():
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _flattened(value, f"{before}{name}.", depth + 1)
        elif before:
            yield f"{before}{name}", value
