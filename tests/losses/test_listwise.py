import pytest
import torch
from torch.nn import functional as F

from rungwise.losses import AdaptiveListwise
from rungwise.losses._listwise import adaptive_margins
from tests.losses import loss_reference as reference


def shared_labels(relevance):
    return (relevance > 0.6).to(relevance.dtype)


@pytest.mark.parametrize("irrelevant", ["no_shared_label", "other_item"])
def test_equals_loops(equals_loops, irrelevant):
    def weighted(similarity, relevance, status):
        loops = reference.both_sides(reference.adaptive_listwise(0.5, (0.75, 0.25), irrelevant))
        i2t, t2i = loops(similarity, relevance, status)
        return [0.4 * v for v in i2t], [0.6 * v for v in t2i]

    equals_loops(
        lambda **k: AdaptiveListwise(0.5, 0.4, irrelevant=irrelevant, **k), None, weighted, grade=shared_labels
    )


def test_without_margins_it_is_softmax_cross_entropy_at_its_sharpness():
    s, own = torch.randn(7, 7, dtype=torch.float64), torch.arange(7)
    loss = AdaptiveListwise(0.5, 0.4, margins=(0.0, 0.0), irrelevant="other_item", reduction="mean")
    expected = 0.4 * F.cross_entropy(s / 0.5, own) + 0.6 * F.cross_entropy(s.T / 0.5, own)
    torch.testing.assert_close(loss(s), expected, rtol=1e-12, atol=0)


def test_lists_equal_a_block_whose_first_candidate_is_the_pair():
    lists = torch.rand(5, 4, dtype=torch.float64)
    positives = torch.zeros(5, 4, dtype=torch.bool)
    positives[:, 0] = True
    block, _ = AdaptiveListwise(i2t_weight=1.0, irrelevant="other_item", reduction="none")(lists, positives=positives)
    ready, nothing = AdaptiveListwise(i2t_weight=1.0, reduction="none").of_lists(lists)
    torch.testing.assert_close(ready, block)
    assert nothing.count_nonzero() == 0


def test_lists_of_both_sides_are_weighed():
    i2t, t2i = torch.rand(5, 4), torch.rand(5, 4)
    one, two = (AdaptiveListwise(i2t_weight=1.0).of_lists(lists) for lists in (i2t, t2i))
    torch.testing.assert_close(AdaptiveListwise(i2t_weight=0.4).of_lists(i2t, t2i), 0.4 * one + 0.6 * two)


def test_margins_fall_from_three_quarters_to_a_quarter():
    s = torch.tensor([[0.3, 0.9, 0.5, 0.5, 0.0]])
    every = torch.ones_like(s, dtype=torch.bool)
    torch.testing.assert_close(adaptive_margins(s, every), torch.tensor([[0.375, 0.75, 0.625, 0.5, 0.25]]))


def test_a_list_of_two_takes_three_quarters():
    value = AdaptiveListwise(sharpness=1.0, i2t_weight=1.0).of_lists(torch.tensor([[0.0, 0.0]]))
    torch.testing.assert_close(value, torch.tensor(0.75).exp().log1p())


def test_sampling_as_many_as_there_are_is_taking_all():
    s = torch.randn(8, 8)
    every, drawn = (AdaptiveListwise(irrelevant="other_item", sampled=k)(s) for k in (None, 7))
    torch.testing.assert_close(every, drawn)


def test_drawn_items_are_irrelevant_ones_and_no_more_than_asked():
    s = torch.randn(8, 8, requires_grad=True)
    labels = torch.arange(8) % 3
    relevance = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    i2t, _ = AdaptiveListwise(sampled=2, generator=torch.Generator().manual_seed(1), reduction="none")(s, relevance)
    i2t.sum().backward()
    touched = s.grad != 0
    assert (touched.sum(dim=1) == 3).all()
    assert not (touched & (relevance > 0) & ~torch.eye(8, dtype=torch.bool)).any()


def test_draws_come_from_the_generator_alone():
    s = torch.randn(16, 16)

    def value(seed):
        generator = torch.Generator().manual_seed(seed)
        return AdaptiveListwise(sampled=3, irrelevant="other_item", generator=generator)(s)

    torch.manual_seed(0)
    first = value(5)
    torch.manual_seed(1)
    assert value(5) == first != value(6)


def test_a_degree_that_is_nan_is_irrelevant():
    s, relevance = torch.randn(6, 6), shared_labels(torch.rand(6, 6))
    known, unknown = relevance.clone(), relevance.clone()
    known[1, 4], unknown[1, 4] = 0.0, torch.nan
    assert AdaptiveListwise()(s, unknown) == AdaptiveListwise()(s, known)


def test_half_precision_stays_finite_when_cold(half_block):
    s = half_block[0].clone().requires_grad_()
    value = AdaptiveListwise(0.01, irrelevant="other_item")(s)
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()
    assert AdaptiveListwise().of_lists(half_block[0]).dtype == torch.float32


def test_gradcheck():
    s = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(AdaptiveListwise(irrelevant="other_item"), s)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"sharpness": 0}, "sharpness"),
        ({"sharpness": torch.nan}, "sharpness"),
        ({"margins": (0.5,)}, r"margins must be two, .* got \(0.5,\)"),
        ({"i2t_weight": 1.5}, "i2t_weight"),
        ({"sampled": 0}, "sampled"),
        ({"irrelevant": "all"}, "irrelevant must be one of"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        AdaptiveListwise(**arguments)


@pytest.mark.parametrize(
    ("i2t", "t2i", "complaint"),
    [
        ((4,), None, r"lists must be \(T, K \+ 1\) .* got \(4,\)"),
        ((3, 0), None, r"got \(3, 0\)"),
        ((4, 3), (2, 3), r"t2i is \(2, 3\) but i2t is \(4, 3\)"),
    ],
)
def test_lists_of_other_shapes_are_refused(i2t, t2i, complaint):
    with pytest.raises(ValueError, match=complaint):
        AdaptiveListwise().of_lists(torch.zeros(i2t), None if t2i is None else torch.zeros(t2i))
