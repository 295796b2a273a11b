"""Models: contracts, how they are kept in folders, and their families."""

from rungwise.models.contracts import DualEncoder, EncodedImages, PairScorer, PairScores, VectorScores
from rungwise.models.folder import AlteredModelError
from rungwise.models.pairs import Pairs, TrainableEncoder, TrainableScorer
from rungwise.models.saving import AnyModel, ModelConfig, SavedModel, family, load, load_dual_encoder
from rungwise.models.vse import JointEmbedding, VSEConfig

__all__ = [
    "AlteredModelError",
    "AnyModel",
    "DualEncoder",
    "EncodedImages",
    "JointEmbedding",
    "ModelConfig",
    "PairScorer",
    "PairScores",
    "Pairs",
    "SavedModel",
    "TrainableEncoder",
    "TrainableScorer",
    "VSEConfig",
    "VectorScores",
    "family",
    "load",
    "load_dual_encoder",
]
