"""Which splits of a collection are trained on, chosen by and measured on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.data.collection import ImageCaptions


@dataclass(frozen=True)
class Roles:
    """The splits by what they are for; pictures in others are not looked at.

    Attributes:
        train: Splits that are trained on.
        validation: The split that chooses the snapshot.
        test: The split that is measured on.

    >>> data = ImageCaptions(("a", "b", "c"), (), np.zeros(0), splits=("train", "none", "test"))
    >>> Roles().used(data).tolist(), Roles().role_of(data)
    ([0, 2], ('training', '', 'test'))
    """

    train: tuple[str, ...] = ("train",)
    validation: str = "val"
    test: str = "test"

    @property
    def named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What each is for, and its splits."""
        return ("training", self.train), ("validation", (self.validation,)), ("test", (self.test,))

    def role_of(self, data: ImageCaptions) -> tuple[str, ...]:
        """(images,) ``training``, ``validation``, ``test``, or nothing for what is not looked at."""
        role = {name: what for what, names in reversed(self.named) for name in names}
        return tuple(role.get(split, "") for split in data.splits) or ("",) * len(data)

    def used(self, data: ImageCaptions) -> NDArray[np.int64]:
        """Positions of the images that are in one of them."""
        return np.flatnonzero([bool(one) for one in self.role_of(data)]).astype(np.int64)

    def images(self, data: ImageCaptions, role: str) -> NDArray[np.int64]:
        """Positions of the images of one of them."""
        return np.flatnonzero([one == role for one in self.role_of(data)]).astype(np.int64)
