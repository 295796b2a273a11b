"""Right candidates other than the captions written for an image: from human judgements or shared class labels.

The two directions are separate, as in the files: ECCV Caption checked captions of 1,261 images and images of 1,332
captions. A query that was not checked has no positive and is left out of every mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.data import ImageCaptions, Issue
from rungwise.metrics import DIRECTIONS, Direction, Positives
from rungwise.relevance.human import Finder, Labels, read_id_lists

_MOST_UNKNOWN = 0.01

RightAnswers = Mapping[Direction, Positives]
"""Per direction, the right candidates of each query."""


def positives_from_json(
    image_to_caption: Path | str, caption_to_image: Path | str, data: ImageCaptions
) -> tuple[dict[Direction, Positives], tuple[Issue, ...]]:
    r"""Positives of CrissCrossed Captions or ECCV Caption, in the JSON that the authors of ECCV Caption publish.

    Args:
        image_to_caption: File of ``{image id: [caption ids]}``.
        caption_to_image: File of ``{caption id: [image ids]}``.
        data: The judged collection, with COCO's ``sentid`` as caption ids; an image is also known by its number.

    Returns:
        The positives, and the ids that the collection lacks: ECCV Caption names two captions that are not among the
        five of each image that the field uses. They are no candidates, so they are left out.

    Raises:
        UserError: If a file cannot be read, is no such JSON, or the collection lacks more than a hundredth of its ids.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "i2t.json").write_text('{"7": [70, 71]}'), (folder / "t2i.json").write_text('{"71": [7, 8]}')
    >>> data = ImageCaptions(("COCO_7.jpg", "COCO_8.jpg"), ("a", "b"), np.array([0, 1]), caption_ids=("70", "71"))
    >>> found, issues = positives_from_json(folder / "i2t.json", folder / "t2i.json", data)
    >>> found["i2t"].counts, found["t2i"].candidate
    (array([2, 0]), array([0, 1]))
    """
    images, captions = _Side("image", data.image_ids), _Side("caption", data.caption_ids)
    of_images, first = _read(Path(image_to_caption), data.name, images, captions)
    of_captions, second = _read(Path(caption_to_image), data.name, captions, images)
    return {"i2t": of_images, "t2i": of_captions}, (*first, *second)


def positives_from_labels(
    labels: Sequence[str | int | Sequence[str | int]],
    image_of_caption: ArrayLike | None = None,
    caption_labels: Sequence[str | int | Sequence[str | int]] | None = None,
) -> dict[Direction, Positives]:
    """Positives where everything that shares a class label is right, in both directions (Wikipedia and Pascal style).

    Args:
        labels: (images,) label of each image, or its several labels.
        image_of_caption: (captions,) position of each caption's image, whose labels it takes.
        caption_labels: (captions,) labels of the captions themselves, instead of ``image_of_caption``.

    >>> found = positives_from_labels(["art", "sport", "art"], [0, 1, 2])
    >>> found["i2t"].candidate, found["i2t"].counts
    (array([0, 2, 1, 0, 2]), array([2, 1, 2]))
    """
    shared = Labels(labels, image_of_caption, caption_labels=caption_labels)
    captions = shared.shape[1]
    of_images = positives_from_lists([np.flatnonzero(row) for _, rows in shared.chunks() for row in rows])
    order = np.lexsort((of_images.query, of_images.candidate))
    starts = np.concatenate([[0], np.cumsum(np.bincount(of_images.candidate, minlength=captions))])
    return {"i2t": of_images, "t2i": Positives(starts, of_images.query[order])}


def positives_from_lists(answers: Sequence[Iterable[int] | NDArray[np.int64]]) -> Positives:
    """Positives from one list of candidate positions per query; a position that stands twice counts once.

    >>> positives_from_lists([[2, 0, 2], []]).candidate
    array([0, 2])
    """
    lists = [np.unique(np.asarray(list(own), dtype=np.int64)) for own in answers]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in lists])]).astype(np.int64)
    return Positives(starts, np.concatenate([*lists, np.empty(0, dtype=np.int64)]))


def check_positives(positives: RightAnswers, images: int, captions: int) -> None:
    """Refuse positives whose number of queries or whose positions do not fit the data."""
    sizes: dict[Direction, tuple[int, int]] = {"i2t": (images, captions), "t2i": (captions, images)}
    for way in DIRECTIONS:
        queries, candidates = sizes[way]
        if way not in positives:
            raise UserError(f"positives: there are none for {way}; give both directions, an empty list where none is")
        own = positives[way]
        if len(own.counts) != queries:
            raise UserError(
                f"positives, {way}: {len(own.counts)} queries where the data have {queries}; give one list each"
            )
        if own.candidate.size and not 0 <= own.candidate.min() <= own.candidate.max() < candidates:
            wrong = own.candidate.max() if own.candidate.min() >= 0 else own.candidate.min()
            raise UserError(
                f"positives, {way}: candidate {wrong} does not exist among {candidates}; give positives of these data"
            )


class _Side:
    """Images or captions of a collection, found by id."""

    def __init__(self, what: str, ids: tuple[str, ...]) -> None:
        self.what = what
        self.count = len(ids)
        self.find = Finder(ids)


def _read(path: Path, name: str, queries: _Side, candidates: _Side) -> tuple[Positives, list[Issue]]:
    answers: list[list[int]] = [[] for _ in range(queries.count)]
    issues: list[Issue] = []
    ids = 0
    for query, own in read_id_lists(path).items():
        ids += 1 + len(own)
        asker = queries.find(query)
        if asker is None:
            issues.append(Issue(f"positives of an unknown {queries.what}", str(path), repr(query)))
            continue
        for one in own:
            candidate = candidates.find(one)
            if candidate is None:
                issues.append(Issue(f"positive that is an unknown {candidates.what}", f"{path}, {query!r}", repr(one)))
            else:
                answers[asker].append(candidate)
    if len(issues) > ids * _MOST_UNKNOWN:
        raise UserError(
            f"{path}: {issues[0].detail} is not in {name}, one of {len(issues)} such ids; give the collection that was"
            " judged, with its ids"
        )
    return positives_from_lists(answers), issues
