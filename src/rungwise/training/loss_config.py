"""Every loss that a training run can name, as typed data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypedDict

from pydantic import Field

from rungwise.core.configuration import STRICT
from rungwise.core.errors import UserError
from rungwise.losses import (
    AdaptiveListwise,
    ContrastiveMax,
    ContrastiveSum,
    Ladder,
    MaxOfHinges,
    MultiModalNCE,
    SemanticAdaptiveMargin,
    Sigmoid,
    SmoothNDCG,
    SoftContrastive,
    SumOfHinges,
)

ExtraPositives = Literal["mask", "keep", "pair"]
Reduction = Literal["sum", "mean"]


WARM_UP_MARGIN = 0.2
"""Where the loss itself has none."""


class SharedOptions(TypedDict):
    """Keyword arguments that every loss of a block takes."""

    reduction: Reduction
    extra_positives: ExtraPositives
    mask_above: float | None


@dataclass(frozen=True)
class BlockLossConfig:
    """What every loss of a block can be told.

    Attributes:
        reduction: Sum over a batch, or the sum divided by its pairs.
        extra_positives: What other captions of the same picture are.
        mask_above: Neither pull nor push what has this relevance degree or more; needs a relevance source.
        graded: The loss itself needs a relevance source.
    """

    __pydantic_config__ = STRICT
    graded: ClassVar[bool] = False

    reduction: Reduction = "sum"
    extra_positives: ExtraPositives = "mask"
    mask_above: float | None = None

    @property
    def needs_relevance(self) -> bool:
        """Whether the loss asks for relevance degrees as it is set."""
        return self.graded or self.mask_above is not None

    @property
    def warm_up_margin(self) -> float:
        """Of the sum of hinges that may come first."""
        return WARM_UP_MARGIN

    def shared(self) -> SharedOptions:
        """As keyword arguments of a :class:`rungwise.losses.base.BlockLoss`."""
        return {
            "reduction": self.reduction,
            "extra_positives": self.extra_positives,
            "mask_above": self.mask_above,
        }


@dataclass(frozen=True)
class HingeConfig(BlockLossConfig):
    """What a loss with one hinge can be told besides.

    Attributes:
        margin: Of the hinge.
    """

    margin: float = 0.2

    @property
    def warm_up_margin(self) -> float:
        """The loss's own."""
        return self.margin


@dataclass(frozen=True)
class SumOfHingesConfig(HingeConfig):
    """Every negative counts (VSE0, UVS).

    Attributes:
        kind: Names the loss in YAML.
    """

    kind: Literal["sum_of_hinges"] = "sum_of_hinges"

    def build(self) -> SumOfHinges:
        """The loss itself."""
        return SumOfHinges(self.margin, **self.shared())


@dataclass(frozen=True)
class MaxOfHingesConfig(HingeConfig):
    """Only the hardest negative counts (VSE++).

    Attributes:
        kind: Names the loss in YAML.
        negative_set: The hardest of so many drawn negatives; None takes the whole batch.
    """

    kind: Literal["max_of_hinges"] = "max_of_hinges"
    negative_set: int | None = None

    def build(self) -> MaxOfHinges:
        """The loss itself."""
        return MaxOfHinges(self.margin, negative_set=self.negative_set, **self.shared())


@dataclass(frozen=True)
class LadderConfig(BlockLossConfig):
    """Rungs of relevance (CVSE++, Zhou et al. 2020).

    Attributes:
        kind: Names the loss in YAML.
        thresholds: Falling relevance values that separate the rungs, one fewer than margins. They belong to a
            relevance source.
        shares: Instead of thresholds, the share of candidates on each rung but the last; the source turns them into
            values (see :func:`rungwise.relevance.describe.thresholds`).
        margins: Of each rung.
        weights: Of each rung.
        sampling: ``"hard_contrastive"``, or ``"sum"`` over all pairs of candidates.
        levels: What a rung compares with those below: the ``"single"`` level above it (the paper), or the
            ``"cumulative"`` set of all above (the authors' program).
        pair_in_top_level: Count the paired item into the top level (the authors' program).
    """

    graded = True
    kind: Literal["ladder"] = "ladder"
    thresholds: tuple[float, ...] = (0.63,)
    shares: tuple[float, ...] = ()
    margins: tuple[float, ...] = (0.2, 0.01)
    weights: tuple[float, ...] = (1.0, 0.25)
    sampling: Literal["hard_contrastive", "sum"] = "hard_contrastive"
    levels: Literal["single", "cumulative"] = "single"
    pair_in_top_level: bool = False

    @property
    def warm_up_margin(self) -> float:
        """Of the first rung."""
        return self.margins[0]

    def build(self) -> Ladder:
        """The loss itself.

        Raises:
            UserError: If shares are set: a relevance source must turn them into thresholds first.
        """
        if self.shares:
            raise UserError("loss.shares must be turned into thresholds by a relevance source before training")
        return Ladder(
            thresholds=self.thresholds,
            margins=self.margins,
            weights=self.weights,
            sampling=self.sampling,
            levels=self.levels,
            pair_in_top_level=self.pair_in_top_level,
            **self.shared(),
        )


@dataclass(frozen=True)
class SemanticAdaptiveMarginConfig(BlockLossConfig):
    """Margins from relevance (SAM, Biten et al. 2022).

    Attributes:
        kind: Names the loss in YAML.
        temperature: On the scale of the relevance source.
        negatives: Which one is taken.
        with_triplet: Add the max of hinges.
        margin: Of that max of hinges.
    """

    graded = True
    kind: Literal["semantic_adaptive_margin"] = "semantic_adaptive_margin"
    temperature: float = 10.0
    negatives: Literal["random", "hardest", "softest"] = "softest"
    with_triplet: bool = False
    margin: float = 0.2

    def build(self) -> SemanticAdaptiveMargin:
        """The loss itself."""
        return SemanticAdaptiveMargin(
            self.temperature,
            negatives=self.negatives,
            with_triplet=self.with_triplet,
            margin=self.margin,
            **self.shared(),
        )


@dataclass(frozen=True)
class AdaptiveListwiseConfig(BlockLossConfig):
    """Listwise with margins that adapt to the ranking (CMAL2R), over the whole batch or drawn lists.

    Attributes:
        kind: Names the loss in YAML.
        sharpness: beta.
        i2t_weight: alpha.
        sampled: Irrelevant items drawn for each query; None takes all.
        irrelevant: ``"no_shared_label"`` by relevance degrees of 0, or every ``"other_item"``, which needs none.
        margins: Of the most and of the least similar irrelevant item.
    """

    kind: Literal["adaptive_listwise"] = "adaptive_listwise"
    sharpness: float = 0.5
    i2t_weight: float = 0.4
    sampled: int | None = None
    irrelevant: Literal["no_shared_label", "other_item"] = "no_shared_label"
    margins: tuple[float, float] = (0.75, 0.25)

    @property
    def needs_relevance(self) -> bool:
        """Where degrees say what is irrelevant."""
        return super().needs_relevance or self.irrelevant == "no_shared_label"

    def build(self) -> AdaptiveListwise:
        """The loss itself."""
        return AdaptiveListwise(
            self.sharpness,
            self.i2t_weight,
            sampled=self.sampled,
            irrelevant=self.irrelevant,
            margins=self.margins,
            **self.shared(),
        )


@dataclass(frozen=True)
class ContrastiveSumConfig(BlockLossConfig):
    """Softmax cross-entropy in both directions (CSN of ConVSE, CLIP).

    Attributes:
        kind: Names the loss in YAML.
        temperature: Of the softmax.
    """

    kind: Literal["contrastive_sum"] = "contrastive_sum"
    temperature: float = 0.1

    def build(self) -> ContrastiveSum:
        """The loss itself."""
        return ContrastiveSum(self.temperature, **self.shared())


@dataclass(frozen=True)
class ContrastiveMaxConfig(HingeConfig):
    """Only the hardest negative of the softmax counts (CMN of ConVSE++).

    Attributes:
        kind: Names the loss in YAML.
        temperature: That the hinge is divided by.
    """

    kind: Literal["contrastive_max"] = "contrastive_max"
    temperature: float = 0.1

    def build(self) -> ContrastiveMax:
        """The loss itself."""
        return ContrastiveMax(self.temperature, self.margin, **self.shared())


@dataclass(frozen=True)
class MultiModalNCEConfig(BlockLossConfig):
    """Softmax with negatives of both modalities (MVN of ConVSE).

    Attributes:
        kind: Names the loss in YAML.
        temperature: Of the softmax.
    """

    kind: Literal["multi_modal_nce"] = "multi_modal_nce"
    temperature: float = 0.1

    def build(self) -> MultiModalNCE:
        """The loss itself."""
        return MultiModalNCE(self.temperature, **self.shared())


@dataclass(frozen=True)
class SigmoidConfig(BlockLossConfig):
    """Every pair is a question of its own (SigLIP).

    Attributes:
        kind: Names the loss in YAML.
        temperature: That similarities are divided by.
        bias: That is added.
    """

    kind: Literal["sigmoid"] = "sigmoid"
    temperature: float = 0.1
    bias: float = -10.0

    def build(self) -> Sigmoid:
        """The loss itself."""
        return Sigmoid(self.temperature, self.bias, **self.shared())


@dataclass(frozen=True)
class SoftContrastiveConfig(BlockLossConfig):
    """Softmax of similarities against softmax of relevance degrees.

    Attributes:
        kind: Names the loss in YAML.
        temperature: Of the similarities.
        target_temperature: Of the degrees, on their scale.
    """

    graded = True
    kind: Literal["soft_contrastive"] = "soft_contrastive"
    temperature: float = 0.1
    target_temperature: float = 0.1

    def build(self) -> SoftContrastive:
        """The loss itself."""
        return SoftContrastive(self.temperature, self.target_temperature, **self.shared())


@dataclass(frozen=True)
class SmoothNDCGConfig(BlockLossConfig):
    """The graded order itself.

    Attributes:
        kind: Names the loss in YAML.
        temperature: In units of similarity.
    """

    graded = True
    kind: Literal["smooth_ndcg"] = "smooth_ndcg"
    temperature: float = 0.1

    def build(self) -> SmoothNDCG:
        """The loss itself."""
        return SmoothNDCG(self.temperature, **self.shared())


LossConfig = Annotated[
    SumOfHingesConfig
    | MaxOfHingesConfig
    | LadderConfig
    | SemanticAdaptiveMarginConfig
    | AdaptiveListwiseConfig
    | ContrastiveSumConfig
    | ContrastiveMaxConfig
    | MultiModalNCEConfig
    | SigmoidConfig
    | SoftContrastiveConfig
    | SmoothNDCGConfig,
    Field(discriminator="kind"),
]
"""Any of them; ``kind`` says which. Temperatures are fixed: a learned one needs a training loop of its own."""
