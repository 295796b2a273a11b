"""Collective operations with gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather_rows(own: Tensor, sizes: list[int]) -> Tensor:
    """(sum(sizes), ...) rows of all processes in the order of their ranks, with gradients.

    The gradient of a process's rows is the sum over all processes' losses, so all processes must run backward together.

    >>> import tempfile
    >>> from rungwise.training.distributed._global_negatives import process_group
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with process_group("gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1):
    ...         gather_rows(torch.tensor([[1.0], [2.0]]), [2])
    tensor([[1.],
            [2.]])
    """
    rows: Tensor = _GatherRows.apply(own, sizes)  # type: ignore[no-untyped-call]
    return rows


class _GatherRows(torch.autograd.Function):
    """All-gather in the forward pass; in the backward pass, the sum over the processes, cut to the own rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, sizes: list[int]) -> Tensor:
        """(sum(sizes), ...) rows of all processes, from the own (sizes[rank], ...)."""
        ctx.sizes = sizes
        # Backends gather tensors of one shape only.
        padded = own.new_zeros(max(sizes), *own.shape[1:])
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        """(sizes[rank], ...) gradient of the own rows, from (sum(sizes), ...)."""
        total = upstream.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return torch.split(total, ctx.sizes)[dist.get_rank()], None


def total(own: Tensor) -> Tensor:
    """Sum of a scalar over the processes, with gradients.

    Each process runs backward from the sum, so the gradient of ``own`` is multiplied by the number of processes: the
    *average* of the gradients over the processes is then that of the sum.
    """
    together: Tensor = _Total.apply(own)  # type: ignore[no-untyped-call]
    return together


class _Total(torch.autograd.Function):
    """Sum over the processes; its gradient is multiplied by their number, since each runs backward from the sum."""

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        """The sum over the processes."""
        ctx.world = dist.get_world_size()
        total = own.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        """The gradient times the number of processes."""
        world: int = ctx.world
        return upstream * world
