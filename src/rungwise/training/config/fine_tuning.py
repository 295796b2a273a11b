"""What becomes of a model that a run begins from, as a configuration says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rungwise.core.configuration import STRICT, by_name, on_command_line
from rungwise.encoders.heads import AdapterHead, OneHead


@dataclass(frozen=True)
class WholeModel:
    """Train the model that is begun from as it is; the configuration's own model is not asked, or only for a little.

    Attributes:
        kind: Names the way in YAML.
        image: Train its image encoder.
        text: Train its text encoder.
        configured: Take from the configuration's model what changes no weights: frozen, of both encoders, and crops,
            mirrored and batch_norm of pictures. A later stage of a run does.
    """

    __pydantic_config__ = STRICT

    kind: Literal["whole"] = "whole"
    image: bool = True
    text: bool = True
    configured: bool = False


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
class WeightsThatFit:
    """Train the configuration's own model, with those weights of the other one that fit.

    Attributes:
        kind: Names the way in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["weights"] = "weights"


AnyTuning = Annotated[
    WholeModel | NewHeads | WeightsThatFit,
    Field(discriminator="kind"),
    by_name,
    on_command_line(WholeModel | NewHeads | WeightsThatFit),
]
"""A field of a configuration: what becomes of the model that a run begins from."""
