"""Roles of the splits of a collection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions


@dataclass(frozen=True)
class Roles:
    """Splits by their role; pictures in other splits are not examined.

    Attributes:
        train: Splits for training.
        validation: Split that chooses the snapshot.
        test: Split for measuring.

    >>> data = ImageCaptions(("a", "b", "c"), (), np.zeros(0), splits=("train", "none", "test"))
    >>> Roles().used(data).tolist(), Roles().role_of(data)
    ([0, 2], ('training', '', 'test'))
    """

    train: tuple[str, ...] = ("train",)
    validation: str = "val"
    test: str = "test"

    __repr__ = short_repr

    @property
    def named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each role with its splits."""
        return ("training", self.train), ("validation", (self.validation,)), ("test", (self.test,))

    def role_of(self, data: ImageCaptions) -> tuple[str, ...]:
        """(images,) ``training``, ``validation``, ``test``, or an empty text for images that are not examined."""
        role = {name: what for what, names in reversed(self.named) for name in names}
        return tuple(role.get(split, "") for split in data.splits) or ("",) * len(data)

    def used(self, data: ImageCaptions) -> NDArray[np.int64]:
        """Positions of the images with any role."""
        return np.flatnonzero([bool(one) for one in self.role_of(data)]).astype(np.int64)

    def images(self, data: ImageCaptions, role: str) -> NDArray[np.int64]:
        """Positions of the images with one role."""
        return np.flatnonzero([one == role for one in self.role_of(data)]).astype(np.int64)
