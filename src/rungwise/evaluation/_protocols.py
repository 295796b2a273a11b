"""Named protocols: the galleries, what counts as right, and checks that the data fit.

============================ =============== ===================== ======================== =======================
name                         gallery         captions              right is                 measured with
============================ =============== ===================== ======================== =======================
full                         everything      all                   written for the image    R@1,5,10 MedR MeanR
coco-5k                      5,000 images    5 an image            written for the image    R@1,5,10 MedR MeanR
coco-1k-5fold                5 x 1,000       5 an image            written for the image    R@1,5,10 MedR MeanR
flickr30k-1k, flickr8k-1k    1,000 images    5 an image            written for the image    R@1,5,10 MedR MeanR
one-caption-per-image        everything      first of each image   written for the image    R@1,5,10 MedR MeanR
cxc                          5,000 images    all                   given (CxC's files)      R@1,5,10
eccv                         5,000 images    all                   given (ECCV's files)     MAP@R RPrecision R@1
labels                       everything      all                   shares a class label     MAP MAP@50
============================ =============== ===================== ======================== =======================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr

WRITTEN_FOR = "captions written for the image"
"""What counts as right without human judgements or labels."""

_SURPLUS = 0.001
"""Share of surplus captions that still make the same test set: COCO's 5,000 images have 25,010."""


@dataclass(frozen=True)
class Fold:
    """One gallery, in which all are ranked against all: ascending positions of images, and of their captions."""

    images: NDArray[np.int64]
    captions: NDArray[np.int64]

    __repr__ = short_repr


@dataclass(frozen=True)
class Protocol(ABC):
    """A way to cut data into galleries, over which numbers are averaged.

    Attributes:
        name: Name in results.
        right: Description of what counts as right, for results.
        measures: Names of the measures taken by default.
        takes_positives: Whether right candidates must be given; otherwise they must not be.
    """

    name: str
    right: ClassVar[str] = WRITTEN_FOR
    measures: ClassVar[tuple[str, ...]] = ("R@1", "R@5", "R@10", "MedR", "MeanR", "rsum")
    takes_positives: ClassVar[bool] = False

    @abstractmethod
    def folds(self, image_of_caption: NDArray[np.int64], images: int) -> list[Fold]:
        """Galleries of the data; UserError says why the data do not fit."""

    def check_positives(self, given: bool) -> None:
        """Refuse right candidates that are given; :class:`GivenPositives` requires them instead."""
        if given:
            raise UserError(
                f"protocol {self.name} takes the {self.right} as right; leave positives out, or take"
                " protocol 'cxc', 'eccv' or 'labels'"
            )

    def _check_captions(self, captions: int, images: int, per_image: int | None) -> None:
        if per_image is not None and not captions_fit(captions, images, per_image):
            raise self._refusal(
                f"it wants {per_image} captions an image, {per_image * images:,}, and there are {captions:,}"
            )

    def _refusal(self, why: str) -> UserError:
        return UserError(f"protocol {self.name} does not fit the data: {why}; use protocol 'full' or other data")


@dataclass(frozen=True)
class Full(Protocol):
    """One gallery with every image and every caption.

    Attributes:
        size: Number of images that the name promises; None takes any.
        per_image: Number of captions per image that the name promises; None takes any.

    >>> [fold] = Full("full").folds(np.array([0, 0, 1]), 2)
    >>> fold.captions
    array([0, 1, 2])
    """

    size: int | None = None
    per_image: int | None = None

    def folds(self, image_of_caption: NDArray[np.int64], images: int) -> list[Fold]:
        """One gallery with everything."""
        if self.size not in (None, images):
            raise self._refusal(f"it wants {self.size} images and there are {images}")
        self._check_captions(len(image_of_caption), images, self.per_image)
        return [Fold(np.arange(images), np.arange(len(image_of_caption)))]


@dataclass(frozen=True)
class ConsecutiveFolds(Protocol):
    """Consecutive blocks of images, each with its captions (COCO 5-fold 1K: the field's habit since VSE++).

    Attributes:
        count: Number of blocks.
        size: Number of images in each block.
        per_image: Number of captions per image that the name promises; None takes any.

    >>> [first, second] = ConsecutiveFolds("halves", count=2, size=1).folds(np.array([1, 0, 1]), 2)
    >>> second.images, second.captions
    (array([1]), array([0, 2]))
    """

    count: int = 5
    size: int = 1000
    per_image: int | None = None

    @property
    def _wish(self) -> str:
        return f"it wants {self.count} x {self.size} images"

    def folds(self, image_of_caption: NDArray[np.int64], images: int) -> list[Fold]:
        """``count`` galleries of ``size`` images."""
        if images != self.count * self.size:
            raise self._refusal(f"{self._wish} and there are {images}")
        self._check_captions(len(image_of_caption), images, self.per_image)
        of_block = image_of_caption // self.size
        blocks = np.arange(images).reshape(self.count, self.size)
        return [Fold(block, np.flatnonzero(of_block == number)) for number, block in enumerate(blocks)]


@dataclass(frozen=True)
class FirstBlock(ConsecutiveFolds):
    """The first of the consecutive blocks alone: COCO's first 1,000 test images, as some tables take them.

    Attributes:
        one_caption: Take the first caption of each image alone.

    >>> [first] = FirstBlock("first", count=2, size=1).folds(np.array([1, 0, 0]), 2)
    >>> first.images, first.captions
    (array([0]), array([1, 2]))
    """

    one_caption: bool = False

    @property
    def _wish(self) -> str:
        return f"it takes the first {self.size} of {self.count * self.size} images,"

    def folds(self, image_of_caption: NDArray[np.int64], images: int) -> list[Fold]:
        """One gallery of the first ``size`` images."""
        first = super().folds(image_of_caption, images)[0]
        if not self.one_caption:
            return [first]
        own = OneCaptionPerImage(self.name).folds(image_of_caption, images)[0]
        return [Fold(first.images, np.intersect1d(first.captions, own.captions))]


@dataclass(frozen=True)
class OneCaptionPerImage(Protocol):
    """Each image with the first of its captions, as the coherent score was published (Zhou et al. 2020).

    >>> [fold] = OneCaptionPerImage("one-caption-per-image").folds(np.array([1, 0, 1]), 2)
    >>> fold.captions
    array([0, 1])
    """

    def folds(self, image_of_caption: NDArray[np.int64], images: int) -> list[Fold]:
        """One gallery with as many captions as images."""
        owners, first = np.unique(image_of_caption, return_index=True)
        if len(owners) < images:
            missing = np.setdiff1d(np.arange(images), owners)
            raise self._refusal(f"{len(missing)} images have no caption, the first is image {missing[0]}")
        return [Fold(np.arange(images), np.sort(first))]


@dataclass(frozen=True)
class GivenPositives(Full):
    """One gallery with everything, where right candidates are given from human judgements or shared labels."""

    takes_positives: ClassVar[bool] = True

    def check_positives(self, given: bool) -> None:
        """Refuse to go on without right candidates."""
        if not given:
            raise UserError(f"protocol {self.name} needs {self.right}; {self._remedy}")

    @property
    def _remedy(self) -> str:
        return "give positives= (positives_from_json)"


class CrissCrossed(GivenPositives):
    """CxC (Parekh et al. 2021): COCO's 5,000 test images with human ratings as right; R@K counts any hit."""

    right: ClassVar[str] = "CxC's positives"
    measures: ClassVar[tuple[str, ...]] = ("R@1", "R@5", "R@10")


class ECCVCaption(GivenPositives):
    """ECCV Caption (Chun et al. 2022): COCO's 5,000 test images; queries that were not checked are left out."""

    right: ClassVar[str] = "ECCV Caption's positives"
    measures: ClassVar[tuple[str, ...]] = ("MAP@R", "RPrecision", "R@1")


class SharedLabels(GivenPositives):
    """Everything that shares a class label is right; MAP of the full list and of 50 (Wikipedia and Pascal style)."""

    right: ClassVar[str] = "items that share a class label"
    measures: ClassVar[tuple[str, ...]] = ("MAP", "MAP@50")

    @property
    def _remedy(self) -> str:
        return "give positives= (positives_from_labels)"


PROTOCOLS: tuple[Protocol, ...] = (
    Full("full"),
    Full("coco-5k", 5000, per_image=5),
    ConsecutiveFolds("coco-1k-5fold", per_image=5),
    FirstBlock("coco-1k", per_image=5),
    FirstBlock("coco-1k-one-caption", per_image=5, one_caption=True),
    Full("flickr30k-1k", 1000, per_image=5),
    Full("flickr8k-1k", 1000, per_image=5),
    OneCaptionPerImage("one-caption-per-image"),
    CrissCrossed("cxc", 5000),
    ECCVCaption("eccv", 5000),
    SharedLabels("labels"),
)
"""The named protocols."""


def captions_fit(captions: int, images: int, per_image: int) -> bool:
    """Whether the number of captions fits a test set of so many images; a small surplus is allowed.

    >>> captions_fit(25_000, 5000, 5), captions_fit(25_010, 5000, 5), captions_fit(24_990, 5000, 5)
    (True, True, False)
    """
    return 0 <= captions - per_image * images <= _SURPLUS * per_image * images


def protocol_named(name: str | Protocol) -> Protocol:
    """The protocol of this name; a protocol is returned unchanged.

    >>> protocol_named("coco-1k-5fold")
    ConsecutiveFolds(name='coco-1k-5fold', count=5, size=1000, per_image=5)
    """
    if isinstance(name, Protocol):
        return name
    for protocol in PROTOCOLS:
        if protocol.name == name:
            return protocol
    raise UserError(f"protocol {name!r} is not known; there are {', '.join(p.name for p in PROTOCOLS)}")
