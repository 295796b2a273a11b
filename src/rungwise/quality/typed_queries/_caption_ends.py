"""A calibration that judges captions as a search does in an index that has the other captions of the collection."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Calibration, Known
from rungwise.core.output import short_repr
from rungwise.metrics import Direction, JudgedQueries, Scores
from rungwise.quality.typed_queries._evidence import TextEvidence
from rungwise.quality.typed_queries._texted_pictures import TextedPictures


@dataclass(frozen=True, eq=False)
class CaptionEnds:
    """A calibration that judges captions as a search does in an index with the other captions of the collection.

    What the texts of the hits say of a query is worked out when it is judged: of all queries at once it would fill
    captions times images. Images as queries are judged by their scores alone.

    Attributes:
        calibration: The calibration that judges.
        collection: The images and captions.
        evidence: What their texts say.
        images: Positions of the images that are ranked.
        captions: Positions of the captions that are ranked. Hits have the others too.
    """

    calibration: Calibration
    collection: TextedPictures
    evidence: TextEvidence
    images: NDArray[np.int64]
    captions: NDArray[np.int64]

    __repr__ = short_repr

    @classmethod
    def of(cls, calibration: Calibration, collection: TextedPictures) -> CaptionEnds:
        """The calibration for a whole collection."""
        images, captions = np.arange(len(collection.ids)), np.arange(len(collection.captions))
        return cls(calibration, collection, TextEvidence(collection), images, captions)

    def of_part(self, images: NDArray[np.int64], captions: NDArray[np.int64]) -> CaptionEnds:
        """The method for a part of the collection that is ranked by itself, by positions in the collection."""
        return replace(self, images=images, captions=captions)

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Degrees and cuts of some queries of one direction; see :meth:`rungwise.calibration.Calibration.judge`."""
        known = None
        if direction == "t2i":
            # One query at a time: the rounding of a product depends on its shape, and no number may depend on blocks.
            asked = self.captions[queries]
            known = [self._known(asked[at : at + 1]).of_hits(self.images) for at in range(len(asked))]
        return self.calibration.judge(scores, direction, np.arange(len(queries)), known)

    def __str__(self) -> str:
        return f"{self.calibration}; of captions, with the other captions of their hits"

    def _known(self, caption: NDArray[np.int64]) -> Known:
        texts = [self.collection.captions[at] for at in caption.tolist()]
        return self.evidence.known(texts, self.collection.caption_vectors[caption], caption)[0]
