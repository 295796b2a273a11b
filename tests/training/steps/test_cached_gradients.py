import pytest
import torch

from rungwise.training.distributed import GlobalNegatives
from rungwise.training.steps import cached_backward
from tests.training.every_loss import FAMILIES, Encoders, Source, cases, gradients, some_cases


def whole_batch(shares):
    return tuple(torch.tensor(first + second) for first, second in zip(*shares, strict=True))


@pytest.mark.parametrize("chosen", [some_cases, pytest.param(cases, marks=pytest.mark.slow)])
def test_chunks_equal_the_whole_batch_for_every_loss(chosen) -> None:
    source, model = Source(), Encoders()
    for name, shares, queries, loss in chosen():
        images, captions = whole_batch(shares)
        together = GlobalNegatives(loss, relevance=source, positives=source.positives)
        model.zero_grad()
        torch.manual_seed(5)
        value = together(*model(images, captions), images, captions, queries=queries)
        value.backward()
        expected = torch.cat([value.detach().reshape(1), gradients(model, loss)])
        model.zero_grad()
        loss.zero_grad()
        torch.manual_seed(5)
        chunks = list(zip(images.tensor_split(3), captions.tensor_split(3), strict=True))
        value = cached_backward(
            lambda chunk: model(*chunk),
            chunks,
            lambda i, t, ids=(images, captions), f=together, q=queries: f(i, t, *ids, queries=q),
        )
        got = torch.cat([value.reshape(1), gradients(model, loss)])
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-6, msg=lambda m, where=name: f"{where}: {m}")


def test_with_dropout_too_chunks_have_the_gradients_of_one_graph_for_every_loss() -> None:
    source, model = Source(), Encoders()
    model.dropout.p = 0.3
    compared = set()
    for name, shares, queries, loss in cases():
        if "pictures twice; mask; sum" not in name:
            continue
        images, captions = whole_batch(shares)
        chunks = list(zip(images.split(2), captions.split(2), strict=True))
        together = GlobalNegatives(loss, relevance=source, positives=source.positives)

        def value_of(i, t, f=together, ids=(images, captions), q=queries):
            torch.manual_seed(7)
            return f(i, t, *ids, queries=q)

        model.zero_grad()
        torch.manual_seed(5)
        vectors = [model(*chunk) for chunk in chunks]
        value = value_of(torch.cat([i for i, _ in vectors]), torch.cat([t for _, t in vectors]))
        value.backward()
        expected = torch.cat([value.detach().reshape(1), gradients(model, loss)])
        model.zero_grad()
        loss.zero_grad()
        torch.manual_seed(5)
        value = cached_backward(lambda chunk: model(*chunk), chunks, value_of)
        got = torch.cat([value.reshape(1), gradients(model, loss)])
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9, msg=lambda m, where=name: f"{where}: {m}")
        compared.add(name.split(";")[0])
    assert compared == set(FAMILIES)


def test_dropout_draws_the_same_on_the_second_visit() -> None:
    model = Encoders()
    model.dropout.p = 0.5
    chunks = list(zip(torch.arange(8).split(3), torch.arange(8).split(3), strict=True))

    def loss(images, texts):
        return (images @ texts.T).square().sum() + torch.rand(()) * images.sum()

    torch.manual_seed(2)
    vectors = [model(*chunk) for chunk in chunks]
    value = loss(torch.cat([images for images, _ in vectors]), torch.cat([texts for _, texts in vectors]))
    value.backward()
    expected, afterwards = gradients(model), torch.rand(3)
    model.zero_grad()
    torch.manual_seed(2)
    assert cached_backward(lambda chunk: model(*chunk), chunks, loss) == value
    torch.testing.assert_close(gradients(model), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(torch.rand(3), afterwards)


def test_a_frozen_side_gets_no_gradient() -> None:
    model = Encoders()
    model.image_side.requires_grad_(False)
    chunks = [(torch.arange(2), torch.arange(2)), (torch.arange(2, 4), torch.arange(2, 4))]
    cached_backward(lambda chunk: model(*chunk), chunks, lambda i, t: (i @ t.T).sum())
    assert model.image_side.weight.grad is None
    assert model.text_side.weight.grad.abs().sum() > 0


def test_no_chunks_are_refused() -> None:
    with pytest.raises(ValueError, match="no chunks"):
        cached_backward(lambda chunk: chunk, [], lambda i, t: i.sum() + t.sum())
