"""Vectors of texts under a frozen text encoder: computed once, cached on disk, found by the text itself."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core.compute import freed_memory_kept
from rungwise.core.disk import usable_cache
from rungwise.data import Issue
from rungwise.encoders._precision import PROBE, computing, device_of
from rungwise.encoders._sides import TextSide
from rungwise.encoders.row_cache import LAYOUT, Progress, RowStore, sound_positions
from rungwise.encoders.vocabulary import Tokens, pad

_RUN = 4096
"""Number of texts whose vectors are written to disk together."""


@dataclass(frozen=True)
class TextRows:
    """Cached vectors of texts.

    Attributes:
        source: (rows, width) memory map.
        positions: (texts,) row of each.
        computed: Number of rows that were computed now and not taken from the cache.
        seconds: Seconds that computing them took.
    """

    source: NDArray[np.float32]
    positions: NDArray[np.int64]
    computed: int
    seconds: float
    issues: tuple[Issue, ...] = ()

    @property
    def kept(self) -> NDArray[np.int64]:
        """(texts,) positions of all texts."""
        return np.arange(len(self.positions))

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.positions)

    def take(self, texts: NDArray[np.int64]) -> Tensor:
        """(len(texts), width) vectors of these texts."""
        return torch.from_numpy(np.asarray(self.source[self.positions[texts]]))


@dataclass(frozen=True)
class QuickRows:
    """Vectors of texts under a quick encoder, computed whenever they are taken.

    Attributes:
        side: The encoder.
        tokens: Token numbers of the texts.
        issues: Always empty.
        computed: Always 0, since vectors are computed when they are taken.
        seconds: Always 0.
    """

    side: TextSide
    tokens: Tokens
    issues: tuple[Issue, ...] = ()
    computed: int = 0
    seconds: float = 0.0

    @property
    def kept(self) -> NDArray[np.int64]:
        """(texts,) positions of all texts."""
        return np.arange(len(self.tokens))

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.tokens)

    def take(self, texts: NDArray[np.int64]) -> Tensor:
        """(len(texts), width) vectors of these texts."""
        return torch.from_numpy(encode_tokens(self.side, [self.tokens[text] for text in texts.tolist()]))


def text_rows(
    side: TextSide, texts: Sequence[str], cache: Path | None = None, *, progress: Progress | None = None
) -> TextRows | QuickRows:
    """The encoder's vectors of these texts, computed where the cache has none; equal texts once.

    Vectors in bfloat16 (:func:`~rungwise.encoders.computed_in`) have a cache of their own. Those of a quick
    encoder (:attr:`TextSide.quick <rungwise.encoders.TextSide>`) are not cached.

    Args:
        side: The encoder, in any mode: vectors are always those of evaluation mode.
        texts: Captions.
        cache: Folder of the cache; the default one if None.
        progress: Called with the number of texts done since the last call.
    """
    if side.quick:
        if progress:
            progress(len(texts))
        return QuickRows(side, Tokens.of(side.tokenise(texts)))
    begun = time.perf_counter()
    half = _in_half(side, texts)
    name = f"{side.fingerprint()[:32]}{'-bfloat16' if half else ''}{LAYOUT}"
    store = RowStore(usable_cache(cache) / "texts" / name, (side.width,), np.float32)
    keys = [_key(text) for text in texts]
    found, _ = sound_positions(store, keys)
    missing = sorted({text for text, row in zip(texts, found.tolist(), strict=True) if row < 0})
    if progress:
        progress(len(texts) - len(missing))
    missing.sort(key=len, reverse=True)  # batches hold little padding, and the largest comes first
    with freed_memory_kept():
        for begin in range(0, len(missing), _RUN):
            some = missing[begin : begin + _RUN]
            store.append([_key(text) for text in some], encode_texts(side, some, half=half))
            if progress:
                progress(len(some))
    return TextRows(store.rows(), store.find(keys), len(missing), time.perf_counter() - begun)


def _in_half(side: TextSide, texts: Sequence[str]) -> bool:
    """Whether vectors are computed in bfloat16; ``auto`` tries the first distinct texts."""
    chosen = side.tokenise(list(dict.fromkeys(texts[: 4 * PROBE]))[:PROBE]) if len(texts) >= PROBE else []
    padded, lengths = pad(chosen, side.pad_number) if chosen else (torch.zeros(0), torch.zeros(0))

    def inference(half: bool) -> Callable[[Tensor], Tensor]:
        return lambda tokens: _vectors(side, tokens, lengths, half)

    training = side.training
    side.eval()
    try:
        return computing().in_half(side, inference, lambda: padded, "texts")
    finally:
        side.train(training)


def _vectors(side: TextSide, tokens: Tensor, lengths: Tensor, half: bool) -> Tensor:
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=half):
        return torch.as_tensor(side(tokens, lengths)).float()


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def encode_texts(side: TextSide, texts: Sequence[str], batch: int = 128, *, half: bool = False) -> NDArray[np.float32]:
    """(len(texts), width) vectors in evaluation mode, computed shortest first; in bfloat16 if ``half``."""
    return encode_tokens(side, side.tokenise(texts), batch, half=half)


def encode_tokens(
    side: TextSide, tokens: Sequence[Sequence[int]], batch: int = 128, *, half: bool = False
) -> NDArray[np.float32]:
    """:func:`encode_texts` for texts that are tokenised already."""
    vectors, numbers = np.zeros((len(tokens), side.width), np.float32), Tokens.of(tokens)
    order = np.argsort(numbers.lengths, kind="stable")
    device = device_of(side)
    training = side.training
    side.eval()
    try:
        with torch.inference_mode():
            for begin in range(0, len(order), batch):
                chosen = order[begin : begin + batch]
                padded, lengths = numbers.padded(chosen, side.pad_number)
                vectors[chosen] = _vectors(side, padded.to(device), lengths, half).cpu().numpy()
    finally:
        side.train(training)
    return vectors
