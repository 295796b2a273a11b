"""What all models of regions are configured by, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rungwise.core.configuration import STRICT, check_size
from rungwise.core.errors import UserError
from rungwise.data.features import FeatureRows
from rungwise.encoders.image import ImageConfig
from rungwise.encoders.sides import ImageSide, PictureSide, TextSide, in_words
from rungwise.encoders.text import GRUConfig
from rungwise.models.saving import ModelConfig
from rungwise.models.sided import check_regions, suited
from rungwise.models.vse_config import AnyImageSide, AnyTextSide


def _regions_of_pictures() -> ImageConfig:
    return ImageConfig(pool="regions", l2_normalise=False)


def _both_directions() -> GRUConfig:
    return GRUConfig(directions="both")


@dataclass(frozen=True)
class RegionConfig(ModelConfig):
    """Base of the configurations of models that read regions.

    Attributes:
        kind: Names the family.
        image: The encoder of pictures, which must keep regions (pool: regions), or features of regions in its place.
        text: The encoder of captions, which must give a vector for each word: gru or transformer.
        dimension: Width of the vectors of regions and words.
    """

    __pydantic_config__ = STRICT

    image: AnyImageSide = field(default_factory=_regions_of_pictures)
    text: AnyTextSide = field(default_factory=_both_directions)
    dimension: int = 1024

    def __post_init__(self) -> None:
        check_size("dimension", self.dimension)


def suited_to_regions(config: Any, captions: Sequence[str] | FeatureRows, features: FeatureRows | None) -> Any:
    """As :func:`rungwise.models.sided.suited`, for models that read regions and words.

    Raises:
        UserError: As there, and if the data have rows of features in place of words, or no regions.
    """
    in_words(captions)
    if features is not None:
        check_regions(features, config.kind)
    return suited(config, captions, features)


def regions_of(side: ImageSide, kind: str) -> int | None:
    """How many regions a side gives for each picture; None where the rows of features say it.

    Raises:
        UserError: If it gives one vector for each picture.
    """
    if not isinstance(side, PictureSide):
        return None
    if side.regions is None:
        raise UserError(
            f"a model of kind {kind!r} reads regions, and the image encoder gives one vector for each picture; set"
            " model.image.pool: regions"
        )
    return side.regions


def check_words(side: TextSide) -> None:
    """Refuse a text side that gives no vectors of words.

    Raises:
        UserError: Naming what to take instead.
    """
    if type(side).states is TextSide.states:
        raise UserError(
            "a model of regions reads a vector for each word, which this text encoder does not give; set"
            " model.text.kind: gru or transformer"
        )
