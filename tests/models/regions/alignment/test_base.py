"""SGR and SAF against nested loops, and all that they have in common."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError, from_plain, to_plain
from rungwise.data.files import FeatureRows
from rungwise.losses import SumOfHinges
from rungwise.models import load
from rungwise.models.regions.alignment._base import AlignedConfig
from rungwise.models.regions.alignment._saf import SAFConfig
from rungwise.models.regions.alignment._sgr import SGR, SGRConfig
from rungwise.similarity import WordSets, all_pairs
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.engine import train
from tests.models.regions import loops
from tests.models.regions.aligned_models import KINDS, sets, small_model
from tests.models.regions.programs import programs
from tests.models.regions.small import CAPTIONS, coloured_regions, pictures_in, sides_of_features, sides_of_pictures

LOOPS = {"sgr": loops.sgr, "saf": loops.saf}
SIZES = [(2, 3, [1, 3, 2, 1]), (3, 1, [2, 1]), (1, 2, [1]), (2, 2, [4])]
"""Images, regions, and words of each caption; batch norm in training asks for two images."""
both = pytest.mark.parametrize("kind", KINDS)


@both
@pytest.mark.parametrize(
    ("images", "regions", "lengths", "training"),
    [(*size, training) for size in SIZES for training in (False, True) if size[0] > 1 or not training],
)
def test_values_and_gradients_are_those_of_nested_loops(kind, images, regions, lengths, training):
    model = small_model(kind, regions).train(training)
    seen, words = (one.requires_grad_() for one in sets(images, regions, lengths))
    found = all_pairs(model.comparison, seen, WordSets.of(words, lengths))
    texts = [caption[:length] for caption, length in zip(words, lengths, strict=True)]
    expected = torch.stack([torch.stack(one) for one in LOOPS[kind](model, seen, texts, training)])
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    direction = torch.randn(found.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    inputs = [seen, words, *model.vectors.parameters(), *model.nodes.parameters()]
    ours, theirs = (
        torch.autograd.grad((one * direction).sum(), inputs, materialize_grads=True) for one in (found, expected)
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-11)


@both
def test_it_is_what_the_authors_loop_gives(kind):
    model = small_model(kind)
    lengths = [2, 5, 1, 3, 3]
    seen, words = sets(7, 3, lengths)
    found = all_pairs(model.comparison, seen, WordSets.of(words, lengths))
    with torch.inference_mode():
        program = programs.sgraf(model, seen, words, lengths)
    torch.testing.assert_close(program, found, rtol=1e-6, atol=1e-7)


@both
def test_what_stands_after_a_caption_changes_nothing(kind):
    model = small_model(kind)
    lengths = [1, 3, 2]
    seen, words = sets(2, 3, lengths)
    found = all_pairs(model.comparison, seen, WordSets.of(words, lengths))
    for caption, length in enumerate(lengths):
        words[caption, length:] = math.nan
    assert torch.equal(found, all_pairs(model.comparison, seen, WordSets.of(words, lengths)))


@both
def test_neither_order_nor_blocks_matter(kind):
    model = small_model(kind)
    lengths = [1, 3, 2, 3, 3, 1]
    seen, words = sets(5, 3, lengths)
    texts = WordSets.of(words, lengths)
    found = all_pairs(model.comparison, seen, texts)
    images, captions = torch.tensor([3, 0, 4, 2, 1]), torch.tensor([5, 2, 0, 1, 4, 3])
    moved = all_pairs(model.comparison, seen[images], texts.select(captions), values=1)
    torch.testing.assert_close(moved, found[images][:, captions], rtol=1e-12, atol=1e-12)


@both
@pytest.mark.parametrize("values", [1, 40, 1 << 20])
def test_blocks_of_training_are_computed_again_and_change_nothing(kind, values):
    lengths = [1, 3, 2, 3, 3, 1]
    results = []
    for recompute, size in ((False, 1 << 20), (True, values)):
        model = small_model(kind).train()
        seen, words = (one.requires_grad_() for one in sets(5, 3, lengths))
        found = all_pairs(model.comparison, seen, WordSets.of(words, lengths), recompute=recompute, values=size)
        gradients = torch.autograd.grad(found.square().sum(), (seen, words, *model.vectors.parameters()))
        results.append((found.detach(), *gradients))
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-12)


@both
def test_bfloat16_is_near_and_gives_float32(kind):
    model = small_model(kind, dimension=64, vector_width=32).float()
    lengths = [1, 3, 2]
    seen, words = (one.float() for one in sets(4, 3, lengths, width=64))
    exact = all_pairs(model.comparison, seen, WordSets.of(words, lengths))
    half = all_pairs(model.comparison, seen.bfloat16(), WordSets.of(words.bfloat16(), lengths))
    assert half.dtype == exact.dtype == torch.float32
    torch.testing.assert_close(half, exact, rtol=0, atol=0.02)
    assert not torch.equal(half, exact)


@both
def test_scores_of_a_collection_are_those_of_evaluation_while_it_is_trained(kind):
    data = coloured_regions()
    model, config = KINDS[kind]
    scorer = model.create(config(**sides_of_features(), dimension=8), data.captions, data.features)
    pairs = scorer.read(data, np.arange(len(data)))
    images, captions = np.arange(6), np.arange(9)
    expected = scorer.eval().scores_of(pairs).block(images, captions)
    scores = scorer.train().scores_of(pairs)
    assert scorer.training
    np.testing.assert_array_equal(scores.block(images, captions), expected)
    np.testing.assert_allclose(scores.block([4], captions), expected[4:5], atol=1e-6)
    batch = scorer.batch(pairs, np.arange(8))
    assert not torch.equal(scorer.score(batch).similarity, scorer.score(batch).similarity)  # dropout


@both
def test_saved_and_loaded_it_scores_alike(kind, tmp_path: Path):
    torch.manual_seed(0)
    model, config = KINDS[kind]
    scorer = model.create(config(**sides_of_pictures(), dimension=6, vector_width=3), CAPTIONS).eval()
    assert scorer.config.regions == 4
    paths = pictures_in(tmp_path / "pictures")
    scorer.save_pretrained(tmp_path / "model")
    again = load(tmp_path / "model", "cpu")
    assert type(again) is model
    assert again.fingerprint == scorer.fingerprint
    np.testing.assert_array_equal(again.block(paths, CAPTIONS), scorer.block(paths, CAPTIONS))


@both
def test_a_few_epochs_train_it(kind, tmp_path: Path):
    data = coloured_regions()
    config = TrainConfig(
        model=KINDS[kind][1](**sides_of_features(), dimension=16, vector_width=8, dropout=0.1),
        loss=config_of(SumOfHinges)(),
        epochs=(6,),
        learning_rates=(1e-2,),
        batch_size=17,
        logs=(),
    )
    result = train(config, data, tmp_path / "run")
    assert result.history[-1]["rsum"] > result.history[0]["rsum"]
    found = load(result.model_folder)
    assert found.kind == kind
    assert found.config.regions == 5


def test_it_computes_blocks_twice_from_the_beginning():
    assert small_model("sgr").recompute


def test_pictures_with_another_number_of_regions_are_refused():
    model = small_model("saf", regions=3).float()
    rows = torch.zeros(2, 4, 7)
    with pytest.raises(UserError, match=r"^the pictures have 4 regions, but the model was made for 3, since"):
        model.regions(rows)
    five = FeatureRows(np.zeros((1, 5, 7), np.float32))
    with pytest.raises(UserError, match=r"^model.regions is 3, but each picture has 5 regions; leave it out$"):
        SGR.create(SGRConfig(**sides_of_features(), regions=3), CAPTIONS, five)


def test_a_folder_that_does_not_say_how_many_regions_is_refused(tmp_path: Path):
    small_model("saf").save_pretrained(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(config.read_text().replace('"regions": 3', '"regions": null'))
    with pytest.raises(UserError, match=r"config\.json: model\.regions is missing; copy the folder anew$"):
        load(tmp_path / "model", altered=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regions": 0}, "regions: must be at least 1"),
        ({"vector_width": 0}, "vector_width: must be at least 1"),
        ({"dropout": 1.0}, "dropout: must be below 1"),
        ({"dimension": -1}, "dimension: must be at least 1"),
    ],
)
def test_settings_that_make_no_model_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        SAFConfig(**changes)


def test_the_usual_configuration_is_the_authors():
    config = SGRConfig()
    assert isinstance(config, AlignedConfig)
    assert (config.dimension, config.vector_width, config.dropout, config.steps) == (1024, 256, 0.4, 3)
    assert (config.text.word_dropout, config.text.directions, config.text.word_dimension) == (0.4, "both", 300)
    assert from_plain(SGRConfig, to_plain(config), "there") == config
