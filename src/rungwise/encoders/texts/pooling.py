"""One vector of a sentence from the vectors of its tokens. Padding never counts."""

from __future__ import annotations

import torch
from torch import Tensor


def inside(lengths: Tensor, longest: int, device: torch.device | None = None) -> Tensor:
    """(n, longest) bool: which places of a padded batch hold tokens.

    >>> inside(torch.tensor([2, 1]), 3)
    tensor([[ True,  True, False],
            [ True, False, False]])
    """
    return torch.arange(longest, device=device) < lengths.to(device).unsqueeze(1)


def mean_of(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, longest, D) and (n,) lengths to (n, D) means, added up in float32.

    >>> mean_of(torch.tensor([[[2.0], [4.0], [90.0]]]), torch.tensor([2]))
    tensor([[3.]])
    """
    held = inside(lengths, states.shape[1], states.device).unsqueeze(2)
    total = torch.where(held, states.float(), 0.0).sum(dim=1)
    return total / lengths.to(states.device).clamp(min=1).unsqueeze(1)


def max_of(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, longest, D) and (n,) lengths to (n, D), the largest of each component.

    >>> max_of(torch.tensor([[[-2.0], [-4.0], [90.0]]]), torch.tensor([2]))
    tensor([[-2.]])
    """
    held = inside(lengths, states.shape[1], states.device).unsqueeze(2)
    return states.masked_fill(~held, -torch.inf).amax(dim=1)


def last_of(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, longest, D) and (n,) lengths to (n, D), the vector of the last token.

    >>> last_of(torch.tensor([[[2.0], [4.0], [90.0]]]), torch.tensor([2]))
    tensor([[4.]])
    """
    last = (lengths - 1).to(states.device).view(-1, 1, 1).expand(-1, 1, states.shape[2])
    return torch.as_tensor(states.gather(1, last).squeeze(1))
