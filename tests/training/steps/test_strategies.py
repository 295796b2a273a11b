"""Every step gives the gradients of the plain one."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.losses import AdaptiveListwise, ContrastiveSum, Ladder, MaxOfHinges, MultiModalNCE, Weighted
from rungwise.models import JointEmbedding, PairScorer, TrainableScorer
from rungwise.training.batches import label_lists
from rungwise.training.batches._sampling import LabelLists
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.distributed import Processes
from rungwise.training.engine import train
from rungwise.training.steps import Plain, StepContext
from rungwise.training.steps._strategies import CachedGradients, GlobalNegativesStep, Step
from tests.training.conftest import once, small_config
from tests.training.engine.test_loop import Colours

MEMBERS = (config_of(MaxOfHinges)(), config_of(MultiModalNCE)(learnable=True))
LOSSES = [
    config_of(MaxOfHinges)(),
    config_of(MaxOfHinges)(negative_set=3),
    config_of(MaxOfHinges)(negative_set=20),  # beyond the batch of 8
    config_of(Ladder)(thresholds=(0.5,)),
    config_of(Weighted)(losses=MEMBERS, weights=(1.0, 0.5)),
]


Weights = dict[str, torch.Tensor]


def trained(config: TrainConfig, data: ImageCaptions, out: Path, cache: Path) -> Weights:
    """What an epoch makes of the weights."""
    train(replace(once(config), logs=()), data, out, relevance=Colours(data), cache=cache)
    return load_file(out / "checkpoint.safetensors")


def assert_same(plain: Weights, other: Weights) -> None:
    assert plain.keys() == other.keys()
    for name, tensor in plain.items():
        if name.startswith(("model/", "loss/")):
            torch.testing.assert_close(other[name], tensor, atol=2e-5, rtol=1e-4, msg=name)


@pytest.fixture(scope="module")
def plain(coloured: ImageCaptions, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Weights]:
    """What the plain step makes of the weights with a loss, made once for each."""

    @lru_cache
    def made(loss: int) -> Weights:
        config = replace(small_config(), loss=LOSSES[loss])
        return trained(config, coloured, tmp_path_factory.mktemp("plain") / "run", cache)

    return made


STEPS = (CachedGradients(chunk=3), GlobalNegativesStep(), GlobalNegativesStep(chunk=5))
USUAL = {(0, 2), (0, 4), (1, 0), (2, 3)}
"""Places of a step and of a loss: every step, and every kind of loss."""


@pytest.mark.parametrize(
    ("step", "loss"),
    [
        pytest.param(step, loss, marks=() if (step, loss) in USUAL else pytest.mark.slow)
        for step, loss in product(range(len(STEPS)), range(len(LOSSES)))
    ],
)
def test_it_trains_to_the_weights_of_the_plain_step(
    step: int, loss: int, plain: Callable[[int], Weights], coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config = replace(small_config(), loss=LOSSES[loss], step=STEPS[step])
    assert_same(plain(loss), trained(config, coloured, tmp_path / "run", cache))


def assert_alike(config: TrainConfig, step: Step, data: ImageCaptions, folder: Path, cache: Path) -> None:
    """A step and the plain one."""
    assert_same(
        trained(config, data, folder / "plain", cache), trained(replace(config, step=step), data, folder / "run", cache)
    )


@pytest.mark.parametrize(
    "step", [CachedGradients(chunk=3), pytest.param(GlobalNegativesStep(chunk=5), marks=pytest.mark.slow)], ids=repr
)
def test_random_crops_are_drawn_alike_whatever_the_step(
    step: Step, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    """A chunk that is visited twice is cut at the same place both times, or its gradients were another picture's."""
    image = replace(config.model.image, crops="RC", crop=0.5)  # type: ignore[union-attr]
    config = replace(config, model=replace(config.model, image=image))
    assert_alike(replace(config, loss=LOSSES[0]), step, coloured, tmp_path, cache)


def test_the_learned_temperature_moves_and_is_kept(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config = replace(once(config, 1e-2), loss=config_of(ContrastiveSum)(learnable=True))
    train(config, coloured, tmp_path / "run", cache=cache)
    tensors = load_file(tmp_path / "run" / "checkpoint.safetensors")
    kept = tensors["loss/temperature.raw"]
    assert kept != config_of(ContrastiveSum)(learnable=True).build().state_dict()["temperature.raw"]
    assert "optimizer/loss/temperature.raw/exp_avg" in tensors


def test_lists_by_labels_train(config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path) -> None:
    data = replace(coloured, labels=tuple((caption,) for caption in "rgbw" * 12))
    config = replace(
        config,
        loss=config_of(AdaptiveListwise)(irrelevant="other_item"),
        sampler=LabelLists(irrelevant=4),
        epochs=(4,),
        learning_rates=(1e-2,),
        logs=(),
    )
    history = train(config, data, tmp_path / "run", cache=cache).history
    assert history[-1]["loss"] < 0.95 * history[0]["loss"]


@pytest.mark.parametrize(
    "step", [CachedGradients(chunk=7), pytest.param(GlobalNegativesStep(), marks=pytest.mark.slow)], ids=repr
)
def test_lists_have_the_same_gradients_whatever_the_step(
    step: Step, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    data = replace(coloured, labels=tuple((caption,) for caption in "rgbw" * 12))
    lists = config_of(AdaptiveListwise)(irrelevant="other_item")
    assert_alike(replace(config, loss=lists, sampler=LabelLists(irrelevant=4)), step, data, tmp_path, cache)


def test_a_negative_set_beyond_the_batch_equals_nested_loops(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = JointEmbedding.create(config.model, coloured.captions)
    pairs = model.read(coloured, np.arange(12), cache=cache)
    work = StepContext(model, pairs, None, nullcontext, Processes(), list(model.parameters()))
    loss, batch = MaxOfHinges(negative_set=12, reduction="mean"), np.array([20, 3, 11, 4, 8])
    encoded = work.encoded(loss, batch, seed=3)
    assert encoded[:5].tolist() == batch.tolist()
    assert len(set(encoded.tolist())) == 12
    assert not np.array_equal(encoded, work.encoded(loss, batch, seed=4))
    assert len(work.encoded(MaxOfHinges(negative_set=1000), batch, seed=3)) == len(pairs)
    s = model.scores_of(pairs, nullcontext).block(pairs.image[encoded], encoded)
    image, expected = pairs.image[encoded], 0.0
    for q in range(5):
        others = [k for k in range(12) if image[k] != image[q]]
        expected += max(0.0, 0.2 + max(s[q, k] for k in others) - s[q, q])
        expected += max(0.0, 0.2 + max(s[k, q] for k in others) - s[q, q])
    for step in (Plain(), CachedGradients(chunk=5), GlobalNegativesStep()):
        value = step.backward(work, loss, batch, seed=3).value
        torch.testing.assert_close(value, torch.tensor(expected / 5, dtype=torch.float32), atol=1e-5, rtol=1e-4)


def test_lists_give_the_loss_of_lists(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = JointEmbedding.create(config.model, coloured.captions)
    pairs = model.read(coloured, np.arange(12), cache=cache)
    labels = [[caption] for caption in "rgbw" * 3]
    lists = next(iter(label_lists(labels, pairs.image, queries=5, irrelevant=3, seed=0, epoch=0)))
    loss = AdaptiveListwise(irrelevant="other_item")
    work = StepContext(model, pairs, None, nullcontext, Processes(), list(model.parameters()))
    value = Plain().backward(work, loss, lists, seed=0).value
    scores = model.scores_of(pairs, nullcontext)
    i2t = [
        [scores.block([i], [c])[0, 0] for c in row]
        for i, row in zip(lists.images, lists.captions_of_images, strict=True)
    ]
    t2i = [
        [scores.block([i], [c])[0, 0] for i in row]
        for c, row in zip(lists.captions, lists.images_of_captions, strict=True)
    ]
    torch.testing.assert_close(value, loss.of_lists(torch.tensor(i2t), torch.tensor(t2i)), atol=1e-4, rtol=1e-5)


class Scorer(TrainableScorer):
    """A model without vectors, as far as a step looks before it computes."""

    fingerprint = "none"
    block = create = read = batch = score = scores_of = restore = PairScorer.on


class Levels(JointEmbedding):
    """A joint embedding of two levels that adds a loss of its own."""

    adds_losses = True

    def score(self, batch, autocast, *, within=False):
        scored = super().score(batch, autocast, within=within)
        turned = scored.similarity.square()
        return replace(scored, weight=3.0, further=((0.5, turned),), own=0.1 * scored.similarity.sum())


def test_every_level_loses_and_the_models_own_loss_is_added(config: TrainConfig, coloured: ImageCaptions) -> None:
    torch.manual_seed(0)
    model = Levels.create(config.model, coloured.captions)
    pairs, loss = model.read(coloured, np.arange(len(coloured))), MaxOfHinges()
    work = StepContext(model, pairs, None, nullcontext, Processes(), list(model.parameters()))
    chosen = np.arange(6)
    value = Plain().backward(work, loss, chosen, seed=0).value
    block = model.score(model.batch(pairs, chosen), nullcontext).similarity
    same = torch.from_numpy(pairs.image[chosen][:, None] == pairs.image[chosen][None, :])
    wanted = 3 * loss(block, None, same) + 0.5 * loss(block.square(), None, same) + 0.1 * block.sum()
    torch.testing.assert_close(value, wanted.detach())
    own = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for found, slope in zip(own, torch.autograd.grad(wanted, own), strict=True):
        torch.testing.assert_close(found.grad, slope, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("step", "model", "loss", "processes", "lists", "message"),
    [
        (Plain(), Scorer, MaxOfHinges(), Processes(0, 2), False, "2 processes were started, but step plain uses one"),
        (
            CachedGradients(),
            Scorer,
            MaxOfHinges(),
            Processes(),
            False,
            "step cached_gradients needs a model that gives",
        ),
        (GlobalNegativesStep(), Scorer, MaxOfHinges(), Processes(), False, "step global_negatives needs a model"),
        (CachedGradients(), Levels, MaxOfHinges(), Processes(), False, "'vse' adds losses of its own; set step: plain"),
        (Plain(), Scorer, MultiModalNCE(), Processes(), False, "similarities within a modality"),
        (Plain(), JointEmbedding, MaxOfHinges(), Processes(), True, "label_lists goes with a loss of lists"),
        (Plain(), Scorer, AdaptiveListwise(), Processes(), True, "label_lists needs a model that gives vectors"),
        (CachedGradients(), JointEmbedding, Ladder(), Processes(), True, "label_lists goes with a loss of lists"),
        (CachedGradients(), JointEmbedding, Ladder(), Processes(0, 2), False, "but step cached_gradients uses one"),
    ],
)
def test_what_does_not_go_together_is_refused(step, model, loss, processes, lists, message) -> None:
    with pytest.raises(UserError, match=message):
        step.check(model.__new__(model), loss, processes, lists)


@pytest.mark.parametrize("kind", [CachedGradients, GlobalNegativesStep])
def test_a_chunk_holds_something(kind: Any) -> None:
    with pytest.raises(UserError, match="chunk: must be at least 1"):
        kind(chunk=0)
