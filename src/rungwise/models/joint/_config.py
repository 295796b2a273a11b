"""Configuration of a joint embedding: the types of image sides, text sides, heads and similarities."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Any, Literal

from pydantic import PlainValidator

from rungwise.core import STRICT, Size
from rungwise.encoders import (
    AnyHead,
    FeatureConfig,
    ImageSideConfig,
    LinearHead,
    NoHead,
    TextFeatureConfig,
    TextSideConfig,
)
from rungwise.encoders.images import ConvolutionsConfig, ImageConfig
from rungwise.encoders.pretrained import PretrainedImageConfig, PretrainedTextConfig
from rungwise.encoders.texts import BagOfWordsConfig, GRUConfig, TransformerConfig
from rungwise.models.io import ModelConfig
from rungwise.parts import Registry, concrete_below
from rungwise.similarity import AnySimilarity, Cosine

OUR_IMAGE_SIDES = (ImageConfig, ConvolutionsConfig, FeatureConfig, PretrainedImageConfig)
OUR_TEXT_SIDES = (GRUConfig, TransformerConfig, BagOfWordsConfig, TextFeatureConfig, PretrainedTextConfig)


def _kind_of(config: type[Any]) -> str:
    """The default of the field ``kind``; empty for a base of configurations."""
    return next((str(one.default) for one in fields(config) if one.name == "kind" and one.default is not MISSING), "")


IMAGE_SIDES: Registry[ImageSideConfig] = Registry(
    "encoders", "image encoder", lambda: dict.fromkeys((*OUR_IMAGE_SIDES, *concrete_below(ImageSideConfig))), _kind_of
)
TEXT_SIDES: Registry[TextSideConfig] = Registry(
    "encoders", "text encoder", lambda: dict.fromkeys((*OUR_TEXT_SIDES, *concrete_below(TextSideConfig))), _kind_of
)
"""Configurations of sides by name: ours, those of imported modules, and those that installed packages offer."""


def _itself(config: type[Any]) -> type[Any]:
    return config


AnyImageSide = Annotated[
    ImageSideConfig,
    PlainValidator(lambda value: IMAGE_SIDES.configured(value, ImageSideConfig, _itself, "pictures")),
]
"""Configuration of any image side, chosen by ``kind``; the default is pictures under a backbone."""

AnyTextSide = Annotated[
    TextSideConfig, PlainValidator(lambda value: TEXT_SIDES.configured(value, TextSideConfig, _itself, "gru"))
]
"""Configuration of any text side, chosen by ``kind``; the default is a GRU."""


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
