import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.similarity import CrossAttention, attention_scores, cross_attention
from tests.similarity.scan_loops import scan_loops

NORMALISE = ["clipped_l2norm", "clipped", "softmax", "l2norm", "l1norm", "clipped_l1norm", "no_norm"]


def sets(images: int, regions: int, lengths: list[int], width: int = 3, seed: int = 0):
    draw = torch.Generator().manual_seed(seed)
    one = torch.randn(images, regions, width, generator=draw, dtype=torch.float64)
    other = torch.randn(len(lengths), max(lengths) + 1, width, generator=draw, dtype=torch.float64)
    return F.normalize(one, dim=2), F.normalize(other, dim=2)


def compare(regions, words, lengths, **options) -> None:
    """Values and gradients, to float64's rounding."""
    regions, words = regions.requires_grad_(), words.requires_grad_()
    draw = torch.Generator().manual_seed(9)
    slope = torch.randn(len(regions), len(words), generator=draw, dtype=torch.float64)
    found = cross_attention(regions, words, lengths, **options)
    wanted = scan_loops(regions, words, lengths, **options)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    own = torch.autograd.grad((found * slope).sum(), (regions, words))
    theirs = torch.autograd.grad((wanted * slope).sum(), (regions, words))
    for mine, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("normalise", NORMALISE)
@pytest.mark.parametrize("pooling", ["lse", "mean"])
@pytest.mark.parametrize("attend", ["t2i", "i2t"])
def test_it_is_the_equations_number_by_number(attend: str, pooling: str, normalise: str) -> None:
    regions, words = sets(2, 3, [2, 1, 3])
    options = {"attend": attend, "pooling": pooling, "normalise": normalise, "smoothing": 4.0, "lse": 5.0}
    compare(regions, words, [2, 1, 3], **options)


@settings(max_examples=15)
@given(
    st.integers(1, 2), st.integers(1, 4), st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.sampled_from(["t2i", "i2t"]), st.integers(0, 100),
)  # fmt: skip
def test_any_number_of_regions_and_words(images, regions, lengths, attend, seed) -> None:
    compare(*sets(images, regions, lengths, seed=seed), lengths, attend=attend)


@pytest.mark.parametrize("attend", ["t2i", "i2t"])
def test_sets_of_any_length_are_compared_by_the_same_equations(attend: str) -> None:
    regions, words = sets(2, 3, [2, 3])
    compare(3 * regions, 0.5 * words, [2, 3], attend=attend, normalise="no_norm")


@pytest.mark.parametrize("attend", ["t2i", "i2t"])
def test_padding_is_invisible(attend: str) -> None:
    lengths = [2, 4, 1]
    regions, words = sets(3, 5, lengths)
    other = words.clone()
    for caption, length in enumerate(lengths):
        other[caption, length:] = torch.nan
    same = cross_attention(regions, words, lengths, attend=attend)
    assert torch.equal(cross_attention(regions, other, lengths, attend=attend), same)


@pytest.mark.parametrize("attend", ["t2i", "i2t"])
@settings(max_examples=25)
@given(st.integers(1, 200), st.permutations(range(6)))
def test_neither_blocks_nor_order_matter(attend: str, values: int, order: list[int]) -> None:
    lengths = [2, 4, 1, 2, 3, 4]
    regions, words = sets(4, 3, lengths)
    whole = cross_attention(regions, words, lengths, attend=attend)
    turned = cross_attention(regions, words[order], [lengths[one] for one in order], attend=attend, values=values)
    torch.testing.assert_close(turned, whole[:, order], rtol=0, atol=1e-12)


def test_a_region_of_zeros_has_a_value_and_a_gradient() -> None:
    regions, words = sets(2, 3, [2, 3])
    regions[0, 1] = 0
    regions.requires_grad_()
    for attend in ("t2i", "i2t"):
        found = cross_attention(regions, words, [2, 3], attend=attend)
        (slope,) = torch.autograd.grad(found.sum(), regions)
        assert torch.isfinite(found).all()
        assert torch.isfinite(slope).all()


def test_gradients_are_those_of_finite_differences() -> None:
    regions, words = sets(2, 3, [2, 1])
    for attend in ("t2i", "i2t"):
        arguments = regions.requires_grad_(), words.requires_grad_()
        assert torch.autograd.gradcheck(lambda v, w, a=attend: cross_attention(v, w, [2, 1], attend=a), arguments)


@pytest.mark.parametrize("attend", ["t2i", "i2t"])
def test_half_precision_rounds_products_alone(attend: str) -> None:
    regions, words = sets(6, 4, [3] * 8, width=64)
    exact = cross_attention(regions, words, [3] * 8, attend=attend)
    half = cross_attention(regions.bfloat16(), words.bfloat16(), [3] * 8, attend=attend)
    assert half.dtype == torch.float32
    assert 0 < (half - exact).abs().max() < 0.02


def test_autocast_does_not_reach_what_is_not_a_product() -> None:
    regions, words = (one.float() for one in sets(3, 4, [3, 2], width=16))
    plain = cross_attention(regions, words, [3, 2])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(cross_attention(regions, words, [3, 2]), plain)


@pytest.mark.parametrize("attend", ["t2i", "i2t"])
def test_weights_say_which_regions_answered_which_words(attend: str) -> None:
    regions, words = sets(1, 4, [3])
    value = CrossAttention(attend)
    weights, answers = value.weights(regions[0], words[0, :3])
    assert weights.shape == (3, 4)
    torch.testing.assert_close(weights.sum(dim=1 if attend == "t2i" else 0), torch.ones_like(answers))
    queries, context, share = (words[0, :3], regions[0], weights) if attend == "t2i" else (
        regions[0], words[0, :3], weights.T)  # fmt: skip
    torch.testing.assert_close(F.cosine_similarity(queries, share @ context, dim=1), answers)
    pooled = value.pooled(answers.view(1, -1, 1))
    torch.testing.assert_close(pooled, cross_attention(regions, words[:, :3], [3], attend=attend))


def test_scores_are_normalised_over_what_attends() -> None:
    products = torch.tensor([[3.0, -4.0], [0.0, 2.0]])
    assert attention_scores(products, 1, "l2norm")[0].tolist() == pytest.approx([0.6, -0.8])
    assert attention_scores(products, 0, "l1norm")[:, 0].tolist() == pytest.approx([1.0, 0.0])
    assert attention_scores(products, 1, "clipped")[0].tolist() == pytest.approx([3.0, -0.4])
    np.testing.assert_allclose(attention_scores(products, 1, "softmax").sum(dim=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    "options", [{"attend": "both"}, {"pooling": "max"}, {"normalise": "l3norm"}, {"smoothing": 0.0}, {"lse": -1.0}]
)
def test_options_that_are_not_known_are_refused(options: dict) -> None:
    regions, words = sets(1, 2, [2])
    with pytest.raises(UserError, match=next(iter(options))):
        cross_attention(regions, words, [2], **options)


@pytest.mark.parametrize(("first", "second"), [("int64", "int64"), ("float64", "float32"), ("int64", "float32")])
def test_sides_of_other_kinds_of_numbers_are_refused(first: str, second: str) -> None:
    regions, words = sets(1, 2, [2])
    with pytest.raises(UserError, match=f"of one kind, got torch.{first} and torch.{second}"):
        cross_attention(regions.to(getattr(torch, first)), words.to(getattr(torch, second)), [2])
