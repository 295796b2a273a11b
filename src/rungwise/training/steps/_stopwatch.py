"""Time and memory that a run takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from rungwise.core.compute import GB, peak_memory

SPENT = (
    *("pairs_per_second", "seconds", "data_seconds", "validation_seconds"),
    *("peak_memory_gb", "peak_gpu_memory_gb"),
)
"""Numbers of a run's history on time and memory; a resumed run repeats all others exactly."""


class Stopwatch:
    """Adds up the seconds of ``with`` blocks.

    Args:
        clock: Monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._begun = 0.0

    def __enter__(self) -> Stopwatch:
        self._begun = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += self._clock() - self._begun


@dataclass
class Spent:
    """Seconds of a run, since this process took it up.

    Attributes:
        data: Waiting for data; shared with the steps.
        steps: Seconds of training steps, the wait for data included.
        validation: Measuring after each epoch.
    """

    data: Stopwatch
    steps: float = 0.0
    validation: Stopwatch = field(default_factory=Stopwatch)

    def summary(self, epochs: int, seconds: float, device: torch.device) -> str:
        """One line for a person."""
        share = 100 * self.data.seconds / max(self.steps, 1e-9)
        peaks = [f"{size:.2f} GB{' of the GPU' if 'gpu' in name else ''}" for name, size in memory(device).items()]
        most = f"; peak memory {', '.join(peaks)}" if peaks else ""
        return (
            f"{epochs} epoch{'s' * (epochs != 1)} in {seconds:.1f} s: {self.steps:.1f} s of steps"
            f" ({share:.0f} % of that waiting for data), {self.validation.seconds:.1f} s of validation{most}"
        )


def memory(device: torch.device) -> dict[str, float]:
    """Peak memory of this process in GB (2^30 bytes), under the names in a run's history."""
    found = {}
    if (peak := peak_memory()) is not None:
        found["peak_memory_gb"] = peak / GB
    if device.type == "cuda":
        found["peak_gpu_memory_gb"] = torch.cuda.max_memory_allocated(device) / GB
    return found
