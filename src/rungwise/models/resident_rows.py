"""Rows that stay in the memory of the device, so that a training step copies none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rungwise.data.collection import Issue
from rungwise.encoders.images.image_rows import ImageRows
from rungwise.models.training_pairs import ImageInputs, Positions

_COPIED = 4096
"""Rows that are copied at a time."""


@dataclass(frozen=True)
class ResidentRows:
    """The rows of others, copied to a device.

    Attributes:
        values: (rows, ...) on the device.
        kept: As of the others.
        issues: Likewise.
        computed: Likewise.
        seconds: Likewise.
    """

    values: Tensor
    kept: Positions
    issues: tuple[Issue, ...]
    computed: int
    seconds: float

    @classmethod
    def of(cls, rows: ImageInputs, device: torch.device) -> ResidentRows:
        """Copy all rows.

        Args:
            rows: At least one.
            device: Where to.
        """
        first = rows.take(np.arange(1))
        values = torch.empty((len(rows), *first.shape[1:]), dtype=first.dtype, device=device)
        for begin in range(0, len(rows), _COPIED):
            some = np.arange(begin, min(begin + _COPIED, len(rows)))
            values[begin : begin + len(some)] = rows.take(some).to(device)
        return cls(values, rows.kept, rows.issues, rows.computed, rows.seconds)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def take(self, positions: Positions) -> Tensor:
        """(len(positions), ...) of these rows, on the device."""
        return self.values[torch.from_numpy(positions).to(self.values.device)]


def resident(rows: ImageInputs, device: torch.device, share: float) -> ImageInputs:
    """The rows in the memory of a GPU, where there is room for them.

    Args:
        rows: What a model reads of images or captions.
        device: Where it computes.
        share: Of the GPU's free memory, that the rows may take.

    Returns:
        The rows as they are where they take more, on a processor, and where each visit of a picture sees another crop.
    """
    cropped = isinstance(rows, ImageRows) and rows.crops is not None
    if device.type != "cuda" or cropped or not len(rows):
        return rows
    room = share * torch.cuda.mem_get_info(device)[0]
    return ResidentRows.of(rows, device) if rows.take(np.arange(1)).nbytes * len(rows) <= room else rows
