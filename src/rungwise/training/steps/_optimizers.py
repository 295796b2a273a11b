"""Optimizers, and learning rates of a model's parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

from rungwise.core import STRICT, BelowOne, Bounded, NotNegative, SomeShare, UserError, by_name, on_command_line
from rungwise.models import ParameterPlace

Shape = tuple[int, ...]
Group = dict[str, Any]
"""A parameter group of torch's optimizers; its ``factor`` of the learning rate is our addition."""


class OptimizerConfig(Bounded, ABC):
    """Configuration of an optimizer."""

    kind: str

    @property
    @abstractmethod
    def decay(self) -> float:
        """Weight decay of matrices that the optimizer applies."""

    @abstractmethod
    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """Make the optimizer for these parameter groups."""

    @abstractmethod
    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """Names and shapes of the tensors in the optimizer's state for a parameter of this shape."""


def _moments(shape: Shape) -> dict[str, Shape]:
    """State of Adam for a parameter."""
    return {"exp_avg": shape, "exp_avg_sq": shape, "step": ()}


@dataclass(frozen=True)
class Adam(OptimizerConfig):
    """Adam (Kingma and Ba 2015), as in the papers.

    Attributes:
        kind: Name of the optimizer in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["adam"] = "adam"

    @property
    def decay(self) -> float:
        """0: Adam applies no decay."""
        return 0.0

    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """Make Adam for these parameter groups."""
        return torch.optim.Adam(list(groups), lr=rate, fused=True)

    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """Names and shapes of Adam's moments."""
        return _moments(shape)


@dataclass(frozen=True)
class AdamW(OptimizerConfig):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): matrices shrink by rate x decay in a step.

    Attributes:
        kind: Name of the optimizer in YAML.
        weight_decay: Decay of weight matrices; biases, norms and temperatures are left out.
    """

    __pydantic_config__ = STRICT

    kind: Literal["adamw"] = "adamw"
    weight_decay: NotNegative = 0.01

    @property
    def decay(self) -> float:
        """The configured decay."""
        return self.weight_decay

    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """Make AdamW for these parameter groups."""
        return torch.optim.AdamW(list(groups), lr=rate, weight_decay=0.0, fused=True)

    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """Names and shapes of Adam's moments."""
        return _moments(shape)


@dataclass(frozen=True)
class SGD(OptimizerConfig):
    """Stochastic gradient descent with momentum (Polyak 1964; Nesterov 1983; as Sutskever et al. 2013 write it).

    Attributes:
        kind: Name of the optimizer in YAML.
        momentum: Share of the last step's direction that is kept, in 0..1; 0 keeps none.
        nesterov: Look ahead along the direction that is kept (Nesterov momentum).
        weight_decay: Decay of weight matrices, as a term of the gradient; biases, norms and temperatures are left out.
    """

    __pydantic_config__ = STRICT

    kind: Literal["sgd"] = "sgd"
    momentum: BelowOne = 0.9
    nesterov: bool = False
    weight_decay: NotNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise UserError("optimizer.nesterov looks ahead along the momentum; set optimizer.momentum above 0")

    @property
    def decay(self) -> float:
        """The configured decay."""
        return self.weight_decay

    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """Make SGD for these parameter groups, with zero momentum buffers."""
        optimizer = torch.optim.SGD(
            list(groups), lr=rate, momentum=self.momentum, nesterov=self.nesterov, weight_decay=0.0, fused=True
        )
        if self.momentum:
            # Torch's fused step leaves a new buffer as memory happened to be where float16 skips the very first step.
            # One of zeros gives the same first step: 0 times the momentum plus the gradient.
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        return optimizer

    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """Name and shape of the momentum buffer; empty without momentum."""
        return {"momentum_buffer": shape} if self.momentum else {}


AnyOptimizer = Annotated[Adam | AdamW | SGD, Field(discriminator="kind"), by_name, on_command_line(Adam | AdamW | SGD)]
"""Type of a field that holds an optimizer: its name (``adamw``), or a mapping (``{kind: sgd, momentum: 0.9}``)."""


@dataclass(frozen=True)
class LearningRates(Bounded):
    """Factors of the learning rate for the parts of a model.

    Attributes:
        image: Factor for the image encoder.
        text: Factor for the text encoder.
        heads: Factor for what stands above the encoders, and for the loss.
        layer_decay: Factor of each layer of an encoder, relative to the layer above it (Howard and Ruder 2018).
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "rates"

    image: NotNegative = 1.0
    text: NotNegative = 1.0
    heads: NotNegative = 1.0
    layer_decay: SomeShare = 1.0

    def factor(self, part: ParameterPlace) -> float:
        """Factor of the learning rate for a part's parameters."""
        own: float = getattr(self, part.side)
        return own * self.layer_decay**part.depth
