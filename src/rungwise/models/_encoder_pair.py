"""Models with an encoder of pictures and one of texts: what they read, what they cache, and how they cut batches.

What becomes of the encoders' vectors is each family's own: heads and a similarity
(:mod:`rungwise.models._dual_encoder`), or a comparison of regions with words (:mod:`rungwise.models.regions`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rungwise.core import UserError, identity
from rungwise.core.formats import digest_of_tensors
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import (
    FeatureConfig,
    FeatureInput,
    ImageSide,
    PictureSide,
    TextFeatureInput,
    TextSide,
    layer_depths,
    recompute_layers,
)
from rungwise.encoders.images import ImageRows, feature_rows, picture_features, pixel_rows
from rungwise.encoders.texts import text_rows
from rungwise.encoders.vocabulary import Tokens
from rungwise.models._contracts import WEIGHTS_WARNING, Pictures, Progress, pictures_at, texts_at
from rungwise.models._resident_rows import ResidentRows
from rungwise.models._training_pairs import (
    ImageInputs,
    Pairs,
    ParameterPlace,
    Positions,
    TrainableScorer,
    captions_of,
    pair_up,
)


@dataclass(frozen=True)
class EncoderBatch:
    """Image-caption pairs as the encoders read them.

    Attributes:
        rows: (n, ...) pixels or features of the images.
        texts: (n, longest) token numbers, or (n, width) vectors of a frozen encoder.
        lengths: (n,) number of tokens of each caption; None where vectors stand for captions.
    """

    rows: Tensor
    texts: Tensor
    lengths: Tensor | None

    __repr__ = short_repr


def config_for_data(config: Any, captions: Sequence[str] | FeatureRows, features: FeatureRows | None) -> Any:
    """A configuration with the widths of a collection's rows.

    Args:
        config: Configuration with ``image`` and ``text``. Rows of features replace the backbone.
        captions: Captions of the training split.
        features: Rows that stand for pictures; None where there are pictures.

    Raises:
        UserError: If the data have no features where the configuration wants them, or words where it wants rows.
    """
    image = config.image
    if features is not None and not isinstance(image, FeatureConfig):
        image = FeatureConfig(l2_normalise=image.l2_normalise)
    if isinstance(image, FeatureConfig):
        image = image.of(features)
    return replace(config, image=image, text=config.text.of(captions))


def check_regions(features: FeatureRows, kind: str) -> None:
    """Refuse rows that hold one vector for each image, for a model of this kind that reads regions."""
    if len(features.shape) != 3:
        raise UserError(
            f"{features.file}: one vector of {features.shape[-1]} numbers for each image, and a model of"
            f" kind {kind!r} reads regions; give an array (images, regions, D), or pictures"
        )


class EncoderPair(TrainableScorer):
    """Two encoders, and all that is read for them.

    A family sets both encoders. Its configuration has ``image`` and ``text``.

    Attributes:
        reads_regions: Whether the family reads the regions of a picture one by one; otherwise it reads their mean.
        keeps_text_vectors: Whether the family reads one vector of a text, which a frozen encoder computes once.
        provenance: Facts about data, training and results that are saved with the model.
        backbone: Encoder of pictures, or rows of features in its place.
        text_encoder: Encoder of texts, or rows of features in its place.
    """

    reads_regions: ClassVar[bool] = False
    keeps_text_vectors: ClassVar[bool] = True

    backbone: ImageSide
    text_encoder: TextSide

    def __init__(self, config: Any) -> None:
        """Leave the parts to the family, which sets them."""
        super().__init__()
        self.config = config
        self.provenance: dict[str, Any] = {}

    def files(self) -> Mapping[str, str]:
        """Files of both encoders, such as vocabulary and preprocessing."""
        return {**self.text_encoder.files(), **self.backbone.files()}

    @property
    def fingerprint(self) -> str:
        """Hash of weights, vocabulary, configuration and preprocessing: equal exactly for models that encode alike."""
        said = self.text_encoder.identity(), self.backbone.identity(), json.dumps(self._identity(), sort_keys=True)
        return digest_of_tensors(self._deciding(), *said)

    def _deciding(self) -> Mapping[str, Tensor]:
        """The tensors that decide a vector or a score, by name; all of them by default."""
        return self.state_dict()

    def _identity(self) -> list[Any]:
        """Configuration and preprocessing, which decide a vector besides vocabulary and weights."""
        seen = self.backbone.preprocessing
        return [identity(self.config), {} if seen is None else identity(seen)]

    def part_of(self, parameter: str) -> ParameterPlace:
        """The encoder of a parameter and its depth, or the heads."""
        place, _, name = parameter.partition(".")
        if place not in ("backbone", "text_encoder"):
            return ParameterPlace()
        depths = layer_depths(one for one, _ in self.get_submodule(place).named_parameters())
        return ParameterPlace("image" if place == "backbone" else "text", depths[name])

    def recompute_layers(self) -> None:
        """Recompute the states of layers in the backward pass, which saves memory."""
        if not [side for side, frozen in encoder_sides(self) if not frozen and recompute_layers(side)]:
            raise UserError(
                "no encoder that is trained has gradient checkpointing; leave gradient_checkpointing out, or train one"
                " that has"
            )

    def train(self, mode: bool = True) -> Self:
        """Set the mode as in torch; frozen encoders, with their batch statistics, stay in evaluation mode."""
        super().train(mode)
        for side, frozen in encoder_sides(self):
            if frozen:
                side.eval()
        return self

    def read(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> Pairs:
        """What both encoders read of these images and their captions: features, pixels, vectors or tokens.

        Raises:
            UserError: If the collection has pictures where the model reads features, or the other way round.
        """
        rows = image_inputs(self, pictures_at(data, images), cache, progress, visited=True)
        if not texts_are_rows(self):
            return pair_up(data, images, rows, lambda texts: Tokens.of(self.text_encoder.tokenise(texts)))
        pairs = pair_up(data, images, rows, lambda texts: [(0,)] * len(texts))
        return replace(pairs, text_rows=text_inputs(self, texts_at(data, pairs.captions), cache))

    def keep_texts(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> ImageInputs | None:
        """Compute and cache the vectors of captions, where a frozen encoder takes long for them; else None."""
        texts = texts_at(data, captions_of(data, images))
        if not texts_are_rows(self) or self.text_encoder.quick or isinstance(texts, FeatureRows):
            return None
        return text_inputs(self, texts, cache, progress)

    def batch(self, pairs: Pairs, chosen: Positions) -> EncoderBatch:
        """Rows of the images, and tokens with lengths or vectors of the captions, on the model's device."""
        images = pairs.image[chosen]
        seen = pairs.rows.visit(images) if isinstance(pairs.rows, ImageRows) else pairs.rows.take(images)
        rows = seen.to(self.device)
        if pairs.text_rows is not None:
            return EncoderBatch(rows, pairs.text_rows.take(chosen).to(self.device), None)
        tokens, lengths = Tokens.of(pairs.texts).padded(chosen, self.text_encoder.pad_number)
        return EncoderBatch(rows, tokens.to(self.device), lengths)

    @property
    def reads_pictures(self) -> bool:
        """Whether the image side is an encoder, and not rows of features."""
        return self.backbone.preprocessing is not None

    @property
    def reads_words(self) -> bool:
        """Whether the text side is an encoder, and not rows of features."""
        return not isinstance(self.text_encoder, TextFeatureInput)

    @property
    def decoded_side(self) -> int | None:
        """Shorter side in pixels to which large pictures are decoded; None where every pixel is read."""
        seen = self.backbone.preprocessing
        return None if seen is None else seen.decoded_side

    @property
    def longest_text(self) -> int | None:
        """Tokens of a text that the text encoder reads at most; None for any number."""
        return self.text_encoder.longest

    def too_long(self, texts: Sequence[str] | FeatureRows) -> NDArray[np.int64]:
        """Positions of the texts that the text encoder cuts, ascending; none for rows of features."""
        return np.zeros(0, np.int64) if isinstance(texts, FeatureRows) else self.text_encoder.too_long(texts)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that the text encoder never learnt."""
        return self.text_encoder.unknown_words(text)

    @property
    def known_words(self) -> Collection[str]:
        """Whole words of the text encoder's vocabulary."""
        return self.text_encoder.known_words

    @property
    def weights_warning(self) -> str:
        """That of the image encoder, or of the saved model that it comes from."""
        return self.backbone.weights_warning or super().weights_warning

    def save_pretrained(self, folder: Path | str, provenance: dict[str, Any] | None = None) -> None:
        """Write the model as :class:`~rungwise.models.SavedModel` does, with its :attr:`weights_warning`."""
        facts = self.provenance if provenance is None else provenance
        said = {WEIGHTS_WARNING: self.weights_warning} if self.weights_warning else {}
        super().save_pretrained(folder, {**facts, **said})

    def remarks(self) -> Sequence[str]:
        """Remarks of both encoders."""
        return *self.backbone.remarks(), *self.text_encoder.remarks()

    def rows_of(
        self, pictures: Pictures, *, cache: Path | None = None, progress: Progress | None = None, batch: int = 64
    ) -> ImageInputs:
        """The image encoder's input for any pictures; features under a frozen encoder are cached, as in training.

        Args:
            pictures: Files, the bytes of files, or rows of features.
            cache: Folder of the feature cache; the default one if None.
            progress: Called with the number of images done since the last call.
            batch: Number of pictures encoded at a time.
        """
        frozen = self.config.image.frozen
        if isinstance(pictures, FeatureRows) or (frozen and not any(isinstance(one, bytes) for one in pictures)):
            return image_inputs(self, pictures, cache, progress, batch)
        features, kept, issues = picture_features(picture_side(self), pictures, batch=batch, progress=progress)
        return ResidentRows(features, kept, issues, len(kept), 0.0)


def encoder_sides(model: EncoderPair) -> tuple[tuple[ImageSide | TextSide, bool], ...]:
    """Both encoders of a model, and whether each is frozen."""
    return (model.backbone, model.config.image.frozen), (model.text_encoder, model.config.text.frozen)


def freeze_encoders(model: EncoderPair) -> None:
    """Turn gradients off for the encoders that the configuration freezes."""
    for side, frozen in encoder_sides(model):
        if frozen:
            side.requires_grad_(False)


def texts_are_rows(model: EncoderPair) -> bool:
    """Whether a model reads captions as vectors that never change."""
    return bool(model.keeps_text_vectors and model.config.text.frozen)


def image_features(model: EncoderPair, rows: Tensor) -> Tensor:
    """(n, features) float32 features of pictures, or (n, regions, features) where the family reads regions.

    Args:
        model: The model, whose encoder reads pixels.
        rows: (n, features) or (n, regions, features) float32 features of a frozen encoder, (n, 3, size, size) uint8
            pixels, or rows of features. Several regions are averaged, unless the family reads them one by one.
    """
    as_they_are = rows.dtype != torch.uint8 and model.backbone.preprocessing is not None
    features = (rows if as_they_are else model.backbone(rows)).float()
    if features.ndim == 3 and not model.reads_regions:
        features = features.mean(dim=1)
    return F.normalize(features, dim=-1) if model.config.image.l2_normalise else features


def text_features(model: EncoderPair, texts: Tensor, lengths: Tensor | None = None) -> Tensor:
    """(n, width) float32 features of texts.

    Args:
        model: The model, whose encoder reads tokens.
        texts: (n, longest) token numbers; or (n, width) vectors of a frozen encoder, without lengths.
        lengths: (n,) number of tokens of each text.
    """
    vectors = (texts if lengths is None else model.text_encoder(texts, lengths)).float()
    return F.normalize(vectors, dim=1) if model.config.text.l2_normalise else vectors


def picture_side(model: EncoderPair) -> PictureSide:
    """The encoder of pictures; refused where a model reads rows of features in its place."""
    if not model.reads_pictures:
        raise UserError(
            "the model was trained on rows of features and reads no pictures; give features of the same extractor"
        )
    return cast(PictureSide, model.backbone)


def image_inputs(
    model: EncoderPair,
    pictures: Pictures,
    cache: Path | None,
    progress: Progress | None,
    batch: int = 64,
    visited: bool = False,
) -> ImageInputs:
    """Cached features under a frozen backbone, pixels under a trained one, or rows of features unchanged.

    A frozen backbone reads pixels too where training crops each picture anew at each visit.
    """
    if isinstance(pictures, FeatureRows):
        if not isinstance(model.backbone, FeatureInput):
            raise UserError(
                "the data are rows of features, but the model reads pictures; train one with model.image.kind features"
            )
        if model.reads_regions:
            check_regions(pictures, model.kind)
        if progress:
            progress(len(pictures))
        return model.backbone.read(pictures)
    side, paths = picture_side(model), [one for one in pictures if not isinstance(one, bytes)]
    if model.config.image.frozen and not (visited and side.preprocessing.draws):
        return feature_rows(side, paths, cache, batch=batch, progress=progress)
    return pixel_rows(side.preprocessing, paths, cache, batch=batch, progress=progress)


def text_inputs(
    model: EncoderPair, texts: Sequence[str] | FeatureRows, cache: Path | None, progress: Progress | None = None
) -> ImageInputs:
    """Cached vectors of texts, or rows of features unchanged."""
    if not isinstance(texts, FeatureRows):
        return text_rows(model.text_encoder, texts, cache, progress=progress)
    if not isinstance(model.text_encoder, TextFeatureInput):
        raise UserError("the data are rows of features in place of texts, but the model reads words")
    return model.text_encoder.read(texts)


@contextmanager
def inference(model: EncoderPair) -> Iterator[None]:
    """Turn gradients off and evaluation mode on; the mode is put back afterwards."""
    if not any(module.training for module in model.modules()):
        with torch.inference_mode():  # setting the mode of every module takes as long as encoding a short text
            yield
        return
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)
