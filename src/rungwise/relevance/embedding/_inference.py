"""How sources run their models: what goes through at a time, where, how exactly, and who hears of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rungwise.core import Bounded, Size
from rungwise.language.sentence_models import Precision


@dataclass(frozen=True)
class Inference(Bounded):
    """How a model of single texts is run.

    Attributes:
        batch_size: Texts per pass.
        precision: ``"bfloat16"`` is about twice as fast where the processor has it, at a cosine of .998 to float32.
        device: Device such as ``"cuda"``; None takes ``"cuda"`` where there is one. A loaded model stays where it is.
        progress: Called with the number of texts that went through since the last call.

    >>> Inference(batch_size=256).precision
    'float32'
    """

    batch_size: Size = 128
    precision: Precision = "float32"
    device: str | None = None
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True)
class PairInference(Inference):
    """How a model of pairs of texts is run.

    Attributes:
        batch_size: Pairs per pass; pairs of like length go together.
        precision: ``"bfloat16"`` is two to three times as fast where the processor has it.
        max_length: Tokens of a pair beyond which both are cut; None takes the model's own limit.
        cache: File of scores, made when missing, so that no pair is scored twice: not in a second run, and not in the
            next epoch of a training. None caches nothing.

    >>> PairInference().batch_size
    64
    """

    batch_size: Size = 64
    max_length: Size | None = None
    cache: Path | str | None = None
