"""The contract of all sources of relevance degrees, and what sources share.

A source computes lazily: :meth:`Degrees.block` is the one thing it must give; the rest follows from it in chunks.
Sources that read captions have bases of their own in :mod:`rungwise.relevance._captions`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.core.compute import taken, top_columns
from rungwise.relevance.storage import saved

Direction = Literal["i2t", "t2i"]
"""Which side the queries are on: images that seek captions, or captions that seek images."""

Reference = Literal["paired", "max", "mean"]
"""Which of an image's captions stand for it when captions are scored against captions."""

Frequencies = Literal["train", "collection", "unknown"]
"""Whose captions document frequencies count: the training split's, all that the source has degrees of, or unknown."""

Positions = NDArray[np.int64]
Block = NDArray[np.float32]

CHUNK_BYTES = 64 * 2**20
"""Largest size in bytes of a block that is computed as one chunk."""

_OF_THE_DATA = frozenset({"document_frequencies", "paired", "scored", "coarse", "source", "sources"})
"""Options that are hashes of the captions or name some of them: the same source has others on other captions."""
_LONG = 200
"""Characters of options in :attr:`Degrees.called`; longer ones are named by their hash."""


@runtime_checkable
class Relevance(Protocol):
    """R[image, caption]: how well a caption describes an image, whether or not it was written for it.

    Implementations answer by integer positions in the collection they were built from, and compute lazily.
    """

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) float32 degrees."""
        ...

    def dense(self) -> NDArray[np.float32]:
        """(all images, all captions) float32 degrees."""
        ...


class Degrees(ABC):
    """Base of all sources in this package: give :meth:`block` and :meth:`options`; the rest follows.

    Attributes:
        shape: (images, captions) of the whole matrix.
        image_of_caption: (captions,) int64 position of each caption's image; None where a source does not know it.
        captions_hash: :func:`~rungwise.relevance.hash_of_captions` of the source's captions; None where it
            does not know them.
        complete: Every pair has a degree; False where some may be NaN, not known.
        reference: Which captions of an image a caption is compared with, where the source compares captions with
            captions; None where it does not, or where that is not known.

    >>> class Parity(Degrees):
    ...     def block(self, images, captions):
    ...         odd = np.add.outer(np.asarray(images), np.asarray(captions)) % 2
    ...         return odd.astype(np.float32)
    ...     def options(self):
    ...         return {}
    >>> source = Parity((2, 3))
    >>> source.dense()
    array([[0., 1., 0.],
           [1., 0., 1.]], dtype=float32)
    >>> source.topk(1)[0].ravel().tolist(), source.topk(1, "t2i")[0].ravel().tolist()
    ([1, 0], [1, 0, 1])
    >>> source
    Parity: degrees of 2 images x 3 captions
    """

    image_of_caption: Positions | None = None
    captions_hash: str | None = None
    complete: bool = True
    reference: Reference | None = None

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def __repr__(self) -> str:
        # Options are left out: some sources read all weights of a model for theirs.
        images, captions = self.shape
        compared = f", reference {self.reference}" if self.reference else ""
        return f"{self.source_name}: degrees of {images:,} images x {captions:,} captions{compared}"

    @abstractmethod
    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees, by integer positions."""

    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """What decides the degrees besides the data: small values that JSON can hold."""

    def dense(self) -> Block:
        """(images, captions) float32 degrees, computed in chunks into one array."""
        matrix = np.empty(self.shape, np.float32)
        for rows, part in self.chunks():
            matrix[rows] = part
        return matrix

    def chunks(self, direction: Direction = "i2t", queries: range | None = None) -> Iterator[tuple[Positions, Block]]:
        """Consecutive queries in order, with their degrees of all candidates, at most :data:`CHUNK_BYTES` at a time.

        ``queries`` are consecutive ones; None takes all.
        """
        count, candidates = self.shape if direction == "i2t" else self.shape[::-1]
        queries = range(count) if queries is None else queries
        everything = np.arange(candidates)
        run = self.run(direction)
        for start in range(queries.start, queries.stop, run):
            asked = np.arange(start, min(start + run, queries.stop))
            if direction == "i2t":
                yield asked, self.block(asked, everything)
            else:
                yield asked, np.ascontiguousarray(self.block(everything, asked).T)

    def run(self, direction: Direction) -> int:
        """Number of queries that :meth:`chunks` takes at a time."""
        candidates = self.shape[1] if direction == "i2t" else self.shape[0]
        return max(1, CHUNK_BYTES // max(1, 4 * candidates))

    def grain(self, direction: Direction) -> int:
        """Number of queries that must be ranked together to get the same bits whatever else is asked; 1 for any.

        What compares vectors depends on the shape of the blocks: runs of queries that begin at a multiple of this
        number, and end at one or at the last query, are taken in the same blocks as all queries.
        """
        return self.run(direction)

    def topk(self, k: int, direction: Direction = "i2t", queries: range | None = None) -> tuple[Positions, Block]:
        """The k most relevant candidates of every query, best first, ties by the lower position, NaN last.

        Args:
            k: Candidates for each query; at most all candidates are given.
            direction: ``"i2t"``: captions for every image; ``"t2i"``: images for every caption.
            queries: Consecutive queries; None takes all.

        Returns:
            (queries, k) int64 positions and (queries, k) float32 degrees.
        """
        asked, candidates = self.queries(k, direction, queries)
        k = min(k, candidates)
        indices = np.empty((len(asked), k), np.int64)
        values = np.empty((len(asked), k), np.float32)
        for rows, part in self.chunks(direction, asked):
            here = rows - asked.start
            indices[here] = top_columns(np.where(np.isnan(part), -np.inf, part), k)
            values[here] = taken(part, indices[here])
        return indices, values

    def queries(self, k: int, direction: Direction, queries: range | None = None) -> tuple[range, int]:
        """The range of queries and the number of candidates, checked: a UserError names what :meth:`topk` refuses."""
        if direction not in ("i2t", "t2i"):
            raise UserError(f"direction must be 'i2t' or 't2i', got {direction!r}")
        if k < 1:
            raise UserError(f"k must be at least 1, got {k}")
        count, candidates = self.shape if direction == "i2t" else self.shape[::-1]
        if queries is None:
            return range(count), candidates
        if queries.step != 1 or not 0 <= queries.start <= queries.stop <= count:
            raise UserError(f"relevance: queries {queries} of {count}; give consecutive ones among them")
        return queries, candidates

    def positions(self, images: ArrayLike, captions: ArrayLike) -> tuple[Positions, Positions]:
        """Positions as arrays; a UserError if one is negative or beyond the last.

        A negative position would count from the end and give the degrees of other pairs.
        """
        rows, columns = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        for what, asked, count in zip(("image", "caption"), (rows, columns), self.shape, strict=True):
            if asked.size and not 0 <= asked.min() <= asked.max() < count:
                raise UserError(
                    f"relevance: {what} positions run {asked.min()}..{asked.max()}; they must lie in 0..{count - 1}"
                )
        return rows, columns

    @property
    def frequencies_from(self) -> Frequencies | None:
        """Whose captions the rarity of words was counted in; None where a source does not count words.

        A source that counted all captions has seen those of the test split.
        """
        return None

    @property
    def models(self) -> frozenset[str]:
        """Fingerprints of the picture models that these degrees come from, directly or through other sources.

        Evaluating one of these models by such degrees would ask it about itself, which evaluations refuse.
        """
        return frozenset()

    def known_pairs(self) -> Positions | None:
        """(n, 2) ascending positions (image, caption) of the pairs that have a degree.

        None where all pairs have one, or too many to list.
        """
        return None

    @property
    def source_name(self) -> str:
        """The source's name in files and in print."""
        return type(self).__name__

    def choices(self) -> Mapping[str, Any]:
        """What decides the degrees whatever the captions: the options without those that follow from the captions."""
        return {name: value for name, value in self.options().items() if name not in _OF_THE_DATA}

    @property
    def called(self) -> str:
        """Name and choices, the same wherever the source is built.

        >>> from rungwise.relevance.lexical import TfIdf
        >>> TfIdf(["a dog"], [0], orders=2).called
        'TfIdf(leave_one_out=false, orders=2, reference="max")'
        """
        said = ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(self.choices().items()))
        if len(said) > _LONG:
            said = f"options {digest_of_parts([said])[:16]}"
        return f"{self.source_name}({said})" if said else self.source_name

    def title(self) -> str:
        """The source's name and the start of its hash, to name it in results."""
        return f"{self.source_name}, hash {self.content_hash()[:16]}"

    def content_hash(self) -> str:
        """Hash of the data, the source's name and its options: two sources with one hash give one matrix."""
        said = self.source_name, json.dumps([self.shape, dict(self.options())], sort_keys=True)
        return digest_of_parts(chain(said, self.hashed()))

    def hashed(self) -> Iterator[bytes]:
        """The data that the degrees are computed from, as bytes for :meth:`content_hash`; by default nothing."""
        yield from ()

    def save(self, path: Path | str, *, k: int | None = None, direction: Direction = "i2t") -> None:
        """Write the degrees to a folder that :func:`rungwise.relevance.load` maps into memory.

        Args:
            path: Folder to make; one that :meth:`save` wrote before is replaced.
            k: Keep only the k best candidates of each query; pairs that are not kept read as 0, or as NaN where the
                source is not ``complete``. None keeps all pairs.
            direction: Direction of the queries whose best candidates are kept; without ``k`` of no effect.

        Raises:
            UserError: If the disk is full, the path cannot be written, it is there and holds something else, or another
                process writes there now.
        """
        with saved.replacing(Path(path)) as draft:
            write_degrees(self, draft, k=k, direction=direction)


def write_degrees(source: Degrees, folder: Path, *, k: int | None = None, direction: Direction = "i2t") -> None:
    """Write the files of :meth:`Degrees.save` into an empty folder.

    Args:
        source: Source of the degrees.
        folder: An empty folder.
        k: Number of candidates kept for each query; None keeps all pairs.
        direction: Direction of the queries; without ``k`` of no effect.
    """
    if k is None:
        every = (_checked(source, part) for _, part in source.chunks())
        saved.write(folder, saved_header(source, None, direction), every, image_of_caption=source.image_of_caption)
    else:
        indices, values = source.topk(k, direction)
        saved.write(folder, saved_header(source, k, direction), [values], [indices], source.image_of_caption)


def _checked(source: object, degrees: NDArray[np.float32]) -> NDArray[np.float32]:
    refuse_odd(source, degrees)
    return degrees


def refuse_odd(source: object, degrees: NDArray[np.floating]) -> None:
    """Refuse degrees that are no numbers; a source that knows some pairs alone has NaN for the others.

    Args:
        source: The source that gave them.
        degrees: A block of degrees.

    Raises:
        UserError: If one is infinite, or NaN though the source is ``complete``.
    """
    is_right = np.isfinite(degrees) if getattr(source, "complete", True) else ~np.isinf(degrees)
    if not is_right.all():
        name = getattr(source, "source_name", type(source).__name__)
        raise UserError(f"the source {name} gives degrees that are NaN or infinite; mend it")


def saved_header(source: Degrees, k: int | None, direction: Direction) -> dict[str, Any]:
    """The header of a folder of saved degrees."""
    return {
        "source": source.source_name,
        "options": dict(source.options()),
        "called": source.called,
        "content_hash": source.content_hash(),
        "captions_hash": source.captions_hash,
        "complete": source.complete,
        "reference": source.reference,
        "frequencies_from": source.frequencies_from,
        "models": sorted(source.models),
        "shape": list(source.shape),
        "k": k,
        "direction": direction,
    }


def joint_frequencies(parts: Iterable[Frequencies | None]) -> Frequencies | None:
    """:attr:`Degrees.frequencies_from` of a source made of others: the least that is known of one of them.

    >>> joint_frequencies(["train", None]), joint_frequencies(["train", "collection"]), joint_frequencies([None])
    ('train', 'collection', None)
    """
    known = set(parts)
    order: tuple[Frequencies, ...] = ("unknown", "collection", "train")
    return next((one for one in order if one in known), None)


def runs_of_positions(begins: Positions, counts: Positions) -> Positions:
    """(sum of counts,) positions of several runs, one run after the other.

    Args:
        begins: (runs,) the first position of each run.
        counts: (runs,) how many positions each run has.

    >>> runs_of_positions(np.array([7, 2, 0]), np.array([2, 0, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    positions: Positions = np.repeat(begins, counts) + within
    return positions
