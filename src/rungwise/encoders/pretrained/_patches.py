"""Pictures as patches, in their own proportions: the preprocessing of SigLIP 2 for pictures of any size ("NaFlex").

A picture is resized so that it has as many patches as the network reads, hardly distorted (Tschannen et al. 2025,
section 2.4). Its patches come one after the other, row by row; a last row of bytes says how many there are down and
across.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import UserError
from rungwise.encoders._preprocessing import Preprocessing

if TYPE_CHECKING:
    from torch import Tensor

_CLOSE = 1e-5
_MOST_PATCHES = 1 << 14


@dataclass(frozen=True)
class PatchPreprocessing(Preprocessing):
    """Resize to whole patches, cut into them, scale to 0..1, normalise per channel.

    Attributes:
        patch: Side of a patch in pixels.
        patches: Largest number of patches of a picture.

    >>> import torch
    >>> seen = PatchPreprocessing(patch=2, patches=8)
    >>> prepared = seen.apply(torch.zeros(3, 10, 40, dtype=torch.uint8))
    >>> prepared.shape, prepared[-1, :4].tolist()
    (torch.Size([9, 12]), [0, 1, 0, 4])
    """

    patch: Annotated[int, Field(ge=1, le=256)] = 16
    patches: Annotated[int, Field(ge=1, le=_MOST_PATCHES)] = 256

    @property
    def prepared_shape(self) -> tuple[int, ...]:
        """Shape of a prepared picture: (patches + 1, bytes of a patch)."""
        return (self.patches + 1, 3 * self.patch**2)

    def apply(self, picture: Tensor) -> Tensor:
        """Resize one (3, H, W) uint8 picture and cut it into patches.

        Returns:
            :attr:`prepared_shape` uint8: the patches, zeros up to the largest number, and in the last row the numbers
            of patches down and across as two bytes each.
        """
        import torch
        from torchvision.transforms.v2 import functional as vision

        down, across = self.grid(*picture.shape[-2:])
        target = [down * self.patch, across * self.patch]
        mode = vision.InterpolationMode(self.interpolation)
        resized = vision.resize(picture, target, interpolation=mode, antialias=True)
        cut = resized.reshape(3, down, self.patch, across, self.patch).permute(1, 3, 2, 4, 0)
        prepared = torch.zeros(self.prepared_shape, dtype=torch.uint8)
        prepared[: down * across] = cut.reshape(down * across, -1)
        prepared[-1, :4] = torch.tensor([down >> 8, down & 255, across >> 8, across & 255], dtype=torch.uint8)
        return prepared

    def apply_array(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Refuse: networks that read patches are run by torch only."""
        raise UserError("a network that reads pictures as patches is not exported; use the model itself")

    def normalise(self, pictures: Tensor) -> Tensor:
        """(n, patches + 1, bytes) float32, scaled and normalised, from uint8 of the same shape.

        Missing patches are 0, and the last row holds the numbers of patches down and across.
        """
        import torch

        grids = pictures[:, -1, :4].float()
        counts = torch.stack([grids[:, 0] * 256 + grids[:, 1], grids[:, 2] * 256 + grids[:, 3]], dim=1)
        mean, std = (torch.tensor(one, device=pictures.device).repeat(self.patch**2) for one in (self.mean, self.std))
        scaled = (pictures.float() / 255 - mean) / std
        there = torch.arange(self.patches + 1, device=pictures.device) < counts.prod(dim=1, keepdim=True)
        scaled = scaled * there[..., None]
        scaled[:, -1, :2] = counts
        return scaled

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Numbers of patches down and across for a picture of this size in pixels, found by the publishers' search.

        >>> PatchPreprocessing().grid(375, 500)
        (14, 18)
        """
        low, high = _CLOSE / 10, 100.0
        while high - low >= _CLOSE:
            scale = (low + high) / 2
            if self._along(height, scale) * self._along(width, scale) <= self.patches:
                low = scale
            else:
                high = scale
        return self._along(height, low), self._along(width, low)

    def _along(self, side: int, scale: float) -> int:
        return max(1, math.ceil(side * scale / self.patch))
