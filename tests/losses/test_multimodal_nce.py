import pytest
import torch

from rungwise.losses import ContrastiveSum, MultiModalNCE
from tests.losses import loss_reference as reference
from tests.losses.conftest import BLOCKS, TREATED


def within(count, seed):
    return torch.rand(count, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def shares(positives, extra):
    """(images, images) and (captions, captions): the two share a positive, by loops."""
    n, m = positives.shape
    if n == m and extra == "keep":
        return torch.eye(n).bool().tolist(), torch.eye(m).bool().tolist()
    table = [[bool(positives[i][c]) or (n == m and i == c) for c in range(m)] for i in range(n)]
    images = [[any(table[i][c] and table[k][c] for c in range(m)) for k in range(n)] for i in range(n)]
    captions = [[any(table[i][c] and table[i][d] for i in range(n)) for d in range(m)] for c in range(m)]
    return images, captions


@pytest.mark.parametrize(("name", "extra", "mask_above"), TREATED)
def test_equals_loops(name, extra, mask_above):
    block, relevance, positives = BLOCKS[name]
    n, m = block.shape
    known = torch.zeros(n, m, dtype=torch.bool) if positives is None else positives
    inputs = [x.clone().requires_grad_() for x in (block, within(n, 1), within(m, 2))]
    scalars = [[[x.clone().requires_grad_() for x in row] for row in x.detach()] for x in inputs]
    loops = reference.multimodal_nce(0.1, scalars[1], scalars[2], *shares(known, extra))
    i2t, t2i = loops(scalars[0], None, reference.statuses(n, m, positives, extra, relevance, mask_above))
    got = MultiModalNCE(0.1, extra_positives=extra, mask_above=mask_above, reduction="none")(
        inputs[0], relevance, positives, image_similarity=inputs[1], text_similarity=inputs[2]
    )
    torch.testing.assert_close(torch.cat(got), torch.stack(i2t + t2i).detach(), rtol=1e-9, atol=1e-12)
    slopes = torch.autograd.grad(sum(side.sum() for side in got), inputs, materialize_grads=True)
    for slope, table in zip(slopes, scalars, strict=True):
        flat = [x for row in table for x in row]
        expected = torch.autograd.grad(sum(i2t) + sum(t2i), flat, retain_graph=True, materialize_grads=True)
        torch.testing.assert_close(slope.flatten(), torch.stack(expected), rtol=1e-9, atol=1e-12)


def test_without_anything_similar_within_a_modality_it_is_contrastive_sum():
    s = torch.randn(6, 6, dtype=torch.float64)
    nothing = torch.full((6, 6), -1e4, dtype=torch.float64)
    loss = MultiModalNCE(reduction="mean")(s, image_similarity=nothing, text_similarity=nothing)
    torch.testing.assert_close(loss, ContrastiveSum(reduction="mean")(s))


def test_half_precision_stays_finite_when_cold(half_block):
    s = half_block[0].clone().requires_grad_()
    value = MultiModalNCE(0.01)(s, image_similarity=half_block[0], text_similarity=half_block[0])
    value.backward()
    assert value.isfinite()
    assert s.grad.isfinite().all()


@pytest.mark.parametrize("text", [None, torch.zeros(2, 2)])
def test_both_modalities_are_needed(text):
    with pytest.raises(ValueError, match="text_similarity must be"):
        MultiModalNCE()(torch.zeros(3, 3), image_similarity=torch.zeros(3, 3), text_similarity=text)
