"""What SAF has of its own: batch norm of each caption. Its values are tested in test_aligned."""

import numpy as np
import pytest
import torch

from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models.regions.alignment._saf import SAF, CaptionNorm, SAFConfig
from tests.models.regions.small import coloured_regions, sides_of_features


def test_statistics_of_training_are_those_of_each_caption():
    torch.manual_seed(0)
    norm = CaptionNorm().double().train()
    norm.weight.data.fill_(1.5)
    norm.bias.data.fill_(-0.25)
    logits = torch.randn(4, 3, 5, dtype=torch.float64)
    found = norm(logits)
    alone = torch.nn.BatchNorm1d(1).double()
    alone.load_state_dict(norm.state_dict())
    means, variances = [], []
    for caption in range(3):
        own = logits[:, caption].unsqueeze(1)
        torch.testing.assert_close(found[:, caption], alone(own).squeeze(1), rtol=1e-12, atol=1e-12)
        means.append(own.mean())
        variances.append(own.var())
    assert norm.running_mean.item() == 0
    norm.end_batch()
    assert norm.running_mean.item() == pytest.approx(0.1 * float(torch.stack(means).mean()))
    assert norm.running_var.item() == pytest.approx(0.9 + 0.1 * float(torch.stack(variances).mean()))
    assert norm.num_batches_tracked.item() == 1


def test_evaluation_reads_the_statistics():
    norm = CaptionNorm().double().eval()
    norm.running_mean.fill_(0.5)
    norm.running_var.fill_(4.0)
    logits = torch.randn(2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(norm(logits), (logits - 0.5) / (4 + norm.eps) ** 0.5)
    norm.end_batch()
    assert norm.num_batches_tracked.item() == 0


@pytest.mark.parametrize("values", [1, 64, None])
def test_a_batch_is_learnt_once_in_whatever_blocks_and_order(values, monkeypatch):
    data = coloured_regions()
    learnt = []
    for order, size in ((np.arange(12), None), (np.arange(12)[::-1].copy(), values)):
        torch.manual_seed(0)
        config = SAFConfig(**sides_of_features(), dimension=6, vector_width=4, dropout=0.0)
        model = SAF.create(config, data.captions, data.features).train()
        if size is not None:
            monkeypatch.setattr(type(model.comparison), "values", size)
        batch = model.batch(model.read(data, np.arange(12)), order)
        scored = model.score(batch)
        kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
        scored.similarity.sum().backward()  # computes every block once more
        for name, buffer in model.named_buffers():
            assert torch.equal(buffer, kept[name]), name
        learnt.append((scored.similarity.detach()[np.argsort(order)][:, np.argsort(order)], kept))
        monkeypatch.undo()
    torch.testing.assert_close(*learnt, rtol=1e-5, atol=1e-6)
    assert learnt[0][1]["nodes.norm.num_batches_tracked"] == 1
    assert learnt[0][1]["nodes.norm.running_var"] != 1


def test_it_has_as_many_parameters_as_the_authors_model():
    words = 1000
    captions = [f"word{number}" for number in range(words)]
    text = GRUConfig(directions="both", min_count=1, word_dropout=0.4)
    rows = torch.zeros(1, 36, 2048).numpy()
    with torch.device("meta"):
        model = SAF.create(SAFConfig(image=FeatureConfig(), text=text), captions, FeatureRows(rows))
    expected = (
        2048 * 1024 + 1024  # regions
        + (words + 4) * 300  # word vectors; four words stand for what is none
        + 2 * (3 * 1024 * 300 + 3 * 1024 * 1024 + 2 * 3 * 1024)  # a GRU in each direction
        + 2 * (1024 * 1024 + 1024) + (1024 + 1) + 2 * 36 + 2 * 1024  # self-attention of regions, with batch norm
        + 2 * (1024 * 1024 + 1024) + (1024 + 1)  # self-attention of words
        + 2 * (1024 * 256 + 256)  # similarity vectors of parts and wholes
        + (256 + 1) + 2  # gate and its batch norm
        + (256 + 1)  # score
    )  # fmt: skip
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_a_batch_does_not_learn_again_from_the_one_before():
    data = coloured_regions()
    config = SAFConfig(**sides_of_features(), dimension=6, vector_width=4, dropout=0.0)
    model, other = (SAF.create(config, data.captions, data.features).train() for _ in range(2))
    pairs = model.read(data, np.arange(12))
    model.score(model.batch(pairs, np.arange(5))).similarity.sum().backward()
    other.load_state_dict(model.state_dict())
    for one in (model, other):
        one.score(one.batch(pairs, np.arange(5, 12)))
    assert torch.equal(model.nodes.norm.running_mean, other.nodes.norm.running_mean)
    assert model.nodes.norm.num_batches_tracked == 2
