"""The JSON files of Karpathy's splits: ``dataset_coco.json``, ``dataset_flickr30k.json``, ``dataset_flickr8k.json``."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from rungwise.core import UserError, parse_json
from rungwise.data._collection import ImageCaptions
from rungwise.data.files import read_text
from rungwise.data.layouts._folder import PictureFolder
from rungwise.data.layouts._gatherer import Gatherer

_HEAD_BYTES = 65536
_NAME = re.compile(r"[\w.-]{1,64}")


def karpathy_files(files: PictureFolder) -> list[Path]:
    """The JSON files below a folder that begin like one of Karpathy's, or are named ``dataset_*``."""
    found = []
    for path in files.others:
        if path.suffix.lower() == ".json":
            named = path.name.startswith("dataset_")
            head = b"" if named else files.head(path, _HEAD_BYTES)
            if named or (b'"images"' in head and b'"sentences"' in head):
                found.append(files.root / path)
    return found


def read_karpathy(
    path: Path, files: PictureFolder, *, join_restval: bool = False, captions_only: bool = False
) -> ImageCaptions:
    """One of Karpathy's files, with the pictures that lie anywhere below the folder.

    Image ids are the file names (with their ``filepath`` where a name alone is not unique), caption ids the ``sentid``.
    Where the folder holds no picture at all, the collection has none either: its images are features of elsewhere. The
    collection is named as the file says (``dataset``), else after the file.

    Args:
        path: The JSON file.
        files: The folder with the pictures.
        join_restval: Count COCO's split ``restval`` as ``train``, as all but the first papers do.
        captions_only: Do not look for pictures.

    Raises:
        UserError: If the JSON is broken (line and column are named), a key is missing, or there are pictures but none
            of those that the file names.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "dataset_coco.json"
    >>> _ = file.write_text('''{"images": [{"filename": "a.jpg", "filepath": "val2014", "split": "restval",
    ...     "sentences": [{"raw": "A dog.", "sentid": 7}]}]}''')
    >>> data = read_karpathy(file, PictureFolder(file.parent), join_restval=True)
    >>> data.image_ids, data.caption_ids, data.splits, data.paths
    (('a.jpg',), ('7',), ('train',), ())
    """
    content = _content(path)
    images = content["images"]
    names = Counter(str(image.get("filename")) for image in images)
    gatherer = Gatherer(files if files.pictures and not captions_only else None)
    for number, image in enumerate(images):
        where = f"{path}, images[{number}]"
        filename, sentences = _need(image, "filename", str, where), _need(image, "sentences", list, where)
        folder = image.get("filepath")
        full = f"{folder}/{filename}" if folder else filename
        position = gatherer.image(filename if names[filename] == 1 else full, where, full, filename)
        if position is None:
            continue
        split = str(image.get("split", ""))
        gatherer.split(position, "train" if join_restval and split == "restval" else split, where)
        for place, sentence in enumerate(sentences):
            inside = f"{where}.sentences[{place}]"
            text = _need(sentence, "raw", str, inside)
            caption_id = sentence.get("sentid")
            gatherer.caption(position, text, inside, None if caption_id is None else str(caption_id))
    named = content.get("dataset")
    name = named if isinstance(named, str) and _NAME.fullmatch(named) else path.stem.removeprefix("dataset_")
    return gatherer.collection(name, "karpathy")


def _content(path: Path) -> dict[str, Any]:
    """The content of a file, its list of images checked."""
    content: Any = parse_json(read_text(path), path)
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list):
        raise UserError(f"{path}: has no list 'images' as Karpathy's files have; give another file")
    if not images:
        raise UserError(f"{path}: its list 'images' is empty; give another file")
    if not all(isinstance(image, dict) for image in images):
        raise UserError(f"{path}: its list 'images' holds something that is no object; correct it")
    found: dict[str, Any] = content
    return found


def _need(item: object, key: str, kind: type, where: str) -> Any:
    value = item.get(key) if isinstance(item, dict) else None
    if not isinstance(value, kind):
        raise UserError(f"{where}: needs {key!r} ({'a list' if kind is list else 'a text'}); correct the file")
    return value
