import torch

from rungwise.losses import Sigmoid
from tests.losses import loss_reference as reference


def test_equals_loops(equals_loops):
    equals_loops(lambda **k: Sigmoid(0.1, -10.0, **k), reference.sigmoid(0.1, -10.0))


def test_temperature_and_bias_are_learned_when_asked():
    assert not list(Sigmoid().parameters())
    loss = Sigmoid(learnable=True)
    loss(torch.randn(4, 4)).backward()
    assert sorted(name for name, _ in loss.named_parameters()) == ["bias", "temperature.raw"]
    assert all(parameter.grad.abs() > 0 for parameter in loss.parameters())


def test_half_precision_stays_finite_when_cold(half_block):
    s = half_block[0].clone().requires_grad_()
    value = Sigmoid(0.01)(s)
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()


def test_gradcheck():
    s = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Sigmoid(), s)


def test_a_bias_may_be_a_whole_number():
    s = torch.randn(4, 4)
    torch.testing.assert_close(Sigmoid(bias=-10, learnable=True)(s), Sigmoid(bias=-10.0)(s))
