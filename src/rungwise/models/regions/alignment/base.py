"""What SGR and SAF have in common: their configuration, their sides, and the similarity vectors of a pair."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from torch import Tensor

from rungwise.core.configuration import STRICT, BelowOne, Size
from rungwise.data.files.feature_rows import FeatureRows
from rungwise.encoders.sides import ImageSide, TextSide
from rungwise.encoders.texts.gru import GRUConfig
from rungwise.models.contracts import Texts
from rungwise.models.io.folder import ModelFolder
from rungwise.models.joint.config import AnyTextSide
from rungwise.models.regions.alignment.similarity_vectors import (
    SMOOTHING,
    NodeReader,
    NodeSimilarity,
    SimilarityVectors,
)
from rungwise.models.regions.base import RegionScorer
from rungwise.models.regions.config import (
    RegionConfig,
    Regions,
    check_regions_known,
    region_config_for_data,
    with_regions,
)
from rungwise.similarity.stacked_attention import Attention, CrossAttention


@dataclass(frozen=True)
class AlignedConfig(RegionConfig):
    """Base of the configurations of SGR and SAF (Diao et al. 2021).

    Attributes:
        kind: Names the family.
        text: As for every model of regions; the program sets 0.4 of the numbers of word vectors to 0 in training.
        regions: Of each picture; None takes that of the data. Batch norm has statistics of each.
        vector_width: Of a similarity vector.
        dropout: Share of the hidden numbers of self-attention that training sets to 0.
    """

    __pydantic_config__ = STRICT

    text: AnyTextSide = field(default_factory=lambda: GRUConfig(directions="both", word_dropout=0.4))
    regions: Regions | None = None
    vector_width: Size = 256
    dropout: BelowOne = 0.4


class AlignedScorer(RegionScorer):
    """S of a pair from the similarity vectors of its words, and one of the whole picture and text.

    Blocks of a training step are computed once more on the way back, unless :attr:`recompute` is set to False: the
    squared differences of a batch of 128 pairs and 15 words each are 1 GB at the authors' sizes, and are needed several
    times over.

    Attributes:
        vectors: Makes the similarity vectors.
        nodes: Makes a similarity of them.
    """

    nodes: NodeReader

    def __init__(self, config: Any, image: ImageSide, text: Callable[[], TextSide]) -> None:
        """Put the sides together; see :class:`~rungwise.models.regions.base.RegionScorer`.

        Args:
            config: Of the model, with its number of regions.
            image: The encoder of pictures.
            text: Gives the encoder of texts.

        Raises:
            UserError: If a side gives no regions, or no vectors of words.
        """
        super().__init__(config, image, text)
        self.vectors = SimilarityVectors(config.dimension, config.vector_width, config.dropout, config.regions)
        self.nodes = self.node_reader(config)
        self.recompute = True

    @staticmethod
    @abstractmethod
    def node_reader(config: Any) -> NodeReader:
        """The part that is the family's own."""

    @property
    def comparison(self) -> NodeSimilarity:
        """By similarity vectors."""
        return NodeSimilarity.of(self.vectors, self.nodes)

    def attention(self, regions: Tensor, words: Tensor) -> Attention:
        """See :meth:`RegionScorer.attention <rungwise.models.regions.base.RegionScorer.attention>`.

        Every word counts alike: what its similarity vector weighs in the end is no number between 0 and 1.
        """
        return CrossAttention("t2i", SMOOTHING, "mean").attention(regions, words)

    @classmethod
    def create(cls, config: Any, captions: Texts, features: FeatureRows | None = None) -> Self:
        """A new model whose vocabulary comes from the captions of the training split, for as many regions as there are.

        Raises:
            UserError: If the backbone or its weights cannot be had, or the data have no regions, another number of them
                than the configuration says, or no words.
        """
        config = region_config_for_data(config, captions, features)
        image = config.image.build()
        config = with_regions(config, image, features)
        return cls(config, image, lambda: config.text.build(captions, config.dimension))

    @classmethod
    def restore(cls, config: Any, folder: ModelFolder) -> Self:
        """See :meth:`SavedModel.restore <rungwise.models.io.saved_model.SavedModel.restore>`.

        Raises:
            UserError: If the configuration does not say how many regions a picture has.
        """
        check_regions_known(config, folder)
        return super().restore(config, folder)

    def regions(self, rows: Tensor) -> Tensor:
        """See :meth:`RegionScorer.regions <rungwise.models.regions.base.RegionScorer.regions>`.

        Raises:
            UserError: If the pictures have another number of regions than the model.
        """
        regions = super().regions(rows)
        self.vectors.region_attention.check(regions)
        return regions
