"""Blocks to try every loss on, and the comparison with nested loops."""

import pytest
import torch

from tests.losses import loss_reference as reference


def _blocks():
    g = torch.Generator().manual_seed(7)

    def cosines(n, m):
        return torch.rand(n, m, generator=g, dtype=torch.float64) * 2 - 1

    def degrees(n, m):
        return torch.rand(n, m, generator=g, dtype=torch.float64)

    def steps(n, m):
        # Eighths are exact, and no margin in use is a difference of eighths: ties, but no hinge at its kink.
        return torch.randint(-8, 9, (n, m), generator=g).double() / 8

    def on_thresholds(n, m):
        return torch.tensor([0.1, 0.56, 0.6, 0.63, 0.9], dtype=torch.float64)[torch.randint(5, (n, m), generator=g)]

    rectangular = torch.tensor([0, 0, 1, 2, 2, 2, 3]) == torch.arange(4).unsqueeze(1)
    same = torch.tensor([0, 1, 0, 2, 1, 3])
    square = same.unsqueeze(0) == same.unsqueeze(1)
    none = torch.zeros(6, 6, dtype=torch.bool)
    shared = torch.eye(4, dtype=torch.bool)
    shared[0, 2] = shared[1, 2] = shared[3, 1] = True
    lonely = rectangular.clone()
    lonely[:, 2] = False
    return {
        "random": (cosines(6, 6), degrees(6, 6), None),
        "ties": (steps(6, 6), on_thresholds(6, 6), None),
        "all equal": (torch.full((4, 4), 0.25, dtype=torch.float64), degrees(4, 4), None),
        "close": (cosines(6, 6) / 20, on_thresholds(6, 6), None),
        "empty rungs": (cosines(6, 6), torch.full((6, 6), 0.6, dtype=torch.float64), None),
        "one pair": (cosines(1, 1), degrees(1, 1), None),
        "nothing else is positive": (cosines(6, 6), degrees(6, 6), none),
        "same pictures twice": (cosines(6, 6), on_thresholds(6, 6), square),
        "pictures that share a caption": (cosines(4, 4), degrees(4, 4), shared),
        "everything is positive": (cosines(3, 3), degrees(3, 3), torch.ones(3, 3, dtype=torch.bool)),
        "several captions": (cosines(4, 7), degrees(4, 7), rectangular),
        "several captions, ties": (steps(4, 7), on_thresholds(4, 7), rectangular),
        "a query without a pair": (cosines(4, 7), degrees(4, 7), lonely),
        "one picture": (cosines(1, 3), degrees(1, 3), torch.ones(1, 3, dtype=torch.bool)),
    }


BLOCKS = _blocks()


def _treatments(name):
    """(extra_positives, mask_above) that change something in the block."""
    block, _, positives = BLOCKS[name]
    yield "mask", None
    if positives is not None and block.shape[0] == block.shape[1]:  # elsewhere extra positives are pairs anyhow
        yield "keep", None
        yield "pair", None
    if name in MASKED:
        yield "mask", 0.6


MASKED = {"random", "ties", "empty rungs", "pictures that share a caption", "several captions, ties"}
TREATED = [(name, *treatment) for name in BLOCKS for treatment in _treatments(name)]
"""(name of a block, extra_positives, mask_above)."""


def assert_equals_loops(make_loss, one_side, both=None, grade=lambda r: r):
    """Values and gradients of ``make_loss(reduction=, extra_positives=, mask_above=)`` on every block.

    The loops are given for one side, or for ``both`` at once; ``grade`` changes the relevance of the blocks.
    """
    for number, (name, extra, mask_above) in enumerate(TREATED):
        block, relevance, positives = BLOCKS[name]
        where = f"{name}, {extra}, mask_above={mask_above}"
        relevance = grade(relevance)
        scalars = [[x.clone().requires_grad_() for x in row] for row in block]
        status = reference.statuses(*block.shape, positives, extra, relevance.tolist(), mask_above)
        i2t, t2i = (both or reference.both_sides(one_side))(scalars, relevance.tolist(), status)
        queries = torch.stack(i2t + t2i)
        pairs = max(1, sum(row.count("pair") for row in status))
        uneven = torch.linspace(0.5, 1.5, len(queries), dtype=torch.float64)
        even = torch.ones_like(queries)
        reduced = ("sum", even) if number % 2 else ("mean", even / pairs)
        for reduction, weights in (("none", uneven), reduced):
            loss = make_loss(reduction=reduction, extra_positives=extra, mask_above=mask_above)
            s = block.clone().requires_grad_()
            got = loss(s, relevance, positives)
            if reduction == "none":
                assert [len(side) for side in got] == list(block.shape), where
                _assert_close(torch.cat(got), queries.detach(), f"{where}, none")
                got = (torch.cat(got) * weights).sum()
            expected = (queries * weights).sum()
            _assert_close(got, expected.detach(), f"{where}, {reduction}")
            (slope,) = torch.autograd.grad(got, s)
            _assert_close(slope, _slopes(expected, scalars), f"{where}, gradient of {reduction}")


def _slopes(value, scalars):
    flat = [x for row in scalars for x in row]
    slopes = torch.autograd.grad(value, flat, retain_graph=True, materialize_grads=True)
    return torch.stack(slopes).reshape(len(scalars), -1)


def _assert_close(got, expected, where):
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12, msg=lambda m: f"{where}: {m}")


@pytest.fixture
def equals_loops():
    return assert_equals_loops


@pytest.fixture
def half_block():
    """Similarities (512, 512) of a trained model in float16, and relevance.

    Sums over all of its pairs leave the range of float16, as exponentials of cold similarities do.
    """
    g = torch.Generator().manual_seed(1)
    block = (torch.rand(512, 512, generator=g) * 2 - 1 + 0.5 * torch.eye(512)).clamp(-1, 1)
    return block.half(), torch.rand(512, 512, generator=g)
