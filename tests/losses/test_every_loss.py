"""What holds for every loss. Also tests rungwise.losses._loss_settings, rungwise.losses._given_blocks."""

import inspect
import re
from dataclasses import replace
from itertools import cycle

import numpy as np
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


PUBLIC = [
    one for name in losses.__all__ if isinstance(one := getattr(losses, name), type) and issubclass(one, losses.Loss)
]
CONCRETE = [one for one in PUBLIC if not inspect.isabstract(one)]


def settings(loss):
    return inspect.signature(type(loss).__init__).parameters.keys() - {"self"}


def test_all_settings_of_a_loss_stand_in_its_text(family):
    loss = family(reduction="mean", extra_positives="keep", mask_above=0.75)
    text = repr(loss)
    assert "\n" not in text
    for name in settings(loss):
        assert re.search(rf"[( ]{name}=", text), name
    assert "..." not in text
    assert "mask_above=0.75" in text


def test_every_public_loss_is_among_these():
    assert {type(make()) for make in FAMILIES.values()} == set(CONCRETE)


def test_a_loss_made_from_its_text_is_the_same_loss(family):
    loss = family(reduction="mean", extra_positives="keep", mask_above=0.75)
    again = eval(repr(loss), vars(losses))
    assert repr(again) == repr(loss)
    assert [p.shape for p in again.parameters()] == [p.shape for p in loss.parameters()]
    block, relevance = torch.randn(6, 6), torch.rand(6, 6)
    values = []
    for one in (loss, again):
        torch.manual_seed(0)
        values.append(one(block, relevance, **within(one, block)))
    torch.testing.assert_close(*values)


def test_what_was_learned_and_what_draws_stand_in_the_text():
    loss = losses.Sigmoid(learnable=True)
    with torch.no_grad():
        loss.temperature.raw.fill_(-1.0)
        loss.bias.fill_(-3.5)
    assert repr(loss).startswith("Sigmoid(temperature=0.36887944, bias=-3.5, learnable=True, ")
    assert repr(loss.temperature) == "Temperature(0.368879, learnable=True)"
    assert repr(loss.to("meta")).startswith("Sigmoid(temperature=<() on meta>, bias=<() on meta>, ")
    drawn = losses.MaxOfHinges(negative_set=3, generator=torch.Generator().manual_seed(7))
    assert "generator=<generator of seed 7>" in repr(drawn)
    assert repr(torch.nn.Sequential(drawn)) == f"Sequential(\n  (0): {drawn!r}\n)"


def test_settings_of_a_loss_from_outside_stand_in_its_text():
    class Own(losses.BlockLoss):
        def __init__(self, power=2, kept_elsewhere=1, **shared):
            super().__init__(**shared)
            self.power = power

        def per_query(self, side):
            return side.sum_per_query(side.of_pairs(side.similarity))

    wanted = "Own(power=3, kept_elsewhere=..., reduction='mean', extra_positives='mask', mask_above=None)"
    assert repr(Own(3, reduction="mean")) == wanted


@every_family_with("shape", (6, 6), (4, 6))
@pytest.mark.parametrize("kind", [np.float32, np.float64, list])
def test_degrees_and_positives_may_be_arrays_or_lists(family, shape, kind):
    block = torch.randn(shape)
    relevance = torch.rand(shape)
    positives = torch.arange(shape[1]) % shape[0] == torch.arange(shape[0]).unsqueeze(1)
    values = []
    for as_given in (lambda tensor: tensor, lambda tensor: given(tensor, kind)):
        torch.manual_seed(0)
        loss = family()
        inside = {name: as_given(one) for name, one in within(loss, block).items()}
        values.append(loss(block, as_given(relevance), as_given(positives), **inside))
    torch.testing.assert_close(*values, rtol=0, atol=0)


def given(tensor, kind):
    array = tensor.numpy()
    return array.tolist() if kind is list else array if array.dtype == bool else array.astype(kind)


def test_arrays_are_computed_in_the_type_of_the_block():
    loss = losses.SoftContrastive()
    degrees = np.random.default_rng(0).random((4, 4))
    for kind, computed in ((torch.float64, torch.float64), (torch.bfloat16, torch.float32)):
        block = torch.randn(4, 4).to(kind)
        torch.testing.assert_close(loss(block, degrees), loss(block, torch.tensor(degrees, dtype=computed)))
        assert loss(block, degrees).dtype == computed
    loss.to("meta")
    assert loss(torch.zeros(4, 4, device="meta"), degrees).device.type == "meta"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 3)),), "relevance is (2, 3) but the block needs (2, 2): pass equal shapes"),
        (([[0.1, 0.2], [0.3]],), "relevance (list) holds no rows of one length"),
        ((object(),), "relevance (object) holds no numbers: pass a tensor, a numpy array"),
        ((np.array([["a", "b"], ["c", "d"]]),), "relevance (ndarray) holds no numbers"),
        ((np.array([[1e39, 0.0], [0.0, 1.0]]),), "relevance holds a number beyond 3.4e+38, the largest"),
        ((None, np.array([[0.7, 0.0], [0.0, 1.0]])), "positives (ndarray) holds no truth values"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_block_is_refused_in_a_line(arguments, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)) as caught:
        losses.Ladder()(torch.zeros(2, 2), *arguments)
    assert "\n" not in str(caught.value)


def test_a_similarity_that_is_no_tensor_is_refused_in_a_line():
    with pytest.raises(ValueError, match=r"^similarity .ndarray. is no tensor, and takes no gradient: pass a tensor"):
        losses.Ladder()(np.zeros((2, 2), np.float32), np.zeros((2, 2)))
