"""Captions as COCO publishes them: JSON with a list ``images`` and a list ``annotations``.

**Layout**: ``captions_train2014.json``, ``captions_val2017.json`` and the like, often several in a folder
``annotations`` beside the pictures (``train2014``, ``val2017``, ``images``, or anywhere below). An entry of ``images``
has an ``id`` and a ``file_name``, one of ``annotations`` an ``image_id`` and a ``caption``. Files are recognised by
these keys. The split of an image is what its entry says (``split``), else what the file's name says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rungwise.core import UserError, opened_file, parse_json, unreadable
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import read_text
from rungwise.data.layouts._folder import PictureFolder, folder_name
from rungwise.data.layouts._gatherer import Gatherer, split_in_words

_KEYS = (b'"images"', b'"annotations"', b'"file_name"', b'"image_id"', b'"caption"')
_END_KEYS = _KEYS[2:]
"""Keys of the entries; the keys of both lists, which may stand in the middle of a large file, are not searched for."""
_END_BYTES = 1 << 16
_PIECE = 1 << 24
_ANNOTATIONS, _CAPTIONS = "annotations", "captions_"


def coco_files(files: PictureFolder) -> list[Path]:
    """The JSON files below a folder whose beginning and end show the keys of captions in COCO's layout."""
    found = []
    for path in files.others:
        if path.suffix.lower() == ".json":
            ends = files.head(path, _END_BYTES) + files.tail(path, _END_BYTES)
            if all(key in ends for key in _END_KEYS):
                found.append(files.root / path)
            elif path.name.startswith(_CAPTIONS):
                files.leave_out(path, "named as COCO names its captions, but holds none; copy or fetch it again")
    return found


def is_coco_file(path: Path) -> bool:
    """Whether the keys of captions in COCO's layout stand anywhere in a file; a UserError if it cannot be read."""
    missing, before = set(_KEYS), b""
    with opened_file(path, "text_bytes") as file:
        try:
            while missing and (piece := file.read(_PIECE)):
                text = before + piece
                missing -= {key for key in missing if key in text}
                before = text[-max(map(len, _KEYS)) :]
        except OSError as error:
            raise unreadable(path, error) from error
    return not missing


def folder_of_pictures(path: Path) -> Path:
    """The folder to search for pictures of a file of captions: its own, or the one around a folder ``annotations``."""
    return path.parent.parent if path.parent.name == _ANNOTATIONS else path.parent


def read_coco(
    paths: Sequence[Path], files: PictureFolder, captions_only: bool = False, *, unnamed: bool = True
) -> ImageCaptions:
    """One file of captions, or several of different splits, with the pictures that lie anywhere below the folder.

    Image ids and caption ids are COCO's own ``id``. Where the folder holds no picture at all, the collection has none
    either: its images are features of elsewhere.

    Args:
        paths: The JSON files.
        files: The folder with the pictures.
        captions_only: Do not look for pictures.
        unnamed: Add the folder's pictures that no file names.

    Raises:
        UserError: If the JSON is broken, a key is missing, an id stands twice, several files do not go together, or
            there are pictures but none of those that the files name.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "captions_val2017.json"
    >>> _ = file.write_text('''{"images": [{"id": 42, "file_name": "000000000042.jpg"}],
    ...     "annotations": [{"id": 7, "image_id": 42, "caption": "A dog."}]}''')
    >>> data = read_coco([file], PictureFolder(file.parent))
    >>> data.image_ids, data.caption_ids, data.splits, data.paths
    (('42',), ('7',), ('val',), ())
    """
    splits = [split_in_words(path.stem) for path in paths]
    if len(paths) > 1 and (None in splits or len(set(splits)) < len(splits)):
        names = ", ".join(path.name for path in paths[:4])
        raise UserError(f"{files.root}: {len(paths)} files of captions ({names}); give the one to read")
    gatherer = Gatherer(files if files.pictures and not captions_only else None)
    file_of_id: dict[str, str] = {}
    for path, split in zip(paths, splits, strict=True):
        _gather(gatherer, path, split or "", file_of_id)
    return gatherer.collection(folder_name(files.root), "coco", unnamed=unnamed)


def _gather(gatherer: Gatherer, path: Path, split: str, file_of_id: dict[str, str]) -> None:
    images, annotations = _lists(path)
    # As published, the pictures of captions_val2017.json lie in val2017, and names may come again in other folders.
    beside = path.stem.rpartition("_")[2]
    position_of_id: dict[str, int | None] = {}
    for number, image in enumerate(images):
        where = f"{path}, images[{number}]"
        image_id, name = _id(image, "id", where), _text(image, "file_name", where)
        if file_of_id.setdefault(image_id, name) != name:
            raise UserError(
                f"{where}: id {image_id} stands already for {file_of_id[image_id]!r}, not {name!r}; correct one of them"
            )
        position = position_of_id[image_id] = gatherer.image(image_id, where, f"{beside}/{name}", name)
        if position is not None:
            given = image.get("split")
            gatherer.split(position, given if isinstance(given, str) and given.strip() else split, where)
    if not any("caption" in annotation for annotation in annotations if isinstance(annotation, dict)):
        raise UserError(f"{path}: its list 'annotations' holds no captions; give a file such as captions_val2017.json")
    for number, annotation in enumerate(annotations):
        where = f"{path}, annotations[{number}]"
        image_id, text = _id(annotation, "image_id", where), _text(annotation, "caption", where)
        if image_id not in position_of_id:
            gatherer.issue("caption of no picture", where, f"no entry of 'images' has the id {image_id}")
        elif (owner := position_of_id[image_id]) is not None:
            gatherer.caption(owner, text, where, _id(annotation, "id", where) if "id" in annotation else None)


def _lists(path: Path) -> tuple[list[Any], list[Any]]:
    content = parse_json(read_text(path), path)
    found = []
    for key in ("images", "annotations"):
        value = content.get(key) if isinstance(content, dict) else None
        if not isinstance(value, list) or not value:
            raise UserError(f"{path}: has no list {key!r}, or an empty one; give a file of captions in COCO's layout")
        found.append(value)
    return found[0], found[1]


def _id(item: object, key: str, where: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    if not isinstance(value, int | str) or isinstance(value, bool) or value == "":
        raise UserError(f"{where}: needs {key!r} (a number or a text); correct the file")
    return str(value)


def _text(item: Any, key: str, where: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise UserError(f"{where}: needs {key!r} (a text); correct the file")
    return value
