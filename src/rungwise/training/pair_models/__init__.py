"""Models of pairs of texts, trained on human scores: cross-encoders, and bi-encoders that learn from them.

The training loop is our own, over transformers' networks and our batches and steps. The trainers of
sentence-transformers build on ``accelerate`` and ``datasets``, which nothing else here needs, and their older loop,
which does not, is deprecated. What is saved has the layout of sentence-transformers, which loads it.
"""

from rungwise.training.pair_models.correlations import Correlations, correlations
from rungwise.training.pair_models.cross_encoders import CrossEncoderResult, train_cross_encoder
from rungwise.training.pair_models.distillation import DistilResult, distil
from rungwise.training.pair_models.settings import PairTraining, TrainingObserver

__all__ = [
    "Correlations",
    "CrossEncoderResult",
    "DistilResult",
    "PairTraining",
    "TrainingObserver",
    "correlations",
    "distil",
    "train_cross_encoder",
]
