"""What holds for every loss."""

from dataclasses import replace
from itertools import cycle

import pytest
import torch

from rungwise import losses
from rungwise.losses import WholeBatch

FAMILIES = {
    "SumOfHinges": losses.SumOfHinges,
    "MaxOfHinges": losses.MaxOfHinges,
    "MaxOfHinges, drawn": lambda **k: losses.MaxOfHinges(negative_set=3, **k),
    "Ladder": losses.Ladder,
    "Ladder, sum": lambda **k: losses.Ladder(sampling="sum", **k),
    "Ladder, two pairs": lambda **k: losses.Ladder(pairs=2, **k),
    "SemanticAdaptiveMargin": losses.SemanticAdaptiveMargin,
    "SemanticAdaptiveMargin, drawn": lambda **k: losses.SemanticAdaptiveMargin(negatives="random", **k),
    "AdaptiveListwise": losses.AdaptiveListwise,
    "ContrastiveSum": losses.ContrastiveSum,
    "ContrastiveSum, learnable": lambda **k: losses.ContrastiveSum(learnable=True, **k),
    "ContrastiveMax": losses.ContrastiveMax,
    "ContrastiveMax, no hinge": lambda **k: losses.ContrastiveMax(margin=0.0, hinge=False, **k),
    "MultiModalNCE": losses.MultiModalNCE,
    "Sigmoid": losses.Sigmoid,
    "SoftContrastive": losses.SoftContrastive,
    "SmoothNDCG": losses.SmoothNDCG,
    "Weighted": lambda **k: losses.Weighted(
        [losses.MaxOfHinges(negative_set=3, **k), losses.MultiModalNCE(**k), losses.Ladder(**k)], [1.0, 0.5, 0.1]
    ),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


def every_family_with(name, *values):
    """Every loss with one of the values in turn: what they choose is done by the base class, once for all."""
    pairs = zip(FAMILIES.items(), cycle(values), strict=False)
    return pytest.mark.parametrize(("family", name), [pytest.param(f, v, id=f"{n}-{v}") for (n, f), v in pairs])


def within(loss, block):
    images, captions = block.shape
    if not loss.reads.within:
        return {}
    kind = {"device": block.device, "dtype": block.dtype}
    return {
        "image_similarity": torch.zeros(images, images, **kind),
        "text_similarity": torch.zeros(captions, captions, **kind),
    }


@every_family_with("reduction", "sum", "mean", "none")
def test_square_blocks_never_ask_the_host_for_a_value(family, reduction):
    # Tensors of the meta device hold no values: reading one, as a GPU's host would wait for it, raises.
    loss = family(reduction=reduction).to("meta")
    s = torch.zeros(8, 8, device="meta", requires_grad=True)
    relevance, positives = torch.zeros(8, 8, device="meta"), torch.zeros(8, 8, dtype=torch.bool, device="meta")
    value = loss(s, relevance, positives, **within(loss, s))
    (value if reduction != "none" else value[0].sum() + value[1].sum()).backward()
    assert s.grad.shape == (8, 8)


def test_a_rectangular_block_without_pairs_costs_nothing_and_keeps_its_gradient(family):
    loss = family(reduction="mean")
    s = torch.randn(3, 4, requires_grad=True)
    value = loss(s, torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.bool), **within(loss, s))
    value.backward()
    assert s.grad.isfinite().all()
    if not isinstance(loss, losses.Sigmoid):
        assert value == 0


@every_family_with("dtype", torch.float16, torch.bfloat16)
def test_half_precision_is_computed_in_float32(family, dtype):
    block = torch.randn(8, 8).to(dtype)
    relevance = torch.rand(8, 8)
    torch.manual_seed(0)
    half = family()(block, relevance, **within(family(), block))
    torch.manual_seed(0)
    whole = family()(block.float(), relevance, **within(family(), block))
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, whole)


@every_family_with("shape", (8, 8), (5, 8))
def test_autocast_changes_nothing(family, shape):
    torch.manual_seed(0)
    images = torch.arange(shape[1]) % shape[0]
    arguments = (torch.randn(shape), torch.rand(shape), images == torch.arange(shape[0]).unsqueeze(1))
    values = []
    for enabled in (False, True):
        torch.manual_seed(0)
        s = arguments[0].clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            value = family()(s, *arguments[1:], **within(family(), s))
        assert value.dtype == torch.float32
        value.backward()
        values.append((value.detach(), s.grad))
    torch.testing.assert_close(*values, rtol=0, atol=0)


def test_mean_is_the_sum_over_the_pairs_and_none_adds_up_to_the_sum(family):
    block = torch.randn(3, 7)
    positives = torch.tensor([0, 0, 1, 2, 2, 2, 1]) == torch.arange(3).unsqueeze(1)
    relevance = torch.rand(3, 7)
    values = {}
    for reduction in ("sum", "mean", "none"):
        torch.manual_seed(0)
        loss = family(reduction=reduction)
        values[reduction] = loss(block, relevance, positives, **within(loss, block))
    i2t, t2i = values["none"]
    assert (i2t.shape, t2i.shape) == ((3,), (7,))
    torch.testing.assert_close(i2t.sum() + t2i.sum(), values["sum"])
    torch.testing.assert_close(values["sum"] / 7, values["mean"])


@every_family_with("extra", "mask", "keep", "pair")
def test_queries_of_a_larger_block_lose_what_they_lose_in_it(family, extra):
    torch.manual_seed(0)
    block, relevance, batch = torch.randn(9, 9, requires_grad=True), torch.rand(9, 9), 4
    positives = torch.eye(9, dtype=torch.bool)
    for one, other in ((1, 2), (0, 6), (7, 8)):
        positives[one, other] = positives[other, one] = True
    values = []
    for queries in (None, batch):
        torch.manual_seed(1)
        loss = family(reduction="none", extra_positives=extra)
        i2t, t2i = loss(block, relevance, positives, **within(loss, block), queries=queries)
        assert len(i2t) == len(t2i) == (queries or 9)
        values.append(i2t[:batch].sum() + t2i[:batch].sum())
    torch.testing.assert_close(values[1], values[0])
    slopes = [torch.autograd.grad(value, block)[0] for value in values]
    torch.testing.assert_close(*slopes)
    torch.manual_seed(1)
    loss = family(reduction="mean", extra_positives=extra)
    mean = loss(block, relevance, positives, **within(loss, block), queries=batch)
    pairs = int(positives[:batch].sum()) if extra == "pair" else batch
    torch.testing.assert_close(mean, values[0] / pairs)


def test_no_queries_at_all_lose_nothing_and_keep_the_gradient(family):
    """As on a process none of whose pairs is in the mini-batch."""
    loss, block = family(), torch.randn(5, 5, requires_grad=True)

    class NoQueries(WholeBatch):
        asking = (0, 0)

    value = loss.value(NoQueries(block, torch.rand(5, 5), None, *within(loss, block).values()))
    value.backward()
    assert value == 0
    assert block.grad.count_nonzero() == 0


@pytest.mark.parametrize(("shape", "queries"), [((4, 4), 5), ((4, 4), 0), ((4, 8), 4)])
def test_queries_that_a_block_does_not_have_are_refused(shape, queries):
    with pytest.raises(ValueError, match="queries"):
        losses.MaxOfHinges()(torch.zeros(shape), positives=torch.ones(shape), queries=queries)


class Unprovided(WholeBatch):
    """Leaves out what a loss may declare, and gives the items other places."""

    def across(self, reads, extra_positives, mask_above):
        i2t, t2i = super().across(reads, extra_positives, mask_above)
        places = torch.arange(100, 100 + len(i2t.similarity))
        return replace(i2t, query_ids=places), replace(t2i, query_ids=places)


def test_a_loss_declares_all_that_it_reads_and_no_more(family):
    torch.manual_seed(0)
    loss, block = family(), torch.randn(8, 8)
    batch = {"similarity": block, "relevance": torch.rand(8, 8), "image_similarity": block, "text_similarity": block}

    def value(kind=WholeBatch, **without):
        torch.manual_seed(1)
        return loss.value(kind(**(batch | without)))

    relevance = dict.fromkeys(["relevance"])
    modalities = dict.fromkeys(["image_similarity", "text_similarity"])
    for declared, without in ((loss.reads.relevance, relevance), (loss.reads.within, modalities)):
        if declared:
            with pytest.raises(ValueError, match="pass relevance|must be .8, 8., got nothing"):
                value(**without)
        else:
            assert value(**without) == value()
    assert (value(Unprovided) != value()) == loss.reads.draws


@pytest.mark.parametrize("name", ["SumOfHinges", "MultiModalNCE", "SmoothNDCG", "Weighted"])
def test_mask_above_reads_relevance(name):
    assert FAMILIES[name](mask_above=0.5).reads.relevance


def test_a_misspelt_argument_is_refused():
    for family in FAMILIES.values():
        with pytest.raises(TypeError, match="positive"):
            family()(torch.zeros(3, 3), positive=torch.eye(3, dtype=torch.bool))
