"""An exponential moving average of the weights, which is often better than the weights (Polyak and Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Moving average of a model's trained weights, in float32.

    After step t it is d times the former average plus 1 - d times the weights, with d = min(decay, (1 + t) / (10 + t)):
    the weights of the start are forgotten soon, however short the run is. Frozen weights are left out. So are buffers,
    such as the statistics of batch normalisation: they are averages already, and the model's own are used with the
    average.

    Args:
        model: The model; its parameters with gradients are averaged.
        decay: Decay of the average, at least 0 and below 1.

    Attributes:
        tensors: The average by parameter name.
        steps: Number of steps that it has followed.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> average = WeightAverage(layer, 0.9)
    >>> _ = layer.weight.data.fill_(1.0); average.tensors["weight"].fill_(0.0)
    tensor([[0.]])
    >>> average.follow()
    >>> average.tensors["weight"]
    tensor([[0.8182]])
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self._weights = {name: one for name, one in model.named_parameters() if one.requires_grad}
        self.tensors = {name: one.detach().float().clone() for name, one in self._weights.items()}

    @torch.no_grad()
    def follow(self) -> None:
        """Update the average after a step."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(list(self.tensors.values()), [one.float() for one in self._weights.values()], 1 - decay)

    def restore(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Continue an average that was saved, after this number of steps."""
        self.steps = steps
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Context in which the model has the average as its weights; afterwards its own are restored to the bit."""
        own = {name: one.detach().clone() for name, one in self._weights.items()}
        self._put(self.tensors)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, tensors: Mapping[str, Tensor]) -> None:
        for name, weight in self._weights.items():
            weight.copy_(tensors[name])
