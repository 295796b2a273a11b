"""Checks whether a configuration and a collection fit together, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.encoders import FeatureConfig, TextFeatureConfig
from rungwise.encoders.images import ConvolutionsConfig, ImageConfig
from rungwise.models import family
from rungwise.models.joint import AnyImageSide, AnyTextSide, VSEConfig
from rungwise.models.subspace import SubspaceConfig
from rungwise.training.config import AnyRunConfig, FitConfig, TrainConfig


def check_fits(config: AnyRunConfig, data: ImageCaptions) -> None:
    """Refuse data that a run cannot read, or that lack what it needs."""
    if isinstance(config, FitConfig):
        reasons = _of_fit(config, data)
    else:
        stages = [one for _, one in config.stage_configs()] or [config]
        reasons = (reason for stage in stages for reason in _reasons(stage, data))
    for reason in reasons:
        raise UserError(f"{config.preset or 'the configuration'} does not fit {data.name}: {reason}")


_NO_LABELS = "it reads class labels, and the data have none; give them a column 'label', or take another preset"


def _of_fit(config: FitConfig, data: ImageCaptions) -> Iterator[str]:
    found: Any = family(config.model.kind)
    if found.reads_labels and not any(data.labels):
        yield _NO_LABELS
    if isinstance(config.model, SubspaceConfig):
        yield from _of_images(config.model.image, data)
        if isinstance(config.model.text, TextFeatureConfig):  # rows of features stand in for an encoder of words
            yield from _of_texts(config.model.text, data)


def _reasons(config: TrainConfig, data: ImageCaptions) -> Iterator[str]:
    if config.sampler.draws_lists and not any(data.labels):
        yield _NO_LABELS
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
