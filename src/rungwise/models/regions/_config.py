"""Common configuration of all models of regions, and checks of their data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field
from torch import nn

from rungwise.core import STRICT, Size, UserError
from rungwise.data.files import FeatureRows
from rungwise.encoders import ImageSide, LinearHead, PictureSide, TextSide, require_words
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig, TransformerConfig
from rungwise.models._encoder_pair import check_regions, config_for_data
from rungwise.models.io import CONFIG, ModelConfig, ModelFolder
from rungwise.models.joint import AnyImageSide, AnyTextSide

Regions = Annotated[int, Field(ge=1, le=1 << 16)]
"""Number of regions of one picture that a model reads."""


@dataclass(frozen=True)
class RegionConfig(ModelConfig):
    """Base of the configurations of models that read regions.

    Attributes:
        kind: Name of the family.
        image: The encoder of pictures, which must keep regions (pool: regions), or features of regions in its place.
        text: The encoder of captions, which must give a vector for each word: gru or transformer.
        dimension: Width of the vectors of regions and words.
    """

    __pydantic_config__ = STRICT

    image: AnyImageSide = field(default_factory=lambda: ImageConfig(pool="regions", l2_normalise=False))
    text: AnyTextSide = field(default_factory=lambda: GRUConfig(directions="both"))
    dimension: Size = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.text, TransformerConfig) and self.text.counted_pieces:
            raise UserError(
                f"text.counted_pieces: a model of kind {self.kind!r} reads vectors of words, beside which no counts"
                " stand; leave it out"
            )


def region_config_for_data(config: Any, captions: Sequence[str] | FeatureRows, features: FeatureRows | None) -> Any:
    """:func:`rungwise.models._encoder_pair.config_for_data`, for models that read regions and words.

    Raises:
        UserError: If widths cannot be told, or the data have no regions, or rows of features in place of words.
    """
    require_words(captions)
    if features is not None:
        check_regions(features, config.kind)
    return config_for_data(config, captions, features)


def regions_of(side: ImageSide, kind: str) -> int | None:
    """Number of regions that an image encoder gives for each picture; None where the rows of features decide it.

    Raises:
        UserError: If the encoder gives one vector for each picture.
    """
    if not isinstance(side, PictureSide):
        return None
    if side.regions is None:
        raise UserError(
            f"a model of kind {kind!r} reads regions, and the image encoder gives one vector for each picture; set"
            " model.image.pool: regions"
        )
    return side.regions


def with_regions(config: Any, side: ImageSide, features: FeatureRows | None) -> Any:
    """A configuration with the number of regions of a picture, for models with statistics of each region.

    ``config.regions`` None takes the number of the encoder or of the rows.

    Raises:
        UserError: If it names another number, or there are no regions.
    """
    found = regions_of(side, config.kind) or (None if features is None else features.shape[1])
    if config.regions not in (None, found):
        raise UserError(f"model.regions is {config.regions}, but each picture has {found} regions; leave it out")
    return replace(config, regions=found)


def check_regions_known(config: Any, folder: ModelFolder) -> None:
    """Refuse a saved model whose configuration lacks the number of regions."""
    if config.regions is None:
        raise UserError(f"{folder.path / CONFIG}: model.regions is missing; copy the folder anew")


def to_width(inputs: int, outputs: int) -> nn.Module:
    """Linear layer to another width; the identity where the widths are equal."""
    return nn.Identity() if inputs == outputs else LinearHead().build(inputs, outputs)


def check_words(side: TextSide) -> None:
    """Refuse a text encoder that gives no vectors of words."""
    if type(side).states is TextSide.states:
        raise UserError(
            "a model of regions reads a vector for each word, which this text encoder does not give; set"
            " model.text.kind: gru or transformer"
        )
