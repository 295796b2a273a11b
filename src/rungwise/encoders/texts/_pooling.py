"""Pooling of token vectors into one vector of a text. Padding never counts."""

from __future__ import annotations

import torch
from torch import Tensor


def inside(lengths: Tensor, longest: int, device: torch.device | None = None) -> Tensor:
    """(n, longest) bool: which positions of a padded batch hold tokens.

    >>> inside(torch.tensor([2, 1]), 3)
    tensor([[ True,  True, False],
            [ True, False, False]])
    """
    return torch.arange(longest, device=device) < lengths.to(device).unsqueeze(1)


def mean_of(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, D) means, added up in float32, of (n, longest, D) states with (n,) lengths."""
    held = inside(lengths, states.shape[1], states.device).unsqueeze(2)
    total = torch.where(held, states.float(), 0.0).sum(dim=1)
    return total / lengths.to(states.device).clamp(min=1).unsqueeze(1)


def max_of(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, D) maxima of each component, of (n, longest, D) states with (n,) lengths."""
    held = inside(lengths, states.shape[1], states.device).unsqueeze(2)
    return states.masked_fill(~held, -torch.inf).amax(dim=1)


def last_of(states: Tensor, lengths: Tensor) -> Tensor:
    """(n, D) states of the last token, of (n, longest, D) states with (n,) lengths."""
    last = (lengths - 1).to(states.device).view(-1, 1, 1).expand(-1, 1, states.shape[2])
    return torch.as_tensor(states.gather(1, last).squeeze(1))
