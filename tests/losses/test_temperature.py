import math

import pytest
import torch

from rungwise.losses.temperature import LOWEST, Temperature


def test_a_fixed_one_is_the_number_and_has_nothing_to_learn():
    fixed = Temperature(0.07)
    assert fixed() == 0.07
    assert list(fixed.parameters()) == []


def test_a_learned_one_starts_where_it_is_told_and_has_a_gradient():
    learned = Temperature(0.07, learnable=True)
    assert learned().item() == pytest.approx(0.07, rel=1e-6)
    (parameter,) = learned.parameters()
    learned().backward()
    assert parameter.grad.item() == pytest.approx(0.07 - LOWEST, rel=1e-5)


@pytest.mark.parametrize("parameter", [-1e4, -10.0, 0.0, 3.0])
def test_a_learned_one_stays_above_the_lowest(parameter):
    learned = Temperature(0.07, learnable=True)
    with torch.no_grad():
        learned.raw.fill_(parameter)
    assert learned().item() == pytest.approx(LOWEST + math.exp(parameter), rel=1e-6)


@pytest.mark.parametrize(("value", "learnable"), [(0.0, False), (-1.0, False), (float("nan"), False), (LOWEST, True)])
def test_one_that_is_too_low_is_refused(value, learnable):
    with pytest.raises(ValueError, match="temperature must be above"):
        Temperature(value, learnable)
