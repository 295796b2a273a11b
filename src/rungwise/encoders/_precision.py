"""Precision in which frozen encoders compute: the caller's choice, and the probe behind ``auto``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import Bounded, Share

Module = TypeVar("Module", bound=nn.Module)
Precision = Literal["auto", "float32", "bfloat16"]

PROBE = 16
"""Number of pictures or texts that ``auto`` encodes in both precisions; fewer are encoded in float32."""

LEAST_COSINE = 0.999
"""Least cosine that ``auto`` asks of every picture of the probe, unless told otherwise."""

_PAYS = 1.1


Inference = Callable[[bool], Callable[[Tensor], Tensor]]
"""Function from the precision (True for bfloat16) to the encoding of prepared pictures or texts."""


def device_of(side: nn.Module) -> torch.device:
    """Device of a side's weights; the processor for a side that has none."""
    return next((one.device for one in (*side.parameters(), *side.buffers())), torch.device("cpu"))


@dataclass(frozen=True)
class Computing(Bounded):
    """How features of pictures, and vectors of texts, are computed where they are not cached.

    Attributes:
        precision: ``float32``, ``bfloat16``, or ``auto``: bfloat16 where the processor or GPU computes with it
            natively, it is faster, and a probe of some pictures shows that its features stay as close as asked.
        least_cosine: Least cosine between a picture's features in bfloat16 and in float32.
        say: Called with a sentence on what ``auto`` chose and why.
        chosen: Whether ``auto`` chose bfloat16, by encoder.
    """

    precision: Precision = "float32"
    least_cosine: Share = LEAST_COSINE
    say: Callable[[str], None] = field(default=lambda _: None)
    chosen: WeakKeyDictionary[nn.Module, bool] = field(default_factory=WeakKeyDictionary)

    def in_half(
        self, side: nn.Module, inference: Inference, sample: Callable[[], Tensor], what: str = "pictures"
    ) -> bool:
        """Whether an encoder computes in bfloat16.

        Args:
            side: The encoder, in evaluation mode.
            inference: The encoder's inference in either precision.
            sample: Gives up to :data:`PROBE` prepared pictures; called only by ``auto``, once for each encoder.
            what: Plural noun of the samples, for the sentence.
        """
        if self.precision != "auto":
            return self.precision == "bfloat16"
        if side not in self.chosen:
            device = device_of(side)
            if not native_bfloat16(device):
                self.chosen[side] = False
                return False
            pictures = sample()
            if len(pictures) < PROBE:
                return False
            self.chosen[side] = self._passes(inference, pictures.to(device), what)
        return self.chosen[side]

    def _passes(self, inference: Inference, pictures: Tensor, what: str) -> bool:
        exact, seconds = _timed(inference(False), pictures)
        quick, half_seconds = _timed(inference(True), pictures)
        cosines = F.cosine_similarity(exact.flatten(1).double(), quick.flatten(1).double())
        cosine = float(cosines.nan_to_num().min())
        times = seconds / half_seconds
        if cosine < self.least_cosine or times < _PAYS:
            return False
        self.say(
            f"{what} are encoded in bfloat16, {times:.1f} x as fast as in float32 here; cosine to float32 at least"
            f" {math.floor(cosine * 1e5) / 1e5:.5f} on {len(pictures)} of them"
        )
        return True


_current = Computing()


def computing() -> Computing:
    """The settings in force, by which features are computed."""
    return _current


@contextmanager
def computed_in(
    precision: Precision, *, least_cosine: float = LEAST_COSINE, say: Callable[[str], None] = lambda _: None
) -> Iterator[Computing]:
    """Context in which features that are not cached are computed in this precision, in every thread of the process.

    Features in bfloat16 have a cache of their own. A model's fingerprint does not change: vectors of either precision
    are searched and compared together. The arguments are those of :class:`Computing`.

    >>> with computed_in("bfloat16"):
    ...     computing().precision
    'bfloat16'
    """
    global _current
    before = _current
    _current = Computing(precision, least_cosine, say)
    try:
        yield _current
    finally:
        _current = before


def native_bfloat16(device: torch.device) -> bool:
    """Whether a processor or GPU has instructions for bfloat16, so that it is faster than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    if not hasattr(torch.cpu, "get_capabilities"):  # which torch 2.6 lacks
        return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", bool)())
    can = torch.cpu.get_capabilities()
    return any(can.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))


def trained_in(precision: str, device: torch.device) -> str:
    """Precision in which encoders are trained on a device: ``auto`` is bfloat16 where that is native, else float32.

    >>> trained_in("float16", torch.device("cpu"))
    'float16'
    """
    if precision != "auto":
        return precision
    return "bfloat16" if native_bfloat16(device) else "float32"


def copied_in(network: Module, precision: torch.dtype) -> Module:
    """A copy of a network for inference whose weights are in this precision; it shares those that are already.

    >>> network = nn.Linear(2, 3)
    >>> copied_in(network, torch.float32).weight.data_ptr() == network.weight.data_ptr()
    True
    >>> copied_in(network, torch.bfloat16).weight.dtype, network.weight.dtype
    (torch.bfloat16, torch.float32)
    """
    weights = {
        id(one): nn.Parameter(one.detach().to(precision) if one.is_floating_point() else one, requires_grad=False)
        for one in network.parameters()
    }
    buffers = {id(one): one.to(precision) if one.is_floating_point() else one for one in network.buffers()}
    return deepcopy(network, {**weights, **buffers})


def _timed(encode: Callable[[Tensor], Tensor], pictures: Tensor) -> tuple[Tensor, float]:
    """Features, and the seconds of the faster of two runs."""
    with torch.inference_mode():
        took = []
        for _ in range(2):
            begun = time.perf_counter()
            features = encode(pictures).cpu()
            took.append(time.perf_counter() - begun)
    return features, min(took)
