"""A GRU over the prefixes of a batch: captions with a common beginning share its computation.

A state of a GRU that reads from left to right depends on the words so far and on nothing else. Of 128 captions, all
begin with <start>, most go on with "a", and some with "a man": their states are the same. Each distinct prefix is
computed once here, and no padding is. States and gradients are those of :class:`torch.nn.GRU`, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
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


_ROWS, _COLUMNS = 256, 256
"""Rows, and columns, of which slopes are computed at a time: what they need stays in the processor's cache."""


class _PrefixStates(torch.autograd.Function):
    """One autograd function, so that the gradient of the weights is one product over all prefixes, not one a level."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, rows: Tensor | None, weight: Tensor, bias: Tensor, prefixes: Prefixes
    ) -> Tensor:
        width, precision, count = weight.shape[1], gates.dtype, len(prefixes)
        own_weight, own_bias = weight.to(precision), bias.to(precision)
        multiplied = _products_with(own_weight, own_bias)
        states = gates.new_empty((count, width), dtype=torch.float32)
        before = gates.new_empty((count, width))  # the state before each, as products read it
        both = gates.new_empty((count, 2 * width))  # the reset gate and the update gate
        new = gates.new_empty((count, width))
        recurrent = gates.new_empty((count, width))  # what the state before adds to the new one, before the reset
        # One view of each array for each level, made together: the levels are many, and most of them are small.
        counts = [end - begin for begin, end in pairwise(prefixes.starts)]
        inputs = torch.split(gates if rows is None else rows, counts)
        arrays = (before, both, both[:, :width], both[:, width:], new, recurrent, states)
        levels = zip(inputs, *(torch.split(one, counts) for one in arrays), strict=True)
        parts = [2 * width, width]
        for level, (own, earlier, opened, reset, update, fresh, added_new, state) in enumerate(levels):
            given = own if rows is None else gates.index_select(0, own)
            if level == 0:
                added, previous = own_bias.expand(len(state), -1), torch.zeros_like(state)
                earlier.zero_()
            else:
                above, parents = prefixes.starts[level - 1], prefixes.parents[level]
                previous = states[above : above + prefixes.parent_counts[level]]
                if parents is None:
                    added = multiplied(earlier.copy_(previous))
                else:
                    rounded = previous.to(precision)
                    torch.index_select(rounded, 0, parents, out=earlier)
                    added = multiplied(rounded).index_select(0, parents)
                    previous = previous.index_select(0, parents)
            (given_both, given_new), (more, more_new) = (torch.split(one, parts, 1) for one in (given, added))
            torch.add(given_both, more, out=opened).sigmoid_()
            torch.addcmul(given_new, reset, added_new.copy_(more_new), out=fresh).tanh_()
            torch.lerp(fresh.float(), previous, update.float(), out=state)
        ctx.save_for_backward(own_weight, before, both, new, recurrent)
        ctx.prefixes, ctx.rows, ctx.inputs, ctx.weight_type = prefixes, rows, len(gates), weight.dtype
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, None, Tensor, Tensor, None]:
        weight, before, both, new, recurrent = ctx.saved_tensors
        prefixes: Prefixes = ctx.prefixes
        width, count = weight.shape[1], len(prefixes)
        to_new, kept = torch.empty_like(new), torch.empty_like(new, dtype=torch.float32)
        factors, to_gates = (both.new_empty((count, 3 * width)) for _ in range(2))
        total = slopes.clone()
        ready = count
        counts = [end - begin for begin, end in pairwise(prefixes.starts)]
        by_gate = (one.view(count, 3, width) for one in (factors, to_gates))
        levels = list(zip(*(torch.split(one, counts) for one in (total, kept, to_gates, *by_gate)), strict=True))
        for level in range(len(counts) - 1, -1, -1):
            while prefixes.starts[level] < ready:  # just before they are needed
                some = slice(max(0, ready - _ROWS), ready)
                saved = (one[some] for one in (before, both, new, recurrent))
                _slope_factors(*saved, out=(factors[some], to_new[some], kept[some]))
                ready = some.start
            own, passed, slope, factor, slope_by_gate = levels[level]
            torch.mul(own.to(weight.dtype).unsqueeze(1), factor, out=slope_by_gate)
            if level == 0:
                break
            above, parents = prefixes.starts[level - 1], prefixes.parents[level]
            earlier = total[above : above + prefixes.parent_counts[level]]
            if parents is None:
                earlier.addcmul_(own, passed)
            else:
                earlier.index_add_(0, parents, own * passed)
                slope = slope.new_zeros((len(earlier), 3 * width)).index_add_(0, parents, slope)
            earlier += slope @ weight
        weight_slope = (to_gates.t() @ before).to(ctx.weight_type)
        bias_slope = total.new_empty(3 * width)
        to_inputs = to_gates.new_empty((count if ctx.rows is None else ctx.inputs, 3 * width))
        for gate, first in product(range(3), range(0, width, _COLUMNS)):
            within = slice(first, min(first + _COLUMNS, width))
            columns = slice(gate * width + within.start, gate * width + within.stop)
            exact = to_gates[:, columns].float()
            bias_slope[columns] = exact.sum(dim=0)
            if gate == 2:  # where the inputs' slope differs: the reset gate lets only a part of the bias through
                torch.mul(total[:, within], to_new[:, within], out=exact)
            if ctx.rows is not None:
                exact = exact.new_zeros((ctx.inputs, exact.shape[1])).index_add_(0, ctx.rows, exact)
            to_inputs[:, columns] = exact
        return to_inputs, None, weight_slope, bias_slope, None


def _slope_factors(
    before: Tensor, both: Tensor, new: Tensor, recurrent: Tensor, *, out: tuple[Tensor, Tensor, Tensor]
) -> None:
    """What the slope of a state is multiplied by on its way to the gates; it does not depend on later states.

    Args:
        before: (n, D) states before.
        both: (n, 2 D) reset and update gates.
        new: (n, D) new states, before they are mixed with those before.
        recurrent: (n, D) what the states before add to the new ones.
        out: Takes the factors of the gates (n, 3 D), the one of the new state (n, D), and the one of the state before,
            (n, D) float32.
    """
    factors, to_new, kept = out
    width = new.shape[1]
    reset, update = both[:, :width], both[:, width:]
    passed = 1 - update
    torch.addcmul(passed, passed, new.square(), value=-1, out=to_new)
    torch.mul(to_new * recurrent, reset * (1 - reset), out=factors[:, :width])
    torch.mul(before - new, passed.mul_(update), out=factors[:, width : 2 * width])
    torch.mul(to_new, reset, out=factors[:, 2 * width :])
    kept.copy_(update)


def _products_with(weight: Tensor, bias: Tensor) -> Callable[[Tensor], Tensor]:
    """Function from (n, k) rows to (n, m) their products with (m, k) weights plus the bias, for many calls.

    In bfloat16 a product of few rows brings the weights into another order first, which takes as long as multiplying.
    Here this happens once. The products have the same bits.
    """
    if weight.dtype != torch.bfloat16 or not weight.is_cpu or not _packs():
        return lambda rows: F.linear(rows, weight, bias)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    return lambda rows: torch.ops.mkldnn._linear_pointwise(rows, packed, bias, "none", [], "")


def _packs() -> bool:
    """Whether torch can pack weights in bfloat16 here: its operators for that need some instructions."""
    there = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return there and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
