"""Self-attention pooling against nested loops, and what its batch norm refuses."""

import math

import pytest
import torch
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.models.regions._self_attention import SelfAttention
from tests.models.regions.loops import affine, norm_of, row, self_attention


def pooling(
    width: int = 5, regions: int | None = None, dropout: float = 0.0, seed: int = 0, unit_mean: bool = False
) -> SelfAttention:
    """In float64, with weights, biases and statistics that are all different."""
    torch.manual_seed(seed)
    module = SelfAttention(width, dropout, regions, unit_mean).double()
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + 0.2
    return module


@pytest.mark.parametrize("unit_mean", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("regions", "size"), [(None, 4), (None, 1), (3, 3), (1, 1)])
def test_values_and_gradients_are_those_of_nested_loops(regions, size, training, unit_mean):
    module = pooling(regions=regions, unit_mean=unit_mean).train(training)
    sets = F.normalize(torch.randn(4, size, 5, dtype=torch.float64), dim=2).requires_grad_()
    found = module(sets)
    expected = torch.stack([torch.stack(one) for one in self_attention(module, sets, training)])
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    direction = torch.randn_like(found)
    inputs = (sets, *module.parameters())
    ours, loops = (torch.autograd.grad((one * direction).sum(), inputs) for one in (found, expected))
    torch.testing.assert_close(ours, loops, rtol=1e-9, atol=1e-11)


def test_training_moves_the_statistics_and_evaluation_reads_them():
    module = pooling(regions=2)
    sets = torch.randn(6, 2, 5, dtype=torch.float64)
    before = module.local_norm.running_mean.clone()
    module.train()(sets)
    seen = torch.stack([torch.stack([torch.stack(affine(module.local, row(one))) for one in some]) for some in sets])
    expected = 0.9 * before + 0.1 * seen.mean(dim=(0, 2))
    torch.testing.assert_close(module.local_norm.running_mean, expected, rtol=1e-12, atol=1e-12)
    module.eval()
    alone = module(sets[:1])
    torch.testing.assert_close(alone, module(sets)[:1], rtol=1e-12, atol=1e-12)
    assert norm_of(row(alone[0])).item() == pytest.approx(1)


def test_what_stands_after_a_text_changes_nothing():
    module = pooling()
    sets = torch.randn(3, 4, 5, dtype=torch.float64)
    lengths = torch.tensor([1, 4, 2])
    found = module(sets, lengths)
    other = sets.clone()
    other[0, 1:], other[2, 2:] = math.nan, 1e30
    assert torch.equal(found, module(other, lengths))
    for one, length, vector in zip(sets, lengths.tolist(), found, strict=True):
        torch.testing.assert_close(vector, module(one[None, :length])[0], rtol=1e-12, atol=1e-12)


def test_dropout_is_of_training_alone():
    module = pooling(dropout=0.5)
    sets = torch.randn(3, 4, 5, dtype=torch.float64)
    assert torch.equal(module.eval()(sets), module(sets))
    assert not torch.equal(module.train()(sets), module(sets))


def test_it_starts_as_the_program():
    module = SelfAttention(8, 0.4, 3)
    bound = math.sqrt(6 / (8 + 8))
    assert 0.9 * bound < module.local.weight.abs().max() <= bound
    assert not module.local.bias.any()
    assert not module.common.bias.any()


def test_products_in_bfloat16_give_float32_near_the_exact_values():
    module = pooling(width=16).float().eval()
    sets = F.normalize(torch.randn(4, 3, 16), dim=2)
    found = module(sets.bfloat16())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, module(sets), rtol=0, atol=0.02)


def test_other_pictures_are_refused_in_one_line():
    module = pooling(regions=3)
    with pytest.raises(UserError, match=r"^the pictures have 2 regions, but the model was made for 3"):
        module(torch.zeros(4, 2, 5, dtype=torch.float64))


def test_the_mean_of_one_picture_is_normalised_by_the_statistics_that_were_kept():
    module = pooling(regions=3).train()
    kept = [buffer.clone() for buffer in module.whole_norm.buffers()]
    one = torch.randn(1, 3, 5, dtype=torch.float64)
    found = module(one)
    assert all(map(torch.equal, kept, module.whole_norm.buffers()))
    assert module.local_norm.num_batches_tracked == 1
    module.whole_norm.eval()
    assert torch.equal(found, module(one))
