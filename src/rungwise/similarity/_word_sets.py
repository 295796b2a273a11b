"""Texts as sets of word vectors, any number of words each, without padding.

Comparisons of regions with words take texts of one length together: then nothing is padded, nothing is masked, and
every product is a dense one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rungwise.core import UserError
from rungwise.core.output import short_repr


@dataclass(frozen=True)
class WordSets:
    """The words of some texts, one text after the other.

    Attributes:
        words: (words of all texts, D) vectors.
        lengths: (texts,) int64 number of words of each text, at least 1; on the processor.
    """

    words: Tensor
    lengths: Tensor

    __repr__ = short_repr

    @classmethod
    def of(cls, padded: Tensor, lengths: Tensor | Sequence[int]) -> WordSets:
        """Make sets from a padded batch.

        Args:
            padded: (texts, longest, D); what follows the end of a text is not read.
            lengths: (texts,) number of words of each text.

        >>> WordSets.of(torch.arange(6.0).view(2, 3, 1), [1, 3]).words.ravel()
        tensor([0., 3., 4., 5.])
        """
        counts = torch.as_tensor(lengths, dtype=torch.int64).cpu()
        if padded.ndim != 3 or counts.shape != padded.shape[:1]:
            raise UserError(
                f"words must be (captions, W, D) with a length for each caption, got {tuple(padded.shape)} and"
                f" {tuple(counts.shape)} lengths"
            )
        if len(counts) and not 1 <= int(counts.min()) <= int(counts.max()) <= padded.shape[1]:
            odd = int(torch.nonzero((counts < 1) | (counts > padded.shape[1]))[0])
            raise UserError(
                f"caption {odd} (from 0) has {int(counts[odd])} words; lengths lie in 1..{padded.shape[1]}, the words"
                " that were given"
            )
        held = torch.arange(padded.shape[1]) < counts.unsqueeze(1)
        return cls(padded[held.to(padded.device)], counts)

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.lengths)

    def to(self, like: Tensor) -> WordSets:
        """The sets on the device and in the precision of a tensor."""
        return WordSets(self.words.to(like), self.lengths)

    def select(self, texts: Tensor) -> WordSets:
        """The texts at these (n,) int64 positions, in this order.

        >>> WordSets(torch.arange(4.0).view(4, 1), torch.tensor([1, 3])).select(torch.tensor([1])).words.ravel()
        tensor([1., 2., 3.])
        """
        lengths = self.lengths[texts]
        begins = (self.lengths.cumsum(0) - self.lengths)[texts]
        own = torch.repeat_interleave(begins - (lengths.cumsum(0) - lengths), lengths)
        return WordSets(self.words[(own + torch.arange(len(own))).to(self.words.device)], lengths)

    def by_length(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Groups of texts of one length, short ones first: (m,) positions of texts, and their (m, L, D) words."""
        begins = self.lengths.cumsum(0) - self.lengths
        for length in torch.unique(self.lengths).tolist():
            which = torch.nonzero(self.lengths == length).squeeze(1)
            rows = begins[which].unsqueeze(1) + torch.arange(length)
            yield which, self.words[rows.to(self.words.device)]
