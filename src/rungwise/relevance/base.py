"""What every source of relevance degrees answers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class Relevance(Protocol):
    """R[image, caption]: how well a caption describes an image, whether or not it was written for it.

    Implementations answer by integer positions in the collection they were built from, and compute lazily.
    """

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) float32 degrees."""
        ...

    def dense(self) -> NDArray[np.float32]:
        """(all images, all captions) float32 degrees."""
        ...
