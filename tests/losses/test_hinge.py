import pytest
import torch

from rungwise.losses import MaxOfHinges, SumOfHinges
from tests.losses import loss_reference as reference


def test_sum_of_hinges_equals_loops(equals_loops):
    equals_loops(lambda **k: SumOfHinges(0.2, **k), reference.sum_of_hinges(0.2))


def test_max_of_hinges_equals_loops(equals_loops):
    equals_loops(lambda **k: MaxOfHinges(0.2, **k), reference.max_of_hinges(0.2))


@pytest.mark.parametrize("family", [SumOfHinges, MaxOfHinges])
def test_permuting_the_batch_changes_nothing(family):
    s = torch.randn(9, 9, dtype=torch.float64)
    order = torch.randperm(9)
    torch.testing.assert_close(family()(s), family()(s[order][:, order]))


def test_the_first_of_tied_hardest_negatives_takes_the_gradient():
    s = torch.tensor([[0.5, 0.4, 0.4], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]], requires_grad=True)
    MaxOfHinges()(s).backward()
    assert s.grad[0].tolist() == [-1.0, 1.0, 0.0]


def test_a_negative_set_as_large_as_the_block_is_all_negatives():
    s = torch.randn(8, 8)
    torch.testing.assert_close(MaxOfHinges(negative_set=7)(s), MaxOfHinges()(s))


def test_a_negative_set_of_one_is_any_negative_and_no_other_entry():
    s = torch.randn(6, 6, dtype=torch.float64)
    seen = [set() for _ in range(6)]
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        block = s.clone().requires_grad_()
        i2t, _ = MaxOfHinges(margin=10.0, negative_set=1, generator=generator, reduction="none")(block)
        i2t.sum().backward()
        for q in range(6):
            pushed = (block.grad[q] > 0).nonzero().flatten().tolist()
            assert len(pushed) == 1
            seen[q].add(pushed[0])
    assert seen == [set(range(6)) - {q} for q in range(6)]


def test_larger_negative_sets_are_harder():
    s = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    values = [float(MaxOfHinges(negative_set=n, generator=torch.Generator().manual_seed(1))(s)) for n in (1, 8, 63)]
    assert values == sorted(values)
    assert values[0] < values[-1]


def test_queries_of_a_mini_batch_against_a_larger_negative_set():
    s = torch.randn(4, 16)
    positives = torch.eye(4, 16, dtype=torch.bool)
    i2t, t2i = MaxOfHinges(negative_set=12, reduction="none")(s, positives=positives)
    assert i2t.shape == (4,)
    assert t2i.shape == (16,)
    assert t2i[4:].count_nonzero() == 0


def test_the_first_values_of_a_larger_block_are_a_mini_batch_against_a_larger_negative_set():
    s, small = torch.randn(9, 9), 4
    firsts = [side[:small].sum() for side in MaxOfHinges(0.2, reduction="none")(s)]
    expected = [
        sum(max(0.0, 0.2 + max(row[j] for j in range(9) if j != q) - row[q]) for q, row in enumerate(rows[:small]))
        for rows in (s.tolist(), s.T.tolist())
    ]
    torch.testing.assert_close(torch.stack(firsts), torch.tensor(expected))


def test_a_mini_batch_against_a_larger_negative_set_equals_nested_loops():
    torch.manual_seed(0)
    block, batch, n = torch.randn(9, 9), 4, 9
    positives = torch.eye(9, dtype=torch.bool)
    positives[1, 6] = positives[6, 1] = True  # a candidate beyond the batch that is another caption of a query's image
    rows = block.tolist()
    expected = 0.0
    for q in range(batch):
        for similar in (lambda a, b: rows[a][b], lambda a, b: rows[b][a]):
            negatives = [similar(q, k) for k in range(n) if not positives[q, k]]
            expected += max(0.0, 0.2 + max(negatives) - similar(q, q))
    loss = MaxOfHinges(0.2, negative_set=n)
    torch.testing.assert_close(loss(block, positives=positives, queries=batch), torch.tensor(expected))
    mean = MaxOfHinges(0.2, negative_set=n, reduction="mean")
    torch.testing.assert_close(mean(block, positives=positives, queries=batch), torch.tensor(expected / batch))


def test_the_same_seed_draws_the_same():
    s = torch.randn(32, 32)
    one, two = (MaxOfHinges(negative_set=3, generator=torch.Generator().manual_seed(5))(s) for _ in range(2))
    assert one == two


def test_half_precision_is_computed_in_float32(half_block):
    block, _ = half_block
    for family in (SumOfHinges, MaxOfHinges):
        s = block.clone().requires_grad_()
        value = family()(s)
        value.backward()
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, family()(block.float()))
        assert s.grad.dtype == block.dtype
        assert s.grad.isfinite().all()


def test_gradcheck():
    s = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2), requires_grad=True)
    assert torch.autograd.gradcheck(SumOfHinges(), s)
    assert torch.autograd.gradcheck(MaxOfHinges(), s)


def test_negative_set_must_hold_something():
    with pytest.raises(ValueError, match="negative_set"):
        MaxOfHinges(negative_set=0)
