"""Sides without a network, for features that somebody else extracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core import Size, UserError, digest_of_parts
from rungwise.data import Issue
from rungwise.data.files import FeatureRows
from rungwise.encoders._sides import ImageSide, ImageSideConfig, SavedFiles, TextSide, TextSideConfig


@dataclass(frozen=True)
class FeatureConfig(ImageSideConfig):
    """Rows of features stand for pictures.

    Attributes:
        kind: Name of the side: rows of features, not pictures.
        width: Length of a feature; None takes that of the training data.
        l2_normalise: Normalise features before the linear layer, as the VSE++ program does.
    """

    place: ClassVar[str] = "image"

    kind: Literal["features"] = "features"
    width: Size | None = None
    l2_normalise: bool = True

    @property
    def frozen(self) -> bool:
        """True: features never change."""
        return True

    def of(self, rows: FeatureRows | None) -> FeatureConfig:
        """The configuration with the width of a collection's rows, unless one is set.

        Raises:
            UserError: If there is neither a width nor rows.
        """
        width = self.width or (rows.shape[-1] if rows is not None else None)
        if width is None:
            raise UserError(
                "model.image.kind is features, but the data have picture files and no rows of features; set"
                " model.image to a backbone"
            )
        return replace(self, width=width)

    def build(self) -> FeatureInput:
        """The side for rows of :attr:`width`, which must be known."""
        assert self.width is not None
        return FeatureInput(self.width)

    def restore(self, files: SavedFiles) -> FeatureInput:
        """The side of a saved model."""
        if self.width is None:
            raise UserError(f"{files.path}: model.image.width is missing in config.json; copy the folder anew")
        return self.build()


class FeatureInput(ImageSide):
    """Features of ``width`` numbers, or those of regions, passed through."""

    preprocessing = None

    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = width

    def fingerprint(self) -> str:
        """Hash of the width alone."""
        return digest_of_parts([f"features {self.features}"])

    def forward(self, rows: Tensor) -> Tensor:
        """(n, D) or (n, regions, D) features in float32."""
        return rows.float()

    def read(self, features: FeatureRows) -> ReadFeatures:
        """Rows of a collection, checked as they are taken."""
        if features.shape[-1] != self.features:
            raise UserError(
                f"{features.file}: features of length {features.shape[-1]}, but the model reads features"
                f" of length {self.features}; give those of the extractor that it was trained with"
            )
        return ReadFeatures(features)


@dataclass(frozen=True)
class TextFeatureConfig(TextSideConfig):
    """Rows of features stand for texts.

    Attributes:
        kind: Name of the side: rows of features, not words.
        width: Length of a feature; None takes that of the training data.
        l2_normalise: Normalise features before the head.
    """

    place: ClassVar[str] = "text"

    kind: Literal["features"] = "features"
    width: Size | None = None
    l2_normalise: bool = False

    @property
    def frozen(self) -> bool:
        """True: features never change."""
        return True

    def of(self, texts: Sequence[str] | FeatureRows) -> TextFeatureConfig:
        """The configuration with the width of a collection's rows, unless one is set.

        Raises:
            UserError: If the data have words and no rows.
        """
        if not isinstance(texts, FeatureRows):
            raise UserError("model.text.kind is features, but the data have captions in words; set model.text to gru")
        return replace(self, width=self.width or texts.shape[-1])

    def build(self, texts: Sequence[str] | FeatureRows, dimension: int) -> TextFeatureInput:
        """The side for rows of :attr:`width`, which must be known."""
        assert self.width is not None
        return TextFeatureInput(self.width)

    def restore(self, files: SavedFiles, dimension: int) -> TextFeatureInput:
        """The side of a saved model."""
        if self.width is None:
            raise UserError(f"{files.path}: model.text.width is missing in config.json; copy the folder anew")
        return TextFeatureInput(self.width)


class TextFeatureInput(TextSide):
    """Features of ``width`` numbers in place of texts, passed through."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Refuse: the side reads no words."""
        raise UserError(
            "the model was trained on rows of features in place of texts and reads no words; give features of the same"
            " kind"
        )

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Refuse, like :meth:`tokenise`."""
        raise UserError("the model reads rows of features in place of texts")

    def identity(self) -> str:
        """Empty, since there is no vocabulary."""
        return ""

    def fingerprint(self) -> str:
        """Hash of the width."""
        return digest_of_parts([f"text features {self.width}"])

    def read(self, features: FeatureRows) -> ReadFeatures:
        """Rows of a collection, checked as they are taken."""
        if features.shape[1:] != (self.width,):
            raise UserError(
                f"{features.file}: features of shape {features.shape[1:]}, but the model reads features"
                f" of length {self.width} in place of texts; give those of the extractor that it was trained with"
            )
        return ReadFeatures(features)


class ReadFeatures:
    """Rows of features as a model's input; all rows can be read, and each is checked when it is taken."""

    def __init__(self, features: FeatureRows) -> None:
        self.source = features
        self.kept: NDArray[np.int64] = np.arange(len(features))
        self.issues: tuple[Issue, ...] = ()
        self.computed = 0
        self.seconds = 0.0

    def __len__(self) -> int:
        """Number of images."""
        return len(self.kept)

    def take(self, positions: NDArray[np.int64]) -> Tensor:
        """(len(positions), ...) rows of these images.

        Raises:
            UserError: If one holds NaN or infinity, or numbers too large for float32.
        """
        rows = self.source[np.asarray(positions)]
        if rows.dtype != np.float16:
            with np.errstate(over="ignore"):  # to infinity, which is refused
                rows = rows.astype(np.float32, copy=False)
        finite = np.isfinite(rows).reshape(len(rows), -1).all(axis=1)
        if not finite.all():
            place = self.source.place(int(np.asarray(positions)[~finite][0]))
            raise UserError(f"{place} (from 0): holds numbers that are not finite in float32; extract the row anew")
        return torch.from_numpy(rows)
