import pytest
import torch

from rungwise.training.updates import Updates


def test_a_step_cuts_the_norm_and_says_what_it_was():
    weight = torch.nn.Parameter(torch.zeros(2))
    updates = Updates(torch.optim.SGD([{"params": [weight], "factor": 0.5}], lr=1.0), [weight], clip_norm=1.0)
    updates.begin(0.2)
    weight.grad = torch.tensor([3.0, 4.0])
    assert float(updates.finish()) == pytest.approx(5.0)
    assert weight.detach() == pytest.approx([-0.06, -0.08], rel=1e-4)
    updates.begin(0.2)
    assert weight.grad is None
