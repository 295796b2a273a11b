"""Models: contracts, how they are kept in folders, and their families.

Names that bring torch along are loaded when they are first used: an exported model is searched with without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.models.contracts import DualEncoder, EncodedImages, PairScorer, PairScores, VectorScores
from rungwise.models.folder import AlteredModelError
from rungwise.models.kinds import family
from rungwise.models.loading import load, load_dual_encoder
from rungwise.models.publishing import push_to_hub

if TYPE_CHECKING:
    from rungwise.models.evaluated import add_evaluation
    from rungwise.models.pairs import Pairs, TrainableEncoder, TrainableScorer
    from rungwise.models.saving import AnyModel, ModelConfig, SavedModel
    from rungwise.models.vse import JointEmbedding
    from rungwise.models.vse_config import VSEConfig
    from rungwise.models.vsepp import import_vsepp

_LATER = {
    "AnyModel": "saving",
    "JointEmbedding": "vse",
    "ModelConfig": "saving",
    "Pairs": "pairs",
    "SavedModel": "saving",
    "TrainableEncoder": "pairs",
    "TrainableScorer": "pairs",
    "VSEConfig": "vse_config",
    "add_evaluation": "evaluated",
    "import_vsepp": "vsepp",
}
"""Module of every name that is loaded late."""

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
    "add_evaluation",
    "family",
    "import_vsepp",
    "load",
    "load_dual_encoder",
    "push_to_hub",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
