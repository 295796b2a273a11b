import pytest
import torch
from torch.nn import functional as F

from rungwise.losses import ContrastiveMax, ContrastiveSum, MaxOfHinges
from tests.losses import loss_reference as reference


def test_contrastive_sum_equals_loops(equals_loops):
    equals_loops(lambda **k: ContrastiveSum(0.1, **k), reference.contrastive_sum(0.1))


def test_contrastive_max_equals_loops(equals_loops):
    equals_loops(lambda **k: ContrastiveMax(0.1, 0.2, **k), reference.contrastive_max(0.1, 0.2))


def test_contrastive_max_without_a_hinge_equals_loops(equals_loops):
    equals_loops(lambda **k: ContrastiveMax(0.1, 0.0, hinge=False, **k), reference.contrastive_ratio(0.1))


def test_without_a_hinge_a_correct_retrieval_still_has_a_gradient():
    block = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    for hinge, value in ((True, 0.0), (False, (0.1 - 0.9 + 0.2 - 0.8 + 0.2 - 0.9 + 0.1 - 0.8) / 0.5)):
        s = block.clone().requires_grad_()
        loss = ContrastiveMax(0.5, 0.0, hinge=hinge)(s)
        loss.backward()
        torch.testing.assert_close(loss.detach(), torch.tensor(value))
        assert bool(s.grad.any()) is not hinge


def test_a_margin_without_a_hinge_is_refused():
    with pytest.raises(ValueError, match=r"^margin 0\.2 with hinge False adds a constant") as caught:
        ContrastiveMax(hinge=False)
    assert "\n" not in str(caught.value)


def test_contrastive_sum_is_the_cross_entropy_of_both_directions_added():
    s, own = torch.randn(12, 12, dtype=torch.float64), torch.arange(12)
    expected = F.cross_entropy(s / 0.1, own) + F.cross_entropy(s.T / 0.1, own)
    torch.testing.assert_close(ContrastiveSum(reduction="mean")(s), expected, rtol=1e-12, atol=0)


def test_contrastive_max_is_max_of_hinges_over_the_temperature():
    one, two = (torch.randn(12, 12, generator=torch.Generator().manual_seed(0)).requires_grad_() for _ in range(2))
    contrastive, hinges = ContrastiveMax(0.1, 0.2)(one), MaxOfHinges(0.2)(two) / 0.1
    torch.testing.assert_close(contrastive, hinges)
    contrastive.backward()
    hinges.backward()
    torch.testing.assert_close(one.grad, two.grad)


def test_a_learnable_temperature_starts_where_it_was_told_and_gets_its_gradient():
    s = torch.randn(6, 6, dtype=torch.float64)
    loss = ContrastiveSum(0.1, learnable=True).double()
    value = loss(s)
    torch.testing.assert_close(value, ContrastiveSum(0.1)(s), rtol=1e-6, atol=0)
    value.backward()
    (raw,) = loss.parameters()
    step = 1e-6
    up, down = (float(ContrastiveSum(float(loss.temperature().detach()) + h)(s)) for h in (step, -step))
    slope_of_raw = float(raw.detach().exp())
    assert float(raw.grad) == pytest.approx((up - down) / (2 * step) * slope_of_raw, rel=1e-6)


@pytest.mark.parametrize("family", [ContrastiveSum, ContrastiveMax])
def test_half_precision_stays_finite_when_cold(half_block, family):
    s = half_block[0].clone().requires_grad_()
    value = family(temperature=0.01)(s)
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()


def test_permuting_the_batch_changes_nothing():
    s, order = torch.randn(9, 9, dtype=torch.float64), torch.randperm(9)
    torch.testing.assert_close(ContrastiveSum()(s), ContrastiveSum()(s[order][:, order]))


@pytest.mark.parametrize("loss", [ContrastiveSum(), ContrastiveMax(margin=0.0, hinge=False)], ids=["sum", "ratio"])
def test_gradcheck(loss):
    s = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(loss, s)


@pytest.mark.parametrize(("learnable", "value"), [(False, 0.0), (True, 0.001), (False, torch.nan), (True, torch.nan)])
def test_a_temperature_must_be_positive(learnable, value):
    with pytest.raises(ValueError, match="temperature"):
        ContrastiveSum(value, learnable=learnable)
