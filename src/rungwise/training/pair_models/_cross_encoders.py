"""Training of cross-encoders: networks that read both texts of a pair together and score their likeness.

Its loss compares the score with what people said, brought to 0..1. Half of the pairs are turned in each epoch, so that
the order of the texts comes to matter little.

The loss compares the score with human scores, scaled to 0..1. Half of the pairs are swapped in each epoch, so that the
order of the texts comes to matter little.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.core.compute import choose_device
from rungwise.core.disk.folders import replacing_folder
from rungwise.data import DEV, TEST, TRAIN, ScoredPairs, score_range, within
from rungwise.language import PairModel, load_pair_model
from rungwise.language.sentence_models import PACKAGED_MODEL, Precision
from rungwise.training.pair_models._correlations import Correlations, correlations
from rungwise.training.pair_models._epochs import Positions, best_of, on_threads, run_epochs, seeded
from rungwise.training.pair_models._model_folders import (
    CROSS_ENCODER,
    HEADER,
    agreement_facts,
    name_of,
    save_cross_encoder,
)
from rungwise.training.pair_models._settings import PairTraining, TrainingObserver

_SCORED = 64
"""Number of pairs that are scored in one pass."""


@dataclass(frozen=True)
class CrossEncoderResult:
    """The result of a training.

    Attributes:
        folder: Folder of the model.
        model: The model itself.
        best_epoch: Epoch whose weights were kept, from 1.
        dev: Agreement with people on the pairs that chose the epoch.
        test: Agreement with people on the test pairs; None where there are none.
        seconds: Seconds of training, with the measurements on dev.
        pairs_per_second: Speed of scoring.
        scale: Scores that became 0 and 1.
    """

    folder: Path
    model: PairModel
    best_epoch: int
    dev: Correlations
    test: Correlations | None
    seconds: float
    pairs_per_second: float
    scale: tuple[float, float]


def train_cross_encoder(
    pairs: ScoredPairs,
    out: Path | str,
    model: str | Path = PACKAGED_MODEL,
    settings: PairTraining | None = None,
    *,
    scale: tuple[float, float] | None = None,
    device: str | None = None,
    threads: int | None = None,
    watching: TrainingObserver | None = None,
) -> CrossEncoderResult:
    """Train a cross-encoder on scored pairs, and save it.

    Args:
        pairs: Pairs with splits ``"train"`` and ``"val"``; see :func:`rungwise.data.with_drawn_splits`.
        out: Folder of the model, in the layout of sentence-transformers; it appears whole or not at all.
        model: Encoder to start from: a folder, a name on the hub, or the packaged one.
        settings: Settings of the training; None takes the defaults.
        scale: Scores that become 0 and 1; pairs outside of this range are left out. None takes the range of the
            training pairs, and leaves out none.
        device: Device such as ``"cuda"``; None takes that where there is one.
        threads: Number of processor threads; None leaves it to torch.
        watching: Receives progress.

    Raises:
        UserError: If a split is missing, scores do not fit the scale, those of dev are all equal, the model cannot be
            loaded, or ``out`` holds something else.

    >>> from rungwise.data import read_scored_pairs
    >>> train_cross_encoder(read_scored_pairs("stsbenchmark"), "grader").test       # doctest: +SKIP
    Correlations(pearson=..., spearman=..., pairs=1379)
    """
    settings, watching = settings or PairTraining(), watching or TrainingObserver()
    for split in (TRAIN, DEV):
        if split not in pairs.splits:
            raise UserError(f"{pairs.name}: no pair is in split {split!r}; draw splits, or name them so")
    if scale is not None:
        if not -math.inf < scale[0] < scale[1] < math.inf:
            raise UserError(f"scale must be (low, high) with low < high, got {scale}")
        pairs = within(pairs, *scale)
        if {TRAIN, DEV} - set(pairs.splits):
            raise UserError(f"{pairs.name}: no pair is left that is scored on {scale[0]:g}..{scale[1]:g}; correct it")
    low, high = scale or score_range(pairs)
    chooses = pairs.split(DEV).scores
    if np.ptp(chooses) == 0:
        raise UserError(
            f"{pairs.name}: the dev pairs ({len(chooses)}) all have the score {chooses[0]:g}, so that no epoch agrees"
            " with them better than another; give dev pairs with different scores, or none, and some are drawn"
        )
    place, folder = choose_device(device), Path(out).expanduser()
    with (
        replacing_folder(folder, CROSS_ENCODER, "a model of pairs", header=HEADER) as draft,
        seeded(settings.seed, place),
        on_threads(threads),
    ):
        grader = load_pair_model(model, outputs=1, device=place, max_length=settings.max_length)
        begun = time.perf_counter()
        best = _train(grader, pairs, (low, high), settings, watching)
        seconds = time.perf_counter() - begun
        judged = [pairs.split(name) for name in (DEV, TEST)]
        begun = time.perf_counter()
        scores = [pair_scores(grader, one, settings.precision) for one in judged]
        rate = sum(map(len, judged)) / (time.perf_counter() - begun)
        dev, test = (correlations(given, one.scores) for given, one in zip(scores, judged, strict=True))
        result = CrossEncoderResult(folder, grader, best, dev, test if test.pairs else None, seconds, rate, (low, high))
        save_cross_encoder(grader, draft, _facts(result, pairs, model, settings))
    return result


def pair_scores(model: PairModel, pairs: ScoredPairs, precision: Precision = "float32") -> NDArray[np.float32]:
    """(pairs,) float32 scores in 0..1 by a model with one output; pairs of similar length are batched."""
    order = np.argsort(-pair_lengths(pairs), kind="stable")
    scores = np.empty(len(order), np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), _SCORED):
            some = order[start : start + _SCORED]
            first, second = texts_of(pairs, some)
            scores[some] = model.logits(first, second, precision)[:, 0].sigmoid().cpu().numpy()
    return scores


def pair_lengths(pairs: ScoredPairs) -> Positions:
    """(pairs,) number of characters in both texts."""
    return np.array([len(a) + len(b) for a, b in zip(pairs.first, pairs.second, strict=True)], np.int64)


def texts_of(
    pairs: ScoredPairs, places: Positions, turned: NDArray[np.bool_] | None = None
) -> tuple[list[str], list[str]]:
    """First and second texts of some pairs, swapped where ``turned``."""
    first, second = ([texts[place] for place in places.tolist()] for texts in (pairs.first, pairs.second))
    for at in () if turned is None else np.flatnonzero(turned).tolist():
        first[at], second[at] = second[at], first[at]
    return first, second


def _train(
    model: PairModel, pairs: ScoredPairs, scale: tuple[float, float], settings: PairTraining, watching: TrainingObserver
) -> int:
    """Train, restore the best epoch's weights, and return its number."""
    train, dev = pairs.split(TRAIN), pairs.split(DEV)
    low, high = scale
    wanted = torch.from_numpy(((train.scores - low) / (high - low)).astype(np.float32)).to(model.network.device)

    def loss_of(batch: Positions, turned: NDArray[np.bool_]) -> Tensor:
        logits = model.logits(*texts_of(train, batch, turned), settings.precision)[:, 0]
        if settings.loss == "mse":
            return F.mse_loss(logits.sigmoid(), wanted[batch])
        return F.binary_cross_entropy_with_logits(logits, wanted[batch])

    def judge() -> Correlations:
        return correlations(pair_scores(model, dev, settings.precision), dev.scores)

    return best_of(run_epochs(model.network, pair_lengths(train), loss_of, judge, settings, watching)).number


def _facts(
    result: CrossEncoderResult, pairs: ScoredPairs, model: str | Path, settings: PairTraining
) -> dict[str, object]:
    """Facts for the model's card."""
    return {
        "began from": name_of(model),
        "scored pairs": pairs.name,
        "data hash": pairs.content_hash(),
        "training pairs": len(pairs.split(TRAIN)),
        "score that became 0": result.scale[0],
        "score that became 1": result.scale[1],
        "best epoch": result.best_epoch,
        **agreement_facts(result.dev, result.test),
        "training": asdict(settings),
    }
