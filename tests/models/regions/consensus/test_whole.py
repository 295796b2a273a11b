"""All of CVSE against loops over numbers, trained and evaluated as the authors' program does it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.losses import MaxOfHinges
from rungwise.models.regions.consensus._concepts import ConceptConfig
from rungwise.models.regions.consensus._config import CVSEConfig
from rungwise.models.regions.consensus._cvse import CVSE
from tests.models.regions import consensus_numbers as numbers

CAPTIONS = (
    "a red dog runs",
    "the dog is fast",
    "a blue cat",
    "one cat sleeps here",
    "two dogs",
    "a red ball and a man",
)
CHOSEN = [4, 0, 2, 1]
"""Of the first picture both captions, of the others one each."""


@dataclass
class World:
    """A model in float32, and all it reads as lists."""

    model: CVSE
    data: ImageCaptions
    weights: numbers.Weights
    features: list[Any]
    tokens: list[list[int]]
    own: list[list[int]]
    of_pictures: list[list[int]]


def world() -> World:
    """Three pictures of four regions with two captions each."""
    torch.manual_seed(3)
    features = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    data = ImageCaptions(
        paths=(),
        image_ids=("a", "b", "c"),
        captions=CAPTIONS,
        image_of_caption=np.repeat(np.arange(3), 2),
        splits=("train",) * 3,
        features=FeatureRows(features),
    )
    config = CVSEConfig(
        image=FeatureConfig(l2_normalise=False),
        text=GRUConfig(word_dimension=4, min_count=1, directions="both", word_dropout=0.0),
        concepts=ConceptConfig(min_count=1, most_share=0.5, width=3),
        dimension=6,
        dropout=0.0,
        training_concepts="picture",
        consensus_share=0.05,
    )
    model = CVSE.create(config, CAPTIONS, data.features)
    with torch.no_grad():
        for name, one in model.state_dict().items():
            if name.endswith("running_var"):
                one.uniform_(0.5, 1.5)
            elif one.is_floating_point() and name != "graph.adjacency":
                one.add_(torch.randn_like(one) * 0.4)
    weights = {name: one.double().tolist() for name, one in model.state_dict().items()}
    words = model.concepts.words
    own = [[int(word in text.split()) for word in words] for text in CAPTIONS]
    shared = [[max(one, other) for one, other in zip(own[text], own[text ^ 1], strict=True)] for text in range(6)]
    assert own != shared
    tokens = [list(one) for one in model.text_encoder.tokenise(CAPTIONS)]
    return World(model, data, weights, features.astype(np.float64).tolist(), tokens, own, shared)


def test_similarities_of_evaluation_are_those_of_loops():
    found = world()
    model = found.model.eval()
    images = numbers.pictures(found.weights, found.features)
    captions = numbers.texts(found.weights, found.tokens, found.own)
    expected = numbers.evaluated(images, captions)
    scores = model.on(found.data)
    assert scores.image_vectors.shape == (3, 12)
    np.testing.assert_allclose(scores.matrix(), expected, atol=2e-6)
    np.testing.assert_allclose(scores.pairs([0, 2], [1, 5]), [expected[0][1], expected[2][5]], atol=2e-6)
    trained = model.read(found.data, np.arange(3))
    np.testing.assert_allclose(model.scores_of(trained).matrix(), expected, atol=2e-6)  # validation, of own words too
    levels = model.image_levels(torch.from_numpy(np.asarray(found.features, np.float32)))
    for name in ("fused", "instance", "consensus"):
        np.testing.assert_allclose(getattr(levels, name).detach(), getattr(images, name), atol=2e-6)
    np.testing.assert_allclose(levels.scores.exp().detach(), images.scores, atol=2e-6)


@pytest.mark.parametrize("training", [True, False])
def test_loss_and_gradients_of_a_batch_are_those_of_loops(training):
    found = world()
    model, chosen = found.model.train(training), np.array(CHOSEN)
    batch = model.batch(model.read(found.data, np.arange(3)), chosen)
    hinge, picture = MaxOfHinges(0.2, extra_positives="keep", reduction="sum"), torch.from_numpy(chosen // 2)
    same = picture[:, None] == picture
    value = model.score(batch).loss(lambda similarity: hinge(similarity, None, same))

    def expected(labels: list[list[int]] = found.of_pictures) -> float:
        images = numbers.pictures(found.weights, [found.features[text // 2] for text in CHOSEN], training)
        texts = [[some[text] for text in CHOSEN] for some in (found.tokens, labels)]
        return numbers.loss(images, numbers.texts(found.weights, *texts, training))

    assert value.item() == pytest.approx(expected(), rel=2e-6)
    assert value.item() != pytest.approx(expected(found.own), rel=1e-3), "the other caption's words must count"
    value.backward()
    compared = 0
    for name, weight in model.named_parameters():
        at = (found.tokens[0][1] if name == "text_encoder.words.weight" else 0,) * (weight.ndim - 1)
        assert weight.grad is not None
        gradient, row = weight.grad[at], found.weights[name][at[0]] if at else found.weights[name]
        for place in (0, len(row) - 1):
            change = numbers.derivative(expected, row, place)
            assert gradient[place].item() == pytest.approx(change, rel=1e-3, abs=1e-4), f"{name}[{at}, {place}]"
            compared += abs(change) > 1e-3
    assert compared > 60
