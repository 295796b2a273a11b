"""The loss of a told caption, against loops over numbers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.encoders.vocabulary import pad
from rungwise.models.regions._caption_head import CaptionHead, CaptionHeadConfig, cut
from tests.models.regions import vsrn_loops as loops

WIDTH, WORDS = 3, 6
SMALL = {"hidden": 2, "word_dimension": 3, "dropout": 0.0}


def head(seed: int = 0, **options: object) -> CaptionHead:
    torch.manual_seed(seed)
    module = CaptionHead(WIDTH, WORDS, CaptionHeadConfig(**(SMALL | options))).double()
    for parameter in module.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return module.train()


CAPTIONS = {
    "of several lengths": [[2, 4, 5, 3], [2, 3], [2, 5, 3]],
    "one alone": [[2, 5, 1, 1, 3]],
    "a single token among others": [[2], [2, 4, 3]],
}


@pytest.mark.parametrize("captions", CAPTIONS.values(), ids=CAPTIONS.keys())
@pytest.mark.parametrize("regions", [1, 3])
def test_loss_and_gradients_are_those_of_the_equations(captions: list[list[int]], regions: int) -> None:
    module = head()
    seen = torch.randn(len(captions), regions, WIDTH, dtype=torch.float64, requires_grad=True)
    found = module.loss(seen, *pad(captions))
    expected = loops.caption_loss(loops.weights(module), loops.scalars(seen), captions)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    leaves = [seen, *module.parameters()]
    for mine, theirs in zip(*(torch.autograd.grad(one, leaves) for one in (found, expected)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9)
    assert found > 1


@settings(max_examples=25)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 3), st.data())
def test_what_fills_a_batch_and_who_is_in_it_change_nothing(lengths: list[int], more: int, data: st.DataObject) -> None:
    module = head()
    captions = [data.draw(st.lists(st.integers(0, WORDS - 1), min_size=n, max_size=n)) for n in lengths]
    seen = torch.randn(len(captions), 2, WIDTH, dtype=torch.float64)
    tokens, sizes = pad(captions)
    whole = module.loss(seen, tokens, sizes)
    filled = torch.cat([tokens, tokens.new_zeros(len(tokens), more)], dim=1)
    inside = torch.arange(filled.shape[1]) < sizes.unsqueeze(1)
    filled = torch.where(inside, filled, data.draw(st.integers(0, WORDS - 1)))
    torch.testing.assert_close(module.loss(seen, filled, sizes), whole, rtol=0, atol=1e-12)
    order = torch.randperm(len(captions))
    torch.testing.assert_close(module.loss(seen[order], tokens[order], sizes[order]), whole, rtol=0, atol=1e-12)
    alone = [module.loss(seen[at : at + 1], *pad([one])) for at, one in enumerate(captions)]
    torch.testing.assert_close(torch.stack(alone).mean(), whole, rtol=0, atol=1e-12)


def test_a_long_caption_is_cut_and_ends_with_its_end() -> None:
    module = head(longest=4)
    seen = torch.randn(2, 3, WIDTH, dtype=torch.float64)
    found = module.loss(seen, *pad([[2, 4, 5, 1, 5, 3], [2, 1, 3]]))
    torch.testing.assert_close(found, module.loss(seen, *pad([[2, 4, 5, 3], [2, 1, 3]])))
    tokens, lengths = cut(*pad([[2, 4, 5, 1, 5, 3], [2, 1, 3], []]), 4)
    assert tokens.tolist() == [[2, 4, 5, 3], [2, 1, 3, 0], [0, 0, 0, 0]]
    assert lengths.tolist() == [4, 3, 0]


def test_captions_without_a_next_word_lose_nothing() -> None:
    for captions in ([[2], [1]], [[], []]):
        assert float(head().loss(torch.randn(2, 3, WIDTH, dtype=torch.float64), *pad(captions))) == 0


def test_dropout_is_of_training_alone() -> None:
    module = head(dropout=0.5)
    seen, batch = torch.randn(2, 3, WIDTH, dtype=torch.float64), pad([[2, 4, 3], [2, 5, 3]])
    assert not torch.equal(module.loss(seen, *batch), module.loss(seen, *batch))
    module.eval()
    assert torch.equal(module.loss(seen, *batch), module.loss(seen, *batch))


def test_it_computes_under_autocast() -> None:
    torch.manual_seed(0)
    module = CaptionHead(WIDTH, WORDS, CaptionHeadConfig(**SMALL))
    seen, batch = torch.randn(2, 3, WIDTH), pad([[2, 4, 3], [2, 5, 3]])
    with torch.autocast("cpu", torch.bfloat16):
        found = module.loss(seen, *batch)
    found.backward()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, module.loss(seen, *batch), rtol=0.02, atol=0)


def test_layers_start_as_in_the_program() -> None:
    torch.manual_seed(0)
    hidden = 200
    module = CaptionHead(300, 1000, CaptionHeadConfig(hidden=hidden))
    for layer, inputs, outputs in (
        (module.regions, 300, hidden),
        (module.align_regions, 2 * hidden, hidden),
        (module.align_state, 2 * hidden, hidden),
        (module.importance, hidden, 1),
        (module.out, hidden, 1000),
    ):
        assert layer.weight.std().item() == pytest.approx((2 / (inputs + outputs)) ** 0.5, rel=0.15)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": -1.0}, r"weight: must be at least 0"),
        ({"weight": float("nan")}, r"weight: must be a finite number"),
        ({"hidden": 0}, r"hidden: must be at least 1"),
        ({"word_dimension": 0}, r"word_dimension: must be at least 1"),
        ({"dropout": 1.0}, r"dropout: must be below 1"),
        ({"longest": 1}, r"longest: must be at least 2"),
    ],
)
def test_settings_that_mean_nothing(options: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        CaptionHeadConfig(**options)
