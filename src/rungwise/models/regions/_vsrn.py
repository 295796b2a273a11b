"""VSRN: visual semantic reasoning over regions (Li et al. 2019).

A picture becomes one vector by graph convolutions over its regions and a GRU that gathers them
(:mod:`rungwise.models.regions._region_reasoning`), a text the last state of a GRU over its words. So it is a dual
encoder: vectors are compared by their cosine, indexed and searched. In training a second network tells the caption from
the regions (:mod:`rungwise.models.regions._caption_head`), and its loss is added to that of retrieval (Eq. 11)::

    L = L_retrieval + weight L_captions

It changes no vector. It is saved with the model, so that a training goes on with it, and left out of the fingerprint
and of exports. (The authors' program forgets it when a training is resumed.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from torch import Tensor

from rungwise.core import ELSEWHERE, STRICT, Size, UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import ImageSide, TextFeatureInput, TextSide, require_words
from rungwise.encoders.texts import GRUConfig
from rungwise.encoders.vocabulary import Tokens
from rungwise.models._contracts import Progress, Texts, texts_at
from rungwise.models._dual_encoder import TwoTower
from rungwise.models._encoder_pair import EncoderBatch, check_regions, config_for_data, freeze_encoders, image_features
from rungwise.models._training_pairs import Autocast, Compilable, Pairs, Positions, ScoredBatch
from rungwise.models.io import ModelConfig, ModelFolder
from rungwise.models.joint import AnyTextSide
from rungwise.models.regions._caption_head import CaptionHead, CaptionHeadConfig
from rungwise.models.regions._config import RegionConfig, regions_of, to_width
from rungwise.models.regions._region_reasoning import Normalise, RegionReasoning
from rungwise.similarity import AnySimilarity, Cosine

_HEAD = "caption_head."


@dataclass(frozen=True)
class VSRNConfig(RegionConfig):
    """Visual semantic reasoning (Li et al. 2019), as the authors' program has it for COCO.

    For Flickr30K the program has ``normalise_first: false`` and ``batch_norm: true``.

    Attributes:
        kind: Name of the family.
        text: The encoder of captions.
        dimension: D, the width of regions and of the joint space.
        similarity: How vectors are compared.
        layers: Number of graph convolutions.
        normalise: What is brought to length 1 around the graph convolutions: each of the D features over the regions of
            a picture, as the program does, or each region's vector (regions). Of one region, features leaves signs
            alone.
        normalise_first: Normalise before the first graph convolution too.
        batch_norm: Batch norm of the picture's vector before the similarity.
        captions: The network that generates captions from regions.
    """

    __pydantic_config__ = STRICT

    kind: Literal["vsrn"] = "vsrn"
    text: AnyTextSide = field(default_factory=GRUConfig)
    dimension: Size = 2048
    similarity: AnySimilarity = field(default_factory=Cosine)
    layers: Annotated[int, Field(ge=1, le=64)] = 4
    normalise: Normalise = "features"
    normalise_first: bool = True
    batch_norm: bool = False
    captions: CaptionHeadConfig = field(default_factory=CaptionHeadConfig, metadata=ELSEWHERE)


@dataclass(frozen=True)
class CaptionedBatch(EncoderBatch):
    """Image-caption pairs with the words that are generated from the regions.

    Attributes:
        words: (n, longest) token numbers of the captions, also where vectors stand for the texts.
        word_lengths: (n,) number of tokens of each caption.
    """

    words: Tensor
    word_lengths: Tensor


class VSRN(TwoTower):
    """Visual semantic reasoning (Li et al. 2019).

    Attributes:
        caption_head: Generates captions from regions in training; None where its loss has no weight.

    >>> from rungwise.encoders.images import ImageConfig
    >>> image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32, pool="regions", l2_normalise=False)
    >>> model = VSRN.create(VSRNConfig(image=image, dimension=8), ["a dog", "a cat"])
    >>> model.kind, model.encode_text(["a cat", "two dogs"]).shape
    ('vsrn', (2, 8))
    """

    kind: ClassVar[str] = "vsrn"
    config_type: ClassVar[type[ModelConfig]] = VSRNConfig
    reads_regions: ClassVar[bool] = True

    image_projection: RegionReasoning
    caption_head: CaptionHead | None

    def __init__(self, config: VSRNConfig, image: ImageSide, text: Callable[[], TextSide]) -> None:
        """Put the parts together; ``text`` makes the encoder of texts.

        Raises:
            UserError: If the image encoder gives no regions, or the text encoder no words for the caption head.
        """
        super().__init__(config)
        self.backbone = image
        regions_of(image, config.kind)
        self.image_projection = RegionReasoning(
            image.features,
            config.dimension,
            layers=config.layers,
            normalise=config.normalise,
            normalise_first=config.normalise_first,
            batch_norm=config.batch_norm,
        )
        self.text_encoder = text()
        self.text_projection = to_width(self.text_encoder.width, config.dimension)
        self.caption_head = self._caption_head() if config.captions.weight else None
        self._cut: tuple[int, int] = (0, 0)
        freeze_encoders(self)

    @classmethod
    def create(cls, config: VSRNConfig, captions: Texts, features: FeatureRows | None = None) -> Self:
        """Make a model whose vocabulary comes from the captions of the training split.

        Raises:
            UserError: If the backbone or its weights cannot be loaded, or the data have no regions.
        """
        if features is not None:
            check_regions(features, config.kind)
        config = config_for_data(config, captions, features)
        model = cls(config, config.image.build(), lambda: config.text.build(captions, config.dimension))
        if model.caption_head is not None:
            lengths = Tokens.of(model.text_encoder.tokenise(require_words(captions))).lengths
            model._cut = int(np.count_nonzero(lengths > config.captions.longest)), len(lengths)
        return model

    @classmethod
    def restore(cls, config: VSRNConfig, folder: ModelFolder) -> Self:
        """Read a saved model from its folder."""
        return cls(config, config.image.restore(folder), lambda: config.text.restore(folder, config.dimension))

    def _caption_head(self) -> CaptionHead:
        if isinstance(self.text_encoder, TextFeatureInput):
            raise UserError(
                "the caption head tells words from regions, and the data have rows of features in place of texts; set"
                " model.captions.weight: 0"
            )
        return CaptionHead(self.config.dimension, self.text_encoder.token_rows, self.config.captions)

    @property
    def adds_losses(self) -> bool:
        """Whether there is a caption head, whose loss is added."""
        return self.caption_head is not None

    def remarks(self) -> Sequence[str]:
        """Remarks of both encoders, and the number of captions that the caption head cuts."""
        cut, captions = self._cut
        said = (
            f"{cut} of {captions} captions are longer than the {self.config.captions.longest} tokens that the caption"
            " head decodes: cut",
        )
        return (*super().remarks(), *(said if cut else ()))

    def compilable(self) -> Sequence[Compilable]:
        """The encoders or heads; without the image head where the caption head reads its intermediate regions."""
        parts = super().compilable()
        return parts if self.caption_head is None else [one for one in parts if one.module is not self.image_projection]

    def read(
        self, data: ImageCaptions, images: Positions, *, cache: Path | None = None, progress: Progress | None = None
    ) -> Pairs:
        """What both encoders read; words are read for the caption head even where vectors stand for texts."""
        pairs = super().read(data, images, cache=cache, progress=progress)
        if self.caption_head is None or pairs.text_rows is None:
            return pairs
        texts = require_words(texts_at(data, pairs.captions))
        return replace(pairs, texts=Tokens.of(self.text_encoder.tokenise(texts)))

    def batch(self, pairs: Pairs, chosen: Positions) -> EncoderBatch:
        """Rows, texts and, for the caption head, words of some pairs, on the model's device."""
        plain = super().batch(pairs, chosen)
        if self.caption_head is None:
            return plain
        words, lengths = plain.texts, plain.lengths
        if lengths is None:
            words, lengths = Tokens.of(pairs.texts).padded(chosen, self.text_encoder.pad_number)
        return CaptionedBatch(plain.rows, plain.texts, plain.lengths, words.to(self.device), lengths)

    def score(self, batch: EncoderBatch, autocast: Autocast = nullcontext, *, within: bool = False) -> ScoredBatch:
        """Cosines of a batch's images with its captions, and the loss of the caption head over all of its pairs."""
        if self.caption_head is None:
            return super().score(batch, autocast, within=within)
        assert isinstance(batch, CaptionedBatch)
        with autocast():
            related = self.image_projection.related(image_features(self, batch.rows))
            images = self.similarity.images(self.image_projection.gathered(related).float())
            captions = self.embed_captions(batch.texts, batch.lengths)
            told = self.caption_head.loss(related, batch.words, batch.word_lengths)
        return replace(self.compared(images, captions, within=within), own=self.config.captions.weight * told)

    def _deciding(self) -> Mapping[str, Tensor]:
        """All tensors except those of the caption head."""
        return {name: one for name, one in super()._deciding().items() if not name.startswith(_HEAD)}
