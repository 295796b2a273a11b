import pytest
import torch

from rungwise.losses import MaxOfHinges, SemanticAdaptiveMargin
from tests.losses import loss_reference as reference


def cider(relevance):
    return relevance * 10


@pytest.mark.parametrize("with_triplet", [False, True])
@pytest.mark.parametrize(
    ("negatives", "choose"), [("hardest", reference.first_highest), ("softest", reference.first_lowest)]
)
def test_equals_loops(equals_loops, negatives, choose, with_triplet):
    both = reference.semantic_adaptive_margin(3.0, choose, with_triplet, 0.2)
    equals_loops(
        lambda **k: SemanticAdaptiveMargin(3.0, negatives=negatives, with_triplet=with_triplet, **k),
        None,
        both,
        grade=cider,
    )


def test_constant_relevance_leaves_a_hinge_of_margin_0():
    s, same = torch.randn(9, 9), torch.full((9, 9), 4.2)
    sam = SemanticAdaptiveMargin(negatives="hardest")(s, same)
    torch.testing.assert_close(sam, MaxOfHinges(margin=0.0)(s))


def test_both_directions_read_the_row_of_the_pairs_image():
    s = torch.zeros(2, 2)
    relevance = torch.tensor([[9.0, 1.0], [2.0, 8.0]])
    i2t, t2i = SemanticAdaptiveMargin(10.0, negatives="hardest", reduction="none")(s, relevance)
    torch.testing.assert_close(i2t, torch.tensor([0.8, 0.6]))
    torch.testing.assert_close(t2i, torch.tensor([0.8, 0.6]))


def test_random_negatives_are_drawn_from_all_negatives_by_the_generator():
    s, relevance = torch.randn(6, 6), torch.rand(6, 6)
    generator = torch.Generator().manual_seed(0)
    seen = [set() for _ in range(6)]
    loss = SemanticAdaptiveMargin(0.001, negatives="random", generator=generator, reduction="none")
    for _ in range(200):
        block = s.clone().requires_grad_()
        i2t, _ = loss(block, 100 * torch.eye(6) + relevance)
        i2t.sum().backward()
        for q in range(6):
            (chosen,) = (block.grad[q] > 0).nonzero().flatten().tolist()
            seen[q].add(chosen)
    assert seen == [set(range(6)) - {q} for q in range(6)]
    one, two = (
        SemanticAdaptiveMargin(negatives="random", generator=torch.Generator().manual_seed(3))(s, relevance)
        for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize("negatives", ["random", "hardest", "softest"])
def test_half_precision_stays_finite(half_block, negatives):
    s = half_block[0].clone().requires_grad_()
    value = SemanticAdaptiveMargin(0.01, negatives=negatives, with_triplet=True)(s, half_block[1])
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("shape", [(4, 4), (3, 7)])
def test_degrees_of_any_type_are_computed_in_float32(kind, shape):
    torch.manual_seed(0)
    s, relevance = torch.randn(shape), (10 * torch.rand(shape)).to(kind)
    positives = torch.arange(shape[1]) // 2 == torch.arange(shape[0]).unsqueeze(1)
    loss = SemanticAdaptiveMargin()
    assert loss(s, relevance, positives) == loss(s, relevance.float(), positives)


@pytest.mark.parametrize("negatives", ["hardest", "softest"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 7)])
def test_a_degree_that_is_nan_is_not_hidden(negatives, shape):
    s, relevance = torch.randn(shape), torch.full(shape, torch.nan)
    positives = torch.arange(shape[1]) // 2 == torch.arange(shape[0]).unsqueeze(1)
    assert SemanticAdaptiveMargin(negatives=negatives)(s, relevance, positives).isnan()


def test_what_does_not_fit_is_refused():
    for value in (0.0, torch.nan):
        with pytest.raises(ValueError, match="temperature"):
            SemanticAdaptiveMargin(value)
    with pytest.raises(ValueError, match="negatives must be one of random, hardest, softest"):
        SemanticAdaptiveMargin(negatives="hard")
    with pytest.raises(ValueError, match="graded"):
        SemanticAdaptiveMargin()(torch.zeros(2, 2))
