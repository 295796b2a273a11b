import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rungwise.core import UserError
from rungwise.similarity import SetSimilarity, Side, WordSets, all_pairs, products


class MeanProduct(SetSimilarity):
    """The mean inner product of regions and words; counts what it is asked."""

    def __init__(self) -> None:
        self.images = self.captions = self.pairs = self.largest = 0

    def image_side(self, regions: Tensor) -> Side:
        self.images += len(regions)
        return (regions.mean(dim=1),)

    def caption_side(self, words: Tensor) -> Side:
        self.captions += len(words)
        return (words.mean(dim=1),)

    def block(self, images: Side, captions: Side) -> Tensor:
        self.pairs += len(images[0]) * len(captions[0])
        self.largest = max(self.largest, len(images[0]) * len(captions[0]))
        return products(images[0], captions[0])

    def values_of_pair(self, regions: int, words: int) -> int:
        return regions * words


def sides(images: int, lengths: list[int]) -> tuple[Tensor, WordSets, Tensor]:
    draw = torch.Generator().manual_seed(len(lengths))
    regions = torch.randn(images, 3, 4, generator=draw, dtype=torch.float64)
    padded = torch.randn(len(lengths), max(lengths), 4, generator=draw, dtype=torch.float64)
    texts = [padded[at, :length].mean(dim=0) for at, length in enumerate(lengths)]
    return regions, WordSets.of(padded, lengths), regions.mean(dim=1) @ torch.stack(texts).T


@settings(max_examples=40)
@given(st.integers(1, 9), st.lists(st.integers(1, 5), min_size=1, max_size=15), st.integers(1, 400))
def test_all_pairs_come_once_in_their_places_whatever_the_bound(images: int, lengths: list[int], values: int) -> None:
    regions, words, wanted = sides(images, lengths)
    counted = MeanProduct()
    found = all_pairs(counted, regions, words, values=values)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    assert (counted.images, counted.captions, counted.pairs) == (images, len(lengths), images * len(lengths))
    assert counted.largest <= max(1, values // 3)  # no pair takes less than three values


def test_gradients_are_the_same_when_blocks_are_computed_once_more() -> None:
    regions, words, _ = sides(5, [2, 3, 2, 4])
    slopes = []
    for recompute in (False, True):
        asked = MeanProduct()
        image, text = regions.clone().requires_grad_(), words.words.clone().requires_grad_()
        found = all_pairs(asked, image, WordSets(text, words.lengths), values=12, recompute=recompute)
        found.square().sum().backward()
        assert asked.pairs == 20 * (1 + recompute)
        slopes.append((image.grad, text.grad))
    for once, twice in zip(*slopes, strict=True):
        torch.testing.assert_close(once, twice)


def test_nothing_with_nothing_is_nothing() -> None:
    regions, words, _ = sides(2, [3])
    assert all_pairs(MeanProduct(), regions[:0], words).shape == (0, 1)
    none = words.select(torch.zeros(0, dtype=torch.int64))
    assert all_pairs(MeanProduct(), regions, none).shape == (2, 0)


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        (torch.zeros(2, 4), r"regions must be \(images, R, D\)"),
        (torch.zeros(2, 3, 5), r"words of the same D, got \(2, 3, 5\) and words of width 4"),
        (torch.zeros(2, 0, 4), "the images have no regions"),
    ],
)
def test_what_does_not_fit_is_refused(regions: Tensor, message: str) -> None:
    with pytest.raises(UserError, match=message):
        all_pairs(MeanProduct(), regions, WordSets(torch.zeros(2, 4), torch.tensor([2])))


def test_products_of_half_precision_are_float32() -> None:
    half = torch.ones(2, 3, dtype=torch.bfloat16)
    assert products(half, half).dtype == torch.float32
    assert products(half.double(), half.double()).dtype == torch.float64
