"""Where a run's model comes from: made anew, or begun from another model's weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field

from rungwise.core.configuration import STRICT, by_name, on_command_line
from rungwise.core.errors import UserError
from rungwise.data.features import FeatureRows
from rungwise.encoders.heads import AdapterHead, OneHead
from rungwise.models import JointEmbedding, TrainableScorer, VSEConfig, family, load
from rungwise.models.starting import as_it_is, with_new_heads, with_weights_that_fit

if TYPE_CHECKING:
    from rungwise.training.config import TrainConfig


@dataclass(frozen=True)
class Whole:
    """Train the model that is begun from as it is; the configuration's own model is not asked.

    Attributes:
        kind: Names the way in YAML.
        image: Train its image encoder.
        text: Train its text encoder.
    """

    __pydantic_config__ = STRICT

    kind: Literal["whole"] = "whole"
    image: bool = True
    text: bool = True


@dataclass(frozen=True)
class NewHeads:
    """Freeze the encoders of the model that is begun from, and put new heads on top of those that it has.

    Attributes:
        kind: Names the way in YAML.
        image: The new head of the image side: adapter, linear, mlp, residual, or none.
        text: That of the text side.
    """

    __pydantic_config__ = STRICT

    kind: Literal["new_heads"] = "new_heads"
    image: OneHead = field(default_factory=AdapterHead)
    text: OneHead = field(default_factory=AdapterHead)


@dataclass(frozen=True)
class Weights:
    """Train the configuration's own model, with those weights of the other one that fit.

    Attributes:
        kind: Names the way in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["weights"] = "weights"


AnyTuning = Annotated[
    Whole | NewHeads | Weights,
    Field(discriminator="kind"),
    by_name,
    on_command_line(Whole | NewHeads | Weights),
]
"""A field of a configuration: what becomes of the model that a run begins from."""


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
        if config.tune is not None:
            raise UserError(
                f"tune: {config.tune.kind} needs a model to begin from, and start names none; give --start MODEL"
            )
        return _new(config, captions, features)
    start = load(config.start, "cpu")
    tune = config.tune or Whole()
    if not isinstance(start, JointEmbedding):
        raise UserError(
            f"{config.start}: a model of kind {getattr(start, 'kind', '')!r} is not trained further; start from a joint"
            " embedding"
        )
    torch.manual_seed(config.seed)
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
