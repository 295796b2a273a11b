"""Configuration of a joint embedding: the types of image sides, text sides, heads and similarities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from rungwise.core import STRICT, Size
from rungwise.encoders import AnyHead, FeatureConfig, LinearHead, NoHead, TextFeatureConfig
from rungwise.encoders.images import ConvolutionsConfig, ImageConfig
from rungwise.encoders.pretrained import PretrainedImageConfig, PretrainedTextConfig
from rungwise.encoders.texts import BagOfWordsConfig, GRUConfig, TransformerConfig
from rungwise.models.io import ModelConfig
from rungwise.similarity import AnySimilarity, Cosine

AnyImageSide = Annotated[
    Annotated[ImageConfig | ConvolutionsConfig | FeatureConfig | PretrainedImageConfig, Field(discriminator="kind")],
    BeforeValidator(lambda value: {"kind": "pictures"} | value if isinstance(value, dict) else value),
]
"""Configuration of any image side; the default kind is pictures under a backbone."""

AnyTextSide = Annotated[
    Annotated[
        GRUConfig | TransformerConfig | BagOfWordsConfig | TextFeatureConfig | PretrainedTextConfig,
        Field(discriminator="kind"),
    ],
    BeforeValidator(lambda value: {"kind": "gru"} | value if isinstance(value, dict) else value),
]
"""Configuration of any text side; the default kind is a GRU."""


@dataclass(frozen=True)
class VSEConfig(ModelConfig):
    """Two encoders, a head on each, and a similarity: the VSE family (Faghri et al. 2018, section 2) and its heirs.

    Attributes:
        kind: Name of the family.
        image: The encoder of pictures, or features in its place.
        text: The encoder of captions, or features in its place.
        dimension: Width of the joint space.
        similarity: cosine, inner (the caption side alone is normalised: VSE0), order or shifted_cosine.
        image_head: Head from the image encoder to the joint space: linear, none, mlp, residual or adapter.
        text_head: Head from the caption encoder to the joint space; none, as in VSE++, where the encoder gives its
            width.
    """

    __pydantic_config__ = STRICT

    kind: Literal["vse"] = "vse"
    image: AnyImageSide = field(default_factory=ImageConfig)
    text: AnyTextSide = field(default_factory=GRUConfig)
    dimension: Size = 1024
    similarity: AnySimilarity = field(default_factory=Cosine)
    image_head: AnyHead = field(default_factory=LinearHead)
    text_head: AnyHead = field(default_factory=NoHead)
