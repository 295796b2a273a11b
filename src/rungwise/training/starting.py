"""Where a run's model comes from: made anew, or begun from another model's weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rungwise.core.errors import UserError
from rungwise.data.features import FeatureRows
from rungwise.models import JointEmbedding, TrainableScorer, VSEConfig, family, load
from rungwise.models.starting import as_it_is, with_new_heads, with_weights_that_fit
from rungwise.training.config import TrainConfig
from rungwise.training.tuning import NewHeads, Whole


def model_of(
    config: TrainConfig,
    captions: Sequence[str] | FeatureRows,
    features: FeatureRows | None,
    say: Callable[[str], None],
) -> TrainableScorer:
    """The model that a run trains, on the processor.

    Args:
        config: Of the run.
        captions: Those of the training split.
        features: The rows that stand for pictures, where the collection has such.
        say: Takes a sentence for a person.

    Raises:
        UserError: If it cannot be had, or is not trained.
    """
    if not config.start:
        if not isinstance(config.tune, Whole):
            raise UserError(
                f"tune: {config.tune.kind} needs a model to begin from, and start names none; give --start MODEL"
            )
        return _new(config, captions, features)
    start = load(config.start, "cpu")
    if not isinstance(start, JointEmbedding):
        raise UserError(
            f"{config.start}: a model of kind {getattr(start, 'kind', '')!r} is not trained further; start from a joint"
            " embedding"
        )
    torch.manual_seed(config.seed)
    tune = config.tune
    if isinstance(tune, Whole):
        begun = as_it_is(start, image=tune.image, text=tune.text)
    elif isinstance(tune, NewHeads):
        begun = with_new_heads(start, tune.image, tune.text)
    elif isinstance(config.model, VSEConfig):
        begun = with_weights_that_fit(config.model, start, captions, features)
    else:
        raise UserError(f"tune: weights goes with models of kind vse, and model.kind is {config.model.kind!r}")
    said = f"from {config.start}: {', '.join(begun.taken) or 'nothing'}"
    say(f"{said}; new: {', '.join(begun.new)}" if begun.new else said)
    return begun.model


def _new(config: TrainConfig, captions: Sequence[str] | FeatureRows, features: FeatureRows | None) -> TrainableScorer:
    kind: Any = family(config.model.kind)
    if not issubclass(kind, TrainableScorer):
        raise UserError(f"model.kind: models of kind {config.model.kind!r} are not trained; choose another family")
    torch.manual_seed(config.seed)
    model: TrainableScorer = kind.create(config.model, captions, features)
    return model
