"""Which optimizer takes the steps, and at which rates the parts of a model learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field

from rungwise.core.configuration import STRICT, BelowOne, Bounded, NotNegative, SomeShare, by_name, on_command_line
from rungwise.core.errors import UserError
from rungwise.models.training_pairs import ParameterPlace

Shape = tuple[int, ...]
Group = dict[str, Any]
"""Parameters with what torch's optimizers read beside them; ``factor`` is ours: of the learning rate."""


class OptimizerConfig(Bounded, ABC):
    """An optimizer as a configuration names it."""

    kind: str

    @property
    @abstractmethod
    def decay(self) -> float:
        """The decay of weight matrices that the optimizer does by itself."""

    @abstractmethod
    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """The optimizer of some groups of parameters."""

    @abstractmethod
    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """Which tensors it keeps of a parameter, by their names in the optimizer's state, with their shapes.

        Args:
            shape: Of the parameter.
        """


def _moments(shape: Shape) -> dict[str, Shape]:
    """What Adam keeps."""
    return {"exp_avg": shape, "exp_avg_sq": shape, "step": ()}


@dataclass(frozen=True)
class Adam(OptimizerConfig):
    """Adam (Kingma and Ba 2015), as in the papers.

    Attributes:
        kind: Names the optimizer in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["adam"] = "adam"

    @property
    def decay(self) -> float:
        """None."""
        return 0.0

    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """See :class:`OptimizerConfig`."""
        return torch.optim.Adam(list(groups), lr=rate, fused=True)

    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """See :class:`OptimizerConfig`."""
        return _moments(shape)


@dataclass(frozen=True)
class AdamW(OptimizerConfig):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019): matrices shrink by rate x decay in a step.

    Attributes:
        kind: Names the optimizer in YAML.
        weight_decay: Of weight matrices; biases, norms and temperatures are left out.
    """

    __pydantic_config__ = STRICT

    kind: Literal["adamw"] = "adamw"
    weight_decay: NotNegative = 0.01

    @property
    def decay(self) -> float:
        """As set."""
        return self.weight_decay

    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """See :class:`OptimizerConfig`."""
        return torch.optim.AdamW(list(groups), lr=rate, weight_decay=0.0, fused=True)

    def keeps(self, shape: Shape) -> Mapping[str, Shape]:
        """See :class:`OptimizerConfig`."""
        return _moments(shape)


@dataclass(frozen=True)
class SGD(OptimizerConfig):
    """Stochastic gradient descent with momentum (Polyak 1964; Nesterov 1983; as Sutskever et al. 2013 write it).

    Attributes:
        kind: Names the optimizer in YAML.
        momentum: Share of the last step's direction that is kept, in 0..1; 0 keeps none.
        nesterov: Look ahead along the direction that is kept.
        weight_decay: Of weight matrices, as a term of the gradient; biases, norms and temperatures are left out.
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
        """As set."""
        return self.weight_decay

    def build(self, groups: Sequence[Group], rate: float) -> torch.optim.Optimizer:
        """See :class:`OptimizerConfig`."""
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
        """See :class:`OptimizerConfig`."""
        return {"momentum_buffer": shape} if self.momentum else {}


AnyOptimizer = Annotated[Adam | AdamW | SGD, Field(discriminator="kind"), by_name, on_command_line(Adam | AdamW | SGD)]
"""A field of a configuration: an optimizer's name (``adamw``), or a mapping (``{kind: adamw, weight_decay: 0.05}``)."""


@dataclass(frozen=True)
class LearningRates(Bounded):
    """Factors of the learning rate for the parts of a model.

    Attributes:
        image: Of the image encoder.
        text: Of the text encoder.
        heads: Of what stands above the encoders, and of the loss.
        layer_decay: Each layer of an encoder learns at this times the rate of the layer above it (Howard and Ruder
            2018).
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "rates"

    image: NotNegative = 1.0
    text: NotNegative = 1.0
    heads: NotNegative = 1.0
    layer_decay: SomeShare = 1.0

    def factor(self, part: ParameterPlace) -> float:
        """Of a part's parameters.

        >>> LearningRates(image=0.1, layer_decay=0.5).factor(ParameterPlace("image", 2))
        0.025
        """
        own: float = getattr(self, part.side)
        return own * self.layer_decay**part.depth
