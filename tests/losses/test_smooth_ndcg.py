import pytest
import torch

from rungwise.losses import SmoothNDCG
from rungwise.losses import _smooth_ndcg as smooth_ndcg_file
from rungwise.losses._smooth_ndcg import smooth_rank
from tests.losses import loss_reference as reference


def test_equals_loops(equals_loops):
    equals_loops(lambda **k: SmoothNDCG(0.11, **k), reference.smooth_ndcg(0.11))


def test_negative_relevance_counts_as_0(equals_loops):
    equals_loops(lambda **k: SmoothNDCG(0.11, **k), reference.smooth_ndcg(0.11), grade=lambda r: r - 0.5)


def test_far_apart_similarities_give_the_measure_itself():
    s = torch.tensor([[0.0, 2.0], [3.0, 5.0]])
    relevance = torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    i2t, _ = SmoothNDCG(0.1, reduction="none")(s, relevance)
    discount = 1 / torch.tensor(3.0).log2()
    worst = 1 - (0.5 + discount) / (1 + 0.5 * discount)
    torch.testing.assert_close(i2t, torch.stack([worst, torch.tensor(0.0)]))


def test_following_the_gradient_raises_the_measure_itself():
    g = torch.Generator().manual_seed(0)
    relevance = torch.rand(8, 8, generator=g)
    s = (torch.rand(8, 8, generator=g) * 0.2).requires_grad_()

    def lost():
        """1 - NDCG by true ranks, mean over rows."""
        discounts = 1 / torch.arange(2, 10).log2()
        reached = (relevance.gather(1, s.detach().argsort(dim=1, descending=True)) * discounts).sum(dim=1)
        best = (relevance.sort(dim=1, descending=True).values * discounts).sum(dim=1)
        return 1 - float((reached / best).mean())

    loss, before = SmoothNDCG(0.2), lost()
    for _ in range(300):
        (slope,) = torch.autograd.grad(loss(s, relevance), s)
        s.data -= 0.05 * slope
    assert lost() < before / 5


def test_ranks_of_what_is_not_there_are_1_and_count_for_nobody():
    s = torch.tensor([[5.0, 0.0, -5.0]])
    ranks = smooth_rank(s, torch.tensor([[False, True, True]]), temperature=0.1)
    assert ranks.tolist() == [[1.0, 1.0, 2.0]]


def test_rows_in_chunks_equal_rows_at_once(monkeypatch):
    s, relevance = torch.rand(10, 10), torch.rand(10, 10)
    whole = SmoothNDCG()(s, relevance)
    monkeypatch.setattr(smooth_ndcg_file, "CHUNK", 30)
    torch.testing.assert_close(SmoothNDCG()(s, relevance), whole)


def test_half_precision_stays_finite_when_cold(half_block):
    s = half_block[0].clone().requires_grad_()
    value = SmoothNDCG(0.01)(s, half_block[1])
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()


def test_gradcheck():
    g = torch.Generator().manual_seed(5)
    s = torch.rand(6, 6, generator=g, dtype=torch.float64, requires_grad=True)
    relevance = torch.rand(6, 6, generator=g)
    assert torch.autograd.gradcheck(lambda block: SmoothNDCG()(block, relevance), s)


@pytest.mark.parametrize("value", [0.0, torch.nan])
def test_temperature_must_be_positive(value):
    with pytest.raises(ValueError, match="temperature"):
        SmoothNDCG(value)


@pytest.mark.parametrize("where", ["similarity", "relevance"])
def test_nan_is_not_hidden(where):
    block = {"similarity": torch.randn(4, 4), "relevance": torch.rand(4, 4)}
    block[where][1, 2] = torch.nan
    i2t, t2i = SmoothNDCG(reduction="none")(**block)
    assert i2t.isnan().tolist() == [False, True, False, False]
    assert t2i.isnan().tolist() == [False, False, True, False]


def test_nan_that_is_masked_counts_for_nobody():
    s, relevance, same = torch.randn(4, 4), torch.rand(4, 4), torch.eye(4, dtype=torch.bool)
    same[1, 2] = True
    expected = SmoothNDCG()(s, relevance, same)
    s[1, 2] = torch.nan
    torch.testing.assert_close(SmoothNDCG()(s, relevance, same), expected)
