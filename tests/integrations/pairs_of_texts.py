"""Pairs of short texts with degrees, a tiny model of sentence-transformers, and training it with its own trainer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

from rungwise import losses
from rungwise.integrations.sentence_transformers import GradedLoss, collection_of, with_positions

WORDS = ["red", "blue", "green", "small", "large", "disc", "box", "star", "heart", "on", "under", "beside"]
BATCH = 8

LOSSES = {
    "Ladder": lambda: losses.Ladder(thresholds=(0.63,), reduction="mean"),
    "Ladder, sum": lambda: losses.Ladder((0.5, 0.2), (0.2, 0.01, 0.01), (1.0, 0.25, 0.125), sampling="sum"),
    "SoftContrastive": lambda: losses.SoftContrastive(learnable=True, reduction="mean"),
    "SemanticAdaptiveMargin": lambda: losses.SemanticAdaptiveMargin(with_triplet=True),
    "MultiModalNCE": lambda: losses.MultiModalNCE(learnable=True, reduction="mean"),
    "SmoothNDCG": lambda: losses.SmoothNDCG(reduction="mean"),
}


def pairs(rows: int = 48) -> Dataset:
    """Rows of two texts; every third anchor stands twice."""
    drawn = np.random.default_rng(0)
    anchors = [" ".join(drawn.choice(WORDS, 3)) for _ in range(rows)]
    anchors = [anchors[row - 1] if row % 3 == 1 else one for row, one in enumerate(anchors)]
    return Dataset.from_dict({"anchor": anchors, "positive": [" ".join(drawn.choice(WORDS, 4)) for _ in range(rows)]})


def with_degrees(rows: Dataset) -> tuple[Dataset, Any, np.ndarray]:
    """Rows with positions, their collection and drawn degrees."""
    data = collection_of(rows)
    degrees = np.random.default_rng(1).random((len(data), len(data.captions)), np.float32)
    degrees[data.image_of_caption, np.arange(len(data.captions))] = 1.0
    return with_positions(rows, data), data, degrees


def model(kind: torch.dtype = torch.float64) -> SentenceTransformer:
    """Word vectors that are trained, averaged."""
    vectors = np.random.default_rng(2).normal(size=(len(WORDS), 6)).astype(np.float32)
    table = WordEmbeddings(WhitespaceTokenizer(WORDS), vectors, update_embeddings=True)
    return SentenceTransformer(modules=[table, Pooling(6)], device="cpu").to(kind)


class InOrder(DefaultBatchSampler):
    """Batches of rows as they stand."""

    def __iter__(self) -> Iterator[list[int]]:
        rows = list(range(len(self.sampler)))
        yield from (rows[start : start + self.batch_size] for start in range(0, len(rows), self.batch_size))


def trained(folder: Path, name: str, *, batch: int = BATCH, steps: int = 50, **options: Any) -> list[torch.Tensor]:
    """Parameters of model and loss after some steps of the library's trainer, rows in order."""
    rows, data, degrees = with_degrees(pairs())
    own = model(torch.float32)
    loss = GradedLoss(own, LOSSES[name](), degrees, data=data, **options)
    arguments = SentenceTransformerTrainingArguments(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=batch,
        batch_sampler=lambda dataset, **given: InOrder(
            torch.utils.data.SequentialSampler(dataset), batch, drop_last=True
        ),
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=0.0,
        report_to="none",
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    SentenceTransformerTrainer(own, arguments, train_dataset=rows, loss=loss).train()
    return [one.detach().clone() for one in (*own.parameters(), *loss.negatives.loss.parameters())]
