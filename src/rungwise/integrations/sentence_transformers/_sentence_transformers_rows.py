"""Rows of datasets for trainers of sentence-transformers, with their positions in a collection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from rungwise.core import UserError, require
from rungwise.core.output import one_line
from rungwise.data import ImageCaptions

LABELS = ("label", "labels", "score", "scores")
"""Columns that the library's collator takes for labels, the first that is there."""

TEXTS = "texts"
"""Layout of a collection whose pictures are texts, which their ids hold."""


def pairs_of(data: ImageCaptions) -> Any:
    """Dataset for training on a collection: a row a caption, with its picture and its positions.

    Args:
        data: Collection with pictures, such as ``rungwise.read("photos", split="train")`` gives.

    Returns:
        ``datasets.Dataset`` with the columns ``image``, ``caption`` and ``label``. Files are named, and read when a row
        is asked for.

    Raises:
        UserError: If the collection has no pictures or no captions, or ``datasets`` is not installed.

    >>> from PIL import Image
    >>> import rungwise
    >>> data = rungwise.read([Image.new("L", (2, 2)), Image.new("L", (2, 2), 9)], captions=["black", ["grey", "dark"]])
    >>> pairs_of(data)["caption"][:], pairs_of(data)["label"][:]
    (['black', 'grey', 'dark'], [[0, 0], [1, 1], [1, 2]])
    """
    require("datasets", "pairs_of")
    import datasets

    if not data.paths or not data.captions:
        raise UserError(f"{data.name}: has no {'captions' if data.paths else 'pictures'}; give a collection with both")
    pictures, _ = data.to_lists()
    cells = [{"path": one, "bytes": None} if isinstance(one, str) else {"bytes": one, "path": None} for one in pictures]
    owners = data.image_of_caption.tolist()
    held = {"image": [cells[at] for at in owners], "caption": list(data.captions)}
    made = datasets.Dataset.from_dict(held, datasets.Features({"image": datasets.Image(), "caption": _text(datasets)}))
    return made.add_column("label", [[at, row] for row, at in enumerate(owners)])


def collection_of(dataset: Any) -> ImageCaptions:
    """Collection of a dataset of pairs of texts, for which a source of relevance gives degrees.

    The distinct texts of the first column stand where pictures stand elsewhere; the text of the second column in row r
    is caption r, of the item that the first names.

    Args:
        dataset: ``datasets.Dataset`` whose first two columns are texts, such as anchor and positive.

    Raises:
        UserError: If there are fewer columns, or a cell is no text.

    >>> from datasets import Dataset
    >>> pairs = Dataset.from_dict({"anchor": ["dog", "cat", "dog"], "positive": ["a dog", "a cat", "dogs"]})
    >>> data = collection_of(pairs)
    >>> data.image_ids, data.captions, data.image_of_caption.tolist()
    (('dog', 'cat'), ('a dog', 'a cat', 'dogs'), [0, 1, 0])
    """
    columns = _read_columns(dataset)
    if len(columns) < 2:
        raise UserError(f"dataset: columns {', '.join(columns) or 'none'}; give two columns of texts, such as anchor")
    firsts, seconds = (_texts(name, dataset[name]) for name in columns[:2])
    place: dict[str, int] = {}
    owners = [place.setdefault(text, len(place)) for text in firsts]
    return ImageCaptions(tuple(place), tuple(seconds), np.array(owners, np.int64), name="dataset", layout=TEXTS)


def with_positions(dataset: Any, data: ImageCaptions, *, image_id: str | None = None) -> Any:
    """A dataset with the positions of each row's picture and captions in a collection, in a new column ``label``.

    A caption is found by its text. The first column is a picture, or a text that stands for one, and is not looked at;
    the second is a caption of it; further columns are captions of other pictures, which are hard negatives.

    Args:
        dataset: ``datasets.Dataset`` with a column for the pictures and one or more columns of captions.
        data: The collection whose degrees a loss is to read; :func:`collection_of` makes one of pairs of texts.
        image_id: Column with the id of each row's picture, needed where a caption stands at several pictures. It is
            taken out of the dataset, for the trainer would read it as a text.

    Returns:
        The dataset with ``label``: positions of the picture, of its caption, and of each hard negative.

    Raises:
        UserError: If there is such a column already, a caption or an id is not in the collection, or a caption stands
            at several pictures and no ids are given.

    >>> from datasets import Dataset
    >>> rows = Dataset.from_dict({"picture": ["a", "b"], "caption": ["a cat", "a dog"], "negative": ["a dog", "a cat"]})
    >>> data = ImageCaptions(("1", "2"), ("a dog", "a cat"), np.array([0, 1]))
    >>> with_positions(rows, data)["label"][:]
    [[1, 1, 0], [0, 0, 1]]
    """
    if taken := [name for name in LABELS if name in dataset.column_names]:
        raise UserError(f"dataset: column {taken[0]!r} is there already; remove or rename it")
    if image_id is not None and image_id not in dataset.column_names:
        raise UserError(f"dataset: has no column {image_id!r}; name one of {', '.join(dataset.column_names)}")
    columns = [name for name in _read_columns(dataset) if name != image_id]
    if len(columns) < 2:
        raise UserError(f"dataset: columns {', '.join(columns) or 'none'}; give a picture and a caption at least")
    if data.layout == TEXTS and image_id is None:
        ids: list[str] | None = _texts(columns[0], dataset[columns[0]])
    else:
        ids = None if image_id is None else [str(one) for one in dataset[image_id]]
    image_at = {one: at for at, one in enumerate(data.image_ids)}
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(data.captions):
        found[text].append(at)
    labels = []
    captions = _texts(columns[1], dataset[columns[1]])
    negatives = [_texts(name, dataset[name]) for name in columns[2:]]
    for row, text in enumerate(captions):
        places = found.get(text, [])
        if ids is not None:
            if ids[row] not in image_at:
                raise UserError(f"dataset, row {row}: {one_line(ids[row], 60)!r} is no picture of {data.name}")
            places = [one for one in places if data.image_of_caption[one] == image_at[ids[row]]]
        if not places:
            raise _unknown(columns[1], row, text, data, "" if ids is None else " at that picture")
        owners = {int(data.image_of_caption[one]) for one in places}
        if len(owners) > 1:
            raise UserError(
                f"dataset, row {row}: {one_line(text, 60)!r} stands at {len(owners)} pictures of {data.name}; name the"
                " column of their ids with image_id="
            )
        owner = owners.pop()
        others = []
        for name, texts in zip(columns[2:], negatives, strict=True):
            strange = [one for one in found.get(texts[row], []) if data.image_of_caption[one] != owner]
            if not strange:
                raise _unknown(name, row, texts[row], data, " at another picture")
            others.append(strange[0])
        labels.append([owner, places[0], *others])
    kept = dataset if image_id is None or image_id == columns[0] else dataset.remove_columns([image_id])
    return kept.add_column("label", labels)


def _unknown(column: str, row: int, text: str, data: ImageCaptions, where: str) -> UserError:
    return UserError(
        f"dataset, row {row}, column {column!r}: {one_line(text, 60)!r} is no caption of {data.name}{where}; give the"
        " collection that the rows are of"
    )


def _read_columns(dataset: Any) -> list[str]:
    """Columns that the trainer gives to the model."""
    return [name for name in dataset.column_names if name not in LABELS]


def _texts(column: str, cells: Iterable[object]) -> list[str]:
    texts = []
    for row, cell in enumerate(cells):
        if not isinstance(cell, str):
            raise UserError(f"dataset, row {row}, column {column!r}: {type(cell).__name__} is no text; give texts")
        texts.append(cell)
    return texts


def _text(datasets: Any) -> Any:
    return datasets.Value("string")
