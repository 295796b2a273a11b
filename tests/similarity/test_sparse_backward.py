import pytest
import torch

from rungwise.losses import ContrastiveSum, Ladder, MaxOfHinges, SemanticAdaptiveMargin, SumOfHinges
from rungwise.similarity import cosine, sparse_backward_cosine


@pytest.mark.parametrize(
    "loss", [MaxOfHinges(), Ladder((0.5,)), SemanticAdaptiveMargin(), ContrastiveSum()], ids=lambda x: type(x).__name__
)
@pytest.mark.parametrize("shape", [(48, 48), (40, 56)])
def test_values_and_gradients_are_those_of_the_cosine(loss, shape) -> None:
    torch.manual_seed(0)
    vectors = [torch.randn(n, 6, dtype=torch.float64, requires_grad=True) for n in shape]
    relevance = torch.rand(shape)
    positives = torch.rand(shape) < 0.05 if shape[0] != shape[1] else None
    results = []
    for similarity in (cosine, sparse_backward_cosine):
        value = loss(similarity(*vectors), relevance, positives)
        results.append([value, *torch.autograd.grad(value, vectors)])
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)


def test_a_hub_in_half_precision_gets_all_its_terms() -> None:
    images = torch.nn.functional.normalize(torch.randn(1000, 4), dim=1).bfloat16().requires_grad_()
    texts = torch.ones(1, 4, dtype=torch.bfloat16, requires_grad=True)
    sparse_backward_cosine(images, texts).sum().backward()
    got = texts.grad.clone()
    texts.grad = None
    cosine(images, texts).sum().backward()
    torch.testing.assert_close(got, texts.grad, rtol=0.02, atol=0.2)


@pytest.mark.parametrize("loss", [MaxOfHinges(), SumOfHinges()], ids=["few entries", "many entries"])
def test_gradients_pass_a_block_that_autocast_computed(loss) -> None:
    torch.manual_seed(0)
    vectors = [torch.randn(64, 16, requires_grad=True) for _ in range(2)]
    slopes = []
    for similarity in (cosine, sparse_backward_cosine):
        with torch.autocast("cpu", torch.bfloat16):
            block = similarity(*vectors)
            assert block.dtype == torch.bfloat16
            value = loss(block)
        slopes.append(torch.autograd.grad(value, vectors))
    torch.testing.assert_close(*slopes, rtol=0.02, atol=0.02)
