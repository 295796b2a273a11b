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
from rungwise.data.layouts._gatherer import Gatherer, id_text, left_out, shown

_HEAD_BYTES = 65536
_OF_DATASETS = frozenset({"dataset_dict.json", "dataset_info.json", "dataset_infos.json"})
"""Files of the library ``datasets``, which describe no pictures."""
_NAME = re.compile(r"[\w.-]{1,64}")


def karpathy_files(files: PictureFolder) -> list[Path]:
    """The JSON files below a folder that begin like one of Karpathy's, or are named ``dataset_*``."""
    found = []
    for path in files.others:
        if path.suffix.lower() == ".json" and path.name not in _OF_DATASETS:
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
    A picture lies in its ``filepath``, or in no folder. It may lie in any if its name holds that of ``filepath``, as
    COCO's names of 2014 do (``COCO_val2014_000000391895.jpg``).
    Where the folder holds no picture at all, the collection has none either: its images are features of elsewhere. The
    collection is named as the file says (``dataset``), else after the file.

    Args:
        path: The JSON file.
        files: The folder with the pictures.
        join_restval: Count COCO's split ``restval`` as ``train``, as all but the first papers do.
        captions_only: Do not look for pictures.

    Raises:
        UserError: If the JSON is broken (line and column are named), no entry can be read, or there are pictures but
            none of those that the file names. Single entries that cannot be read become issues.

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
    names = Counter(str(image.get("filename")) for image in images if isinstance(image, dict))
    gatherer = Gatherer(files if files.pictures and not captions_only else None, strict=False)
    for number, image in enumerate(images):
        where = f"{path}, images[{number}]"
        sentences = image.get("sentences") if isinstance(image, dict) else None
        filename = image.get("filename") if isinstance(image, dict) else None
        texts = [_raw(sentence) for sentence in sentences] if isinstance(sentences, list) else []
        if not isinstance(filename, str) or not filename.strip() or not isinstance(sentences, list):
            said = [text for text in texts if text] or [shown(image)]
            gatherer.issue(
                "malformed entry", where, f"needs 'filename' (a text) and 'sentences' (a list){left_out(said)}"
            )
            continue
        folder = image.get("filepath")
        full = f"{folder}/{filename}" if isinstance(folder, str) and folder else filename
        image_id = filename if names[filename] == 1 else full
        # In another folder than the one named, a file is the same picture only if its name holds that folder's name.
        places = (full, filename) if names[filename] == 1 and full != filename and str(folder) in filename else (full,)
        position = gatherer.image(image_id, where, *places, captions=[text for text in texts if text])
        if position is None:
            continue
        split = image.get("split")
        split = split if isinstance(split, str) else ""
        gatherer.split(position, "train" if join_restval and split == "restval" else split, where)
        for place, (sentence, text) in enumerate(zip(sentences, texts, strict=True)):
            inside = f"{where}.sentences[{place}]"
            if text is None:
                gatherer.issue("malformed entry", inside, f"needs 'raw' (a text){left_out([shown(sentence)])}")
            else:
                gatherer.caption(position, text, inside, _sentence_id(sentence, inside, gatherer))
    named = content.get("dataset")
    name = named if isinstance(named, str) and _NAME.fullmatch(named) else path.stem.removeprefix("dataset_")
    return gatherer.collection(name, "karpathy")


def _content(path: Path) -> dict[str, Any]:
    """The content of a file, its list of images checked."""
    # Programs that lack a value write NaN for it.
    content: Any = parse_json(read_text(path), path, finite=False)
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list):
        raise UserError(f"{path}: has no list 'images' as Karpathy's files have; give another file")
    if not images:
        raise UserError(f"{path}: its list 'images' is empty; give another file")
    found: dict[str, Any] = content
    return found


def _raw(sentence: object) -> str | None:
    """The text of an entry of ``sentences``; empty where it is null, None where there is none."""
    if not isinstance(sentence, dict) or "raw" not in sentence:
        return None
    text = sentence["raw"]
    return "" if text is None else text if isinstance(text, str) else None


def _sentence_id(sentence: dict[str, Any], where: str, gatherer: Gatherer) -> str | None:
    if sentence.get("sentid") is None:
        return None
    try:
        return id_text(sentence["sentid"])
    except TypeError as error:
        gatherer.issue("malformed entry", where, f"'sentid': {error}; the caption gets an id of its own")
        return None
