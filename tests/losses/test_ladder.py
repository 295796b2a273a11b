from functools import partial
from itertools import permutations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rungwise.losses import Ladder, MaxOfHinges, SumOfHinges
from rungwise.losses import _ladder as ladder_file
from rungwise.losses._ladder import levels_of, rung_hardest, rung_hardest_pairs, rung_sum
from tests.losses import loss_reference as reference

THREE = {"thresholds": (0.63, 0.56), "margins": (0.2, 0.01, 0.07), "weights": (1.0, 0.25, 0.125)}
TWO = {"thresholds": (0.63,), "margins": (0.2, 0.01), "weights": (1.0, 0.25)}
READINGS = list(product(("single", "cumulative"), (False, True)))


@pytest.mark.parametrize("sampling", ["sum", "hard_contrastive"])
@pytest.mark.parametrize(("levels", "pair_in_top_level"), READINGS)
def test_equals_loops(equals_loops, sampling, levels, pair_in_top_level):
    form = {"sampling": sampling, "levels": levels, "pair_in_top_level": pair_in_top_level}
    equals_loops(lambda **k: Ladder(**THREE, **form, **k), reference.ladder(**THREE, **form))


@pytest.mark.parametrize(("levels", "pair_in_top_level"), READINGS)
def test_masking_by_product_equals_loops(equals_loops, levels, pair_in_top_level):
    form = {"levels": levels, "pair_in_top_level": pair_in_top_level, "masking": "product"}
    wide = THREE | {"margins": (0.2, 0.61, 0.93)}
    loops = reference.ladder(**wide, **form, sampling="hard_contrastive")
    equals_loops(lambda **k: Ladder(**wide, **form, **k), loops)


@pytest.mark.parametrize("pairs", [2, 3, 9])
@pytest.mark.parametrize(("levels", "pair_in_top_level"), READINGS)
def test_several_pairs_equal_loops(equals_loops, levels, pair_in_top_level, pairs):
    form = {"levels": levels, "pair_in_top_level": pair_in_top_level, "pairs": pairs}
    wide = THREE | {"margins": (0.2, 0.61, 0.93)}
    loops = reference.ladder(**wide, **form, sampling="hard_contrastive")
    equals_loops(lambda **k: Ladder(**wide, **form, **k), loops)


@pytest.mark.parametrize("pairs", [1, 2, 3, 4])
def test_several_pairs_have_the_largest_loss_of_all_that_repeat_no_candidate(pairs):
    g = torch.Generator().manual_seed(5)
    for margin in (-0.2, 0.01, 0.3, 3.0):
        s = torch.rand(1, 7, generator=g, dtype=torch.float64)
        upper = torch.tensor([[True, True, True, True, False, False, False]])
        lower = ~upper
        every = (
            sum(max(0.0, margin - float(s[0, i]) + float(s[0, j])) for i, j in zip(some, others, strict=True))
            for number in [min(pairs, 3)]
            for some in permutations(range(4), number)
            for others in permutations(range(4, 7), number)
        )
        assert rung_hardest_pairs(s, upper, lower, margin, pairs).item() == pytest.approx(max(every), abs=1e-12)


def test_one_of_several_pairs_is_hard_contrastive_sampling_bit_for_bit():
    g = torch.Generator().manual_seed(2)
    s = (torch.randint(-20, 21, (40, 40), generator=g) / 20).requires_grad_()  # ties everywhere
    upper = torch.rand(40, 40, generator=g) > 0.7
    lower = ~upper & (torch.rand(40, 40, generator=g) > 0.5)
    lower[3] = upper[4] = False
    one, several = (f(s, upper, lower, 0.31) for f in (rung_hardest, partial(rung_hardest_pairs, pairs=1)))
    assert torch.equal(one, several)
    slopes = [torch.autograd.grad(value.sum(), s)[0] for value in (one, several)]
    assert torch.equal(*slopes)


def test_the_first_rung_keeps_the_hardest_negative_whatever_the_number_of_pairs():
    s, relevance = torch.randn(8, 8), torch.rand(8, 8)
    assert Ladder(weights=(1.0, 0.0), pairs=4)(s, relevance) == MaxOfHinges(0.2)(s)


def test_several_pairs_do_not_multiply_the_memory():
    shapes = []

    class Shapes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            shapes.extend(one.shape for one in tree_leaves(out) if isinstance(one, torch.Tensor))
            return out

    s, relevance = torch.randn(30, 30, requires_grad=True), torch.rand(30, 30)
    with Shapes():
        Ladder(**THREE, pairs=9)(s, relevance).backward()
    assert max(shape.numel() for shape in shapes) == 30 * 30


def test_masking_by_product_compares_with_0_where_all_that_is_dissimilar_lies_below():
    s = torch.tensor([[0.1, -0.5], [-0.5, 0.1]], requires_grad=True)
    relevance = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    authors = {"margins": (0.2, 0.3), "weights": (1.0, 1.0), "levels": "cumulative", "pair_in_top_level": True}
    assert Ladder(**authors)(s, relevance) == 0
    value = Ladder(**authors, masking="product")(s, relevance)
    value.backward()
    torch.testing.assert_close(value, torch.tensor(4 * (0.3 - 0.1)))
    assert s.grad.tolist() == [[-2.0, 0.0], [0.0, -2.0]]


@pytest.mark.parametrize("sampling", ["sum", "hard_contrastive"])
def test_two_rungs_equal_loops(equals_loops, sampling):
    form = {"sampling": sampling, "levels": "single", "pair_in_top_level": False}
    equals_loops(lambda **k: Ladder(sampling=sampling, **k), reference.ladder(**TWO, **form))


@pytest.mark.parametrize(("sampling", "hinges"), [("sum", SumOfHinges), ("hard_contrastive", MaxOfHinges)])
def test_later_weights_of_zero_leave_the_hinges(sampling, hinges):
    block, relevance = torch.randn(12, 12), torch.rand(12, 12)
    one, two = (block.clone().requires_grad_() for _ in range(2))
    ladder = Ladder(**(THREE | {"weights": (1.0, 0.0, 0.0)}), sampling=sampling)(one, relevance)
    plain = hinges(0.2)(two)
    assert ladder == plain
    ladder.backward()
    plain.backward()
    assert (one.grad == two.grad).all()


def test_a_float32_degree_equal_to_the_threshold_belongs_to_the_upper_level():
    for dtype in (torch.float32, torch.float64):
        assert levels_of(torch.tensor([0.63], dtype=dtype), (0.63,)).item() == 1
    value = Ladder(margins=(0.2, 5.0))(torch.zeros(3, 3, dtype=torch.float64), torch.full((3, 3), 0.63))
    assert value == Ladder(weights=(1.0, 0.0))(torch.zeros(3, 3, dtype=torch.float64), torch.full((3, 3), 0.63))


@pytest.mark.parametrize("sampling", ["sum", "hard_contrastive"])
def test_a_degree_that_is_nan_is_on_the_lowest_level(sampling):
    s, relevance = torch.randn(6, 6), torch.rand(6, 6)
    known, unknown = relevance.clone(), relevance.clone()
    known[1, 4], unknown[1, 4] = 0.0, torch.nan
    loss = Ladder(**THREE, sampling=sampling, mask_above=0.9)
    assert levels_of(unknown, (0.63, 0.56))[1, 4] == 3
    assert loss(s, unknown) == loss(s, known)


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.lists(st.tuples(st.integers(-16, 16), st.integers(0, 2)), min_size=n, max_size=n)
    ),
    st.sampled_from([-0.3, 0.0, 0.01, 0.2, 3.0]),
)
@settings(max_examples=60)
def test_rung_sum_equals_all_pairs(items, margin):
    s = torch.tensor([[value / 16 for value, _ in items]], dtype=torch.float64, requires_grad=True)
    upper = torch.tensor([[kind == 1 for _, kind in items]])
    lower = torch.tensor([[kind == 2 for _, kind in items]])
    hinges = (margin - s.unsqueeze(2) + s.unsqueeze(1)).relu() * upper.unsqueeze(2) * lower.unsqueeze(1)
    expected = hinges.sum(dim=(1, 2))
    value = rung_sum(s, upper, lower, margin)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    slopes = [torch.autograd.grad(v.sum(), s)[0] for v in (value, expected)]
    torch.testing.assert_close(*slopes, rtol=0, atol=0)


def test_rows_in_chunks_equal_rows_at_once(monkeypatch):
    s, relevance = torch.randn(10, 10), torch.rand(10, 10)
    whole = Ladder(sampling="sum")(s, relevance)
    monkeypatch.setattr(ladder_file, "CHUNK", 30)
    torch.testing.assert_close(Ladder(sampling="sum")(s, relevance), whole)


def test_prefix_sums_keep_float32_blocks_exact():
    g = torch.Generator().manual_seed(0)
    s, relevance = torch.rand(2, 3000, generator=g), torch.rand(2, 3000, generator=g)
    upper, lower = relevance > 0.6, relevance < 0.3
    value = rung_sum(s, upper, lower, 0.01)
    exact = rung_sum(s.double(), upper, lower, 0.01)
    torch.testing.assert_close(value.double(), exact, rtol=1e-7, atol=0)


@pytest.mark.parametrize("sampling", ["sum", "hard_contrastive"])
def test_permuting_the_batch_changes_nothing(sampling):
    s, relevance = torch.randn(9, 9, dtype=torch.float64), torch.rand(9, 9)
    order = torch.randperm(9)
    loss = Ladder(sampling=sampling)
    torch.testing.assert_close(loss(s, relevance), loss(s[order][:, order], relevance[order][:, order]))


@pytest.mark.parametrize("form", [{"sampling": "sum"}, {}, {"pairs": 2}], ids=["sum", "one pair", "two pairs"])
def test_gradcheck(form):
    g = torch.Generator().manual_seed(3)
    s = torch.randn(6, 6, dtype=torch.float64, generator=g, requires_grad=True)
    relevance = torch.rand(6, 6, generator=g)
    loss = Ladder(**THREE, **form)
    assert torch.autograd.gradcheck(lambda block: loss(block, relevance), s)


@pytest.mark.parametrize("sampling", ["sum", "hard_contrastive"])
def test_half_precision_stays_finite(half_block, sampling):
    block, relevance = half_block
    s = block.clone().requires_grad_()
    value = Ladder(sampling=sampling)(s, relevance)
    value.backward()
    assert value.dtype == torch.float32
    assert value.isfinite()
    assert s.grad.isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"thresholds": (0.5, 0.6), "margins": (1, 1, 1), "weights": (1, 1, 1)}, "fall"),
        ({"thresholds": (0.5,), "margins": (1,), "weights": (1, 1)}, "1 margins"),
        ({"thresholds": (0.5, 0.5), "margins": (1, 1, 1), "weights": (1, 1, 1)}, "must fall from rung to rung"),
        ({"sampling": "all"}, "sampling must be one of sum, hard_contrastive"),
        ({"levels": "paper"}, "levels"),
        ({"masking": "multiply"}, "masking must be one of exclude, product"),
        ({"masking": "product", "sampling": "sum"}, "'sum' takes no maximum"),
        ({"pairs": 0}, "pairs must be at least 1, got 0"),
        ({"pairs": 3, "sampling": "sum"}, "^pairs 3 belongs to sampling 'hard_contrastive'; 'sum' takes all pairs"),
        ({"pairs": 2, "masking": "product"}, "^pairs 2 belongs to masking 'exclude'; 'product' takes one pair"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        Ladder(**arguments)


def test_relevance_is_needed():
    with pytest.raises(ValueError, match="graded"):
        Ladder()(torch.zeros(2, 2))
