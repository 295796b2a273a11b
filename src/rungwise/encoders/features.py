"""Image side without a network: features that somebody else extracted, as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.core.configuration import STRICT, check_size
from rungwise.core.errors import UserError
from rungwise.data.collection import Issue
from rungwise.data.features import FeatureRows, place_of


@dataclass(frozen=True)
class FeatureConfig:
    """Rows of features stand for pictures.

    Attributes:
        kind: Rows of features; the other kind is pictures.
        width: Length of a feature; None takes that of the training data.
        l2_normalise: Normalise features before the linear layer, as the VSE++ program does.
    """

    __pydantic_config__ = STRICT

    kind: Literal["features"] = "features"
    width: int | None = None
    l2_normalise: bool = True

    def __post_init__(self) -> None:
        if self.width is not None:
            check_size("image.width", self.width)


class FeatureInput(nn.Module):
    """Vectors as they are; of several regions, their mean.

    Args:
        width: Length of a feature.

    >>> FeatureInput(3)(torch.tensor([[[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]]))
    tensor([[2., 2., 2.]])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = width

    def forward(self, rows: Tensor) -> Tensor:
        """(n, D) or (n, regions, D) to (n, D) float32."""
        exact = rows.float()
        return exact.mean(dim=1) if exact.ndim == 3 else exact

    def read(self, features: FeatureRows) -> ReadFeatures:
        """Rows of a collection, checked as they are taken.

        Raises:
            UserError: If they are not as long as this model's.
        """
        if features.shape[-1] != self.features:
            raise UserError(
                f"{place_of(features.parts[0])}: features of length {features.shape[-1]}, but the model reads features"
                f" of length {self.features}; give those of the extractor that it was trained with"
            )
        return ReadFeatures(features)


class ReadFeatures:
    """Rows of features as a model reads them: every row is there, and is looked at when it is taken.

    Attributes:
        kept: All positions.
        issues: None.
        computed: 0.
        seconds: 0.

    >>> ReadFeatures(FeatureRows(np.eye(3))).take(np.array([2])).tolist()
    [[0.0, 0.0, 1.0]]
    """

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
