"""Token numbers of many texts in one array, so that batches are cut and padded without a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core.output import short_repr


@dataclass(frozen=True)
class Tokens(Sequence[Sequence[int]]):
    """Token numbers of texts.

    Attributes:
        numbers: (tokens,) numbers of all texts, one after the other.
        starts: (texts + 1,) start of each text, and the end of the last one.

    >>> tokens = Tokens.of([[2, 7, 3], [2, 3]])
    >>> len(tokens), tokens[1], tokens.lengths
    (2, [2, 3], array([3, 2]))
    """

    numbers: NDArray[np.int32]
    starts: NDArray[np.int64]

    __repr__ = short_repr

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> Tokens:
        """Combine a list for each text."""
        if isinstance(texts, Tokens):
            return texts
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(texts), np.int32, int(starts[-1])), starts)

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.starts) - 1

    @overload
    def __getitem__(self, at: int) -> list[int]: ...

    @overload
    def __getitem__(self, at: slice) -> list[list[int]]: ...

    def __getitem__(self, at: int | slice) -> list[int] | list[list[int]]:
        """Token numbers of one text, or of some."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        begin, end = self.starts[:-1][at], self.starts[1:][at]
        found: list[int] = self.numbers[begin:end].tolist()
        return found

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(texts,) number of tokens of each text."""
        return np.diff(self.starts)

    def padded(self, chosen: NDArray[np.int64], number: int = 0) -> tuple[Tensor, Tensor]:
        """A batch of the texts at these (n,) positions: (n, longest) int64 tokens and (n,) int64 lengths.

        Rows are padded with ``number`` on the right.

        >>> Tokens.of([[2, 7, 3], [2, 3], [2]]).padded(np.array([2, 1]))
        (tensor([[2, 0],
                [2, 3]]), tensor([1, 2]))
        """
        begins = self.starts[chosen]
        lengths = self.starts[chosen + 1] - begins
        along = np.arange(lengths.max(initial=0))
        inside = along < lengths[:, None]
        batch = np.full(inside.shape, number, np.int64)
        batch[inside] = self.numbers[(begins[:, None] + along)[inside]]
        return torch.from_numpy(batch), torch.from_numpy(lengths)


def pad(tokens: Sequence[Sequence[int]], number: int = 0) -> tuple[Tensor, Tensor]:
    """(n, longest) int64 tokens, padded with ``number`` on the right, and (n,) int64 lengths."""
    return Tokens.of(tokens).padded(np.arange(len(tokens)), number)
