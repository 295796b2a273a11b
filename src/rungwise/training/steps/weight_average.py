"""An exponential moving average of the weights, which is often better than the weights (Polyak and Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Follows the trained weights of a model, in float32.

    After step t it is d times what it was plus 1 - d times the weights, with d = min(decay, (1 + t) / (10 + t)): the
    weights of the start are forgotten soon, however short the run is. Frozen weights are left out. So are buffers, such
    as the statistics of batch normalisation: they are averages already, and the model's own go with the average.

    Args:
        model: Its parameters that ask for a gradient are averaged.
        decay: In 0..1, below 1.

    Attributes:
        tensors: The average by names of parameters.
        steps: Steps it has followed.

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
        """A step was taken."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(list(self.tensors.values()), [one.float() for one in self._weights.values()], 1 - decay)

    def restore(self, tensors: Mapping[str, Tensor], steps: int) -> None:
        """Go on with an average that was kept.

        Args:
            tensors: By names of parameters.
            steps: That it had followed.
        """
        self.steps = steps
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within, the model has the average as its weights; afterwards its own again, to the bit."""
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
