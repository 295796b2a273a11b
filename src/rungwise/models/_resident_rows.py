"""Rows that stay in the device's memory, so that training steps copy none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rungwise.data import Issue
from rungwise.encoders.images import ImageRows
from rungwise.models._training_pairs import ImageInputs, Positions

_COPIED = 4096
"""Number of rows copied at a time."""


@dataclass(frozen=True)
class ResidentRows:
    """Rows copied to a device.

    Attributes:
        values: (rows, ...) on the device.
        kept: (rows,) position of each among the images asked for, ascending.
        issues: The images that could not be read, with the reason.
        computed: Number of rows that were computed and not taken from a cache.
        seconds: Seconds that computing the rows took.
    """

    values: Tensor
    kept: Positions
    issues: tuple[Issue, ...]
    computed: int
    seconds: float

    @classmethod
    def of(cls, rows: ImageInputs, device: torch.device) -> ResidentRows:
        """Copy all rows, at least one, to a device."""
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
        """(len(positions), ...) rows at these positions, on the device."""
        return self.values[torch.from_numpy(positions).to(self.values.device)]


def resident(rows: ImageInputs, device: torch.device, share: float) -> ImageInputs:
    """Copy rows to the memory of a GPU where they take at most this share of what is free.

    They are left alone where they take more, on a processor, and where each visit of a picture sees another crop.
    """
    cropped = isinstance(rows, ImageRows) and rows.crops is not None
    if device.type != "cuda" or cropped or not len(rows):
        return rows
    room = share * torch.cuda.mem_get_info(device)[0]
    return ResidentRows.of(rows, device) if rows.take(np.arange(1)).nbytes * len(rows) <= room else rows
