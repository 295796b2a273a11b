"""Losses over a block of similarities, (images, captions), of any model.

Every loss is called ``loss(similarity, relevance=None, positives=None)``; see :class:`BlockLoss` for what they share.
"""

from rungwise.losses.base import BlockLoss, Loss
from rungwise.losses.contrastive import ContrastiveMax, ContrastiveSum
from rungwise.losses.hinge import MaxOfHinges, SumOfHinges, warm_up
from rungwise.losses.ladder import Ladder
from rungwise.losses.listwise import AdaptiveListwise
from rungwise.losses.multimodal_nce import MultiModalNCE
from rungwise.losses.semantic_adaptive_margin import SemanticAdaptiveMargin
from rungwise.losses.sigmoid import Sigmoid
from rungwise.losses.smooth_ndcg import SmoothNDCG
from rungwise.losses.soft_contrastive import SoftContrastive
from rungwise.losses.weighted import Weighted

__all__ = [
    "AdaptiveListwise",
    "BlockLoss",
    "ContrastiveMax",
    "ContrastiveSum",
    "Ladder",
    "Loss",
    "MaxOfHinges",
    "MultiModalNCE",
    "SemanticAdaptiveMargin",
    "Sigmoid",
    "SmoothNDCG",
    "SoftContrastive",
    "SumOfHinges",
    "Weighted",
    "warm_up",
]
