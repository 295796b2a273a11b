import pytest
import torch

from rungwise.similarity import cosine, inner, l2_normalise, shifted_cosine

IMAGES = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TEXTS = torch.randn(3, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def by_loops(entry):
    return torch.tensor([[entry(f.tolist(), g.tolist()) for g in TEXTS] for f in IMAGES], dtype=torch.float64)


def dot(f, g):
    return sum(a * b for a, b in zip(f, g, strict=True))


@pytest.mark.parametrize(
    ("similarity", "entry"),
    [
        (cosine, lambda f, g: dot(f, g) / (dot(f, f) * dot(g, g)) ** 0.5),
        (shifted_cosine, lambda f, g: (1 + dot(f, g) / (dot(f, f) * dot(g, g)) ** 0.5) / 2),
        (inner, lambda f, g: dot(f, g) / dot(g, g) ** 0.5),
        (lambda f, g: inner(f, g, "image"), lambda f, g: dot(f, g) / dot(f, f) ** 0.5),
        (lambda f, g: inner(f, g, "neither"), dot),
    ],
)
def test_equals_loops(similarity, entry):
    torch.testing.assert_close(similarity(IMAGES, TEXTS), by_loops(entry), rtol=1e-12, atol=1e-12)
    leaves = [x.clone().requires_grad_() for x in (IMAGES, TEXTS)]
    assert torch.autograd.gradcheck(similarity, leaves)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_vector_of_length_0_stays_0_with_a_finite_gradient(dtype):
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    unit = l2_normalise(x)
    assert unit.dtype == dtype
    assert unit[0].tolist() == [0.0, 0.0]
    unit.sum().backward()
    assert x.grad.isfinite().all()


def test_lengths_beyond_float16_are_no_trouble():
    x = torch.full((1, 64), 300.0, dtype=torch.float16)
    torch.testing.assert_close(l2_normalise(x).float(), torch.full((1, 64), 0.125), rtol=1e-3, atol=0)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="text, image, neither"):
        inner(IMAGES, TEXTS, "both")
