"""Models: contracts, folders and families.

Names that bring torch along are loaded when first used: searching with an exported model does not import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rungwise.models.contracts import DualEncoder, EncodedImages, PairScorer, PairScores, VectorScores
from rungwise.models.io.families import family
from rungwise.models.io.folder import AlteredModelError
from rungwise.models.io.hub_upload import push_to_hub
from rungwise.models.loading import load, load_dual_encoder

if TYPE_CHECKING:
    from rungwise.models.card_evaluation import add_evaluation
    from rungwise.models.io.saved_model import AnyModel, ModelConfig, SavedModel
    from rungwise.models.joint.config import VSEConfig
    from rungwise.models.joint.joint_embedding import JointEmbedding
    from rungwise.models.joint.vsepp import import_vsepp
    from rungwise.models.training_pairs import Pairs, TrainableEncoder, TrainableScorer

_LATER = {
    "AnyModel": "io.saved_model",
    "JointEmbedding": "joint.joint_embedding",
    "ModelConfig": "io.saved_model",
    "Pairs": "training_pairs",
    "SavedModel": "io.saved_model",
    "TrainableEncoder": "training_pairs",
    "TrainableScorer": "training_pairs",
    "VSEConfig": "joint.config",
    "add_evaluation": "card_evaluation",
    "import_vsepp": "joint.vsepp",
}
"""Module of every name that is imported when first used."""

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
