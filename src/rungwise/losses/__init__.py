"""Losses over a block of similarities, (images, captions), of any model.

Every loss is called ``loss(similarity, relevance=None, positives=None)``; see :class:`BlockLoss` for what they share.
"""

from rungwise.losses._base import BlockFacts, BlockLoss, Loss, LossValue, Reduction, kind_of
from rungwise.losses._batch import Batch, Reads, WholeBatch, Within, degrees_of_images, itself, refuse_queries, sharing
from rungwise.losses._contrastive import ContrastiveMax, ContrastiveSum
from rungwise.losses._hinge import MaxOfHinges, SumOfHinges, warm_up
from rungwise.losses._ladder import Ladder
from rungwise.losses._listwise import AdaptiveListwise
from rungwise.losses._multimodal_nce import MultiModalNCE
from rungwise.losses._pairs import BlockSide, ExtraPositives, one_side
from rungwise.losses._sampling_analysis import plot_miss_probability
from rungwise.losses._semantic_adaptive_margin import SemanticAdaptiveMargin
from rungwise.losses._sigmoid import Sigmoid
from rungwise.losses._smooth_ndcg import SmoothNDCG
from rungwise.losses._soft_contrastive import SoftContrastive
from rungwise.losses._weighted import Weighted

__all__ = [
    "AdaptiveListwise",
    "Batch",
    "BlockFacts",
    "BlockLoss",
    "BlockSide",
    "ContrastiveMax",
    "ContrastiveSum",
    "ExtraPositives",
    "Ladder",
    "Loss",
    "LossValue",
    "MaxOfHinges",
    "MultiModalNCE",
    "Reads",
    "Reduction",
    "SemanticAdaptiveMargin",
    "Sigmoid",
    "SmoothNDCG",
    "SoftContrastive",
    "SumOfHinges",
    "Weighted",
    "WholeBatch",
    "Within",
    "degrees_of_images",
    "itself",
    "kind_of",
    "one_side",
    "plot_miss_probability",
    "refuse_queries",
    "sharing",
    "warm_up",
]
