"""What a CVSE is configured by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rungwise.core.configuration import ELSEWHERE, STRICT, BelowOne, NotNegative, Positive, Share
from rungwise.encoders.texts.gru import GRUConfig
from rungwise.models.joint.config import AnyTextSide
from rungwise.models.regions.config import RegionConfig, Regions
from rungwise.models.regions.consensus.concepts import ConceptConfig
from rungwise.similarity import Cosine


@dataclass(frozen=True)
class CVSEConfig(RegionConfig):
    """Consensus-aware visual-semantic embedding (Wang et al. 2020).

    Attributes:
        kind: Names the family.
        text: As for every model of regions; the program sets 0.4 of the numbers of word vectors to 0 in training.
        concepts: Which concepts there are, and how they hang together.
        regions: How many regions each picture has; None takes that of the data or of the encoder of pictures.
        alpha: What the instance level weighs in the fused vector, 0..1; 0.85 for Flickr30K and 0.9 for COCO in the
            authors' program, 0.75 in the paper.
        label_share: What the concepts of a text's own words count beside those that attention finds, 0..1.
        smoothing: What scores of concepts are multiplied by before softmax.
        dropout: Of self-attention.
        level: Which vector stands for an item: fused, instance or consensus. All three are trained.
        fused_weight: Of the fused level's loss.
        instance_weight: Of the instance level's.
        consensus_weight: Of the consensus level's.
        divergence_weight: Of the divergence between the scores of concepts of a pair.
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
        """Of the vectors of every level."""
        return Cosine()
