"""Distillation of a cross-encoder into a bi-encoder: a cosine of two vectors learns the slow model's scores.

It learns from the training pairs and from pairs that nobody scored, which the cross-encoder scores for it (augmented
SBERT, Thakur et al. 2021): mostly near neighbours by the bi-encoder itself. A vector for each text makes all pairs of a
collection cheap, which the cross-encoder never is.

It learns from the training pairs and from unscored pairs, which the cross-encoder scores for it (augmented SBERT,
Thakur et al. 2021): mostly near neighbours by the bi-encoder itself. With a vector for each text, all pairs of a
collection are cheap to score, which they never are for the cross-encoder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from rungwise.core.compute import choose_device
from rungwise.core.disk.folders import replacing_folder
from rungwise.data import DEV, TEST, TRAIN, ScoredPairs
from rungwise.language import PairModel
from rungwise.language.sentence_models import PACKAGED_MODEL, load_sentence_model
from rungwise.relevance.embedding.bi_encoder import BiEncoder
from rungwise.training.pair_models._correlations import Correlations, correlations
from rungwise.training.pair_models._cross_encoders import pair_lengths, pair_scores, texts_of
from rungwise.training.pair_models._epochs import Positions, best_of, on_threads, run_epochs, seeded
from rungwise.training.pair_models._model_folders import BI_ENCODER, HEADER, agreement_facts, name_of, save_bi_encoder
from rungwise.training.pair_models._pair_sampling import drawn_pairs
from rungwise.training.pair_models._settings import PairTraining, TrainingObserver

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

UNLABELLED = 10_000
"""Default number of drawn pairs without human scores."""
EPOCHS = 2
"""Passes through all pairs, which are several times as many as the cross-encoder had."""


@dataclass(frozen=True)
class DistilResult:
    """The result of a distillation: agreement with people, before and after.

    Attributes:
        folder: Folder of the model.
        unlabelled: Number of pairs without human scores.
        dev_before: Agreement before training on the pairs that chose the epoch.
        dev: Agreement after training on these pairs.
        test_before: Agreement before training on the test pairs; None where there are none.
        test: Agreement after training on the test pairs; None where there are none.
        seconds: Seconds of training.
    """

    folder: Path
    unlabelled: int
    dev_before: Correlations
    dev: Correlations
    test_before: Correlations | None
    test: Correlations | None
    seconds: float


def distil(
    teacher: PairModel,
    pairs: ScoredPairs,
    out: Path | str,
    model: str | Path = PACKAGED_MODEL,
    settings: PairTraining | None = None,
    *,
    captions: Sequence[str] = (),
    unlabelled: int = UNLABELLED,
    device: str | None = None,
    threads: int | None = None,
    watching: TrainingObserver | None = None,
) -> DistilResult:
    """Train a bi-encoder on the scores of a cross-encoder, and save it.

    Args:
        teacher: A cross-encoder with one output, such as that of a
            :class:`rungwise.training.pair_models.CrossEncoderResult`.
        pairs: Pairs with splits ``"train"`` and ``"val"``; human scores are used for measuring alone.
        out: Folder of the model, in the layout of sentence-transformers; it appears whole or not at all.
        model: Sentence model to start from: a folder, a name on the hub, or the packaged one.
        settings: Settings of the training, of which ``loss`` is not read; None takes the defaults with fewer epochs.
        captions: Texts from which further pairs are drawn; empty draws pairs of the training pairs' own texts.
        unlabelled: Number of drawn pairs; they hold no text of the other splits.
        device: Device of both models; None takes ``"cuda"`` where there is one.
        threads: Number of processor threads; None leaves it to torch.
        watching: Receives progress.

    Raises:
        UserError: If a model cannot be loaded, or ``out`` holds something else.
    """
    settings, watching = settings or PairTraining(epochs=EPOCHS), watching or TrainingObserver()
    place, folder = choose_device(device), Path(out).expanduser()
    with (
        replacing_folder(folder, BI_ENCODER, "a sentence model", header=HEADER) as draft,
        seeded(settings.seed, place),
        on_threads(threads),
    ):
        student = load_sentence_model(model, place)
        before = _measured(student, pairs)
        train = _with_drawn(student, pairs, captions, unlabelled, settings.seed)
        drawn = len(train) - len(pairs.split(TRAIN))
        watching.say(f"distilling: {len(train):,} pairs, {drawn:,} of them scored by nobody")
        wanted = _taught(teacher, train, settings, watching)
        begun = time.perf_counter()

        def loss_of(batch: Positions, turned: NDArray[np.bool_]) -> Tensor:
            first, second = texts_of(train, batch, turned)
            with torch.autocast(torch.device(place).type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
                vectors = student(_on_device(student, [*first, *second]))["sentence_embedding"]
            vectors = F.normalize(vectors.float(), dim=1)
            cosines = (vectors[: len(batch)] * vectors[len(batch) :]).sum(dim=1)
            return F.mse_loss(cosines, wanted[batch])

        def judge() -> Correlations:
            return _measured(student, pairs)[0]

        epochs = run_epochs(student, pair_lengths(train), loss_of, judge, settings, watching)
        seconds = time.perf_counter() - begun
        after = _measured(student, pairs)
        result = DistilResult(folder, drawn, before[0], after[0], before[1], after[1], seconds)
        facts = {
            "began from": name_of(model),
            "learnt from": "a cross-encoder that was trained here",
            "scored pairs": pairs.name,
            "data hash": pairs.content_hash(),
            "pairs that nobody scored": drawn,
            "best epoch": best_of(epochs).number,
            **agreement_facts(*before, " before"),
            **agreement_facts(*after),
            "training": asdict(settings),
        }
        save_bi_encoder(student, draft, facts)
    return result


def _measured(model: SentenceTransformer, pairs: ScoredPairs) -> tuple[Correlations, Correlations | None]:
    """Agreement of the cosine with people on dev, and on test if there is one."""
    found = []
    for name in (DEV, TEST):
        one = pairs.split(name)
        count = len(one)
        source = BiEncoder((*one.first, *one.second), range(2 * count), model)
        places = np.arange(count, dtype=np.int64)
        found.append(correlations(source.pair_scores(places, places + count) if count else [], one.scores))
    dev, test = found
    return dev, test if test.pairs else None


def _with_drawn(
    model: SentenceTransformer, pairs: ScoredPairs, captions: Sequence[str], count: int, seed: int
) -> ScoredPairs:
    """The training pairs followed by the drawn ones, whose scores are unknown."""
    train = pairs.split(TRAIN)
    others = [pairs.split(name) for name in set(pairs.splits) - {TRAIN}]
    judged = {text for one in others for text in (*one.first, *one.second)}
    texts = [text for text in dict.fromkeys(captions or (*train.first, *train.second)) if text not in judged]
    vectors = BiEncoder(texts, range(len(texts)), model).vectors if count and texts else np.zeros((0, 0), np.float32)
    without = set(zip(train.first, train.second, strict=True))
    first, second = drawn_pairs(texts, vectors, count, seed=seed, without=without) if len(vectors) else ((), ())
    return replace(
        train,
        first=(*train.first, *first),
        second=(*train.second, *second),
        scores=np.concatenate([train.scores, np.full(len(first), np.nan)]),
        splits=(TRAIN,) * (len(train) + len(first)),
    )


def _taught(teacher: PairModel, pairs: ScoredPairs, settings: PairTraining, watching: TrainingObserver) -> Tensor:
    """(pairs,) float32 scores of the teacher, on its device."""
    begun = time.perf_counter()
    scores = pair_scores(teacher, pairs, settings.precision)
    rate = len(pairs) / max(1e-9, time.perf_counter() - begun)
    watching.say(f"the cross-encoder scored them, {rate:.0f} pairs/s")
    return torch.from_numpy(scores).to(teacher.network.device)


def _on_device(model: SentenceTransformer, texts: list[str]) -> dict[str, Tensor]:
    """The model's input for texts, on its device."""
    read = model.preprocess(texts)
    return {name: one.to(model.device) if isinstance(one, Tensor) else one for name, one in read.items()}
