"""What is measured after each epoch, and which epoch is the best so far."""

from __future__ import annotations

from rungwise.evaluation import evaluate
from rungwise.metrics.rankings import DIRECTIONS
from rungwise.models import Pairs, TrainableScorer
from rungwise.models.pairs import Autocast
from rungwise.training.snapshot_config import Snapshot


class Validation:
    """Measures a model on the validation split.

    Args:
        config: What chooses the best epoch.
        pairs: Of the validation split.
        autocast: Opens the context in which encoders compute.
    """

    def __init__(self, config: Snapshot, pairs: Pairs, autocast: Autocast) -> None:
        self.config = config
        self.pairs = pairs
        self.autocast = autocast

    def measure(self, model: TrainableScorer) -> dict[str, float]:
        """The numbers of the model as it is now, by their canonical names; the one that chooses is among them."""
        scores = model.scores_of(self.pairs, self.autocast)
        result = evaluate(**scores.for_evaluation(), image_of_caption=scores.data.image_of_caption)
        recalls = {f"{side}/R@{k}": float(result[f"{side}/R@{k}"]) for side in DIRECTIONS for k in (1, 5, 10)}
        return {"rsum": float(result["rsum"]), **recalls}

    def better(self, value: float, best: float) -> bool:
        """Whether a value of the measure is better than the best one so far."""
        return value > best
