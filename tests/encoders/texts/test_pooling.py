import pytest
import torch

from rungwise.encoders.texts import inside
from rungwise.encoders.texts._pooling import last_of, max_of, mean_of

LENGTHS = [3, 1, 5]


@pytest.fixture
def states() -> torch.Tensor:
    return torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0)) - 2


def test_pooling_is_that_of_each_sentence_alone(states: torch.Tensor) -> None:
    lengths = torch.tensor(LENGTHS)
    for row, length in enumerate(LENGTHS):
        tokens = states[row, :length]
        torch.testing.assert_close(mean_of(states, lengths)[row], tokens.mean(dim=0))
        torch.testing.assert_close(max_of(states, lengths)[row], tokens.amax(dim=0))
        torch.testing.assert_close(last_of(states, lengths)[row], tokens[-1])


@pytest.mark.parametrize("pool", [mean_of, max_of, last_of])
def test_what_stands_in_the_padding_changes_nothing_and_gets_no_gradient(pool, states: torch.Tensor) -> None:
    lengths = torch.tensor(LENGTHS)
    padding = ~inside(lengths, 5)
    spoilt = states.clone()
    spoilt[padding] = torch.nan
    spoilt.requires_grad_(True)
    pooled = pool(spoilt, lengths)
    torch.testing.assert_close(pooled, pool(states, lengths))
    pooled.sum().backward()
    assert spoilt.grad is not None
    assert (spoilt.grad[padding] == 0).all()


def test_means_of_half_precision_are_added_up_exactly() -> None:
    many = torch.full((1, 4000, 1), 0.1, dtype=torch.bfloat16)
    torch.testing.assert_close(mean_of(many, torch.tensor([4000])), many[:, 0].float())
