"""Human positives: pairs that people called right, which training treats like captions of the picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, user_path
from rungwise.data import ImageCaptions, Issue
from rungwise.relevance.human import place_judgements

Positions = NDArray[np.int64]


class TrainingPositives:
    """The captions that people called right for images, by positions in the collection.

    Args:
        pairs: (n, 2) positions (image, caption).
        captions: Number of captions in the collection.
        digest: SHA-256 of the file that the pairs come from; empty where it is not known.
        issues: Judgements that were left out.

    >>> called_right = TrainingPositives(np.array([[1, 0], [0, 3]]), 4)
    >>> called_right.block([0, 1], [0, 3])
    array([[False,  True],
           [ True, False]])
    """

    def __init__(self, pairs: Positions, captions: int, digest: str = "", issues: tuple[Issue, ...] = ()) -> None:
        self.digest = digest
        self.issues = issues
        self._pairs = pairs
        self._captions = captions
        self._keys = np.unique(pairs[:, 0] * captions + pairs[:, 1])

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._keys)

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.bool_]:
        """(len(images), len(captions)) bool: whether people called the caption right for the image."""
        asked = np.asarray(images, np.int64)[:, None] * self._captions + np.asarray(captions, np.int64)[None, :]
        if not len(self._keys):
            return np.zeros(asked.shape, np.bool_)
        place = np.minimum(np.searchsorted(self._keys, asked), len(self._keys) - 1)
        return np.asarray(self._keys[place] == asked)

    def among(self, images: Positions, captions: Positions) -> int:
        """Number of pairs whose image and caption are both among these."""
        return int((np.isin(self._pairs[:, 0], images) & np.isin(self._pairs[:, 1], captions)).sum())


def read_training_positives(name: str, data: ImageCaptions) -> TrainingPositives:
    """The pairs that people called right on average, from a judgement file or the grades of an index.

    Args:
        name: Path of the file; ``~`` is a home folder.
        data: The collection.

    Raises:
        UserError: If the file cannot be read, holds no judgements of this collection, or calls no pair right.

    >>> import tempfile
    >>> from rungwise.core.disk.sealed_lines import hash_of_text
    >>> from rungwise.relevance.human import Judgement, add_judgement, now
    >>> file = Path(tempfile.mkdtemp()) / "judgements.jsonl"
    >>> add_judgement(file, Judgement("b", "a#0", 3, "Ada", now(), hash_of_text("a dog")))
    >>> len(read_training_positives(str(file), ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))))
    1
    """
    path: Path = user_path(name)
    placed = place_judgements(path, data)
    right = placed.right()
    if not len(right):
        raise UserError(
            f"data.judgements: {path} calls no pair right (mean grade from {placed.right_from:g}), so it would change"
            " nothing; leave it out"
        )
    return TrainingPositives(right, len(data.captions), placed.hashes[path.name], placed.issues)
