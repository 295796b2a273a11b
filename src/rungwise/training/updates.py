"""How gradients become new weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Updates:
    """Takes the steps of a run.

    Args:
        optimizer: Of everything that is trained; its groups say their ``factor`` of the learning rate.
        parameters: Everything that is trained.
        clip_norm: The norm of all gradients together is cut to this.

    Attributes:
        rate: The learning rate of the present step, before the factors of the groups.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[nn.Parameter], clip_norm: float) -> None:
        self.optimizer = optimizer
        self.parameters = list(parameters)
        self.clip_norm = clip_norm
        self.rate = float("nan")

    def begin(self, rate: float) -> None:
        """Prepare a step.

        Args:
            rate: The learning rate, before the factors of the groups.
        """
        self.rate = rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        self.optimizer.zero_grad(set_to_none=True)

    def finish(self) -> Tensor:
        """Take the step with the gradients that are there.

        Returns:
            The norm of all gradients together, before it was cut; on the device.
        """
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        self.optimizer.step()
        return norm
