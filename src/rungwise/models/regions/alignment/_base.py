"""Common parts of SGR and SAF: configuration, encoders, and the similarity vectors of a pair."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from torch import Tensor

from rungwise.core import STRICT, BelowOne, Size
from rungwise.data.files import FeatureRows
from rungwise.encoders import ImageSide, TextSide
from rungwise.encoders.texts import GRUConfig
from rungwise.models._contracts import Texts
from rungwise.models.io import ModelFolder
from rungwise.models.joint import AnyTextSide
from rungwise.models.regions._base import RegionScorer
from rungwise.models.regions._config import (
    RegionConfig,
    Regions,
    check_regions_known,
    region_config_for_data,
    with_regions,
)
from rungwise.models.regions.alignment._similarity_vectors import (
    SMOOTHING,
    NodeReader,
    NodeSimilarity,
    SimilarityVectors,
)
from rungwise.similarity import Attention, CrossAttention


@dataclass(frozen=True)
class AlignedConfig(RegionConfig):
    """Base of the configurations of SGR and SAF (Diao et al. 2021).

    Attributes:
        kind: Name of the family.
        text: The encoder of captions; the program sets 0.4 of the numbers of word vectors to 0 in training.
        regions: Number of regions of each picture; None takes that of the data. Batch norm has statistics of each.
        vector_width: Width of a similarity vector.
        dropout: Share of the hidden numbers of self-attention that training sets to 0.
    """

    __pydantic_config__ = STRICT

    text: AnyTextSide = field(default_factory=lambda: GRUConfig(directions="both", word_dropout=0.4))
    regions: Regions | None = None
    vector_width: Size = 256
    dropout: BelowOne = 0.4


class AlignedScorer(RegionScorer):
    """A scorer of pairs from the similarity vectors of the words, and one of the whole picture and text.

    Blocks of a training step are recomputed in the backward pass, unless :attr:`recompute` is set to False: the squared
    differences of a batch of 128 pairs of 15 words are 1 GB at the authors' sizes, and are needed several times.

    Attributes:
        vectors: Computes the similarity vectors.
        nodes: Computes a similarity from them.
    """

    nodes: NodeReader

    def __init__(self, config: Any, image: ImageSide, text: Callable[[], TextSide]) -> None:
        """Put both encoders together; ``text`` makes the encoder of texts.

        Raises:
            UserError: If an encoder gives no regions, or no vectors of words.
        """
        super().__init__(config, image, text)
        self.vectors = SimilarityVectors(config.dimension, config.vector_width, config.dropout, config.regions)
        self.nodes = self.node_reader(config)
        self.recompute = True

    @staticmethod
    @abstractmethod
    def node_reader(config: Any) -> NodeReader:
        """The family's own part, which reads similarity vectors."""

    @property
    def comparison(self) -> NodeSimilarity:
        """Comparison of sets by similarity vectors."""
        return NodeSimilarity.of(self.vectors, self.nodes)

    def attention(self, regions: Tensor, words: Tensor) -> Attention:
        """Attention weights of one pair, with equal weights of the words.

        What the similarity vector of a word finally weighs is not a number between 0 and 1.
        """
        return CrossAttention("t2i", SMOOTHING, "mean").attention(regions, words)

    @classmethod
    def create(cls, config: Any, captions: Texts, features: FeatureRows | None = None) -> Self:
        """Make a model whose vocabulary comes from the training captions, for the number of regions in the data.

        Raises:
            UserError: If the backbone or its weights cannot be loaded, or the data have no words, no regions, or
                another number of regions than the configuration says.
        """
        config = region_config_for_data(config, captions, features)
        image = config.image.build()
        config = with_regions(config, image, features)
        return cls(config, image, lambda: config.text.build(captions, config.dimension))

    @classmethod
    def restore(cls, config: Any, folder: ModelFolder) -> Self:
        """Read a saved model from its folder."""
        check_regions_known(config, folder)
        return super().restore(config, folder)

    def regions(self, rows: Tensor) -> Tensor:
        """(n, R, D) regions of length 1.

        Raises:
            UserError: If R is not the model's number of regions.
        """
        regions = super().regions(rows)
        self.vectors.region_attention.check(regions)
        return regions
