"""Settings of fitted methods, and the sizes of what a fit found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rungwise.core import STRICT, Bounded, Natural, NotNegative, Size, SomeShare, by_name, on_command_line
from rungwise.encoders import FeatureConfig, TextFeatureConfig
from rungwise.models.io import ModelConfig
from rungwise.models.joint import AnyImageSide, AnyTextSide
from rungwise.similarity import Cosine


@dataclass(frozen=True)
class NoKernel:
    """No kernel: the method is linear.

    Attributes:
        kind: Name of the kernel.
    """

    __pydantic_config__ = STRICT

    kind: Literal["none"] = "none"


@dataclass(frozen=True)
class Gaussian(Bounded):
    """k(x, y) = exp(-gamma ||x - y||^2), approximated by Nystroem's method from landmarks.

    With as many landmarks as items it is the kernel itself, up to the rounding of float32; with fewer, no matrix is
    larger than items x landmarks.

    Attributes:
        kind: Name of the kernel.
        gamma: How fast likeness falls with distance; None takes 1 / (width x variance of the features).
        landmarks: Largest number of training items that rows are compared with.
        seed: Seed that draws the landmarks.
    """

    __pydantic_config__ = STRICT

    kind: Literal["gaussian"] = "gaussian"
    gamma: Annotated[float, Field(gt=0, le=1e70)] | None = None
    landmarks: Size = 500
    seed: Natural = 0


AnyKernel = Annotated[
    Annotated[NoKernel | Gaussian, Field(discriminator="kind")], by_name, on_command_line(NoKernel | Gaussian)
]


@dataclass(frozen=True)
class Fitted(Bounded):
    """The sizes of a fit, needed to read a saved model.

    Attributes:
        components: Number of directions that were found, at most the ``dimension`` that was asked for.
        classes: Names of the classes; empty where none were read.
        single: Whether no item had more than one label.
        image_landmarks: Number of landmarks of the image side's kernel; 0 without one.
        text_landmarks: Number of landmarks of the text side's kernel; 0 without one.
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "fitted"

    components: Size
    classes: tuple[str, ...] = ()
    single: bool = True
    image_landmarks: Annotated[int, Field(ge=0, le=1 << 20)] = 0
    text_landmarks: Annotated[int, Field(ge=0, le=1 << 20)] = 0


@dataclass(frozen=True)
class SubspaceConfig(ModelConfig):
    """Settings of all fitted methods.

    Attributes:
        kind: Name of the method.
        image: The encoder of pictures, or features in its place.
        text: The encoder of captions, or features in its place.
        dimension: Width of the common space at most; a method that finds fewer directions has a narrower one.
        roots: Take square roots of features first, signs kept: the usual map of counts.
        pca: Share of each side's variance that principal components keep before the method; 1 keeps all features.
        kernel: none (linear), or gaussian: features are first mapped by their likeness to landmarks.
        fitted: Sizes of what a fit found; None before the fit.
    """

    __pydantic_config__ = STRICT

    image: AnyImageSide = field(default_factory=lambda: FeatureConfig(l2_normalise=False))
    text: AnyTextSide = field(default_factory=TextFeatureConfig)
    dimension: Size = 64
    roots: bool = False
    pca: SomeShare = 1.0
    kernel: AnyKernel = field(default_factory=NoKernel)
    fitted: Fitted | None = None

    @property
    def similarity(self) -> Cosine:
        """The cosine of centred projections."""
        return Cosine()


@dataclass(frozen=True)
class RidgeConfig(SubspaceConfig):
    """Settings of methods that invert a matrix.

    Attributes:
        regularisation: Ridge on every matrix that is inverted, as a share of its mean diagonal. With 0, directions in
            which a matrix is zero are left out.
    """

    __pydantic_config__ = STRICT

    regularisation: NotNegative = 1e-3
