"""Labelled features: rows of images, rows of texts and class labels, part by part, as cross-modal research has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data._collection import ImageCaptions, Issue
from rungwise.data.files import FeatureRows


@dataclass(frozen=True)
class FeatureArray:
    """An array of features as it stands in the data.

    Attributes:
        name: Name of the array or of its file, for messages.
        values: (rows, D) numbers of any real type.
    """

    name: str
    values: NDArray[Any]


@dataclass(frozen=True)
class FeatureSplit:
    """One split of a collection: a row of each side for each document.

    Attributes:
        split: Name of the split.
        images: Rows of the images.
        texts: Rows of the texts.
        labels: (rows,) names of classes; empty where there are none at all.
        image_ids: (rows,) ids; empty to number the rows.
        text_ids: (rows,) ids of the texts; empty to take those of the images.
    """

    split: str
    images: FeatureArray
    texts: FeatureArray
    labels: tuple[tuple[str, ...], ...] = ()
    image_ids: tuple[str, ...] = ()
    text_ids: tuple[str, ...] = ()


def documents_of(images: FeatureArray, texts: FeatureArray, root: Path) -> int:
    """The number of documents of a part, whose images and texts are checked.

    Args:
        images: Rows of the images.
        texts: Rows of the texts.
        root: File or folder that holds both, for messages.
    """
    first, second = images.values.shape, texts.values.shape
    remedy = "save one row for each document in both"
    if len(first) == len(second) == 2:
        if first[0] == second[0]:
            return len(images.values)
        across = {
            "both": first[1] == second[1],
            texts.name: first[0] == second[1],
            images.name: first[1] == second[0],
        }
        if turned := next((which for which, fits in across.items() if fits), ""):
            remedy = f"if each document is a column, transpose {turned}, else {remedy}"
    raise UserError(f"{root}: {images.name} of shape {first} and {texts.name} of shape {second}; {remedy}")


def collection_of(
    parts: Sequence[FeatureSplit],
    root: Path,
    *,
    name: str,
    layout: str,
    captions_only: bool = False,
    issues: Sequence[Issue] = (),
) -> ImageCaptions:
    """Images and texts of all parts as one collection, each document an image with one caption.

    There are no words: the id of a text stands for its caption. Where two parts use the same id, the split's name
    stands before all of them. One issue counts the rows without a label.

    Args:
        parts: Parts with equally many rows of each side, ids and labels, as :func:`documents_of` checks.
        root: File or folder that holds them, for messages.
        name: Name of the collection.
        layout: Layout that was recognised.
        captions_only: Leave the rows of the images out.
        issues: Issues found before.

    Raises:
        UserError: If there are no rows at all, or those of one side are no numbers or not of one width.
    """
    sizes = {part.split: len(part.images.values) for part in parts}
    if not any(sizes.values()):
        raise UserError(f"{root}: its arrays have no rows; give another file")
    image_ids = _ids(parts, [part.image_ids for part in parts])
    text_ids = _ids(parts, [part.text_ids or part.image_ids for part in parts])
    labels = [part.labels or ((),) * sizes[part.split] for part in parts]
    lacking = [
        f"{missing} of {len(of_part)} rows of {part.split}"
        for part, of_part in zip(parts, labels, strict=True)
        if (missing := sum(not row for row in of_part))
    ]
    unlabelled = [Issue("no label", str(root), ", ".join(lacking))] if lacking else []
    images, texts = ([getattr(part, side) for part in parts] for side in ("images", "texts"))
    has_labels = any(row for of_part in labels for row in of_part)
    return ImageCaptions(
        image_ids=image_ids,
        captions=text_ids,
        image_of_caption=np.arange(len(image_ids)),
        caption_ids=text_ids,
        splits=tuple(split for split, size in sizes.items() for _ in range(size)),
        labels=tuple(row for of_part in labels for row in of_part) if has_labels else (),
        name=name,
        layout=layout,
        issues=(*issues, *unlabelled),
        features=None if captions_only else _features(images, root),
        text_features=_features(texts, root),
    )


def _ids(parts: Sequence[FeatureSplit], given: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    uses = Counter(one for ids in given for one in set(ids))
    is_shared = any(count > 1 for count in uses.values())
    found: list[str] = []
    for part, ids in zip(parts, given, strict=True):
        if ids:
            found += [f"{part.split}/{one}" if is_shared else one for one in ids]
        else:
            found += [f"{part.split}/{row}" for row in range(len(part.images.values))]
    return tuple(found)


def _features(sides: Sequence[FeatureArray], root: Path) -> FeatureRows:
    width = sides[0].values.shape[1]
    for side in sides:
        shape, kind = side.values.shape, side.values.dtype
        if kind.kind not in "fiub" or not shape[1]:
            raise UserError(f"{root}: {side.name} is of shape {shape} and type {kind}; features are rows of numbers")
        if shape[1] != width:
            raise UserError(
                f"{root}: {side.name} is of shape {shape}, but the rows of {sides[0].name} have {width} numbers; save"
                " rows of one width in all parts"
            )
    filled = [side for side in sides if len(side.values)]
    return FeatureRows(*(_floating(side.values) for side in filled), places=[f"{root}, {side.name}" for side in filled])


def _floating(values: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Floating-point features as they are, unread; counts of words and histograms as float32."""
    return values if values.dtype.kind == "f" else np.asarray(values, np.float32)
