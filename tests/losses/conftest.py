"""Blocks to try every loss on, and the comparison with nested loops."""

from itertools import product

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
        "everything is positive": (cosines(3, 3), degrees(3, 3), torch.ones(3, 3, dtype=torch.bool)),
        "several captions": (cosines(4, 7), degrees(4, 7), rectangular),
        "several captions, ties": (steps(4, 7), on_thresholds(4, 7), rectangular),
        "a query without a pair": (cosines(4, 7), degrees(4, 7), lonely),
        "one picture": (cosines(1, 3), degrees(1, 3), torch.ones(1, 3, dtype=torch.bool)),
    }


BLOCKS = _blocks()


def assert_equals_loops(make_loss, one_side, both=None, grade=lambda r: r):
    """Values and gradients of ``make_loss(reduction=, extra_positives=, mask_above=)`` on every block.

    The loops are given for one side, or for ``both`` at once; ``grade`` changes the relevance of the blocks.
    """
    settings = product(BLOCKS.items(), ("mask", "keep", "pair"), (None, 0.6))
    for (name, (block, relevance, positives)), extra, mask_above in settings:
        scalars = [[x.clone().requires_grad_() for x in row] for row in block]
        relevance = grade(relevance)
        degrees = relevance.tolist()
        status = reference.statuses(*block.shape, positives, extra, degrees, mask_above)
        i2t, t2i = (both or reference.both_sides(one_side))(scalars, degrees, status)
        pairs = sum(row.count("pair") for row in status)
        weights = torch.linspace(0.5, 1.5, sum(block.shape), dtype=torch.float64)
        expected = {
            "none": torch.stack(i2t + t2i),
            "sum": sum(i2t) + sum(t2i),
            "mean": (sum(i2t) + sum(t2i)) / max(pairs, 1),
        }
        for reduction, value in expected.items():
            where = f"{name}, {extra}, mask_above={mask_above}, {reduction}"
            s = block.clone().requires_grad_()
            loss = make_loss(reduction=reduction, extra_positives=extra, mask_above=mask_above)
            got = loss(s, relevance, positives)
            if reduction == "none":
                assert [len(v) for v in got] == list(block.shape), where
                got = torch.cat(got)
            scale = weights if reduction == "none" else torch.ones((), dtype=torch.float64)
            (slope,) = torch.autograd.grad((got * scale).sum(), s)
            flat = [x for row in scalars for x in row]
            slopes = torch.autograd.grad((value * scale).sum(), flat, retain_graph=True, allow_unused=True)
            slopes = torch.stack([torch.zeros((), dtype=torch.float64) if g is None else g for g in slopes])
            torch.testing.assert_close(got, value.detach(), rtol=1e-9, atol=1e-12, msg=lambda m, w=where: f"{w}: {m}")
            torch.testing.assert_close(
                slope.flatten(), slopes, rtol=1e-9, atol=1e-12, msg=lambda m, w=where: f"{w}, gradient: {m}"
            )


@pytest.fixture
def equals_loops():
    return assert_equals_loops


@pytest.fixture(params=[torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def half_block(request):
    """Similarities (2048, 2048) of a trained model in half precision, and relevance."""
    g = torch.Generator().manual_seed(1)
    block = (torch.rand(2048, 2048, generator=g) * 2 - 1 + 0.5 * torch.eye(2048)).clamp(-1, 1)
    return block.to(request.param), torch.rand(2048, 2048, generator=g)
