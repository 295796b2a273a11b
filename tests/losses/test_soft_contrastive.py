import pytest
import torch

from rungwise.losses import ContrastiveSum, SoftContrastive
from tests.losses import loss_reference as reference


def test_equals_loops(equals_loops):
    equals_loops(lambda **k: SoftContrastive(0.1, 0.2, **k), reference.soft_contrastive(0.1, 0.2))


def test_sharp_targets_leave_contrastive_sum():
    s = torch.randn(6, 6, dtype=torch.float64)
    soft = SoftContrastive(target_temperature=1e-3)(s, torch.eye(6))
    torch.testing.assert_close(soft, ContrastiveSum()(s))


def test_no_gradient_where_similarities_follow_the_targets():
    relevance = torch.rand(6, 6, dtype=torch.float64)
    s = (relevance / 2 + 0.1).requires_grad_()
    SoftContrastive(0.1, 0.2)(s, relevance).backward()
    torch.testing.assert_close(s.grad, torch.zeros_like(s))


def test_half_precision_stays_finite_when_cold(half_block):
    s = half_block[0].clone().requires_grad_()
    value = SoftContrastive(0.01, 0.01)(s, half_block[1].to(s.dtype))
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()


def test_gradcheck():
    s = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    relevance = torch.rand(5, 5)
    assert torch.autograd.gradcheck(lambda block: SoftContrastive()(block, relevance), s)


def test_what_does_not_fit_is_refused():
    for value in (0, torch.nan):
        with pytest.raises(ValueError, match="target_temperature"):
            SoftContrastive(target_temperature=value)
    with pytest.raises(ValueError, match="graded"):
        SoftContrastive()(torch.zeros(2, 2))
