"""Models of regions through the training loop: every loss on every one of them, resumed, and on less data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.formats import read_tensors
from rungwise.losses import MaxOfHinges, SemanticAdaptiveMargin
from rungwise.models import load
from rungwise.models.regions._caption_head import CaptionHeadConfig
from rungwise.models.regions._scan import SCANConfig
from rungwise.models.regions._vsrn import VSRNConfig
from rungwise.models.regions.alignment._saf import SAFConfig
from rungwise.models.regions.alignment._sgr import SGRConfig
from rungwise.models.regions.consensus._concepts import ConceptConfig
from rungwise.models.regions.consensus._config import CVSEConfig
from rungwise.training.config import LossConfig, TrainConfig, config_of
from rungwise.training.engine import train
from rungwise.training.steps._strategies import CachedGradients
from rungwise.training.tracking import StepReport, Watcher
from tests.models.regions.small import coloured_regions, sides_of_features
from tests.training.every_loss import NAMED

MODELS: dict[str, Any] = {
    "scan": SCANConfig(**sides_of_features(), dimension=8),
    "sgr": SGRConfig(**sides_of_features(), dimension=8, vector_width=6),
    "saf": SAFConfig(**sides_of_features(), dimension=8, vector_width=6),
    "vsrn": VSRNConfig(**sides_of_features(), dimension=8, captions=CaptionHeadConfig(hidden=6, word_dimension=5)),
    "cvse": CVSEConfig(
        **sides_of_features(), dimension=8, concepts=ConceptConfig(min_count=1, width=4, most_share=0.6)
    ),
}
"""One of each kind."""
PAIRS = ("scan", "sgr", "saf")
"""Kinds that score pairs and give no vectors."""
WITHIN = "multi_modal_nce"
"""Reads similarities within a modality, which no model without vectors gives."""


def small(kind: str, **changes: Any) -> TrainConfig:
    config = TrainConfig(
        model=MODELS[kind],
        loss=config_of(MaxOfHinges)(),
        epochs=(2,),
        learning_rates=(1e-2,),
        batch_size=16,
        logs=(),
    )
    return replace(config, **changes)


class Degrees:
    """Degrees of all images and captions of a collection."""

    def __init__(self, images: int, captions: int) -> None:
        self.all = np.random.default_rng(3).random((images, captions), np.float32) - 0.2

    def block(self, images: Any, captions: Any) -> Any:
        return self.all[np.ix_(np.asarray(images), np.asarray(captions))]

    def dense(self) -> Any:
        return self.all

    @property
    def shape(self) -> tuple[int, int]:
        return self.all.shape[0], self.all.shape[1]


class Losses(Watcher):
    """What was reported of the loss."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def step(self, report: StepReport) -> None:
        self.seen.append(report.loss)


LOSSES = [one for one in NAMED if one.kind != "weighted"]
TOGETHER = [
    pytest.param(kind, loss, id=f"{kind}-{loss.kind}", marks=() if (a - b) % len(MODELS) == 0 else pytest.mark.slow)
    for b, kind in enumerate(MODELS)
    for a, loss in enumerate(LOSSES)
]
"""Every loss with every model; in the usual tier every loss with one, and every model with two."""


@pytest.mark.parametrize(("kind", "loss"), TOGETHER)
def test_every_loss_trains_it(kind: str, loss: LossConfig, tmp_path: Path) -> None:
    data, seen = coloured_regions(), Losses()
    degrees = Degrees(len(data), len(data.captions))
    config = small(kind, loss=loss, epochs=(1,))
    if loss.kind == WITHIN and kind in PAIRS:
        with pytest.raises(UserError, match="choose another loss"):
            train(config, data, tmp_path / "run", relevance=degrees)
        return
    result = train(config, data, tmp_path / "run", relevance=degrees, watcher=seen)
    assert np.isfinite(seen.seen).all()
    assert result.best_epoch == 1
    assert load(result.model_folder).kind == kind


def test_a_loss_within_a_modality_is_refused_for_pairs(tmp_path: Path) -> None:
    (within,) = (one for one in LOSSES if one.kind == WITHIN)
    with pytest.raises(UserError, match="choose another loss"):
        train(small(PAIRS[0], loss=within), coloured_regions(), tmp_path / "run")


SOME = ("scan", "cvse")
"""One that scores pairs and one that gives vectors."""


@pytest.mark.parametrize("kind", [one if one in SOME else pytest.param(one, marks=pytest.mark.slow) for one in MODELS])
def test_it_goes_on_where_it_was(kind: str, tmp_path: Path) -> None:
    data = coloured_regions()
    config = small(kind, warm_up_epochs=1, epochs=(3,))
    whole = train(config, data, tmp_path / "whole")
    train(replace(config, epochs=(2,)), data, tmp_path / "parts")
    parts = train(config, data, tmp_path / "parts", resume=True)
    assert [one["rsum"] for one in parts.history] == [one["rsum"] for one in whole.history]
    one, other = (read_tensors(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "parts"))
    for name, tensor in one.items():
        np.testing.assert_array_equal(other[name], tensor, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_it_learns(kind: str, tmp_path: Path) -> None:
    result = train(small(kind, epochs=(6,), warm_up_epochs=1), coloured_regions(), tmp_path / "run")
    assert result.best_value > result.history[0]["rsum"] or result.history[0]["rsum"] > 400


@pytest.mark.parametrize("kind", [one if one in SOME else pytest.param(one, marks=pytest.mark.slow) for one in MODELS])
def test_semantic_adaptive_margins_train_it_on_less_data(kind: str, tmp_path: Path) -> None:
    data, seen = coloured_regions(), Losses()
    config = small(kind, epochs=(1,))
    loss = config_of(SemanticAdaptiveMargin)(temperature=10.0, negatives="softest", with_triplet=True)
    config = replace(config, loss=loss, data=replace(config.data, share=0.5, relevance="cider-d"))
    train(config, data, tmp_path / "run", cache=tmp_path / "cache", watcher=seen)
    assert np.isfinite(seen.seen).all()


def test_steps_of_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="set step: plain"):
        train(small("scan", step=CachedGradients(chunk=4)), coloured_regions(), tmp_path / "run")
