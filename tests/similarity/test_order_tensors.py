import pytest
import torch

from rungwise.similarity import _order_tensors as order_tensors
from rungwise.similarity import order


def vectors(n, m, dim, **kind):
    g = torch.Generator().manual_seed(0)
    return [torch.randn(count, dim, generator=g, dtype=torch.float64).abs().to(**kind) for count in (n, m)]


def dense(images, texts, root):
    square = (texts.unsqueeze(0) - images.unsqueeze(1)).clamp(min=0).square().sum(dim=2)
    return -square.sqrt() if root else -square


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("chunk", [1, 7, 20, 45, 10**6])
def test_equals_the_dense_form_whatever_the_chunk(root, chunk):
    images, texts = (x.requires_grad_() for x in vectors(5, 7, 6))
    weights = torch.randn(5, 7, dtype=torch.float64)
    got, expected = order(images, texts, root=root, chunk=chunk), dense(images, texts, root)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
    slopes = [torch.autograd.grad((s * weights).sum(), (images, texts)) for s in (got, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("root", [False, True])
def test_gradcheck(root):
    leaves = [x.requires_grad_() for x in vectors(4, 3, 5)]
    assert torch.autograd.gradcheck(lambda f, g: order(f, g, root=root, chunk=20), leaves)


@pytest.mark.parametrize("root", [False, True])
def test_a_text_below_the_image_has_similarity_and_gradient_0(root):
    images = torch.ones(1, 4, requires_grad=True)
    texts = torch.zeros(1, 4, requires_grad=True)
    s = order(images, texts, root=root)
    s.sum().backward()
    assert s.item() == 0
    assert images.grad.count_nonzero() == texts.grad.count_nonzero() == 0


def test_it_is_not_symmetric():
    images, texts = vectors(3, 3, 4)
    assert not torch.allclose(order(images, texts), order(texts, images).T)


def test_no_step_holds_more_than_a_chunk_of_differences(monkeypatch):
    seen = []
    whole = order_tensors._excess
    monkeypatch.setattr(order_tensors, "_excess", lambda f, g: seen.append(whole(f, g).numel()) or whole(f, g))
    images, texts = (x.requires_grad_() for x in vectors(30, 50, 8))
    order(images, texts, chunk=1000).sum().backward()
    assert max(seen) <= 1000
    assert sum(seen) == 2 * 30 * 50 * 8


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    images, texts = (x.requires_grad_() for x in vectors(3, 4, 600, dtype=dtype))
    s = order(images, texts)
    s.sum().backward()
    assert s.dtype == torch.float32
    torch.testing.assert_close(s, dense(images.float(), texts.float(), False))
    assert images.grad.dtype == dtype


@pytest.mark.parametrize("shape", [(3, 1), (3, 7), (3,)])
def test_vectors_of_another_length_are_refused(shape):
    with pytest.raises(ValueError, match=r"image vectors are \(2, 8\) but text vectors are"):
        order(torch.zeros(2, 8), torch.zeros(shape))
