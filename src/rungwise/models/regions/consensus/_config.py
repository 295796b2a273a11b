"""Configuration of a CVSE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from rungwise.core import ELSEWHERE, STRICT, BelowOne, Cancelled, NotNegative, Positive, Share, UserError
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
        label_share: Weight of a text's labels, 0..1, beside the concepts that attention finds.
        training_concepts: Concepts that label a text in training: those that its own words name (``caption``), or that
            any training caption of its picture names (``picture``), as in the authors' program. Outside training,
            labels are always those of the text's own words.
        smoothing: Factor of the scores of concepts before softmax.
        dropout: Dropout of self-attention.
        level: Which vector stands for an item: fused, instance or consensus. All three are trained.
        consensus_share: Share of the consensus level in the similarity of two items, beside the fused level; 0.05 in
            the authors' program. Where it is not 0, a vector has twice as many numbers as ``dimension`` says.
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
    training_concepts: Literal["caption", "picture"] = field(default="caption", metadata=ELSEWHERE)
    smoothing: Positive = 10.0
    dropout: BelowOne = field(default=0.4, metadata=ELSEWHERE)
    level: Literal["fused", "instance", "consensus"] = "fused"
    consensus_share: BelowOne = 0.0
    fused_weight: NotNegative = field(default=3.0, metadata=ELSEWHERE)
    instance_weight: NotNegative = field(default=5.0, metadata=ELSEWHERE)
    consensus_weight: NotNegative = field(default=1.0, metadata=ELSEWHERE)
    divergence_weight: NotNegative = field(default=2.0, metadata=ELSEWHERE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.consensus_share and self.level != "fused":
            raise UserError(
                f"cvse.consensus_share is {self.consensus_share:g} beside the fused level, and cvse.level:"
                f" {self.level} takes one level alone; leave one of the two out"
            )
        if self.consensus_share and not self.alpha:
            raise UserError(
                "cvse.alpha is 0, so that the fused level is the consensus level, and cvse.consensus_share adds it to"
                " itself; leave one of the two out"
            )
        if self.training_concepts == "picture" and not self.label_share:
            raise UserError(
                "cvse.label_share is 0, so that no text has labels, and cvse.training_concepts: picture says whose they"
                " are; leave one of the two out"
            )

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Levels without a loss."""
        weights = {one: getattr(self, f"{one}_weight") for one in ("fused", "instance", "consensus")}
        if not any(weights.values()):
            yield Cancelled(
                f"{place}.fused_weight 0, {place}.instance_weight 0 and {place}.consensus_weight 0 leave the loss"
                " without a similarity; set one above 0",
                refused=True,
            )
        elif not weights[self.level] and self.level != "fused":
            yield Cancelled(
                f"{place}.level {self.level} ranks by what {place}.{self.level}_weight 0 leaves untrained; give it a"
                " weight, or take another level"
            )

    @property
    def similarity(self) -> Cosine:
        """Similarity of the vectors of every level."""
        return Cosine()
