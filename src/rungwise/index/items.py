"""The pictures of an index: ids, files, captions, and how they are written down."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rungwise.data.collection import ImageCaptions
from rungwise.data.packed import PackedPicture, Picture, packed_picture


@dataclass(frozen=True)
class Item:
    """A picture of the collection: where it lies; ``path`` is None where the collection has features in place of files.

    >>> Item("dog-7", Path("photos/dog-7.jpg"), captions=("a dog", "a dog asleep")).id
    'dog-7'
    """

    id: str
    path: Picture | None
    captions: tuple[str, ...] = ()
    caption_ids: tuple[str, ...] = ()


def items_at(data: ImageCaptions, images: Sequence[int]) -> list[Item]:
    """The items at these positions of a collection, with absolute paths.

    >>> import numpy as np
    >>> data = ImageCaptions(("a", "b"), ("a dog",), np.array([1]), paths=(Path("a.jpg"), Path("b.jpg")))
    >>> [item.captions for item in items_at(data, [0, 1])]
    [(), ('a dog',)]
    """
    of_image = data.captions_of_image
    return [
        Item(
            id=data.image_ids[image],
            path=_absolute(data.paths[image]) if data.paths else None,
            captions=tuple(data.captions[caption] for caption in of_image[image]),
            caption_ids=tuple(data.caption_ids[caption] for caption in of_image[image]),
        )
        for image in images
    ]


def _absolute(picture: Picture) -> Picture:
    file = picture.file if isinstance(picture, PackedPicture) else picture
    # Links are not followed: people arrange pictures by them.
    file = Path(os.path.abspath(file))  # noqa: PTH100
    return replace(picture, file=file) if isinstance(picture, PackedPicture) else file


def positions_of_texts(items: Sequence[Item]) -> dict[str, tuple[int, ...]]:
    """Each distinct caption, in order of first appearance, with the positions of the items that have it.

    Equal texts share one vector and one place in a ranking; blank ones have none.

    >>> two = Item("a", Path("a.jpg"), ("a dog", "a pet")), Item("b", Path("b.jpg"), ("a dog", " "))
    >>> positions_of_texts(two)
    {'a dog': (0, 1), 'a pet': (0,)}
    """
    positions: dict[str, dict[int, None]] = {}
    for position, item in enumerate(items):
        for text in item.captions:
            if text.strip():
                positions.setdefault(text, {})[position] = None
    return {text: tuple(bearers) for text, bearers in positions.items()}


def to_record(item: Item, folder: Path | None) -> dict[str, Any]:
    """An item as a store keeps it under its id; its path is relative to the index folder if both lie in the same one.

    A picture in a larger file has the path of that file, and its place in it as well.

    >>> to_record(Item("a", Path("/photos/dogs/a.jpg")), Path("/photos/index"))
    {'path': '../dogs/a.jpg', 'captions': []}
    >>> from rungwise.data.packed import TarMember
    >>> to_record(Item("a", TarMember(Path("/photos/dogs.tar"), 512, 6102, "a.jpg")), Path("/photos/index"))
    {'path': '../dogs.tar', 'captions': [], 'place': {'offset': 512, 'size': 6102, 'name': 'a.jpg'}}
    """
    path = item.path.file if isinstance(item.path, PackedPicture) else item.path
    if path is not None and folder is not None and path.is_relative_to(folder.resolve().parent):
        path = Path(os.path.relpath(path, folder.resolve()))
    captions = [{"id": i, "text": text} for i, text in zip(item.caption_ids, item.captions, strict=True)]
    record = {"path": None if path is None else path.as_posix(), "captions": captions}
    return record | {"place": item.path.place} if isinstance(item.path, PackedPicture) else record


def from_record(item_id: str, record: Mapping[str, Any], folder: Path | None) -> Item:
    """Read what :func:`to_record` gave.

    Raises:
        KeyError: If a field is missing.
        TypeError: If a field is of another type.

    >>> item = Item("a", Path.cwd() / "a.jpg", ("a dog",), ("a#0",))
    >>> from_record("a", to_record(item, Path("index")), Path("index")) == item
    True
    """
    captions, path = record["captions"], record["path"]
    if not isinstance(captions, list):
        raise TypeError(f"captions are {captions!r}")
    if not (path is None or isinstance(path, str)) or "\0" in (path or ""):
        raise TypeError(f"the path is {path!r}")
    file = None if path is None else Path(os.path.normpath((folder or Path()).resolve() / path))
    place = record.get("place")
    if not (place is None or (isinstance(place, dict) and file is not None)):
        raise TypeError(f"the place is {place!r}")
    return Item(
        id=item_id,
        path=file if place is None or file is None else packed_picture(file, place),
        captions=tuple(str(caption["text"]) for caption in captions),
        caption_ids=tuple(str(caption["id"]) for caption in captions),
    )
