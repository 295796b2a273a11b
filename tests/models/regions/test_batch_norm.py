from __future__ import annotations

import pytest
import torch

from rungwise.models.regions._batch_norm import BatchNorm
from rungwise.models.regions._region_reasoning import GraphConvolution
from rungwise.models.regions._self_attention import SelfAttention


@pytest.mark.parametrize("shape", [(1, 2), (1, 2, 1)])
def test_one_value_of_each_feature_is_normalised_by_the_statistics_so_far(shape: tuple[int, ...]) -> None:
    norm = BatchNorm(2)
    norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    before = {name: one.clone() for name, one in norm.state_dict().items()}
    alone = torch.tensor([5.0, 1.0]).view(shape)
    found = norm(alone)
    torch.testing.assert_close(found, norm.eval()(alone))
    assert all(torch.equal(one, before[name]) for name, one in norm.state_dict().items())


@pytest.mark.parametrize("shape", [(4, 2), (1, 2, 3), (4, 2, 3)])
def test_more_values_are_normalised_as_torch_does(shape: tuple[int, ...]) -> None:
    ours, theirs, values = BatchNorm(2), torch.nn.BatchNorm1d(2), torch.randn(shape)
    torch.testing.assert_close(ours(values), theirs(values))
    torch.testing.assert_close(ours.running_var, theirs.running_var)


def test_layers_with_it_take_one_picture() -> None:
    assert GraphConvolution(2).train()(torch.randn(1, 1, 2)).shape == (1, 1, 2)
    assert SelfAttention(4, 0.0, regions=3).train()(torch.randn(1, 3, 4)).shape == (1, 4)
