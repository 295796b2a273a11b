"""A generator of captions over regions, trained beside retrieval (Li et al. 2019, section 3.4, Eq. 10).

It is an encoder and a decoder with attention. Of the regions v_1..v_N of a picture and the words y_1..y_T of its
caption, with teacher forcing::

    e_i   = GRU(drop(W_v v_i + b_v), e_{i-1}),  e_0 = 0
    a_t,i = softmax over i of  w . tanh(W_a [e_i; h_{t-1}] + b_a)
    c_t   = sum_i a_t,i e_i
    h_t   = GRU(drop([x_t; c_t]), h_{t-1}),  h_0 = e_N                  x_t: vector of the word y_t
    p_t   = softmax(W_o h_t + b_o)
    loss  = - sum over captions and over t < T of  log p_t(y_{t+1})  /  captions of the batch

So it is a sum over the words of a caption and a mean over captions, as in the authors' program. (The program also asks
for one padding token after the last word. That says nothing of the picture, and is left out.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import STRICT, BelowOne, Bounded, Cancelled, NotNegative, Size
from rungwise.encoders.texts import inside


@dataclass(frozen=True)
class CaptionHeadConfig(Bounded):
    """A generator of captions, with the sizes of the authors' program.

    Attributes:
        weight: Weight of its loss beside that of retrieval; 0 builds none. The program adds both unweighted, and its
            retrieval loss is a sum over the batch (reduction: sum).
        hidden: Width of its hidden states.
        word_dimension: Width of its word vectors.
        dropout: Share of the numbers that both GRUs read which training sets to 0.
        longest: Largest number of decoded tokens of a caption, with those that frame it. A longer one is cut, and still
            ends with its last token.
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "captions"

    weight: NotNegative = 1.0
    hidden: Size = 512
    word_dimension: Size = 300
    dropout: BelowOne = 0.2
    longest: Annotated[int, Field(ge=2)] = 60

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Options of a generator that is not built."""
        if not self.weight:
            for one in fields(self):
                if one.name != "weight" and getattr(self, one.name) != one.default:
                    yield Cancelled(
                        f"{place}.{one.name} {getattr(self, one.name):g} changes nothing: {place}.weight 0 builds no"
                        f" generator of captions; set {place}.weight above 0, or leave it out"
                    )


class CaptionHead(nn.Module):
    """Network from regions of the given ``width`` to the probabilities of a caption's words."""

    def __init__(self, width: int, words: int, config: CaptionHeadConfig) -> None:
        super().__init__()
        hidden, self.longest = config.hidden, config.longest
        self.regions = nn.Linear(width, hidden)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True)
        self.words = nn.Embedding(words, config.word_dimension)
        self.align_regions = nn.Linear(hidden, hidden)
        self.align_state = nn.Linear(hidden, hidden, bias=False)
        self.importance = nn.Linear(hidden, 1, bias=False)
        self.decoder = nn.GRUCell(config.word_dimension + hidden, hidden)
        self.out = nn.Linear(hidden, words)
        self.dropout = nn.Dropout(config.dropout)
        for layer in (self.regions, self.importance, self.out):
            nn.init.xavier_normal_(layer.weight)
        for half in (self.align_regions, self.align_state):  # as halves of one layer of 2 hidden x hidden
            nn.init.normal_(half.weight, std=(2 / (3 * hidden)) ** 0.5)

    def loss(self, regions: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Cross entropy of captions, summed over words and averaged over captions, in float32 at least.

        Args:
            regions: (n, R, D) regions of the pictures.
            tokens: (n, longest) int64 token numbers of their captions, padded on the right.
            lengths: (n,) number of tokens of each caption. The first token is given, so a single one has no loss.
        """
        if tokens.shape[1] < 2:
            return regions.new_zeros(())
        tokens, lengths = cut(tokens, lengths, self.longest)
        held = inside(lengths - 1, tokens.shape[1] - 1, tokens.device)
        logits = self.out(self.states(regions, tokens[:, :-1])[held])
        exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return F.cross_entropy(exact, tokens[:, 1:][held], reduction="sum") / len(tokens)

    def states(self, regions: Tensor, tokens: Tensor) -> Tensor:
        """(n, T, hidden) states h_t after each of (n, T) int64 tokens, for (n, R, D) regions of the pictures.

        Those after the end of a caption mean nothing.
        """
        encoded, last = self.encoder(self.dropout(self.regions(regions)))
        keys, words, state = self.align_regions(encoded), self.dropout(self.words(tokens)), last[0]
        states = []
        for word in words.unbind(dim=1):
            energies = self.importance(torch.tanh(keys + self.align_state(state).unsqueeze(1)))  # (n, R, 1)
            context = (torch.softmax(energies, dim=1) * encoded).sum(dim=1)
            state = self.decoder(torch.cat([word, self.dropout(context)], dim=1), state)
            states.append(state)
        return torch.stack(states, dim=1)


def cut(tokens: Tensor, lengths: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """Captions of at most ``longest`` (at least 1) tokens; a cut caption keeps its last token at the end.

    ``tokens`` are (n, L) int64, padded on the right, and ``lengths`` (n,). Returned are (n, min(L, longest)) tokens and
    (n,) lengths.

    >>> cut(torch.tensor([[2, 7, 8, 3], [2, 7, 3, 0]]), torch.tensor([4, 3]), 3)
    (tensor([[2, 7, 3],
            [2, 7, 3]]), tensor([3, 3]))
    """
    ends = _last(lengths, tokens)
    kept = lengths.clamp(max=longest)
    return tokens[:, :longest].scatter(1, _last(kept, tokens), tokens.gather(1, ends)), kept


def _last(lengths: Tensor, tokens: Tensor) -> Tensor:
    """(n, 1) position of the last token; 0 where there is none."""
    return (lengths - 1).clamp(min=0).unsqueeze(1).to(tokens.device)
