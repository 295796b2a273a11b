import pytest
import torch

from rungwise.losses._temperature import LOWEST, Temperature


def test_a_fixed_temperature_is_a_number_without_parameters():
    temperature = Temperature(0.07)
    assert temperature() == 0.07
    assert not list(temperature.parameters())


def test_a_learned_one_starts_at_its_value_and_moves_with_its_gradient():
    temperature = Temperature(0.07, learnable=True)
    start = temperature()
    torch.testing.assert_close(start.detach(), torch.tensor(0.07))
    start.backward()
    (raw,) = temperature.parameters()
    torch.testing.assert_close(raw.grad, torch.tensor(0.07 - LOWEST))
    with torch.no_grad():
        raw -= raw.grad
    assert LOWEST < temperature() < 0.07


def test_a_learned_one_stays_above_its_bound_wherever_the_optimiser_goes():
    temperature = Temperature(1.0, learnable=True)
    with torch.no_grad():
        temperature.raw.fill_(-1000.0)
    assert temperature() >= LOWEST


@pytest.mark.parametrize(("value", "learnable"), [(0.0, False), (-1.0, False), (float("nan"), False), (LOWEST, True)])
def test_what_is_too_low_is_refused(value, learnable):
    with pytest.raises(ValueError, match="temperature must be above"):
        Temperature(value, learnable)
