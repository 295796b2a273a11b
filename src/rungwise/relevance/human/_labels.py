"""Class labels: an image and a caption are as relevant as their labels agree (Wikipedia and Pascal style)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.relevance._base import Degrees

if TYPE_CHECKING:
    from scipy import sparse

Degree = Literal["any", "jaccard"]


class Labels(Degrees):
    """R by shared labels: 1 or 0, or with ``degree="jaccard"`` the share that both have of the labels that one has.

    An item without labels has 0 with everything.

    Args:
        labels: (images,) the label of each image, or its several labels.
        image_of_caption: (captions,) the position of each caption's image, whose labels the caption has.
        caption_labels: (captions,) labels of the captions themselves, instead of ``image_of_caption``.
        degree: ``"any"``: 1 where a label is shared; ``"jaccard"``: shared labels by labels of either.

    >>> Labels(["art", "sport"], [0, 1, 1]).dense()
    array([[1., 0., 0.],
           [0., 1., 1.]], dtype=float32)
    >>> Labels([("dog", "grass"), ("dog",)], [0, 1], degree="jaccard").dense()
    array([[1. , 0.5],
           [0.5, 1. ]], dtype=float32)
    """

    def __init__(
        self,
        labels: Sequence[str | int | Sequence[str | int]],
        image_of_caption: Sequence[int] | ArrayLike | None = None,
        *,
        caption_labels: Sequence[str | int | Sequence[str | int]] | None = None,
        degree: Degree = "any",
    ) -> None:
        if (image_of_caption is None) == (caption_labels is None):
            raise UserError("labels: give image_of_caption or caption_labels, one of them")
        if degree not in ("any", "jaccard"):
            raise UserError(f"labels: degree must be 'any' or 'jaccard', got {degree!r}")
        of_images = [labels_of(one) for one in labels]
        if caption_labels is not None:
            of_captions = [labels_of(one) for one in caption_labels]
        else:
            owners = np.asarray(image_of_caption, np.int64)
            if owners.size and not 0 <= owners.min() <= owners.max() < len(of_images):
                raise UserError(
                    f"labels: image_of_caption runs {owners.min()}..{owners.max()} but there are labels of"
                    f" {len(of_images)} images; give labels for each image"
                )
            of_captions = [of_images[owner] for owner in owners.tolist()]
        super().__init__((len(of_images), len(of_captions)))
        self.image_of_caption = None if caption_labels is not None else owners
        self.degree = degree
        names = sorted({label for some in (*of_images, *of_captions) for label in some})
        column = {name: number for number, name in enumerate(names)}
        self._images, self._captions = _incidence(of_images, column), _incidence(of_captions, column)
        self._names = names

    def options(self) -> Mapping[str, Any]:
        """The rule that makes a degree of labels."""
        return {"degree": self.degree}

    def hashed(self) -> Iterator[bytes]:
        """Names of the labels, and the items that have each."""
        yield "\0".join(self._names).encode("utf-8", "surrogatepass")
        for side in (self._images, self._captions):
            yield side.indptr.astype("<i8").tobytes()
            yield side.indices.astype("<i8").tobytes()

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) float32 degrees in 0..1."""
        rows = self._images[np.asarray(images, np.int64)]
        columns = self._captions[np.asarray(captions, np.int64)]
        shared: NDArray[np.float32] = (rows @ columns.T).toarray()
        if self.degree == "any":
            return np.minimum(shared, np.float32(1))
        either = rows.sum(axis=1)[:, None] + columns.sum(axis=1)[None, :] - shared
        return np.asarray(np.divide(shared, either, out=np.zeros_like(shared), where=either > 0))


def labels_of(given: str | int | Sequence[str | int]) -> tuple[str, ...]:
    """The labels of one item as texts, each once."""
    return (str(given),) if isinstance(given, str | int | np.integer) else tuple(dict.fromkeys(map(str, given)))


def _incidence(labels: Sequence[tuple[str, ...]], column: Mapping[str, int]) -> sparse.csr_array:
    ends = np.cumsum([0, *map(len, labels)])
    columns = np.array([column[label] for some in labels for label in sorted(some)], np.int64)
    from scipy import sparse  # takes half a second, which a list of the sources does not need

    return sparse.csr_array((np.ones(len(columns), np.float32), columns, ends), shape=(len(labels), len(column)))
