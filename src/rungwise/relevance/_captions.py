"""Bases of the sources that read captions.

A source that knows captions derives from :class:`CaptionSource`. One that scores a caption against a caption derives
from :class:`CaptionPairSource` and gives only :meth:`CaptionPairSource.pair_block`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.relevance._base import CHUNK_BYTES, Block, Degrees, Positions, Reference, runs_of_positions

References = Reference | Sequence[int] | NDArray[np.integer]
"""Which captions stand for an image: a rule, or (images,) the position of the one that does, -1 for none."""


class CaptionSource(Degrees):
    """Base of the sources that read captions.

    Args:
        captions: (captions,) texts; None where they are not there, as on a worker that ranks for another process. The
            source then has no hash.
        image_of_caption: (captions,) the position of each caption's image.
        images: Number of images, where the last ones have no caption; None counts up to the highest position.
    """

    def __init__(
        self,
        captions: Sequence[str] | None,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        images: int | None = None,
    ) -> None:
        owners = np.asarray(image_of_caption, dtype=np.int64)
        self.captions = () if captions is None else tuple(captions)
        self.image_of_caption: Positions = owners
        if owners.shape != (owners.size if captions is None else len(self.captions),):
            raise UserError(
                f"relevance: {len(self.captions)} captions but image_of_caption has shape {owners.shape};"
                " give one image position per caption"
            )
        highest = int(owners.max(initial=-1))
        count = highest + 1 if images is None else images
        if int(owners.min(initial=0)) < 0 or highest >= count:
            raise UserError(
                f"relevance: image_of_caption runs {owners.min()}..{highest} but there are {count} images;"
                f" positions must lie in 0..{count - 1}"
            )
        super().__init__((count, len(owners)))
        self.captions_hash = None if captions is None else hash_of_captions(self.captions, owners)
        self._order = np.argsort(owners, kind="stable")
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count)))).astype(np.int64)

    def references_of(self, image: int) -> Positions:
        """Ascending positions of the captions that were written for an image; possibly none."""
        return self._order[self._starts[image] : self._starts[image + 1]]

    def hashed(self) -> Iterator[bytes]:
        """Captions and the image of each."""
        for text in self.captions:
            yield text.encode("utf-8", "surrogatepass")
            yield b"\0"
        yield np.ascontiguousarray(self.image_of_caption, dtype="<i8").tobytes()


class CaptionPairSource(CaptionSource):
    """Base of the sources that score a caption against a caption: give :meth:`pair_block` and ``options``.

    R(i, t) needs captions that stand for image i (``reference``):

    * ``"paired"``: one caption t_q of the image (Zhou et al. 2020): its first, or the one whose position is given in
      place of the word;
    * ``"max"``: the caption of G_i that t is most like;
    * ``"mean"``: the average over G_i.

    In a training batch every image comes with one caption of its own, and that one stands for it:
    :meth:`pair_block` of the batch's captions with themselves are the degrees of the batch.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        reference: Which captions stand for an image, as listed above; or (images,) the position of the caption that
            stands for each image, -1 for none.
        leave_one_out: A caption is no reference for itself; a pair without any other reference gets 0.
        images: Number of images, where the last ones have no caption.

    >>> class Equal(CaptionPairSource):
    ...     def pair_block(self, first, second):
    ...         texts = np.array(self.captions)
    ...         return (texts[first][:, None] == texts[second][None, :]).astype(np.float32)
    >>> captions = ["a dog", "dogs", "a cat"]
    >>> for reference in ("paired", "max", "mean"):
    ...     print(Equal(captions, [0, 0, 1], reference=reference).dense().tolist())
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        captions: Sequence[str] | None,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        reference: References = "max",
        leave_one_out: bool = False,
        images: int | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, images=images)
        if isinstance(reference, str) and reference not in get_args(Reference):
            raise UserError(f"reference must be 'paired', 'max', 'mean' or positions of captions, got {reference!r}")
        self.reference: Reference = reference if isinstance(reference, str) else "paired"
        self.leave_one_out = leave_one_out
        if self.reference == "paired":
            self._order, self._starts = self._one_each(None if isinstance(reference, str) else reference)

    @property
    def paired(self) -> Positions:
        """(images,) the caption that stands for each image where one does, -1 for none."""
        chosen = np.full(self.shape[0], -1, np.int64)
        has = np.diff(self._starts) > 0
        chosen[has] = self._order[self._starts[:-1][has]]
        return chosen

    @abstractmethod
    def pair_block(self, first: ArrayLike, second: ArrayLike) -> Block:
        """(len(first), len(second)) float32 score of caption ``first[a]``, as reference, with caption ``second[b]``.

        With the captions of a training batch on both sides these are the degrees of the batch, R(t_q, t_p): whatever
        ``reference`` and ``leave_one_out`` are, caption ``first[a]`` alone stands for its image.
        """

    def options(self) -> Mapping[str, Any]:
        """The choice of references; a source with more options adds them to these."""
        chosen = {"reference": self.reference, "leave_one_out": self.leave_one_out}
        return chosen | ({"paired": self._order.tolist()} if self.reference == "paired" else {})

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees; an image without references has 0."""
        rows, columns = self.positions(images, captions)
        counts = self._starts[rows + 1] - self._starts[rows]
        out = np.zeros((len(rows), len(columns)), np.float32)
        ends = np.cumsum(counts)
        most = max(1, CHUNK_BYTES // max(1, 4 * len(columns)))
        start = 0
        while start < len(rows):
            before = ends[start] - counts[start]
            stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            some = start + np.flatnonzero(counts[start:stop])
            if len(some):
                out[some] = self._reduced(rows[some], counts[some], columns)
            start = stop
        return out

    def _reduced(self, images: Positions, counts: Positions, captions: Positions) -> Block:
        """Block of images that all have references, over all of which pairs are scored at once."""
        firsts = np.cumsum(counts) - counts
        references = self._order[runs_of_positions(self._starts[images], counts)]
        scores = self.pair_block(references, captions)
        left = counts[:, None]
        if self.leave_one_out:
            row, column = _alike(references, captions)
            scores, left = scores.copy(), np.repeat(left, len(captions), axis=1)
            scores[row, column] = 0 if self.reference == "mean" else -np.inf
            np.subtract.at(left, (np.searchsorted(firsts, row, side="right") - 1, column), 1)
        if self.reference == "mean":
            totals = _by_image(np.add, scores, firsts, counts)
            averages: Block = np.divide(totals, np.maximum(left, 1), dtype=np.float32)
            return averages
        best = _by_image(np.maximum, scores, firsts, counts)
        return np.where(left > 0, best, np.float32(0)) if self.leave_one_out else best

    def _one_each(self, paired: ArrayLike | None) -> tuple[Positions, Positions]:
        counts = np.diff(self._starts)
        if paired is None:
            has = counts > 0
            return self._order[self._starts[:-1][has]], np.concatenate(([0], np.cumsum(has))).astype(np.int64)
        given = np.asarray(paired, np.int64)
        if given.shape != (self.shape[0],):
            raise UserError(
                f"reference has shape {given.shape} but there are {self.shape[0]} images; give one caption each"
            )
        if given.max(initial=-1) >= self.shape[1]:
            raise UserError(f"reference names caption {given.max()} but there are {self.shape[1]} captions")
        return given[given >= 0], np.concatenate(([0], np.cumsum(given >= 0))).astype(np.int64)


def _by_image(combine: np.ufunc, scores: Block, firsts: Positions, counts: Positions) -> Block:
    """(images, captions) rows of each image combined to one: what ``combine.reduceat`` gives, several times as fast."""
    out = scores[firsts]
    more = np.flatnonzero(counts > 1)
    rest = scores[firsts[more] + 1]
    for place in range(2, counts.max()):
        has = np.flatnonzero(counts[more] > place)
        rest[has] = combine(rest[has], scores[firsts[more[has]] + place])
    out[more] = combine(out[more], rest)
    return out


def _alike(first: Positions, second: Positions) -> tuple[Positions, Positions]:
    """Indices of all pairs of one value of each array that are the same caption."""
    order = np.argsort(second, kind="stable")
    begins, ends = (np.searchsorted(second[order], first, side=side) for side in ("left", "right"))
    counts = ends - begins
    return np.repeat(np.arange(len(first)), counts), order[runs_of_positions(begins, counts)]


def hash_of_captions(captions: Sequence[str], image_of_caption: ArrayLike) -> str:
    """Hash of texts and of the image of each: degrees with another hash belong to other data.

    >>> hash_of_captions(["a dog", "a cat"], [0, 1])[:8], hash_of_captions(["a dog", "a cat"], [1, 0])[:8]
    ('7a2f37d0', 'ffc5872b')
    """
    return digest_of_parts([json.dumps(list(captions)), np.asarray(image_of_caption, "<i8")])
