r"""Captions in simple JSON beside the pictures, as people and programs write it.

**Layouts**: a list of objects, ``[{"image": "a.jpg", "caption": "A dog."}]``; the same list under a key of an object,
``{"images": [...]}``; or an object whose keys are the pictures, ``{"a.jpg": ["A dog.", "A pet."]}``, each with a text,
a list of texts, or an object of columns. The keys of an object are named as the columns of a table are
(:mod:`rungwise.data.layouts._table_files`), and those that are neither picture nor captions are further columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rungwise.core import UserError, opened_file, parse_json
from rungwise.data.files import read_text
from rungwise.data.layouts._folder import PICTURE_SUFFIXES, PictureFolder
from rungwise.data.layouts._gatherer import left_out, shown

SUFFIX = ".json"

_HEAD_BYTES = 1 << 16
_SUFFIXES = "|".join(sorted(suffix.removeprefix(".") for suffix in PICTURE_SUFFIXES))
_BY_PICTURE = re.compile(rf'\s*\{{\s*"(?:[^"\\\n]|\\.)+\.(?:{_SUFFIXES})"\s*:\s*["\[{{]', re.IGNORECASE)
_ENTRY = r'(?:(?:null|true|false|-?\d[\d.eE+-]{0,30}|"[^"\n]{0,200}"|\[[^][{}]{0,200}\])\s*,\s*){0,3}\{'
"""The first entry that is an object; before it a few may be something else."""
_LIST = re.compile(rf"\s*\[\s*{_ENTRY}")
_UNDER_KEY = re.compile(rf'"\w+"\s*:\s*\[\s*{_ENTRY}')
_WORDS_OF_CAPTIONS = frozenset(
    {"annotation", "annotations", "caption", "captions", "description", "descriptions", "metadata", "text", "texts"}
)
_WORD = re.compile(r"[a-z]+")
_IMG2DATASET = frozenset({"key", "status"})
_NOTES_OF_IMG2DATASET = frozenset({"error_message", "exif", "key", "md5", "sha256", "status"})
"""What img2dataset writes for itself; nobody searches by it."""
_OTHERS = "other captions are read; give this file itself to read it"

Rows = list[tuple[str, Mapping[str, object] | str]]
"""Place of each entry with its cells, or with the reason to skip it."""


def json_files(files: PictureFolder, images: Sequence[str], captions: Sequence[str]) -> list[Path]:
    """The files below a folder that begin like captions in simple JSON.

    Args:
        files: The folder.
        images: Names of keys that hold the picture's name.
        captions: Names of keys that hold captions.
    """
    return [
        files.root / path
        for path in files.others
        if path.suffix.lower() == SUFFIX and _looks_simple(_text(files.head(path, _HEAD_BYTES)), images, captions)
    ]


def is_json_captions(path: Path, images: Sequence[str], captions: Sequence[str]) -> bool:
    """Whether a file begins like captions in simple JSON; arguments are those of :func:`json_files`."""
    with opened_file(path, "text_bytes") as file:
        return _looks_simple(_text(file.read(_HEAD_BYTES)), images, captions)


def read_json_rows(path: Path, images: Sequence[str], captions: Sequence[str]) -> tuple[tuple[str, ...], Rows]:
    """The keys of all entries, and the entries with their places.

    Args:
        path: The file.
        images: Names of keys that hold the picture's name; the first one is used for pictures that are keys themselves.
        captions: Names of keys that hold captions; the first one is used for captions without a key.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "captions.json"
    >>> _ = file.write_text('{"dog.jpg": "A dog.", "cat.jpg": {"captions": ["A cat."], "year": 2020}}')
    >>> read_json_rows(file, ["image"], ["caption", "captions"])[1]
    [("['dog.jpg']", {'image': 'dog.jpg', 'caption': ['A dog.']}),
     ("['cat.jpg']", {'image': 'cat.jpg', 'year': 2020, 'caption': ['A cat.']})]
    """
    # Programs that lack a value write NaN for it, which counts as an empty cell.
    content = parse_json(read_text(path), path, finite=False, join_texts=True)
    rows: list[tuple[str, dict[str, Any] | str]] = []
    if isinstance(content, dict) and _names_pictures(content):
        for name, value in content.items():
            own = value if isinstance(value, dict) else {captions[0]: value if isinstance(value, list) else [value]}
            rows.append((f"[{name!r}]", {images[0]: name, **own}))
    else:
        key, entries = _entries(content, path)
        for number, entry in enumerate(entries):
            place = f"{key}[{number}]"
            rows.append((place, entry if isinstance(entry, dict) else f"{shown(entry)}, not an object"))
    main = [
        _first(names, (name for _, cells in rows if isinstance(cells, dict) for name in cells))
        for names in (images, captions)
    ]
    for number, (place, cells) in enumerate(rows):
        if isinstance(cells, dict):
            try:
                cells |= {name: _plain_texts(cells[name], captions) for name in captions if name in cells}
            except TypeError as error:
                name = _first(images, cells)
                rows[number] = place, f"{error}{left_out([shown(cells[name])] if name else [])}"
                continue
            for name, names in zip(main, (images, captions), strict=True):
                if name and name not in cells and (other := _first(names, cells)):
                    cells[name] = cells.pop(other)
    columns = dict.fromkeys(name for _, cells in rows if isinstance(cells, dict) for name in cells)
    return tuple(columns), list(rows)


def texts_in(cell: str) -> list[str]:
    """The captions in a cell of text: those of a list of texts in JSON, or else the cell itself.

    An empty list is an empty caption.

    >>> texts_in('["Two men.", "They talk."]'), texts_in("[Two men]"), texts_in("[1, 2]"), texts_in("[]")
    (['Two men.', 'They talk.'], ['[Two men]'], ['[1, 2]'], [''])
    """
    stripped = cell.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return [cell]
    try:
        values = parse_json(stripped, "", finite=False)
    except UserError:
        return [cell]
    texts = [value for value in values if isinstance(value, str)]
    return texts or [""] if len(texts) == len(values) else [cell]


def without_notes(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a picture's JSON object without those that img2dataset writes for itself.

    >>> without_notes({"key": "000", "status": "success", "sha256": "e3b0", "url": "x.org/1.jpg"})
    {'url': 'x.org/1.jpg'}
    """
    notes = _NOTES_OF_IMG2DATASET if said.keys() >= _IMG2DATASET else frozenset()
    return {name: value for name, value in said.items() if name not in notes}


def _first(names: Sequence[str], found: Iterable[str]) -> str | None:
    """The first of the names that is among those found."""
    there = set(found)
    return next((name for name in names if name in there), None)


def looks_like_captions(path: Path) -> bool:
    """Whether a file's name suggests that it describes pictures."""
    return bool(_WORDS_OF_CAPTIONS & set(_WORD.findall(path.stem.lower())))


def why_not(path: Path, images: Sequence[str], captions: Sequence[str]) -> str:
    """Why a JSON file is not read as captions, in a few words; arguments are those of :func:`json_files`."""
    try:
        content = parse_json(read_text(path), path, finite=False)
        by_picture = isinstance(content, dict) and _names_pictures(content)
        entries = [] if by_picture else _entries(content, path)[1]
    except UserError as error:
        return str(error).removeprefix(str(path)).lstrip(":, ")
    if by_picture:
        return _OTHERS
    first = next((entry for entry in entries if isinstance(entry, dict)), {})
    found = ", ".join(map(str, list(first)[:8])) or "no keys"
    for what, names in (("which picture", images), ("the caption", captions)):
        if not set(first) & set(names):
            return f"no key says {what} (such as {names[0]} or {names[1]}); its entries have {found}"
    return _OTHERS


def _looks_simple(head: str, images: Sequence[str], captions: Sequence[str]) -> bool:
    if _BY_PICTURE.match(head):
        return True
    if '"images"' in head and ('"sentences"' in head or '"annotations"' in head):
        return False  # Karpathy's layout and COCO's, which have readers of their own
    if '"photoTakenTime"' in head:
        return False  # what Google Takeout writes of one picture
    is_list = _LIST.match(head) or (head.lstrip().startswith("{") and _UNDER_KEY.search(head))
    return bool(is_list) and all(any(f'"{name}"' in head for name in names) for names in (images, captions))


def _text(head: bytes) -> str:
    return head.decode("utf-8-sig", "replace")


def _names_pictures(content: dict[str, Any]) -> bool:
    return any(Path(name).suffix.lower() in PICTURE_SUFFIXES for name in content)


def _entries(content: Any, path: Path) -> tuple[str, list[Any]]:
    """The list of entries and the key that holds it."""
    lists: list[tuple[str, list[Any]]] = []
    if isinstance(content, list):
        lists = [("", content)]
    elif isinstance(content, dict):
        lists = [(key, value) for key, value in content.items() if isinstance(value, list) and value]
        lists = [one for one in lists if _has_entries(one[1])]
    if len(lists) != 1 or not _has_entries(lists[0][1]):
        kind = "several lists" if len(lists) > 1 else "no list"
        example = '[{"image": "a.jpg", "captions": ["A dog."]}]'
        raise UserError(f"{path}: {kind} of entries that describe pictures; write them as {example}")
    return lists[0]


def _has_entries(found: list[Any]) -> bool:
    return any(isinstance(entry, dict) for entry in found)


def _plain_texts(value: Any, names: Collection[str]) -> Any:
    """Captions as texts, also where each is an object that holds its text; a TypeError if one holds none."""
    if not isinstance(value, list):
        return value
    texts = []
    for one in value:
        if isinstance(one, dict):
            text = next((one[name] for name in names if isinstance(one.get(name), str)), None)
            if text is None:
                raise TypeError("a caption is an object without a text; write the texts themselves")
            one = text
        texts.append(one)
    return texts
