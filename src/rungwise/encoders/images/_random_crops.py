"""Pictures with another crop on each visit of training: cached with a margin, and cropped when they are taken."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rungwise.encoders._preprocessing import Preprocessing

_LONGEST = 2
_HEADER = 4


@dataclass(frozen=True)
class RandomCrops:
    """Rows of one length for resized pictures, and their crops.

    A row is height and width, two bytes each, and the pixels of the resized picture; a tall one is transposed. Only the
    middle is kept of a picture that is more than twice as long as wide.

    Attributes:
        preprocessing: Preprocessing of the pictures.
    """

    preprocessing: Preprocessing

    @property
    def identity(self) -> str:
        """Text of everything that a row depends on besides the picture."""
        return f"room {self.preprocessing.identity!r}"

    @property
    def shape(self) -> tuple[int]:
        """Shape of a row."""
        side = self.preprocessing.resized_side
        return (_HEADER + 3 * side * self._longest,)

    @property
    def _longest(self) -> int:
        side = self.preprocessing.resized_side
        return side if self.preprocessing.resize == "square" else _LONGEST * side

    def keep(self, picture: Tensor) -> Tensor:
        """A row of :attr:`shape` for one (3, H, W) uint8 picture."""
        seen = self.preprocessing
        resized = seen.resized(picture)
        for dimension in (1, 2):
            # So that the centre stays the centre, to the pixel.
            cut = seen.middle(resized.shape[dimension]) - seen.middle(self._longest)
            if cut > 0:
                resized = resized.narrow(dimension, cut, self._longest)
        height, width = resized.shape[1:]
        lying = resized.transpose(1, 2) if height > width else resized
        strip = torch.zeros(3, seen.resized_side, self._longest, dtype=torch.uint8)
        strip[:, :, : lying.shape[2]] = lying
        header = torch.tensor([height % 256, height // 256, width % 256, width // 256], dtype=torch.uint8)
        return torch.cat([header, strip.flatten()])

    def centre(self, rows: Tensor) -> Tensor:
        """(n, 3, size, size) centre crops of (n, ...) rows, which evaluation sees."""
        seen = self.preprocessing
        found = []
        for row in rows:
            picture = self._picture(row)
            found.append(self._window(picture, *(seen.middle(side) for side in picture.shape[1:])))
        return torch.stack(found) if found else rows.new_zeros(0, *seen.prepared_shape)

    def drawn(self, rows: Tensor) -> Tensor:
        """(n, 3, size, size) crops of (n, ...) rows for a training visit, drawn by torch's generator.

        Each row takes three draws, whether they are used or not: two for the sides and one for the mirror.
        """
        seen = self.preprocessing
        found = []
        for row, (down, across, mirror) in zip(rows, torch.rand(len(rows), 3).tolist(), strict=True):
            picture = self._picture(row)
            height, width = picture.shape[1:]
            corner = seen.middle(height), seen.middle(width)
            if seen.crops == "RC":
                corner = int(down * (height - seen.size + 1)), int(across * (width - seen.size + 1))
            window = self._window(picture, *corner)
            found.append(window.flip(2) if seen.mirrored and mirror < 0.5 else window)
        return torch.stack(found) if found else rows.new_zeros(0, *seen.prepared_shape)

    def _picture(self, row: Tensor) -> Tensor:
        low_height, high_height, low_width, high_width = row[:_HEADER].tolist()
        height, width = low_height + 256 * high_height, low_width + 256 * high_width
        strip = row[_HEADER:].view(3, self.preprocessing.resized_side, self._longest)
        lying = strip[:, :, : max(height, width)]
        return lying.transpose(1, 2) if height > width else lying

    def _window(self, picture: Tensor, top: int, left: int) -> Tensor:
        size = self.preprocessing.size
        return picture[:, top : top + size, left : left + size]
