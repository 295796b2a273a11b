"""Optimizer steps: gradients are scaled, checked, clipped and applied, and weights averaged.

Nothing here makes a GPU wait for the host on every step. A gradient that is not finite shows in the norm that is
computed in any case; where that happens on a GPU, the following steps change nothing until the host asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

from rungwise.core import STRICT, Count, UserError
from rungwise.training.steps._weight_average import WeightAverage

LEAST_SCALE = 2.0**-14
"""Scale below which a gradient that does not fit float16 is not a matter of scale."""


@dataclass
class Scaling:
    """State of the loss scaling in float16, as a checkpoint keeps it.

    Attributes:
        scale: Factor of losses, by which gradients are divided; 0 before the first step.
        growth: Number of steps since it changed; after 2,000 it doubles.
        skipped: Number of the run's steps that were skipped because gradients did not fit, which halves the scale.
    """

    __pydantic_config__ = STRICT

    scale: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    growth: Count = 0
    skipped: Count = 0


class OptimizerStep:
    """Takes the optimizer steps of a run.

    Args:
        optimizer: Optimizer of all parameters; its groups have a ``factor`` of the learning rate.
        parameters: All trained parameters with their names.
        clip_norm: Norm to which all gradients together are clipped.
        scales: Whether losses are scaled, so that float16 holds their gradients (Micikevicius et al. 2018).
        average: Average of the weights, updated by each step; None keeps none.

    Attributes:
        rate: Learning rate of the present step, before the factors of the groups.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        parameters: Sequence[tuple[str, nn.Parameter]],
        clip_norm: float,
        *,
        scales: bool = False,
        average: WeightAverage | None = None,
    ) -> None:
        self.optimizer = optimizer
        self.names = [name for name, _ in parameters]
        self.parameters = [parameter for _, parameter in parameters]
        self.clip_norm = clip_norm
        self.average = average
        self.rate = float("nan")
        home = self.parameters[0].device
        self._scaler = GradScaler(home.type, enabled=scales)
        self._skipped_before = 0
        self._skipped = torch.zeros((), dtype=torch.int64, device=home)
        self._nothing = torch.zeros(1, device=home)
        self._last = (0, 0)  # epoch and step
        self._places: list[tuple[int, int]] = []  # those of the steps that were not asked about yet
        self._loss = torch.zeros((), device=home)
        self._odd = torch.zeros(len(self.parameters), dtype=torch.bool, device=home)
        self._start_anew()

    def _start_anew(self) -> None:
        self._places.clear()
        self._failed = torch.zeros((), dtype=torch.bool, device=self._nothing.device)
        self._fine = torch.zeros((), dtype=torch.int64, device=self._nothing.device)

    def begin(self, rate: float) -> None:
        """Prepare a step with a learning rate, before the factors of the groups."""
        self.rate = rate
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        self.optimizer.zero_grad(set_to_none=True)

    def scaled(self, loss: Tensor) -> Tensor:
        """The value whose gradients are taken, instead of the loss."""
        multiple: Tensor = self._scaler.scale(loss)
        return multiple

    def finish(self, loss: Tensor, epoch: int, step: int) -> Tensor:
        """Take the step with the present gradients; loss (without a graph), epoch and step stand in the error.

        Returns:
            Norm of all gradients together before clipping, on the device.

        Raises:
            UserError: If a gradient is not finite; the weights are those before the step. On a GPU :meth:`check` raises
                it instead, and the weights do not change until then.
        """
        self._scaler.unscale_(self.optimizer)
        # As torch's clip_grad_norm_ does it, whose norms of single gradients say besides which one is not finite.
        gradients = [self._nothing if one.grad is None else one.grad for one in self.parameters]
        norms = torch.stack(torch._foreach_norm(gradients))
        norm: Tensor = torch.linalg.vector_norm(norms)
        self._places.append((epoch, step))
        self._last = (epoch, step)
        self._look(norm, norms, loss)
        if norm.is_cpu:
            self.check()
        nn.utils.clip_grads_with_norm_(self.parameters, self.clip_norm, norm)
        if not self._scaler.is_enabled():
            # What a GradScaler tells a fused optimizer, so that it changes nothing, without asking the host.
            self.optimizer.grad_scale, self.optimizer.found_inf = None, self._failed.float()  # type: ignore[attr-defined]
        self._scaler.step(self.optimizer)
        self._scaler.update()
        if self.average is not None:
            self.average.follow()
        return norm

    def _look(self, norm: Tensor, norms: Tensor, loss: Tensor) -> None:
        """Record the first failing step that ends the run, or the last one that is skipped."""
        failing = ~(norm.isfinite() & loss.isfinite())
        # A gradient that does not fit float16 may fit at another scale; a loss that is not finite has none.
        ending = ~loss.isfinite() if self._scaler.is_enabled() else failing
        noted = ~self._failed & (failing if self._scaler.is_enabled() else ending)
        self._odd = torch.where(noted, ~norms.isfinite(), self._odd)
        self._loss = torch.where(noted, loss.float(), self._loss)
        self._skipped += failing
        self._failed = self._failed | ending
        self._fine += ~self._failed

    def check(self) -> None:
        """Check whether all steps so far could be taken; the host waits for the GPU.

        Raises:
            UserError: If a loss or a gradient was not finite, or no scale makes the gradients fit float16.
        """
        if bool(self._failed):
            raise self._error(self._places[int(self._fine)], "lower the learning rate or use precision float32")
        if self._scaler.is_enabled() and self._scaler.get_scale() < LEAST_SCALE:
            raise self._error(self._last, "use precision bfloat16 or float32, or lower the learning rate")
        self._start_anew()

    def settled(self, before: Scaling, say: Callable[[str], None]) -> Scaling:
        """State of the scaling for a checkpoint, after a check; steps skipped since the last one are told."""
        self.check()
        if not self._scaler.is_enabled():
            return before
        state = self._scaler.state_dict()
        now = Scaling(state["scale"], state["_growth_tracker"], self._skipped_before + int(self._skipped))
        if left := now.skipped - before.skipped:
            steps = "step was" if left == 1 else "steps were"
            say(f"float16: {left} {steps} left out, whose gradients did not fit; the scale is now {now.scale:g}")
        return now

    def _error(self, place: tuple[int, int], remedy: str) -> UserError:
        loss, (epoch, step) = float(self._loss), place
        odd = [name for name, one in zip(self.names, self._odd.tolist(), strict=True) if one]
        if not math.isfinite(loss):
            what = f"the loss is {loss}"
        elif not odd:
            what = "the norm of the gradients is not finite"
        else:
            what = f"the gradient of {odd[0]} is not finite" + (f", nor {len(odd) - 1} others," if odd[1:] else "")
        return UserError(
            f"{what} at epoch {epoch}, step {step}; {remedy}, and resume from the last checkpoint or start anew; the"
            " weights are those before the step"
        )

    def restore(self, scaling: Scaling) -> None:
        """Continue with a checkpoint's scaling."""
        if self._scaler.is_enabled() and scaling.scale:
            state = self._scaler.state_dict()
            self._scaler.load_state_dict({**state, "scale": scaling.scale, "_growth_tracker": scaling.growth})
        self._skipped_before = scaling.skipped

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Context in which the model has the average of its weights, where one is kept."""
        with nullcontext() if self.average is None else self.average.in_place():
            yield
