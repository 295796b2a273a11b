"""Networks of published models, with descriptions from which they can be built again."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from rungwise.encoders._preprocessing import Preprocessing
from rungwise.encoders.untrusted import TokenRules


@dataclass(frozen=True)
class NetworkDescription:
    """A network in values that JSON holds.

    Attributes:
        library: Library that builds the network: transformers or open_clip.
        architecture: Name of the architecture in the library.
        settings: Every setting that shapes the network.
    """

    library: str
    architecture: str
    settings: Mapping[str, Any]

    def text(self, **besides: Any) -> str:
        """The description as JSON, with further values of the side."""
        return json.dumps({**vars(self), **besides}, indent=2, sort_keys=True)


class ImageTower(nn.Module, ABC):
    """A network that reads pictures.

    Attributes:
        width: Width of its vectors.
        description: Description from which it can be built again.
    """

    width: int
    description: NetworkDescription

    @abstractmethod
    def forward(self, pixels: Tensor) -> Tensor:
        """(n, width) vectors of (n, 3, size, size) float32 normalised pictures."""


class TextTower(nn.Module, ABC):
    """A network that reads tokens.

    Attributes:
        width: Width of its vectors.
        rows: Number of rows in its table of tokens.
        description: Description from which it can be built again.
    """

    width: int
    rows: int
    description: NetworkDescription

    @abstractmethod
    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """(n, width) vectors of (n, tokens) int64; the mask is 1 for tokens that count, None for all of them."""


@dataclass(frozen=True)
class ImageHalf:
    """The image half of a published model.

    Attributes:
        tower: The network with its weights.
        preprocessing: Preprocessing of its pictures.
    """

    tower: ImageTower
    preprocessing: Preprocessing


@dataclass(frozen=True)
class TextHalf:
    """The text half of a published model.

    Attributes:
        tower: The network with its weights.
        tokenizer: JSON text of its tokenizer.
        rules: How the model uses the tokenizer.
        clean: Function for ``rules.clean``; None for no cleaning.
    """

    tower: TextTower
    tokenizer: str
    rules: TokenRules
    clean: Callable[[str], str] | None = None
