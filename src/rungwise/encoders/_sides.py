"""The two sides of a joint embedding: encoders of pictures and of texts, and the files that each saves.

A side is a torch module. Its configuration, a frozen dataclass chosen by ``kind``, builds it in two ways: ``build``
with the configured weights, and ``restore`` without weights, from the text files of a saved model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from rungwise.core import STRICT, Bounded, UserError
from rungwise.data.files import FeatureRows

if TYPE_CHECKING:
    from rungwise.encoders._preprocessing import Preprocessing

PREPROCESSING, TOKENIZER = "preprocessing.json", "tokenizer.json"
IMAGE_ENCODER, TEXT_ENCODER = "image_encoder.json", "text_encoder.json"
"""Names of the text files that sides keep in a saved model; no two sides of a model share one."""


class SavedFiles(Protocol):
    """The text files of a saved model, each checked before it is read."""

    @property
    def path(self) -> Path:
        """Path of the folder, for messages."""
        ...

    def text(self, name: str) -> str:
        """Text of a file."""
        ...

    def json(self, name: str) -> dict[str, Any]:
        """JSON object of a file."""
        ...


def require_words(texts: Sequence[str] | FeatureRows) -> Sequence[str]:
    """The texts of a collection, for a side that reads words.

    Raises:
        UserError: If the data have rows of features in their place.
    """
    if isinstance(texts, FeatureRows):
        raise UserError("the data have rows of features in place of texts; set model.text.kind: features")
    return texts


@dataclass(frozen=True)
class _SideConfig(Bounded):
    """What the configurations of both sides have in common."""

    __pydantic_config__ = STRICT

    @property
    def kind(self) -> str:
        """Name of the side in YAML and on the command line; each gives it as a field with a default."""
        return ""

    @property
    def frozen(self) -> bool:
        """Whether vectors are computed once and cached; otherwise the side is trained with the rest."""
        return True

    @property
    def l2_normalise(self) -> bool:
        """Whether vectors are normalised before the head."""
        return False


@dataclass(frozen=True)
class ImageSideConfig(_SideConfig, ABC):
    """Base of the configurations of image sides; one that is imported is named by its ``kind``.

    A configuration is a frozen dataclass with a default ``kind``, and says how the side is made anew and from a saved
    model. A field that changes no vector has the metadata ``ELSEWHERE`` of ``rungwise.core``.
    """

    @abstractmethod
    def build(self) -> ImageSide:
        """The side with the weights that the configuration names.

        Raises:
            UserError: If they cannot be loaded.
        """

    @abstractmethod
    def restore(self, files: SavedFiles) -> ImageSide:
        """The side of a saved model without its weights, from the text files that it gave (:meth:`ImageSide.files`)."""


@dataclass(frozen=True)
class TextSideConfig(_SideConfig, ABC):
    """Base of the configurations of text sides, as :class:`ImageSideConfig` is of image sides."""

    def of(self, texts: Sequence[str] | FeatureRows) -> TextSideConfig:
        """The configuration for these captions of the training split.

        Raises:
            UserError: If the data have rows of features in place of captions.
        """
        require_words(texts)
        return self

    @abstractmethod
    def build(self, texts: Sequence[str] | FeatureRows, dimension: int) -> TextSide:
        """The side with the weights that the configuration names.

        Args:
            texts: Captions of the training split, from which a vocabulary may come.
            dimension: Width of the space of the model.

        Raises:
            UserError: If the weights cannot be loaded, or the texts do not fit.
        """

    @abstractmethod
    def restore(self, files: SavedFiles, dimension: int) -> TextSide:
        """The side of a saved model without its weights, from the text files that it gave (:meth:`TextSide.files`)."""


class ImageSide(nn.Module, ABC):
    """An encoder of prepared pictures, or of rows of features, as feature vectors.

    Attributes:
        features: Width of a feature.
        preprocessing: Preprocessing of pictures; None where rows of features stand for pictures.
        compiles: Whether ``torch.compile`` takes its forward as a whole.
        weights_warning: Sentence on what the file of its weights says otherwise than its configuration; empty where
            nothing, and for a saved model's side.
    """

    features: int
    preprocessing: Preprocessing | None
    compiles: ClassVar[bool] = False
    weights_warning: str = ""

    @abstractmethod
    def forward(self, rows: Tensor) -> Tensor:
        """(n, features) float32 features, from (n, 3, size, size) uint8 pixels or (n, ...) rows of features."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that a feature depends on besides the picture."""

    def under(self, config: Any) -> ImageSide:
        """The side with the same weights, under another configuration of views and training of the same network."""
        return self

    def remarks(self) -> Sequence[str]:
        """Sentences about this side before it is trained."""
        return ()

    def identity(self) -> str:
        """Text of everything that a feature depends on besides weights, configuration and preprocessing."""
        return ""

    def files(self) -> Mapping[str, str]:
        """Name and text of every file that the configuration's ``restore`` reads."""
        return {}


class PictureSide(ImageSide):
    """A side that reads pictures.

    Attributes:
        regions: Number of vectors for a picture; None where there is one, without regions.
        region_grid: Rows and columns of the regions in the prepared picture, row by row; None where they form no grid.
    """

    preprocessing: Preprocessing
    regions: int | None = None
    region_grid: tuple[int, int] | None = None

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """Shape of a feature: (features,), or (regions, features)."""
        return (self.features,) if self.regions is None else (self.regions, self.features)

    def region_boxes(self, height: int, width: int) -> NDArray[np.float64] | None:
        """(regions, 4) boxes of the regions in a picture: left, top, right and bottom as shares of width and height.

        A box is the region's cell in the grid, though the network sees more around it. It has no area outside of the
        picture. None where the regions form no grid.

        Args:
            height: Height of the upright picture in pixels.
            width: Width of the upright picture in pixels.
        """
        if self.region_grid is None:
            return None
        down, across = self.region_grid
        left, top, right, bottom = self.preprocessing.window(height, width)
        x, y = np.linspace(left, right, across + 1), np.linspace(top, bottom, down + 1)
        boxes = [(x[column], y[row], x[column + 1], y[row + 1]) for row in range(down) for column in range(across)]
        return np.clip(np.array(boxes), 0.0, 1.0)

    def inference(self, half: bool) -> Callable[[Tensor], Tensor]:
        """The fastest form of evaluation's :meth:`forward`, with the present weights; several threads may call it.

        Args:
            half: Whether to compute in bfloat16.

        Returns:
            A function from prepared pictures to float32 features.
        """

        def run(pictures: Tensor) -> Tensor:
            with torch.autocast(pictures.device.type, torch.bfloat16, enabled=half):
                return torch.as_tensor(self(pictures)).float()

        return run


class TextSide(nn.Module, ABC):
    """An encoder of texts as vectors, by way of token numbers.

    Attributes:
        width: Width of a vector.
        longest: Tokens of a text that are read at most, with those that frame it; None for any number.
        pad_number: The token number that fills a batch.
        compiles: Whether ``torch.compile`` takes its forward as a whole.
        quick: Whether vectors are so fast to compute that none is cached.
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
        """Rows of a table of all tokens, padding included: one above the largest number."""
        words = Tokenizer.from_str(self.files()[TOKENIZER]).get_vocab()
        return 1 + max(self.pad_number, *words.values())

    @abstractmethod
    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, width) float32 vectors, from (n, longest) int64 token numbers, padded on the right, and (n,) lengths."""

    @property
    def state_width(self) -> int:
        """Width of a token's vector in :meth:`states`."""
        return self.width

    def states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(n, longest, :attr:`state_width`) float32 vectors of the tokens; those after the end of a text mean nothing.

        Tokens and lengths are those of :meth:`forward`.
        """
        raise UserError("this text encoder gives no vectors of words, which models of regions read; take gru")

    def pieces(self, text: str) -> list[str]:
        """The tokens of a text, one for each number of :meth:`tokenise`, spelled as in the text.

        Tokens that are not in the text, such as its start, are empty.
        """
        raise UserError("this text encoder gives no words of a text as they stand in it; take gru or transformer")

    @abstractmethod
    def identity(self) -> str:
        """Text of everything that a vector depends on besides weights and configuration, such as the vocabulary."""

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
        """Whole words of the vocabulary, in lower case."""
        return frozenset()

    def remarks(self) -> Sequence[str]:
        """Sentences about a new encoder."""
        return ()

    def files(self) -> Mapping[str, str]:
        """Name and text of every file that the configuration's ``restore`` reads."""
        return {}
