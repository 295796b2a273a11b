"""Human positives: pairs that people called right, counted beside the annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.evaluation._protocols import Fold
from rungwise.evaluation.judgements._positives import RightAnswers
from rungwise.evaluation.judgements._record import JudgementRecord
from rungwise.metrics import Direction, Positives
from rungwise.relevance.human import place_judgements


@dataclass(frozen=True)
class HumanPositives:
    """Pairs that people called right.

    What the annotation calls right stays right, whatever people judged.

    Attributes:
        pairs: (n, 2) positions of image and caption.
        graders: Names of those who judged.
        right_from: The mean grade from which a pair counts as right.
        hashes: SHA-256 of each judgement file, by its name.
        issues: Judgements that were left out.

    >>> found = HumanPositives(np.array([[0, 2]]), ("Ada", "Bo"), 3.0, {"judgements.jsonl": "5eed"})
    >>> str(found)
    '1 pair that 2 people called right (mean grade from 3, judgements 253e2c69fc07d2cf)'
    """

    pairs: NDArray[np.int64]
    graders: tuple[str, ...] = ()
    right_from: float = 3.0
    hashes: Mapping[str, str] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __str__(self) -> str:
        """The line that stands in a result."""
        digest = digest_of_parts([" ".join(sorted(self.hashes.values()))])[:16]
        pairs = f"{len(self.pairs)} pair{'' if len(self.pairs) == 1 else 's'}"
        people = f"{len(self.graders)} people" if len(self.graders) > 1 else "a person"
        return f"{pairs} that {people} called right (mean grade from {self.right_from:g}, judgements {digest})"

    def beside(self, right: RightAnswers, fold: Fold) -> dict[Direction, Positives]:
        """Positives of a gallery together with what people called right.

        Args:
            right: Positives already known, with positions in the gallery.
            fold: Images and captions of the collection that make the gallery.

        >>> from rungwise.metrics import positives_of
        >>> owners = np.array([0, 1, 1])
        >>> both = HumanPositives(np.array([[0, 2]])).beside(positives_of(owners, 2), Fold(np.arange(2), np.arange(3)))
        >>> both["i2t"].candidate, both["t2i"].counts
        (array([0, 2, 1, 2]), array([1, 1, 2]))
        """
        image, has_image = _places(fold.images, self.pairs[:, 0])
        caption, has_caption = _places(fold.captions, self.pairs[:, 1])
        here = has_image & has_caption
        image, caption = image[here], caption[here]
        return {
            "i2t": _with(right["i2t"], image, caption, len(fold.captions)),
            "t2i": _with(right["t2i"], caption, image, len(fold.images)),
        }

    def judging(self, added: Mapping[str, int]) -> JudgementRecord:
        """The record for a result; ``added`` counts, per direction, right answers beyond the annotation's."""
        return JudgementRecord(dict(self.hashes), self.graders, self.right_from, len(self.pairs), dict(added))


def read_human_positives(
    paths: Path | str | Sequence[Path | str], data: ImageCaptions, right_from: float | None = None
) -> HumanPositives:
    """Read human positives from judgement files or from the grades of an index.

    Args:
        paths: One file or several of one kind.
        data: The collection that was judged.
        right_from: The mean grade from which a pair counts as right. Default: 3 of the four grades of a judgement file,
            1 of the grades of an index.

    Raises:
        UserError: If :func:`~rungwise.relevance.human.place_judgements` refuses the files, or ``right_from``
            is no number.
    """
    placed = place_judgements(paths, data)
    bound = placed.right_from if right_from is None else right_from
    if not np.isfinite(bound):
        raise UserError(f"right_from must be a number, got {bound}")
    return HumanPositives(placed.right(bound), placed.graders, bound, placed.hashes, placed.issues)


def _places(of: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Places of positions in an ascending list, and whether each is in it."""
    if not len(of):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(of, wanted), len(of) - 1)
    return place, of[place] == wanted


def _with(right: Positives, query: NDArray[np.int64], candidate: NDArray[np.int64], gallery: int) -> Positives:
    own = right.query * gallery + right.candidate
    keys = np.union1d(own, query * gallery + candidate)
    counts = np.bincount(keys // gallery, minlength=len(right.counts)) if gallery else np.zeros(len(right.counts), int)
    return Positives(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), keys % max(gallery, 1))
