"""Temperature of a softmax, fixed or learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

LOWEST = 0.001  # keeps the logits of a cosine within +-1000


class Temperature(nn.Module):
    """A positive number that similarities are divided by.

    A learned one is LOWEST + exp(p): positive, bounded away from 0, and with a gradient everywhere. Give the parameters
    of the loss to the optimizer along with the model's.

    Args:
        value: The temperature, or its start.
        learnable: Whether it is a parameter.

    Raises:
        ValueError: If the value is not positive, or, for a learned one, not above 0.001.

    >>> Temperature(0.1, learnable=True)()
    tensor(0.1000, grad_fn=<AddBackward0>)
    """

    def __init__(self, value: float, learnable: bool = False) -> None:
        super().__init__()
        lowest = LOWEST if learnable else 0.0
        if not value > lowest:
            raise ValueError(f"temperature must be above {lowest:g}, got {value:g}")
        self.value = value
        self.learnable = learnable
        self.raw = nn.Parameter(torch.tensor(math.log(value - LOWEST))) if learnable else None

    @property
    def present(self) -> float | Tensor:
        """The temperature as it is now, without a gradient."""
        return self.value if self.raw is None else (LOWEST + self.raw.detach().exp())

    def forward(self) -> float | Tensor:
        """The temperature: a float, or a scalar tensor with a gradient."""
        return self.value if self.raw is None else LOWEST + self.raw.exp()

    def extra_repr(self) -> str:
        """Its present value, and whether it is learned."""
        present = self.present
        number = f"{float(present):.6g}" if isinstance(present, float | int) or not present.is_meta else "..."
        return f"{number}, learnable={self.learnable}"
