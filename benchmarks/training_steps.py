"""Steps that ``training.py`` compares: a plain loop as VSE++ was written, ours, and matrix products alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from rungwise.encoders.texts import Prefixes
from rungwise.models import JointEmbedding, Pairs
from rungwise.training.engine import Prepared, spread

FEATURE, WIDTH, WORD, RATE = 2048, 1024, 300, 2e-4
Sizes = list[tuple[int, int, int]]
"""(m, k, n) of matrix products."""


class Plain(nn.Module):
    """The networks of the VSE++ program, with the names of ours, so that weights can be exchanged."""

    def __init__(self, model: JointEmbedding) -> None:
        super().__init__()
        table = model.state_dict()["text_encoder.words.weight"]
        self.words = nn.Embedding(*table.shape)
        self.recurrent = nn.GRU(table.shape[1], WIDTH, batch_first=True)
        self.projection = nn.Linear(model.state_dict()["image_projection.weight"].shape[1], WIDTH)
        self.load(model)

    def pairs_with(self, model: JointEmbedding) -> Iterator[tuple[Tensor, Tensor]]:
        """Each weight here with the same of the model."""
        ours, own = model.state_dict(), self.state_dict()
        for name, weight in own.items():
            place = name.replace("projection", "image_projection") if "projection" in name else f"text_encoder.{name}"
            yield weight, ours[place]

    def load(self, model: JointEmbedding) -> None:
        """Take the model's weights."""
        for own, weight in self.pairs_with(model):
            own.copy_(weight)

    def give(self, model: JointEmbedding) -> None:
        """Put the weights into the model."""
        for own, weight in self.pairs_with(model):
            weight.copy_(own)

    def forward(self, rows: Tensor, tokens: Tensor, lengths: list[int]) -> tuple[Tensor, Tensor]:
        """Vectors of pictures and of captions, the longest first."""
        images = self.projection(F.normalize(rows, dim=1))
        packed = pack_padded_sequence(self.words(tokens), lengths, batch_first=True)
        states, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
        last = (torch.tensor(lengths) - 1).view(-1, 1, 1).expand(-1, 1, WIDTH)
        captions = states.gather(1, last).squeeze(1)
        return images / images.norm(dim=1, keepdim=True), captions / captions.norm(dim=1, keepdim=True)


def hinges(scores: Tensor, hardest: bool, margin: float = 0.2) -> Tensor:
    """ContrastiveLoss of the program."""
    own = scores.diag().view(-1, 1)
    same = torch.eye(len(scores)) > 0.5
    captions = (margin + scores - own).clamp(min=0).masked_fill(same, 0)
    images = (margin + scores - own.t()).clamp(min=0).masked_fill(same, 0)
    if hardest:
        return captions.max(1)[0].sum() + images.max(0)[0].sum()
    return captions.sum() + images.sum()


class PlainLoop:
    """The program's loop, over the batches and from the weights of a prepared run."""

    def __init__(self, prepared: Prepared) -> None:
        assert isinstance(prepared.model, JointEmbedding)
        self.pairs = prepared.work.pairs
        self.texts = [list(text) for text in self.pairs.texts]
        self.model = Plain(prepared.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE, foreach=False)

    def step(self, batch: np.ndarray, hardest: bool = True) -> None:
        """Batch building, forward, backward and update."""
        chosen = sorted(batch.tolist(), key=lambda caption: len(self.texts[caption]), reverse=True)
        rows = self.pairs.rows.take(self.pairs.image[chosen])
        texts = [self.texts[caption] for caption in chosen]
        lengths = [len(text) for text in texts]
        tokens = torch.zeros(len(texts), max(lengths)).long()
        for row, text in zip(tokens, texts, strict=True):
            row[: len(text)] = torch.tensor(text)
        images, captions = self.model(rows, tokens, lengths)
        loss = hinges(images @ captions.t(), hardest)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
        self.optimizer.step()


class Loop:
    """Our steps, as the training loop takes them."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared, self.steps, self.data_seconds = prepared, 0, 0.0
        self.prepared.model.train()
        batch_of = prepared.model.batch

        def timed(pairs: Pairs, chosen: Any) -> Any:
            begun = time.perf_counter()
            batch = batch_of(pairs, chosen)
            self.data_seconds += time.perf_counter() - begun
            return batch

        prepared.model.batch = timed  # type: ignore[method-assign]

    def step(self, batch: np.ndarray, hardest: bool = True) -> None:
        """Batch building, forward, backward, update, and what the loop watches."""
        config, updates = self.prepared.config, self.prepared.updates
        self.steps += 1
        updates.begin(RATE)
        loss = self.prepared.loss if hardest else self.prepared.warm_up
        outcome = config.step.backward(self.prepared.work, loss, batch, self.steps)
        updates.finish(outcome.value, 1, self.steps)
        assert outcome.vectors is not None
        spread(*outcome.vectors)


def plain_sizes(lengths: np.ndarray) -> Sizes:
    """Products of a step that reads every word, forward and backward."""
    alive = [int((lengths > at).sum()) for at in range(lengths.max())]
    words = int(lengths.sum())
    return [
        *shared_sizes(len(lengths)),
        *((alive[at], WIDTH, 3 * WIDTH) for at in range(1, len(alive))),
        *((alive[at], 3 * WIDTH, WIDTH) for at in range(1, len(alive))),
        (3 * WIDTH, words, WIDTH),
        *((words, WORD, 3 * WIDTH), (words, 3 * WIDTH, WORD), (3 * WIDTH, words, WORD)),
    ]


def prefix_sizes(prefixes: Prefixes, batch: int) -> Sizes:
    """Products of a step over distinct prefixes and distinct words."""
    words = len(prefixes.elements)
    return [
        *shared_sizes(batch),
        *((count, WIDTH, 3 * WIDTH) for count in prefixes.parent_counts[1:]),
        *((count, 3 * WIDTH, WIDTH) for count in prefixes.parent_counts[1:]),
        (3 * WIDTH, len(prefixes), WIDTH),
        *((words, WORD, 3 * WIDTH), (words, 3 * WIDTH, WORD), (3 * WIDTH, words, WORD)),
    ]


def shared_sizes(batch: int) -> Sizes:
    """Of the images' linear layer, whose input wants no gradient, and of the similarities."""
    return [
        *((batch, FEATURE, WIDTH), (WIDTH, batch, FEATURE)),
        *((batch, WIDTH, batch), (batch, batch, WIDTH), (batch, batch, WIDTH)),
    ]


class Products:
    """Matrix products of given sizes on random numbers in bfloat16."""

    def __init__(self) -> None:
        self.numbers = torch.randn(1 << 24).bfloat16()

    def matrix(self, rows: int, columns: int) -> Tensor:
        """Some of the numbers."""
        return self.numbers[: rows * columns].view(rows, columns)

    def run(self, sizes: Sizes) -> None:
        """Compute all products."""
        for m, k, n in sizes:
            self.matrix(m, k) @ self.matrix(n, k).t()
