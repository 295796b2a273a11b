"""A GRU over the prefixes of a batch: captions with a common beginning share its computation.

A state of a GRU that reads from left to right depends on the words so far and on nothing else. Of 128 captions, all
begin with <start>, most go on with "a", and some with "a man": their states are the same. Each distinct prefix is
computed once here, and no padding is. States and gradients are those of :class:`torch.nn.GRU`, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from rungwise.core.output import short_repr

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Prefixes:
    """The distinct prefixes of some sequences, short ones first.

    Prefixes of one length are adjacent, those that a longer sequence continues before the others. So the parents of a
    level, which are the continued prefixes, are its first rows; and where no two prefixes share a parent, the parents
    of a level are the first rows of the level before in the same order.

    Attributes:
        starts: (longest + 1,) first row of the prefixes of 1, 2, ... elements, and the number of all prefixes.
        parents: For each level, the row of the level before that each prefix continues; None where these are
            0, 1, 2 and so on.
        parent_counts: Number of rows of the level before that are continued.
        elements: (distinct,) elements of the sequences, ascending.
        element: (prefixes,) position in ``elements`` of each prefix's last element.
        places: (n, longest) row of each sequence's prefixes; any row after its end.
    """

    starts: list[int]
    parents: list[Tensor | None]
    parent_counts: list[int]
    elements: Tensor
    element: Tensor
    places: Tensor

    __repr__ = short_repr

    @classmethod
    def of(cls, sequences: Positions, lengths: Positions) -> Prefixes:
        """Find the prefixes of (n, longest) sequences of whole numbers of at least 0.

        ``lengths`` are (n,), at least 1; what follows the end of a sequence is not read.

        >>> found = Prefixes.of(np.array([[2, 7, 0], [2, 7, 5], [2, 8, 5]]), np.array([2, 3, 3]))
        >>> found.elements[found.element].tolist(), found.starts
        ([2, 7, 8, 5, 5], [0, 1, 3, 5])
        >>> found.places.tolist()[1:]
        [[0, 1, 3], [0, 2, 4]]
        """
        count, longest = sequences.shape
        inside = np.arange(longest) < lengths[:, None]
        by_length = np.argsort(-lengths, kind="stable")
        framed = np.where(inside, sequences, -1)[by_length]
        alike = np.lexsort(framed.T[::-1])  # sequences with the same beginning stand together
        ordered, held = framed[alike], inside[by_length][alike].T
        new = np.ones_like(held)
        new[:, 1:] = np.logical_or.accumulate(ordered[1:] != ordered[:-1], axis=1).T
        # Of each prefix, the longest sequence that has it stands for it.
        level, row = np.nonzero(held)
        first = np.flatnonzero(new[held])
        longest_of = np.minimum.reduceat(alike[row], first)
        level_of = level[first]
        order = np.lexsort((longest_of, level_of))
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        places = np.zeros((count, longest), np.int64)
        places[by_length[alike[row]], level] = number[np.cumsum(new[held]) - 1]
        level_of, sequence = level_of[order], by_length[longest_of[order]]
        starts = np.searchsorted(level_of, np.arange(longest + 1)).tolist()
        goes_on = lengths[sequence] > level_of + 1
        parent = places[sequence, level_of - 1]
        parents: list[Tensor | None] = [None]
        parent_counts = [0]
        for at in range(1, longest):
            begin, end = starts[at], starts[at + 1]
            parent_counts.append(int(np.count_nonzero(goes_on[starts[at - 1] : begin])))
            own = parent[begin:end] - starts[at - 1]
            parents.append(None if parent_counts[at] == end - begin else torch.from_numpy(own))
        elements, element = (
            torch.from_numpy(one) for one in np.unique(sequences[sequence, level_of], return_inverse=True)
        )
        return cls(starts, parents, parent_counts, elements, element, torch.from_numpy(places))

    def __len__(self) -> int:
        """Number of prefixes."""
        return len(self.element)


def prefix_states(
    inputs: Tensor,
    rows: Tensor | None,
    weights: Sequence[Tensor],
    prefixes: Prefixes,
) -> Tensor:
    """(prefixes, D) float32 states of a GRU after each prefix (Cho et al. 2014, as in :class:`torch.nn.GRU`).

    Under autocast to bfloat16 products are computed in it, while states are added up in float32.

    Args:
        inputs: (m, W) vectors.
        rows: (prefixes,) row of ``inputs`` for the last element of each prefix; None where they are in order.
        weights: ``weight_ih``, ``weight_hh``, ``bias_ih`` and ``bias_hh`` of the layer, as in torch.
        prefixes: Prefixes of the batch.

    >>> network, x = torch.nn.GRU(2, 3), torch.randn(4, 2)
    >>> prefixes = Prefixes.of(np.arange(4)[None], np.array([4]))
    >>> states = prefix_states(x, None, list(network.parameters()), prefixes)
    >>> torch.allclose(states, network(x)[0], atol=1e-6)
    True
    """
    input_weight, weight, input_bias, bias = weights
    gates = F.linear(inputs, input_weight, input_bias)
    states: Tensor = _PrefixStates.apply(gates, rows, weight, bias, prefixes)  # type: ignore[no-untyped-call]
    return states


class _PrefixStates(torch.autograd.Function):
    """One autograd function, so that the gradient of the weights is one product over all prefixes, not one a level."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, rows: Tensor | None, weight: Tensor, bias: Tensor, prefixes: Prefixes
    ) -> Tensor:
        width, precision, count = weight.shape[1], gates.dtype, len(prefixes)
        own_weight, own_bias = weight.to(precision), bias.to(precision)
        states = gates.new_empty((count, width), dtype=torch.float32)
        before = gates.new_zeros((count, width))  # the state before each, as products read it
        reset, update, new = (gates.new_empty((count, width)) for _ in range(3))
        recurrent = gates.new_empty((count, width))  # what the state before adds to the new one, before the reset
        for level, (begin, end) in enumerate(pairwise(prefixes.starts)):
            given = gates[begin:end] if rows is None else gates.index_select(0, rows[begin:end])
            if level == 0:
                added, previous = own_bias.expand(end - begin, -1), states.new_zeros((end - begin, width))
            else:
                above, parents = prefixes.starts[level - 1], prefixes.parents[level]
                previous = states[above : above + prefixes.parent_counts[level]]
                if parents is None:
                    added = torch.addmm(own_bias, before[begin:end].copy_(previous), own_weight.t())
                else:
                    rounded = previous.to(precision)
                    torch.index_select(rounded, 0, parents, out=before[begin:end])
                    added = torch.addmm(own_bias, rounded, own_weight.t()).index_select(0, parents)
                    previous = previous.index_select(0, parents)
            to_reset, to_update, to_new = given.chunk(3, dim=1)
            more_reset, more_update, more_new = added.chunk(3, dim=1)
            recurrent[begin:end] = more_new
            torch.add(to_reset, more_reset, out=reset[begin:end]).sigmoid_()
            torch.add(to_update, more_update, out=update[begin:end]).sigmoid_()
            torch.addcmul(to_new, reset[begin:end], recurrent[begin:end], out=new[begin:end]).tanh_()
            torch.lerp(new[begin:end].float(), previous, update[begin:end].float(), out=states[begin:end])
        ctx.save_for_backward(own_weight, before, reset, update, new, recurrent)
        ctx.prefixes, ctx.rows, ctx.inputs, ctx.weight_type = prefixes, rows, len(gates), weight.dtype
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, None, Tensor, Tensor, None]:
        weight, before, reset, update, new, recurrent = ctx.saved_tensors
        prefixes: Prefixes = ctx.prefixes
        width, precision = weight.shape[1], weight.dtype
        # What a state's slope is multiplied by on its way to each gate does not depend on later states.
        passed = 1 - update
        to_new = torch.addcmul(passed, passed, new.square(), value=-1)
        factors = reset.new_empty((len(prefixes), 3, width))
        torch.mul(to_new * recurrent, reset * (1 - reset), out=factors[:, 0])
        torch.mul(before - new, passed.mul_(update), out=factors[:, 1])
        torch.mul(to_new, reset, out=factors[:, 2])
        kept = update.float()
        total = slopes.clone()
        to_gates = reset.new_empty((len(prefixes), 3 * width))
        for level in range(len(prefixes.starts) - 2, -1, -1):
            begin, end = prefixes.starts[level], prefixes.starts[level + 1]
            own, some = total[begin:end], to_gates[begin:end]
            torch.mul(own.to(precision).unsqueeze(1), factors[begin:end], out=some.view(-1, 3, width))
            if level == 0:
                break
            above, count = prefixes.starts[level - 1], prefixes.parent_counts[level]
            earlier, parents = total[above : above + count], prefixes.parents[level]
            if parents is None:
                earlier.addcmul_(own, kept[begin:end])
            else:
                earlier.index_add_(0, parents, own * kept[begin:end])
                some = some.new_zeros((count, 3 * width)).index_add_(0, parents, some)
            earlier += some @ weight
        weight_slope = (to_gates.t() @ before).to(ctx.weight_type)
        exact = to_gates.float()
        bias_slope = exact.sum(dim=0)
        # The slope of the gates' inputs differs in the new state, to which the reset gate lets only a part through.
        torch.mul(total, to_new, out=exact[:, 2 * width :])
        if ctx.rows is not None:
            exact = exact.new_zeros((ctx.inputs, 3 * width)).index_add_(0, ctx.rows, exact)
        return exact.to(precision), None, weight_slope, bias_slope, None
