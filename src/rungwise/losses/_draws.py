"""Random draws that depend on a seed and the drawn items, not on the shape of the block."""

from __future__ import annotations

import torch
from torch import Tensor

from rungwise.losses._pairs import BlockSide

_GOLDEN = -0x61C8864680B583EB  # 2**64 / golden ratio, as a signed number
_MIX = (-0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15)


def _mixed(x: Tensor) -> Tensor:
    """SplitMix64's finaliser (Steele et al. 2014) on int64."""
    # The product wraps around as an unsigned one does; the shift copies the sign, which is masked off again.
    for shift, factor in zip((30, 27), _MIX, strict=True):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def pair_keys(side: BlockSide, generator: torch.Generator | None = None) -> Tensor:
    """(P, C) random int64 for every pair and candidate, fixed by the generator's next number and both ids.

    They are not negative.

    Args:
        side: P pairs over C candidates; its ids, if given, replace the positions.
        generator: Random generator, of which one number is drawn; None takes the default generator of the block's
            device.

    >>> from rungwise.losses._pairs import two_sides
    >>> side, _ = two_sides(torch.zeros(3, 3))
    >>> one = pair_keys(side, torch.Generator().manual_seed(0))
    >>> bool((one == pair_keys(side, torch.Generator().manual_seed(0))).all()), len(one.unique())
    (True, 9)
    """
    home = side.similarity.device
    device = home if generator is None else generator.device
    seed = torch.randint(1 << 62, (1,), generator=generator, device=device).to(home)
    queries, candidates = side.similarity.shape
    rows = torch.arange(queries, device=home) if side.query_ids is None else side.query_ids
    columns = torch.arange(candidates, device=home) if side.candidate_ids is None else side.candidate_ids
    pair = _mixed(_mixed(seed + rows[side.query] * _GOLDEN) + columns[side.column] * _GOLDEN)
    return _mixed(pair.unsqueeze(1) + columns * _GOLDEN) & ((1 << 63) - 1)


def draw(eligible: Tensor, keys: Tensor, count: int) -> Tensor:
    """(P, C) bool: ``count`` of each row's eligible candidates, drawn without replacement.

    ``keys`` are (P, C) keys from :func:`pair_keys`; a row with fewer eligible candidates keeps them all.
    """
    chosen = keys.masked_fill(~eligible, -1).topk(min(count, keys.shape[1]), dim=1).indices
    return torch.zeros_like(eligible).scatter(1, chosen, True) & eligible
