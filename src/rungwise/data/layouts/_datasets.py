"""Recognition of the datasets that papers train on."""

from __future__ import annotations

import re

from rungwise.data._collection import ImageCaptions

_OF_LAYOUT = {"wikipedia": "wikipedia", "scenes": "scenes"}
"""Datasets by layout, for layouts that only one dataset has."""

_PICTURES = {
    "coco": re.compile(r"(?:.*/)?COCO_(?:train|val)2014_\d{12}\.jpg"),
    "flickr8k": re.compile(r"(?:.*/)?\d{6,12}_[0-9a-f]{10}\.jpg"),
}
"""Patterns of a dataset's picture names that other collections hardly use."""

_PICTURES_IN_LAYOUT = {
    ("coco", "coco"): re.compile(r"(?:.*/)?\d{12}\.jpg"),
    ("flickr8k", "flickr30k"): re.compile(r"\d{6,12}\.jpg"),
}
"""Patterns of picture names that count only in one layout; keys are layout and dataset."""

_WORDS = {
    "coco": {"coco", "mscoco"},
    "flickr30k": {"flickr30k", "f30k"},
    "flickr8k": {"flickr8k", "f8k"},
}
"""Words of a collection's name, where files name it: in the layouts of Karpathy's JSON and of precomputed features."""

_LOOKED_AT = 50


def dataset_of(data: ImageCaptions) -> str:
    """The dataset that a collection is recognised as, by its layout, its name or the names of its pictures.

    Returns:
        coco, flickr30k, flickr8k, wikipedia or scenes; empty for other data.

    >>> import numpy as np
    >>> dataset_of(ImageCaptions(("1000268201_693b08cb0e.jpg",), ("A child.",), np.array([0])))
    'flickr8k'
    >>> dataset_of(ImageCaptions(("holiday.jpg",), ("A beach.",), np.array([0]), name="coco"))
    ''
    """
    if found := _OF_LAYOUT.get(data.layout):
        return found
    if data.layout in ("karpathy", "precomputed"):
        words = set(re.split(r"[^a-z0-9]+", data.name.lower()))
        if named := next((dataset for dataset, known in _WORDS.items() if words & known), ""):
            return named
    names = [getattr(path, "name", "") for path in data.paths[:_LOOKED_AT]] or list(data.image_ids[:_LOOKED_AT])
    patterns = list(_PICTURES.items())
    patterns += [(dataset, known) for (layout, dataset), known in _PICTURES_IN_LAYOUT.items() if layout == data.layout]
    return next((dataset for dataset, known in patterns if names and all(map(known.fullmatch, names))), "")
