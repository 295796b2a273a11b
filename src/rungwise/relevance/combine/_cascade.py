"""Coarse to fine: a fast source chooses the pairs of captions that a slow one scores (ladder loss, Zhou et al. 2020).

    score(a, b) = fine(a, b)          where coarse(a, b) >= threshold
                  0 or coarse(a, b)   elsewhere

Of all pairs of captions few are alike, so the slow source runs for a small share. Its scores go to a file as they come.
A second run reads them there, and an interrupted one goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.output import format_duration
from rungwise.relevance._base import Frequencies, Positions, joint_frequencies
from rungwise.relevance._caption_pairs import caption_positions
from rungwise.relevance._captions import CaptionPairSource, References
from rungwise.relevance.storage.pair_cache import Keys, PairCache

Below = Literal["zero", "coarse"]


class CaptionPairScorer(Protocol):
    """The contract of a cascade's fine source, kept by cross-encoders, bi-encoders and word vectors.

    Attributes:
        captions: (captions,) texts.
        symmetric: The order of two captions does not matter.
        fingerprint: Hash of what decides a score besides the two texts.
    """

    captions: tuple[str, ...]
    symmetric: bool

    @property
    def fingerprint(self) -> str: ...

    def pair_scores(self, first: Positions, second: Positions) -> NDArray[np.float32]: ...


@dataclass(frozen=True)
class CascadeReport:
    """Counts of a cascade's work so far.

    Attributes:
        considered: Pairs of captions the coarse source has scored.
        refined: Number of considered pairs at or above the threshold.
        scored: Pairs that the fine source ran for; the other refined ones were repeated or cached.
        pending: Pairs of the present block that the fine source has still to score.
        seconds: Time that the fine source took.
        all_pairs: Pairs of different texts that full scoring would run for.

    >>> report = CascadeReport(considered=900, refined=90, scored=80, pending=0, seconds=4.0, all_pairs=1000)
    >>> print(report)
    80 pairs scored of 90 refined of 900 considered, 20.0 pairs/s; all 1000 pairs would take 50 s
    """

    considered: int = 0
    refined: int = 0
    scored: int = 0
    pending: int = 0
    seconds: float = 0.0
    all_pairs: int = 0

    @property
    def pairs_per_second(self) -> float:
        """Pairs that the fine source scores in a second; NaN before it ran."""
        return self.scored / self.seconds if self.seconds > 0 else float("nan")

    @property
    def full_seconds(self) -> float:
        """Estimated time of the fine source for all pairs; NaN before it ran."""
        return self.all_pairs / self.pairs_per_second

    def __str__(self) -> str:
        done = f"{self.scored} pairs scored of {self.refined} refined of {self.considered} considered"
        if not self.scored:
            return done
        return (
            f"{done}, {self.pairs_per_second:.1f} pairs/s;"
            f" all {self.all_pairs} pairs would take {format_duration(self.full_seconds)}"
        )


class Cascade(CaptionPairSource):
    """R by a fine source for the pairs of captions that a coarse source finds alike.

    Args:
        coarse: Scores every pair; any source that scores a caption against a caption.
        fine: Scores the pairs that passed, of the same captions.
        threshold: Pairs with a coarse score of at least this are refined. 0.8 is the paper's, for its coarse source.
        below: What other pairs get: ``"zero"`` (the authors' program) or their ``"coarse"`` score.
        cache: File of refined scores, written every few seconds; it is made when missing and serves any number of
            sources and collections. None keeps scores as long as this object lives.
        reference: Which captions stand for an image, as in :class:`~rungwise.relevance.CaptionPairSource`.
        leave_one_out: A caption is no reference for itself.
        progress: Called with a report after every run of pairs.

    Attributes:
        report: Counts of the work so far.

    Raises:
        UserError: If the sources are of different captions, the coarse one scores no pairs of captions, the threshold
            is no number, or the cache is a file of another kind or cannot be written.

    >>> from rungwise.relevance.embedding import CBoW
    >>> from rungwise.language import WordVectors
    >>> vectors = WordVectors({"dog": 0, "cat": 1, "runs": 2}, np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32))
    >>> captions, owners = ["dog", "cat", "dog runs"], [0, 1, 2]
    >>> words = CBoW(captions, owners, vectors)
    >>> cascade = Cascade(words, words, threshold=0.9)
    >>> cascade.dense().round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 1.  , 0.99],
           [0.  , 0.99, 1.  ]], dtype=float32)
    >>> cascade.report.considered, cascade.report.refined, cascade.report.scored
    (9, 5, 4)
    """

    def __init__(
        self,
        coarse: CaptionPairSource,
        fine: CaptionPairScorer,
        *,
        threshold: float = 0.8,
        below: Below = "zero",
        cache: Path | str | None = None,
        reference: References = "max",
        leave_one_out: bool = False,
        progress: Callable[[CascadeReport], None] | None = None,
    ) -> None:
        if not isinstance(coarse, CaptionPairSource):
            raise UserError(
                f"cascade: {type(coarse).__name__} scores a caption against all captions of an image, so it cannot"
                " choose pairs of captions; take TfIdf, CBoW or BiEncoder as the coarse source"
            )
        if coarse.captions != fine.captions:
            raise UserError(
                "cascade: the coarse and the fine source are of different captions; build both from the same"
            )
        if below not in ("zero", "coarse"):
            raise UserError(f"cascade: below must be 'zero' or 'coarse', got {below!r}")
        if not np.isfinite(threshold):
            raise UserError(f"cascade: threshold must be a number, got {threshold}")
        super().__init__(
            coarse.captions,
            coarse.image_of_caption,
            reference=reference,
            leave_one_out=leave_one_out,
            images=coarse.shape[0],
        )
        self.coarse = coarse
        self.fine = fine
        self.threshold = threshold
        self.below = below
        self._cache = PairCache(None if cache is None else Path(cache).expanduser())
        self._progress = progress
        self._keys = Keys(self.captions, fine.fingerprint, symmetric=fine.symmetric)
        self._lengths = np.array([len(text) for text in self.captions], np.int64)
        texts, references = len(set(self.captions)), len({self.captions[c] for c in self._order.tolist()})
        symmetric_twice = references * (references - 1) // 2 if fine.symmetric else 0
        self.report = CascadeReport(all_pairs=references * texts - symmetric_twice)

    @property
    def frequencies_from(self) -> Frequencies | None:
        """The less certain of both sources."""
        return joint_frequencies((self.coarse.frequencies_from, getattr(self.fine, "frequencies_from", None)))

    @property
    def models(self) -> frozenset[str]:
        """Picture models of both sources."""
        fine: frozenset[str] = getattr(self.fine, "models", frozenset())
        return self.coarse.models | fine

    def options(self) -> Mapping[str, Any]:
        """The choice of references, the threshold and both sources."""
        return {
            **super().options(),
            "threshold": self.threshold,
            "below": self.below,
            "coarse": self.coarse.content_hash(),
            "fine": self.fine.fingerprint,
        }

    def choices(self) -> Mapping[str, Any]:
        """The cascade's own choices, and what the coarse source is called."""
        return {**super().choices(), "of": self.coarse.called}

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """(len(first), len(second)) float32 scores; the fine source runs for new pairs at or above the threshold."""
        references, captions = caption_positions(first, second, self.shape[1])
        out = self.coarse.pair_block(references, captions)
        rows, columns = np.nonzero(out >= self.threshold)
        self.report = replace(
            self.report, considered=self.report.considered + out.size, refined=self.report.refined + len(rows)
        )
        refined = self._refine(references[rows], captions[columns])
        if self.below == "zero":
            out = np.zeros_like(out)
        out[rows, columns] = refined
        return out

    def _refine(self, first: Positions, second: Positions) -> NDArray[np.float32]:
        keys = self._keys.of(first, second)
        _, chosen, place = np.unique(keys, return_index=True, return_inverse=True)
        keys, first, second = keys[chosen], first[chosen], second[chosen]

        def ran(count: int, pending: int, seconds: float) -> None:
            self.report = replace(
                self.report,
                scored=self.report.scored + count,
                pending=pending,
                seconds=self.report.seconds + seconds,
            )
            if self._progress is not None:
                self._progress(self.report)

        scores = self._cache.completed(
            keys,
            self._lengths[first] + self._lengths[second],
            lambda some: self.fine.pair_scores(first[some], second[some]),
            ran,
        )
        return scores[place]
