"""Heads: small trained networks from an encoder's vectors to the joint space.

Each configuration builds its layers for an input and an output width.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from rungwise.core import STRICT, BelowOne, Bounded, Cancelled, Size, UserError, by_name, on_command_line

Activation = Literal["relu", "gelu", "tanh", "sigmoid"]
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}


@dataclass(frozen=True)
class NoHead:
    """No head: the encoder's vectors are used unchanged.

    Attributes:
        kind: Name of the head.
    """

    __pydantic_config__ = STRICT

    kind: Literal["none"] = "none"

    def build(self, inputs: int, outputs: int) -> nn.Module:
        """The identity.

        Raises:
            UserError: If the encoder's vectors do not have the joint space's width.
        """
        if inputs != outputs:
            raise UserError(
                f"dimension {outputs} does not fit an encoder without a head, whose vectors have {inputs} numbers; set"
                f" dimension: {inputs}, or a head such as linear"
            )
        return nn.Identity()


@dataclass(frozen=True)
class LinearHead:
    """One linear layer, as in VSE++ (Faghri et al. 2018, section 2).

    Attributes:
        kind: Name of the head.
    """

    __pydantic_config__ = STRICT

    kind: Literal["linear"] = "linear"

    def build(self, inputs: int, outputs: int) -> nn.Module:
        """The layer, initialised as published: uniform weights, no bias."""
        return _linear(inputs, outputs)


@dataclass(frozen=True)
class MLPHead(Bounded):
    """Fully connected layers with an activation between them.

    With one hidden layer: the head of ConVSE (2048 hidden), and the two fully connected layers of CMAL2R.

    Attributes:
        kind: Name of the head.
        hidden: Widths of the hidden layers.
        activation: relu, gelu, tanh or sigmoid.
        dropout: Share of hidden values that are set to zero in training.
    """

    __pydantic_config__ = STRICT

    kind: Literal["mlp"] = "mlp"
    hidden: Annotated[tuple[Size, ...], Field(min_length=1, max_length=8)] = (2048,)
    activation: Activation = "relu"
    dropout: BelowOne = 0.0

    def build(self, inputs: int, outputs: int) -> nn.Module:
        """The layers in turn."""
        layers: list[nn.Module] = []
        for width in self.hidden:
            layers += [_linear(inputs, width), _ACTIVATIONS[self.activation](), nn.Dropout(self.dropout)]
            inputs = width
        return nn.Sequential(*layers, _linear(inputs, outputs))


@dataclass(frozen=True)
class ResidualHead(Bounded):
    """A linear layer plus a small network beside it: the layer alone can rank, the network refines.

    Attributes:
        kind: Name of the head.
        hidden: Width of the network's hidden layer.
        activation: relu, gelu, tanh or sigmoid.
        dropout: Share of hidden values that are set to zero in training.
        input_dropout: Share of the encoder's values that are set to zero in training; without it, frozen features are
            learned by heart within a few epochs.
    """

    __pydantic_config__ = STRICT

    kind: Literal["residual"] = "residual"
    hidden: Size = 1024
    activation: Activation = "gelu"
    dropout: BelowOne = 0.5
    input_dropout: BelowOne = 0.0

    def build(self, inputs: int, outputs: int) -> nn.Module:
        """The sum of the linear layer and the network."""
        inner = MLPHead("mlp", (self.hidden,), self.activation, self.dropout)
        both = Sum(_linear(inputs, outputs), inner.build(inputs, outputs))
        return nn.Sequential(nn.Dropout(self.input_dropout), both) if self.input_dropout else both


@dataclass(frozen=True)
class AdapterHead(Bounded):
    """The encoder's vectors plus a small network's, which is zero at the start and learns what to change.

    Attributes:
        kind: Name of the head.
        hidden: Width of the network's hidden layer.
        activation: relu, gelu, tanh or sigmoid.
        dropout: Share of hidden values that are set to zero in training.
    """

    __pydantic_config__ = STRICT

    kind: Literal["adapter"] = "adapter"
    hidden: Size = 256
    activation: Activation = "gelu"
    dropout: BelowOne = 0.1

    def build(self, inputs: int, outputs: int) -> nn.Module:
        """The network added to the identity; its last layer starts at zero.

        Raises:
            UserError: If the encoder's vectors do not have the joint space's width.
        """
        if inputs != outputs:
            raise UserError(
                f"dimension {outputs} does not fit an adapter of vectors of {inputs} numbers; set dimension: {inputs},"
                " or another head"
            )
        inner = MLPHead("mlp", (self.hidden,), self.activation, self.dropout).build(inputs, outputs)
        assert isinstance(inner, nn.Sequential)
        nn.init.zeros_(inner[-1].weight)  # type: ignore[arg-type]
        return Sum(nn.Identity(), inner)


OneHead = Annotated[
    Annotated[NoHead | LinearHead | MLPHead | ResidualHead | AdapterHead, Field(discriminator="kind")], by_name
]


@dataclass(frozen=True)
class StackHead(Bounded):
    """Heads on top of each other, such as the MLP of ConVSE on the linear layer of VSE++.

    Attributes:
        kind: Name of the head.
        of: The heads, the one next to the encoder first.
        width: Width of the vectors between the heads; None for that of the joint space.
    """

    __pydantic_config__ = STRICT

    kind: Literal["stack"] = "stack"
    of: tuple[OneHead, ...] = field(default_factory=lambda: (LinearHead(), AdapterHead()))
    width: Size | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.of) <= 8:
            raise UserError(f"a stack must have 1 to 8 heads, got {len(self.of)}")

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """A width between heads where there is one head."""
        if self.width is not None and len(self.of) == 1:
            yield Cancelled(
                f"{place}.width {self.width} changes nothing: {place}.of has one head, and a width is of vectors"
                " between two; leave it out, or give another head"
            )

    def build(self, inputs: int, outputs: int) -> nn.Module:
        """The heads in turn."""
        between, layers = self.width or outputs, []
        for head in self.of[:-1]:
            layers.append(head.build(inputs, between))
            inputs = between
        return nn.Sequential(*layers, self.of[-1].build(inputs, outputs))


AnyHead = Annotated[
    Annotated[NoHead | LinearHead | MLPHead | ResidualHead | AdapterHead | StackHead, Field(discriminator="kind")],
    by_name,
    on_command_line(NoHead | LinearHead | MLPHead | ResidualHead | AdapterHead | StackHead),
]


def stacked(first: AnyHead, second: OneHead) -> AnyHead:
    """Put one head on top of another.

    >>> stacked(LinearHead(), AdapterHead()).of
    (LinearHead(kind='linear'), AdapterHead(kind='adapter', hidden=256, activation='gelu', dropout=0.1))
    """
    if isinstance(first, NoHead):
        return second
    return StackHead(of=((*first.of, second) if isinstance(first, StackHead) else (first, second)))


class Sum(nn.Module):
    """The sum of two networks on the same vectors."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first = first
        self.second = second

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, outputs) from (n, inputs)."""
        return torch.as_tensor(self.first(vectors) + self.second(vectors))


def _linear(inputs: int, outputs: int) -> nn.Linear:
    """Uniform in +-sqrt(6 / (fan in + fan out)), bias 0 (Faghri et al. 2018)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
