"""Similarities as values, which training, evaluation, index and search take from a model.

A similarity defines how each side's vectors are prepared, once (such as brought to length 1), and how prepared vectors
are compared. A model gives prepared vectors, so nothing is normalised twice. Arrays are compared without torch, which
is imported when tensors are prepared or compared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import STRICT, by_name, on_command_line
from rungwise.similarity._arrays import order_array

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float32]


class Similarity(ABC):
    """A similarity of image vectors and text vectors.

    Attributes:
        kind: Name of the similarity in configurations.
        product: Whether prepared vectors are compared by their inner product and nothing else.
        metric: Name of the index metric that ranks prepared vectors alike, ``"cosine"`` or ``"inner"``; None where no
            index has one.
        bounds: Lowest and highest similarity that there can be.

    >>> import torch
    >>> similarity = Cosine()
    >>> similarity(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 1.0], [-3.0, 0.0]]))
    tensor([[ 0.7071, -1.0000]])
    """

    kind: str
    product: ClassVar[bool] = False
    metric: ClassVar[str | None] = None

    @property
    def bounds(self) -> tuple[float, float]:
        """None by default: minus and plus infinity."""
        return -math.inf, math.inf

    def images(self, vectors: Tensor) -> Tensor:
        """Prepare (n, D) image vectors of an encoder; unchanged by default."""
        return vectors

    def texts(self, vectors: Tensor) -> Tensor:
        """Prepare (m, D) text vectors of an encoder; unchanged by default."""
        return vectors

    @abstractmethod
    def block(self, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) similarities of (n, D) and (m, D) prepared vectors; differentiable."""

    @abstractmethod
    def array(self, images: Array, texts: Array) -> Array:
        """:meth:`block` of numpy arrays."""

    def of_metric(self, scores: Array) -> Array:
        """Convert the scores of an index that compares by :attr:`metric` to this similarity."""
        return scores

    def __call__(self, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) similarities of (n, D) and (m, D) vectors that are not prepared yet."""
        return self.block(self.images(images), self.texts(texts))


def _unit(vectors: Tensor) -> Tensor:
    from torch.nn import functional as F

    return F.normalize(vectors, dim=1)


class _UnitSides(Similarity):
    """Base of similarities whose sides are both brought to length 1."""

    def images(self, vectors: Tensor) -> Tensor:
        """Bring (n, D) vectors to length 1; a vector of zeros is unchanged."""
        return _unit(vectors)

    def texts(self, vectors: Tensor) -> Tensor:
        """Bring (m, D) vectors to length 1; a vector of zeros is unchanged."""
        return _unit(vectors)


class _Product(Similarity):
    """Inner product of prepared vectors."""

    product: ClassVar[bool] = True

    def block(self, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) inner products of (n, D) and (m, D) prepared vectors."""
        return images @ texts.T

    def array(self, images: Array, texts: Array) -> Array:
        """:meth:`block` of numpy arrays."""
        product: Array = np.asarray(images) @ np.asarray(texts).T
        return product


@dataclass(frozen=True)
class Cosine(_UnitSides, _Product):
    """Both sides have length 1 (VSE++, section 3).

    Attributes:
        kind: Name of the similarity in YAML.
    """

    __pydantic_config__ = STRICT
    metric: ClassVar[str | None] = "cosine"

    kind: Literal["cosine"] = "cosine"

    @property
    def bounds(self) -> tuple[float, float]:
        """-1 and 1."""
        return -1.0, 1.0


@dataclass(frozen=True)
class Inner(_Product):
    """Inner product, where only the text side is brought to length 1 (VSE0; VSE++, section 3).

    Attributes:
        kind: Name of the similarity in YAML.
    """

    __pydantic_config__ = STRICT
    metric: ClassVar[str | None] = "inner"

    kind: Literal["inner"] = "inner"

    def texts(self, vectors: Tensor) -> Tensor:
        """Bring (m, D) vectors to length 1; a vector of zeros is unchanged."""
        return _unit(vectors)


@dataclass(frozen=True)
class Order(Similarity):
    """Order embeddings: -||max(0, g(c) - f(i))||^2 (Vendrov et al. 2016; VSE++, section 3.7); at most 0.

    Both sides have length 1, as in the VSE++ program.

    Attributes:
        kind: Name of the similarity in YAML.
        root: Take the square root, as the authors' program does.
        absolute: Take the absolute value of every entry of both sides (Order0).

    >>> import torch
    >>> Order().block(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 4.0], [1.0, 1.0]]))
    tensor([[-4., -0.]])
    """

    __pydantic_config__ = STRICT

    kind: Literal["order"] = "order"
    root: bool = False
    absolute: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """Of sides of length 1: -4 and 0, or -1 and 0 where no entry is negative; roots of these with :attr:`root`."""
        farthest = 1.0 if self.absolute else 4.0
        return -math.sqrt(farthest) if self.root else -farthest, 0.0

    def images(self, vectors: Tensor) -> Tensor:
        """Bring (n, D) vectors to length 1, and take absolute values where ``absolute`` is set."""
        unit = _unit(vectors)
        return unit.abs() if self.absolute else unit

    def texts(self, vectors: Tensor) -> Tensor:
        """Prepare (m, D) vectors as :meth:`images` does."""
        return self.images(vectors)

    def block(self, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) order similarities of (n, D) and (m, D) prepared vectors."""
        from rungwise.similarity._order_tensors import order

        return order(images, texts, root=self.root)

    def array(self, images: Array, texts: Array) -> Array:
        """:meth:`block` of numpy arrays."""
        return order_array(np.asarray(images), np.asarray(texts), self.root)


@dataclass(frozen=True)
class ShiftedCosine(_UnitSides):
    """(1 + cosine) / 2, in 0..1 (CMAL2R, Eq. 1).

    Attributes:
        kind: Name of the similarity in YAML.
    """

    __pydantic_config__ = STRICT
    metric: ClassVar[str | None] = "cosine"

    kind: Literal["shifted_cosine"] = "shifted_cosine"

    @property
    def bounds(self) -> tuple[float, float]:
        """0 and 1."""
        return 0.0, 1.0

    def block(self, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) shifted cosines of (n, D) and (m, D) prepared vectors."""
        return (1 + images @ texts.T) / 2

    def array(self, images: Array, texts: Array) -> Array:
        """:meth:`block` of numpy arrays."""
        return self.of_metric(np.asarray(images) @ np.asarray(texts).T)

    def of_metric(self, scores: Array) -> Array:
        """Shift cosines."""
        return np.asarray((1 + scores) / 2, dtype=scores.dtype)


AnySimilarity = Annotated[
    Cosine | Inner | Order | ShiftedCosine,
    Field(discriminator="kind"),
    by_name,
    on_command_line(Cosine | Inner | Order | ShiftedCosine),
]
"""Type of a field that holds a similarity: its name (``order``), or a mapping (``{kind: order, root: true}``)."""
