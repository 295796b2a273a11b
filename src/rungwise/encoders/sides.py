"""What the two sides of a joint embedding are to it: encoders of pictures and of texts, each with what it must save.

A side is a torch module. Its configuration, a frozen dataclass told by ``kind``, builds it in two ways: ``build`` with
the weights that the configuration names, and ``restore`` without weights, from the text files of a saved model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from rungwise.core.errors import UserError
from rungwise.data.files.feature_rows import FeatureRows

if TYPE_CHECKING:
    from rungwise.encoders.preprocessing import Preprocessing

PREPROCESSING, TOKENIZER = "preprocessing.json", "tokenizer.json"
IMAGE_ENCODER, TEXT_ENCODER = "image_encoder.json", "text_encoder.json"
"""Names of the text files that sides keep in a saved model; no two sides of a model share one."""


class SavedFiles(Protocol):
    """The text files of a saved model, each looked at before it is read."""

    @property
    def path(self) -> Path:
        """The folder, for messages."""
        ...

    def text(self, name: str) -> str:
        """What a file says."""
        ...

    def json(self, name: str) -> dict[str, Any]:
        """The object that a file holds."""
        ...


def require_words(texts: Sequence[str] | FeatureRows) -> Sequence[str]:
    """The texts of a collection, for a side that reads words.

    Raises:
        UserError: If the data have rows of features in their place.

    >>> require_words(["a dog"])
    ['a dog']
    """
    if isinstance(texts, FeatureRows):
        raise UserError("the data have rows of features in place of texts; set model.text.kind: features")
    return texts


class ImageSide(nn.Module, ABC):
    """From prepared pictures, or from rows of features, to feature vectors.

    Attributes:
        features: Width of a feature.
        preprocessing: What pictures go through before; None where rows of features stand for pictures.
        compiles: ``torch.compile`` takes its forward as a whole.
    """

    features: int
    preprocessing: Preprocessing | None
    compiles: ClassVar[bool] = False

    @abstractmethod
    def forward(self, rows: Tensor) -> Tensor:
        """(n, 3, size, size) uint8 pixels, or (n, ...) rows of features, to (n, features) float32."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that a feature depends on besides the picture."""

    def under(self, config: Any) -> ImageSide:
        """This side with the same weights, as a configuration of it sees pictures and trains it.

        Args:
            config: Of the same network as this side's own.
        """
        return self

    def remarks(self) -> Sequence[str]:
        """Sentences for a person on this side as it is about to be trained."""
        return ()

    def identity(self) -> str:
        """Everything but weights, configuration and preprocessing that a feature depends on, as text."""
        return ""

    def files(self) -> Mapping[str, str]:
        """Name and text of every file that ``restore`` of its configuration reads."""
        return {}


class PictureSide(ImageSide):
    """A side that reads pictures.

    Attributes:
        regions: How many vectors stand for a picture; None where it is one.
        region_grid: How many of them stand below and beside one another in the prepared picture, row by row; None where
            they are no grid.
    """

    preprocessing: Preprocessing
    regions: int | None = None
    region_grid: tuple[int, int] | None = None

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """(features,), or (regions, features)."""
        return (self.features,) if self.regions is None else (self.regions, self.features)

    def region_boxes(self, height: int, width: int) -> NDArray[np.float64] | None:
        """Where the regions lie in a picture: the place of each in the grid, of which a network sees more around it.

        Args:
            height: Of the picture as it stands upright, in pixels.
            width: Likewise.

        Returns:
            (regions, 4) left, top, right and bottom, as shares of width and height; without area outside of the
            picture. None where the regions are no grid.
        """
        if self.region_grid is None:
            return None
        down, across = self.region_grid
        left, top, right, bottom = self.preprocessing.window(height, width)
        x, y = np.linspace(left, right, across + 1), np.linspace(top, bottom, down + 1)
        boxes = [(x[column], y[row], x[column + 1], y[row + 1]) for row in range(down) for column in range(across)]
        return np.clip(np.array(boxes), 0.0, 1.0)

    def inference(self, half: bool) -> Callable[[Tensor], Tensor]:
        """:meth:`forward` of evaluation mode, as fast as the side can; several threads may call it.

        Args:
            half: Compute in bfloat16.

        Returns:
            A function from prepared pictures to float32 features. It keeps to the weights of now.
        """

        def run(pictures: Tensor) -> Tensor:
            with torch.autocast(pictures.device.type, torch.bfloat16, enabled=half):
                return torch.as_tensor(self(pictures)).float()

        return run


class TextSide(nn.Module, ABC):
    """From texts to vectors, by way of token numbers.

    Attributes:
        width: Of a vector.
        longest: Tokens of a text that are read at most, those that frame it included; None for any number.
        pad_number: The token number that fills a batch.
        compiles: ``torch.compile`` takes its forward as a whole.
        quick: Vectors take so little to compute that none is kept on a disk.
    """

    width: int
    longest: int | None = None
    pad_number: int = 0
    compiles: ClassVar[bool] = False
    quick: ClassVar[bool] = False

    @abstractmethod
    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text, cut to :attr:`longest`."""

    @property
    def token_rows(self) -> int:
        """Rows of a table of all tokens, those that fill a batch included: one above the largest number."""
        words = Tokenizer.from_str(self.files()[TOKENIZER]).get_vocab()
        return 1 + max(self.pad_number, *words.values())

    @abstractmethod
    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest) int64 token numbers, padded on the right, and (n,) lengths, to (n, width) float32."""

    @property
    def state_width(self) -> int:
        """Of the vector of a token; see :meth:`states`."""
        return self.width

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The vectors of the tokens, before they become one vector of the text.

        Args:
            tokens: As :meth:`forward` takes them.
            lengths: Likewise.

        Returns:
            (n, longest, :attr:`state_width`) float32; what stands after the end of a text means nothing.

        Raises:
            UserError: If the side has none.
        """
        raise UserError("this text encoder gives no vectors of words, which models of regions read; take gru")

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text as they stand in it, one for each that :meth:`tokenise` gives.

        Those that do not stand in it, such as its beginning, are empty.

        Raises:
            UserError: If the side does not know them.
        """
        raise UserError("this text encoder gives no words of a text as they stand in it; take gru or transformer")

    @abstractmethod
    def identity(self) -> str:
        """Everything but weights and configuration that a vector depends on, such as the vocabulary, as text."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that a vector depends on besides the text."""

    def too_long(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Positions of the texts of which only the beginning is read, ascending."""
        return np.zeros(0, dtype=np.int64)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that were never learnt, each once."""
        return ()

    @property
    def known_words(self) -> Collection[str]:
        """The whole words that the vocabulary holds, in lower case."""
        return frozenset()

    def remarks(self) -> Sequence[str]:
        """Sentences on a new encoder for a person."""
        return ()

    def files(self) -> Mapping[str, str]:
        """Name and text of every file that ``restore`` of its configuration reads."""
        return {}
