"""What a model is made of, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rungwise.core.configuration import STRICT
from rungwise.encoders.image import ImageConfig
from rungwise.encoders.text import TextConfig


@dataclass(frozen=True)
class ModelConfig:
    """A joint embedding of the VSE family (Faghri et al. 2018, section 2).

    Attributes:
        image: The backbone.
        text: The caption encoder.
        dimension: Of the joint space.
        similarity: ``"cosine"`` normalises both sides; ``"inner"`` the caption side only (VSE0).
    """

    __pydantic_config__ = STRICT

    image: ImageConfig = field(default_factory=ImageConfig)
    text: TextConfig = field(default_factory=TextConfig)
    dimension: int = 1024
    similarity: Literal["cosine", "inner"] = "cosine"
