"""Cross-encoder: a model that reads two captions together and gives them one score (ladder loss, Zhou et al. 2020).

The most exact of the caption sources and by far the slowest: the model runs once for every pair, so all pairs of 25,000
captions take weeks on a processor. :class:`rungwise.relevance.Cascade` runs it for the pairs that another source
chooses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.compute import choose_device
from rungwise.language import load_pair_model
from rungwise.language.sentence_models import weights_hash, wiring
from rungwise.relevance._base import CHUNK_BYTES, Positions
from rungwise.relevance._caption_pairs import caption_positions
from rungwise.relevance._captions import CaptionPairSource, References
from rungwise.relevance.embedding._inference import PairInference
from rungwise.relevance.storage.pair_cache import Keys, PairCache

__all__ = ["CrossEncoder", "Scale"]

_PAIR_BYTES = 64
"""Bytes that a pair takes while it waits for its score: positions, texts' numbers, order."""

Scale = Literal["raw", "sigmoid", "softmax"] | tuple[float, float]
"""How a model's output becomes a degree, as :class:`CrossEncoder` lists."""


class CrossEncoder(CaptionPairSource):
    """R by a Hugging Face model that scores a pair of texts.

    What a model puts out is known to its maker only, so ``scale`` must be said:

    * ``"raw"``: as it is;
    * ``"sigmoid"``: 1 / (1 + exp(-x)), for models trained with a binary cross-entropy, such as
      ``cross-encoder/stsb-*`` and most re-rankers;
    * ``"softmax"``: the probability of class ``output``, for models with several outputs (entailment, say);
    * ``(low, high)``: (x - low) / (high - low), cut off at 0 and 1, for models that predict grades: ``(0, 5)`` after a
      regression on the grades of STS-B.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        model: A name on the Hugging Face hub or a local folder.
        scale: How the output becomes a degree, as listed above.
        output: Position of the output that counts, where the model has several.
        symmetric: Give every pair in one order (sorted), whichever caption is the reference, so that (a, b) and (b, a)
            cost one run. False keeps the reference first, as the paper's (t_q, t_p).
        reference: Which captions stand for an image, as in :class:`~rungwise.relevance.CaptionPairSource`.
        leave_one_out: A caption is no reference for itself.
        images: Number of images, where the last ones have no caption.
        inference: How the model is run: pairs per pass, longest pair, precision, device, file of scores, progress.

    Raises:
        UserError: If transformers is not installed, the model cannot be loaded, or ``scale`` and ``output`` do not fit.

    >>> captions = ["a man rides a horse", "someone on horseback"]
    >>> CrossEncoder(captions, [0, 1], "cross-encoder/stsb-roberta-base", scale="sigmoid")  # doctest: +SKIP
    <rungwise.relevance.embedding.cross_encoder.CrossEncoder object at ...>
    """

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        model: str | Path,
        *,
        scale: Scale,
        output: int = 0,
        symmetric: bool = False,
        reference: References = "max",
        leave_one_out: bool = False,
        images: int | None = None,
        inference: PairInference | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, reference=reference, leave_one_out=leave_one_out, images=images)
        _check_scale(scale)
        self.scale = scale
        self.output = output
        self.symmetric = symmetric
        self.inference = run = inference or PairInference()
        self._cache = None if run.cache is None else PairCache(Path(run.cache).expanduser())
        self._texts = sorted(set(self.captions))
        number = {text: place for place, text in enumerate(self._texts)}
        self._text = np.array([number[text] for text in self.captions], np.int64)
        self._lengths = np.array([len(text) for text in self._texts], np.int64)
        self._name = str(model)
        self._model = load_pair_model(model, device=choose_device(run.device), max_length=run.max_length)
        outputs = self._model.outputs
        if not 0 <= output < outputs:
            raise UserError(f"{model}: output={output} but the model has {outputs}; choose one of 0..{outputs - 1}")
        if scale == "softmax" and outputs == 1:
            raise UserError(f"{model}: has one output, whose softmax is always 1; take scale='sigmoid' or (low, high)")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model, its tokenizer and of what makes its output a score, whatever the collection."""
        besides = f"{self.scale} {self.output} {self.symmetric} {self._model.max_length} {self.inference.precision}"
        network = self._model.network
        model = f"{type(network).__name__} {wiring(network.config, self._model.tokenizer)}"
        return weights_hash(network.state_dict(), f"{model} {besides}")

    def options(self) -> Mapping[str, Any]:
        """The choice of references and the model's fingerprint."""
        return {**super().options(), "model": self.fingerprint}

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """(len(first), len(second)) float32 scores; the model runs for every pair of different texts once.

        Without a file of scores nothing is remembered from one call to the next.
        """
        references, captions = caption_positions(first, second, self.shape[1])
        rows, row = np.unique(self._text[references], return_inverse=True)
        columns, column = np.unique(self._text[captions], return_inverse=True)
        scores = np.empty((len(rows), len(columns)), np.float32)
        run = max(1, CHUNK_BYTES // (_PAIR_BYTES * max(1, len(columns))))
        for start in range(0, len(rows), run):
            some = rows[start : start + run, None]
            # Where a symmetric source meets a pair in both orders, it has scored the other one in this run or before.
            turned = self.symmetric & (some > columns) & np.isin(some, columns) & np.isin(columns, rows)
            at, to = np.nonzero(~turned)
            scores[start + at, to] = self._scored(*self._ordered(rows[start + at], columns[to]))
            at, to = np.nonzero(turned)
            scores[start + at, to] = scores[
                np.searchsorted(rows, columns[to]), np.searchsorted(columns, rows[start + at])
            ]
        return scores[row[:, None], column]

    def pair_scores(self, first: Positions, second: Positions) -> NDArray[np.float32]:
        """(n,) float32 score of caption ``first[k]``, as reference, with caption ``second[k]``."""
        a, b = self._ordered(self._text[first], self._text[second])
        width = max(1, len(self._texts))
        keys, place = np.unique(a * width + b, return_inverse=True)
        return self._scored(*np.divmod(keys, width))[place]

    def _ordered(self, first: Positions, second: Positions) -> tuple[Positions, Positions]:
        """Pairs of text numbers, each in the order in which the model gets it."""
        return (np.minimum(first, second), np.maximum(first, second)) if self.symmetric else (first, second)

    def _scored(self, first: Positions, second: Positions) -> NDArray[np.float32]:
        """(n,) float32 scores of pairs of text numbers, from the cache where there is one."""
        if self._cache is None:
            return self._computed(first, second)
        return self._cache.completed(
            self._keys.of(first, second),
            self._lengths[first] + self._lengths[second],
            lambda some: self._computed(first[some], second[some]),
        )

    @cached_property
    def _keys(self) -> Keys:
        return Keys(self._texts, self.fingerprint, symmetric=self.symmetric)

    def _computed(self, first: Positions, second: Positions) -> NDArray[np.float32]:
        """(n,) float32 scores of pairs of text numbers; pairs of like length go together, the longest first."""
        order = np.argsort(-(self._lengths[first] + self._lengths[second]), kind="stable")
        scores = np.empty(len(order), np.float32)
        size, progress = self.inference.batch_size, self.inference.progress
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            pairs = zip(first[batch].tolist(), second[batch].tolist(), strict=True)
            scores[batch] = self._run([(self._texts[a], self._texts[b]) for a, b in pairs])
            if progress is not None:
                progress(len(batch))
        return scores

    def _run(self, pairs: list[tuple[str, str]]) -> list[float]:
        import torch

        with torch.inference_mode():
            logits = self._model.logits([a for a, _ in pairs], [b for _, b in pairs], self.inference.precision)
        if not logits.isfinite().all():
            raise UserError(
                f"{self._name}: gives a pair of captions a score that is NaN or infinite; copy the model anew, or take"
                " another one"
            )
        if self.scale == "softmax":
            return list(logits.softmax(dim=1)[:, self.output].tolist())
        raw = logits[:, self.output]
        if self.scale == "sigmoid":
            raw = raw.sigmoid()
        elif isinstance(self.scale, tuple):
            raw = ((raw - self.scale[0]) / (self.scale[1] - self.scale[0])).clamp(0, 1)
        return list(raw.tolist())


def _check_scale(scale: object) -> None:
    if isinstance(scale, tuple):
        if len(scale) != 2 or not -math.inf < scale[0] < scale[1] < math.inf:
            raise UserError(f"scale must be (low, high) with low < high, got {scale}")
    elif scale not in ("raw", "sigmoid", "softmax"):
        raise UserError(f"scale must be 'raw', 'sigmoid', 'softmax' or (low, high), got {scale!r}")
