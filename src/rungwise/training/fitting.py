"""Whether a configuration and a collection fit together, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.encoders.convolutions import ConvolutionsConfig
from rungwise.encoders.features import FeatureConfig, TextFeatureConfig
from rungwise.encoders.image import ImageConfig
from rungwise.models.vse_config import AnyImageSide, AnyTextSide, VSEConfig
from rungwise.training.config import TrainConfig


def check_fits(config: TrainConfig, data: ImageCaptions) -> None:
    """Refuse data that a run cannot read, or that have not what it needs.

    Args:
        config: The run; each of its stages is looked at.
        data: The collection.

    Raises:
        UserError: Naming what is lacking and what to do.

    >>> import numpy as np
    >>> from rungwise.training.recipes import load_config
    >>> check_fits(load_config("cmal2r"), ImageCaptions(("a",), ("a dog",), np.array([0]), name="photos"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: cmal2r/own does not fit photos: it reads class labels, and the data have none; ...
    """
    stages = [one for _, one in config.stage_configs()] or [config]
    for stage in stages:
        for reason in _reasons(stage, data):
            raise UserError(f"{config.preset or 'the configuration'} does not fit {data.name}: {reason}")


def _reasons(config: TrainConfig, data: ImageCaptions) -> Iterator[str]:
    if config.sampler.draws_lists and not any(data.labels):
        yield "it reads class labels, and the data have none; give them a column 'label', or take another preset"
    if isinstance(config.model, VSEConfig) and not (config.start and config.tune.kind != "weights"):
        yield from _of_images(config.model.image, data)
        yield from _of_texts(config.model.text, data)


def _of_images(image: AnyImageSide, data: ImageCaptions) -> Iterator[str]:
    if isinstance(image, FeatureConfig):
        if data.features is None:
            yield "it reads rows of features in place of pictures, and the data have none; give model.image a backbone"
    elif data.features is None:
        return
    elif isinstance(image, ConvolutionsConfig):
        yield "it trains a network on pictures, and the data are rows of features; take a preset with a backbone"
    elif isinstance(image, ImageConfig) and image.crops == "RC":
        yield "it sees another crop of a picture on each visit, and the data are rows of features; take crops 1C or 10C"
    elif not image.frozen:
        yield "it trains the backbone, and the data are rows of features; take one whose backbone stays frozen"


def _of_texts(text: AnyTextSide, data: ImageCaptions) -> Iterator[str]:
    of_rows = isinstance(text, TextFeatureConfig)
    if of_rows and data.text_features is None:
        yield "it reads rows of features in place of captions, and the data have none; give model.text an encoder"
    elif not of_rows and data.text_features is not None:
        yield "it reads words, and the data have rows of features in place of captions; take a preset such as cmal2r"
