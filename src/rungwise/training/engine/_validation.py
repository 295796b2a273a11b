"""Measurements after each epoch, by which the best one is chosen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings, SharedLabels, evaluate, positives_from_labels, protocol_named
from rungwise.metrics import DIRECTIONS, Total
from rungwise.models import Autocast, Pairs, TrainableScorer
from rungwise.relevance import Degrees
from rungwise.training.batches import SplitDegrees
from rungwise.training.config import Choice

IN_MEMORY = 1 << 28
"""Number of validation degrees (1 GiB) up to which they are computed once and kept; more are computed every epoch."""
_USUAL = ("R@1", "R@5", "R@10", "rsum")


class Validation:
    """Measures a model on the validation split.

    Args:
        config: The measure that chooses the best epoch.
        pairs: Pairs of the validation split.
        autocast: Opens the context in which encoders compute.
        relevance: Degrees by positions in the collection, for graded measures.

    Raises:
        UserError: If the measure cannot be computed on these data: no degrees, a degree that is not a number, a list
            longer than the gallery, a protocol that does not fit.
    """

    def __init__(self, config: Choice, pairs: Pairs, autocast: Autocast, relevance: Degrees | None = None) -> None:
        self.config = config
        self.pairs = pairs
        self.autocast = autocast
        self._check_protocol(pairs.collection)
        self._relevance = _degrees(relevance, pairs, config) if config.chosen.measure.graded else None
        if isinstance(self._relevance, np.ndarray):
            self._check_degrees(self._relevance)

    def measure(self, model: TrainableScorer) -> dict[str, float]:
        """The numbers of the model in its present state, by canonical name, with the one that chooses."""
        scores = model.scores_of(self.pairs, self.autocast)
        asked = scores.for_evaluation()
        whole, chosen = self.config.protocol == "full", self.config.chosen
        result = evaluate(
            **asked,
            image_of_caption=scores.data.image_of_caption,
            measures=[*_USUAL, chosen.measure] if whole else _USUAL,
            relevance=self._relevance if whole else None,
        )
        numbers = {"rsum": result["rsum"]}
        numbers |= {f"{side}/R@{k}": result[f"{side}/R@{k}"] for side in DIRECTIONS for k in (1, 5, 10)}
        prefix = ""
        if not whole:
            prefix = f"{self.config.protocol}/"
            result = evaluate(
                **asked,
                image_of_caption=scores.data.image_of_caption,
                measures=[chosen.measure],
                protocol=self.config.protocol,
                relevance=self._relevance,
                settings=EvaluationSettings(positives=_positives(self.config, scores.data)),
            )
        if not isinstance(chosen.measure, Total):
            numbers |= {f"{prefix}{way}/{chosen.measure}": result[f"{way}/{chosen.measure}"] for way in DIRECTIONS}
        numbers[self.config.name] = chosen.number(result.numbers)
        return {name: float(value) for name, value in numbers.items()}

    def _check_degrees(self, degrees: NDArray[np.float32]) -> None:
        """Evaluate a ranking by the degrees themselves, so that the measure refuses bad ones before training."""
        data = self.pairs.collection
        try:
            evaluate(
                similarity=np.nan_to_num(degrees),
                image_of_caption=data.image_of_caption,
                measures=[self.config.chosen.measure],
                protocol=self.config.protocol,
                relevance=degrees,
                settings=EvaluationSettings(positives=_positives(self.config, data)),
            )
        except UserError as error:
            raise UserError(
                f"snapshot.measure: {self.config.chosen} cannot be had with these degrees: {error}; a source's degrees"
                " are brought to 0..1 by snapshot.relevance '{kind: combine, of: [SOURCE], unit_interval: true}'"
            ) from None

    def _check_protocol(self, data: ImageCaptions) -> None:
        """Refuse protocols and measures that would fail after the first epoch."""
        config, chosen = self.config, self.config.chosen
        try:
            rule = protocol_named(config.protocol)
            rule.check_positives(_positives(config, data) is not None)
            folds = rule.folds(data.image_of_caption, len(data))
        except UserError as error:
            raise UserError(f"snapshot.protocol: {error}") from None
        k = getattr(chosen.measure, "k", None)
        for way in chosen.directions:
            gallery = min(len(fold.captions if way == "i2t" else fold.images) for fold in folds)
            if k is not None and k > gallery:
                raise UserError(
                    f"snapshot.measure: {chosen} reads {k} candidates of a query, and in the validation split {way} has"
                    f" {gallery}; take a smaller K"
                )


def _degrees(source: Degrees | None, pairs: Pairs, config: Choice) -> NDArray[np.float32] | SplitDegrees:
    """Degrees of the validation pairs: a matrix where memory allows, else computed on demand."""
    if source is None:
        raise UserError(
            f"snapshot.measure: {config.chosen} needs degrees of relevance for the validation split, and there are"
            " none; name a source in snapshot.relevance (or data.relevance), or choose by rsum"
        )
    degrees = SplitDegrees(source, pairs)
    if math.prod(degrees.shape) > IN_MEMORY:
        return degrees
    matrix = degrees.dense()
    if not config.chosen.takes_gaps and not np.isfinite(matrix).all():
        count = int(np.count_nonzero(~np.isfinite(matrix)))
        raise UserError(
            f"snapshot.measure: {config.chosen} reads the degree of every pair of the validation split, and"
            f" {count:,} of {matrix.size:,} have none; name a source in snapshot.relevance that knows them all"
        )
    return matrix


def _positives(config: Choice, data: ImageCaptions) -> Any:
    """The right answers by labels; None for a protocol in which the written captions are right."""
    if not isinstance(protocol_named(config.protocol), SharedLabels):
        return None
    if not data.labels:
        raise UserError(f"protocol labels: {data.name} has no class labels; take protocol 'full' or other data")
    return positives_from_labels(data.labels, data.image_of_caption)
