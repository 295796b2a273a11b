"""A joint model's own similarity as a source of relevance: what the model believes, and no more.

Such degrees teach another model, or a smaller one, what this one has learnt (distillation). They cannot judge it: they
carry its fingerprint (:attr:`~rungwise.relevance.Degrees.models`), and an evaluation of the same model refuses
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, digest_of_parts
from rungwise.core.compute import steady_products
from rungwise.relevance._array import ArrayRelevance
from rungwise.relevance._base import Block
from rungwise.relevance._captions import hash_of_captions
from rungwise.similarity import unit_rows


class ModelScores(ArrayRelevance):
    """A model's similarity S as relevance R.

    Args:
        scores: (images, captions) numbers, or an object whose ``block`` takes positions of images and of captions.
        image_of_caption: (captions,) the position of each caption's image.
        model: The model's fingerprint, as results name it.
        images: Number of images.
        scored: Hash of what was scored, pictures included; needed where ``scores`` is an object, whose numbers cannot
            be hashed.
        captions: (captions,) texts, whose hash ties the degrees to their collection; None leaves that open.
        made_of: Fingerprints of the models that this one is made of, such as the members of an average.

    >>> source = ModelScores(np.array([[0.9, 0.1], [0.2, 0.8]]), [0, 1], model="5eed", images=2)
    >>> source.block([1], [0, 1]), sorted(source.models)
    (array([[0.2, 0.8]], dtype=float32), ['5eed'])
    """

    complete = True

    def __init__(
        self,
        scores: Any,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        model: str,
        images: int,
        scored: str = "",
        captions: Sequence[str] | None = None,
        made_of: Collection[str] = (),
    ) -> None:
        owners = np.asarray(image_of_caption, np.int64)
        super().__init__(scores, owners, images, "scores")
        if not model:
            raise UserError("model scores: no model is named; give the fingerprint of the model that scored")
        if self._matrix is None and not scored:
            raise UserError("model scores: scored= is missing; say by a hash what was scored")
        self.model = model
        self.made_of = frozenset(made_of) - {model}
        self.captions_hash = None if captions is None else hash_of_captions(captions, owners)
        self._scored = scored

    @classmethod
    def of_vectors(
        cls,
        image_vectors: ArrayLike,
        text_vectors: ArrayLike,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        model: str,
        captions: Sequence[str] | None = None,
    ) -> ModelScores:
        """The cosine of both sides' vectors: (images, D) and (captions, D), of any lengths.

        >>> ModelScores.of_vectors([[2, 0], [0, 1]], [[1, 1], [0, 3]], [0, 1], model="5eed").dense().round(2)
        array([[0.71, 0.  ],
               [0.71, 1.  ]], dtype=float32)
        """
        sides = [np.asarray(side, np.float32) for side in (image_vectors, text_vectors)]
        if any(side.ndim != 2 for side in sides) or sides[0].shape[1] != sides[1].shape[1]:
            shapes = " and ".join(str(side.shape) for side in sides)
            raise UserError(f"model scores: vectors of shapes {shapes}; give (images, D) and (captions, D)")
        if not all(np.isfinite(side).all() for side in sides):
            raise UserError("model scores: a vector holds NaN or infinity; make the vectors anew")
        scored = digest_of_parts(["cosine", *sides])
        cosines = _Cosines(*map(unit_rows, sides))
        return cls(cosines, image_of_caption, model=model, images=len(sides[0]), scored=scored, captions=captions)

    @property
    def models(self) -> frozenset[str]:
        """The model, and those that it is made of."""
        return self.made_of | {self.model}

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 scores; a UserError if one is not finite."""
        found = super().block(images, captions)
        if not np.isfinite(found).all():
            raise UserError("model scores: a score is NaN or infinite; score the pairs anew")
        return found

    def title(self) -> str:
        """The source's name and the start of its hash, and the model."""
        return f"{self.source_name} of model {self.model[:12]}, hash {self.content_hash()[:16]}"

    def options(self) -> Mapping[str, Any]:
        """The model, and what it scored where that was said."""
        return {"model": self.model} | ({"scored": self._scored} if self._scored else {})

    def hashed(self) -> Iterator[bytes]:
        """The image of each caption, and the scores where they are a matrix."""
        yield np.ascontiguousarray(self.image_of_caption, "<i8").tobytes()
        yield from super().hashed()


class _Cosines:
    """Cosines of vectors of length 1, a block at a time."""

    def __init__(self, images: Block, texts: Block) -> None:
        self._images, self._texts = images, texts
        self.shape = len(images), len(texts)

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        return steady_products(self._images[np.asarray(images)], self._texts[np.asarray(captions)])
