"""What the files of the libraries give to the sides: networks, described so that they can be made again."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from rungwise.encoders.preprocessing import Preprocessing
from rungwise.encoders.untrusted.tokenizers import TokenRules


@dataclass(frozen=True)
class NetworkDescription:
    """A network, in values that JSON holds.

    Attributes:
        library: That makes it: transformers or open_clip.
        architecture: Of the library's.
        settings: Every one that shapes it.
    """

    library: str
    architecture: str
    settings: Mapping[str, Any]

    def text(self, **besides: Any) -> str:
        """As JSON, with what a side knows besides."""
        return json.dumps({**vars(self), **besides}, indent=2, sort_keys=True)


class ImageTower(nn.Module, ABC):
    """A network that reads pictures.

    Attributes:
        width: Of its vectors.
        description: From which it can be made again.
    """

    width: int
    description: NetworkDescription

    @abstractmethod
    def forward(self, pixels: Tensor) -> Tensor:
        """(n, 3, size, size) float32, normalised, to (n, width)."""


class TextTower(nn.Module, ABC):
    """A network that reads tokens.

    Attributes:
        width: Of its vectors.
        rows: Of its table of tokens.
        description: From which it can be made again.
    """

    width: int
    rows: int
    description: NetworkDescription

    @abstractmethod
    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """(n, tokens) int64 and (n, tokens) 1 for those that count, or None for all of them, to (n, width)."""


@dataclass(frozen=True)
class ImageHalf:
    """Of a published model.

    Attributes:
        tower: With its weights.
        preprocessing: Its own.
    """

    tower: ImageTower
    preprocessing: Preprocessing


@dataclass(frozen=True)
class TextHalf:
    """Of a published model.

    Attributes:
        tower: With its weights.
        tokenizer: Its own, as the library tokenizers writes it; empty for the one that open_clip carries itself.
        rules: What the model asks of it.
        clean: Does what ``rules.clean`` says; None for nothing.
    """

    tower: TextTower
    tokenizer: str
    rules: TokenRules
    clean: Callable[[str], str] | None = None
