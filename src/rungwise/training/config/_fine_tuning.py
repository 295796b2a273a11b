"""Configuration of fine-tuning: how the model is used that a run starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rungwise.core import STRICT, by_name, on_command_line
from rungwise.encoders import AdapterHead, OneHead


@dataclass(frozen=True)
class WholeModel:
    """Train the start model as it is; of the configuration's own model only a few settings may be taken.

    Attributes:
        kind: Name of the way in YAML.
        image: Train its image encoder.
        text: Train its text encoder.
        configured: Take from the configuration's model the settings that change no weights: frozen, of both encoders,
            and crops, mirrored and batch_norm of pictures. A later stage of a run does.
    """

    __pydantic_config__ = STRICT

    kind: Literal["whole"] = "whole"
    image: bool = True
    text: bool = True
    configured: bool = False


@dataclass(frozen=True)
class NewHeads:
    """Freeze the encoders of the start model, and put new heads on top of its heads.

    Attributes:
        kind: Name of the way in YAML.
        image: The new head of the image side: adapter, linear, mlp, residual, or none.
        text: The new head of the text side.
    """

    __pydantic_config__ = STRICT

    kind: Literal["new_heads"] = "new_heads"
    image: OneHead = field(default_factory=AdapterHead)
    text: OneHead = field(default_factory=AdapterHead)


@dataclass(frozen=True)
class WeightsThatFit:
    """Train the configuration's own model, with those weights of the start model that fit.

    Attributes:
        kind: Name of the way in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["weights"] = "weights"


AnyTuning = Annotated[
    WholeModel | NewHeads | WeightsThatFit,
    Field(discriminator="kind"),
    by_name,
    on_command_line(WholeModel | NewHeads | WeightsThatFit),
]
"""Type of a field that holds how the start model is used."""
