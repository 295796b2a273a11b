"""Exact relevance between generated scenes and statements about them.

For a picture i and a caption c that states n facts (each attribute of a mentioned object, each relation, the count)::

    R[i, c] = max over assignments of the caption's objects to different objects of the picture
              (number of stated facts that hold) / n

A caption object that finds no object of its own contributes no fact. So R is 1 if and only if the caption is true of
the picture, whoever it was written for, and falls by 1/n with every fact that is wrong. It grades by what the caption
says: what the picture shows besides costs nothing, and a short caption has few rungs. "Two stars" means at least two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.data import ImageCaptions
from rungwise.relevance import Degrees, hash_of_captions
from rungwise.scenes._description import ATTRIBUTES, MAX_OBJECTS, RELATIONS, Scene, Statement
from rungwise.scenes._scene_files import load_scene_file

_SLOTS = tuple(permutations(range(MAX_OBJECTS)))
_PAIRS = tuple(permutations(range(MAX_OBJECTS), 2))
_VALUES = tuple((name, value) for name, values in ATTRIBUTES.items() for value in values)
_RELATED = tuple((relation, *pair) for relation in RELATIONS for pair in _PAIRS)
_FACTS: dict[tuple[object, ...], int] = {
    fact: column
    for column, fact in enumerate(
        (
            *((slot, name, value) for slot in range(MAX_OBJECTS) for name, value in _VALUES),
            *_RELATED,
            *(("count", count) for count in range(1, MAX_OBJECTS + 1)),
        )
    )
}
"""Column of every fact that can hold or be stated: (slot, attribute, value), (relation, slot, slot), ("count", n)."""


class SceneRelevance(Degrees):
    """R[picture, caption] of scenes, as the module defines it.

    Every possible fact is a column. A caption is a row of 0 and 1: the facts it states about its mentions 0, 1, 2. A
    picture is six such rows, one for each way to assign its objects to these mentions: the facts that then hold. The
    number of stated facts that hold is a matrix product, and a degree is the largest of the six.

    Args:
        scenes: (images,) content of each picture.
        statements: (captions,) statement of each caption.

    >>> from rungwise.scenes._description import Mention, SceneObject
    >>> star = SceneObject("star", "red", "small", "plain", 0.2, 0.5)
    >>> heart = SceneObject("heart", "blue", "large", "plain", 0.7, 0.5)
    >>> said = Statement((Mention("heart"), Mention("star", "blue")), (("left of", 0, 1),))
    >>> SceneRelevance([Scene((star,)), Scene((star, heart))], [said]).dense()
    array([[0.25],
           [0.5 ]], dtype=float32)
    """

    def __init__(self, scenes: Sequence[Scene], statements: Sequence[Statement]) -> None:
        super().__init__((len(scenes), len(statements)))
        self._shown = np.zeros((len(_SLOTS), len(scenes), len(_FACTS)), np.uint8)
        for image, scene in enumerate(scenes):
            for way, assigned in enumerate(_SLOTS):
                self._shown[way, image, _columns_shown(scene, assigned)] = 1
        self._stated = np.zeros((len(statements), len(_FACTS)), np.uint8)
        for caption, statement in enumerate(statements):
            self._stated[caption, _columns_stated(statement)] = 1

    @classmethod
    def load(cls, folder: Path | str, data: ImageCaptions) -> SceneRelevance:
        """The relevance of a collection that was read from a folder of scenes, or of a part of it.

        Args:
            folder: Folder that :func:`rungwise.scenes.generate` made.
            data: Images and captions of that folder, in any order; they are known by their ids.

        Raises:
            UserError: If the folder holds no finished scenes, or an id is not among them.
        """
        file = load_scene_file(folder)
        source = cls(
            [file.scene_of(image_id) for image_id in data.image_ids],
            [file.statement_of(caption_id) for caption_id in data.caption_ids],
        )
        source.image_of_caption = data.image_of_caption
        source.captions_hash = hash_of_captions(data.captions, data.image_of_caption)
        return source

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) float32 degrees in 0..1."""
        rows, columns = self.positions(images, captions)
        stated = self._stated[columns].astype(np.float32)
        best = np.zeros((len(rows), len(stated)), np.float32)
        for shown in self._shown:
            np.maximum(best, shown[rows].astype(np.float32) @ stated.T, out=best)
        best /= stated.sum(axis=1)
        return best

    def options(self) -> Mapping[str, Any]:
        """Empty: the relevance is exact."""
        return {}

    def hashed(self) -> Iterator[bytes]:
        """Contents of the pictures and statements of the captions."""
        yield from (self._shown.tobytes(), self._stated.tobytes())


def own_degrees(path: Path | str | None, data: ImageCaptions) -> Degrees | None:
    """The degrees that belong to a collection: generated scenes have theirs, other collections have none.

    Args:
        path: The folder or file that the collection was read from; None where it was not read.
        data: The collection, or a part of it.
    """
    if path is None or data.layout != "scenes":
        return None
    place = Path(path).expanduser()
    return SceneRelevance.load(place if place.is_dir() else place.parent, data)


def _columns_shown(scene: Scene, assigned: Sequence[int]) -> list[int]:
    """Facts that hold if mention ``slot`` means object ``assigned[slot]``; a number beyond the objects means none."""
    taken = {slot: thing for slot, thing in enumerate(assigned) if thing < len(scene.objects)}
    columns = [
        _FACTS[slot, name, getattr(scene.objects[thing], name)] for slot, thing in taken.items() for name in ATTRIBUTES
    ]
    columns += [
        _FACTS[relation, a, b] for a, b in permutations(taken, 2) for relation in scene.relations(taken[a], taken[b])
    ]
    return [*columns, _FACTS["count", len(scene.objects)]]


def _columns_stated(statement: Statement) -> list[int]:
    columns = [
        _FACTS[slot, name, value]
        for slot, mention in enumerate(statement.mentions)
        for name, value in mention.stated.items()
    ]
    columns += [_FACTS[relation] for relation in statement.relations]
    return columns if statement.count is None else [*columns, _FACTS["count", statement.count]]
