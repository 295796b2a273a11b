"""What an index asks of a model, so that any joint embedding can be searched with, ours or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.data.collection import Issue


class EncodedPictures(Protocol):
    """Vectors of the pictures that could be read, and why the others could not.

    >>> from types import SimpleNamespace
    >>> one_of_two: EncodedPictures = SimpleNamespace(
    ...     vectors=np.ones((1, 4), np.float32), kept=np.array([1]), issues=(Issue("truncated", "a.jpg"),)
    ... )
    >>> len(one_of_two.vectors)
    1
    """

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(kept, D) float32."""
        ...

    @property
    def kept(self) -> NDArray[np.int64]:
        """(kept,) positions of these pictures in what was asked for, ascending."""
        ...

    @property
    def issues(self) -> tuple[Issue, ...]:
        """One for each picture that was skipped."""
        ...


class EmbeddingModel(Protocol):
    """Pictures and texts into one space, and how alike two of them are.

    >>> class LetterCounts:  # every text or file is the counts of its letters a, b and c
    ...     dimension, fingerprint = 3, "letter-counts"
    ...
    ...     def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
    ...         return np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)
    >>> LetterCounts().encode_text(["abba"])
    array([[2., 2., 0.]], dtype=float32)
    """

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hash of everything a vector depends on: weights, configuration, preprocessing, vocabulary."""
        ...

    def encode_image(
        self, pictures: Sequence[Path | bytes], *, progress: Callable[[int], None] | None = None
    ) -> EncodedPictures:
        """Vectors of pictures; ``progress`` is called with how many more pictures are done."""
        ...

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, D) float32."""
        ...

    def similarity(self, image_vectors: NDArray[np.float32], text_vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """(images, texts) float32; higher is more alike."""
        ...
