"""Configuration of a CVSE."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rungwise.core import ELSEWHERE, STRICT, BelowOne, NotNegative, Positive, Share
from rungwise.encoders.texts import GRUConfig
from rungwise.models.joint import AnyTextSide
from rungwise.models.regions._config import RegionConfig, Regions
from rungwise.models.regions.consensus._concepts import ConceptConfig
from rungwise.similarity import Cosine


@dataclass(frozen=True)
class CVSEConfig(RegionConfig):
    """Consensus-aware visual-semantic embedding (Wang et al. 2020).

    Attributes:
        kind: Name of the family.
        text: The encoder of captions; the program sets 0.4 of the numbers of word vectors to 0 in training.
        concepts: Which concepts there are, and how their graph is built.
        regions: Number of regions of each picture; None takes that of the data or of the encoder of pictures.
        alpha: Weight of the instance level in the fused vector, 0..1; 0.85 for Flickr30K and 0.9 for COCO in the
            authors' program, 0.75 in the paper.
        label_share: Weight of the concepts of a text's own words, 0..1, beside those that attention finds.
        smoothing: Factor of the scores of concepts before softmax.
        dropout: Dropout of self-attention.
        level: Which vector stands for an item: fused, instance or consensus. All three are trained.
        fused_weight: Weight of the fused level's loss.
        instance_weight: Weight of the instance level's loss.
        consensus_weight: Weight of the consensus level's loss.
        divergence_weight: Weight of the divergence between the scores of concepts of a pair.
    """

    __pydantic_config__ = STRICT

    kind: Literal["cvse"] = "cvse"
    text: AnyTextSide = field(default_factory=lambda: GRUConfig(directions="both", word_dropout=0.4))
    concepts: ConceptConfig = field(default_factory=ConceptConfig)
    regions: Regions | None = None
    alpha: Share = 0.85
    label_share: Share = 0.35
    smoothing: Positive = 10.0
    dropout: BelowOne = field(default=0.4, metadata=ELSEWHERE)
    level: Literal["fused", "instance", "consensus"] = "fused"
    fused_weight: NotNegative = field(default=3.0, metadata=ELSEWHERE)
    instance_weight: NotNegative = field(default=5.0, metadata=ELSEWHERE)
    consensus_weight: NotNegative = field(default=1.0, metadata=ELSEWHERE)
    divergence_weight: NotNegative = field(default=2.0, metadata=ELSEWHERE)

    @property
    def similarity(self) -> Cosine:
        """Similarity of the vectors of every level."""
        return Cosine()
