"""Top-K lists made shard by shard: the queries are cut into shards, and each meets all candidates.

A finished shard is kept in a work folder, so that a run that was killed goes on where it was. Joined, the shards
are to the bit what :meth:`rungwise.relevance.Degrees.topk` gives for all queries at once: what counts words gives
a pair the same bits in every block, and what compares vectors gets shards that end where its blocks end.

A shard is an entry of a :class:`~rungwise.relevance.storage.KeptFolder`, known by a hash of all that it depends
on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_json
from rungwise.core.compute import Share, in_turn, peak_within
from rungwise.core.disk import SEAL
from rungwise.core.disk.folders import refuse_strangers
from rungwise.core.disk.staging import is_draft, sweep
from rungwise.relevance._base import Block, Degrees, Direction, Positions, saved_header
from rungwise.relevance.embedding import VectorSource
from rungwise.relevance.lexical import PairRows, RowsSource
from rungwise.relevance.precomputed._cached_sources import (
    CachedConsensus,
    CachedPairRows,
    CachedVectors,
    kept_rows,
    kept_vectors,
)
from rungwise.relevance.storage import HEADER, CachedSource, KeptFolder, saved

KEPT = "kept"
"""Folder in the work folder where the numbers that a source computes may be kept, for a run that goes on."""
_KIND, _VALUES, _INDICES = "shard", "values", "indices"
_FILES = (f"{_VALUES}.npy", f"{_INDICES}.npy", HEADER, SEAL)
_WORK = frozenset({*(f"{_KIND}-*/{name}" for name in _FILES), f"{KEPT}/*", f"{KEPT}/*/*"})
_WHAT = "the shards of a run that was broken off"

Restored = CachedConsensus | CachedPairRows | CachedVectors


@dataclass(frozen=True)
class ShardRecord:
    """Record of how a shard was made.

    Attributes:
        number: Number of the shard, from 1.
        queries: Number of queries that it ranks.
        seconds: Time that it took.
        peak: Peak memory in bytes of the process that made it; None where that is not known.
        found: The shard was made by an earlier run that was interrupted.
    """

    number: int
    queries: int
    seconds: float
    peak: int | None
    found: bool = False


@dataclass(frozen=True)
class Ranking:
    """All that a worker needs to rank queries of a source, without its texts.

    Attributes:
        kind: Class that restores the source.
        kept: Numbers that the source computed of its captions.
        owners: (captions,) the position of each caption's image.
        options: Options of the class.
        k: Number of candidates of each query.
        direction: Direction of the queries.
    """

    kind: type[Restored]
    kept: CachedSource
    owners: Positions
    options: Mapping[str, Any]
    k: int
    direction: Direction

    def source(self) -> Restored:
        """The restored source."""
        return self.kind(self.kept, None, self.owners, **self.options)


@dataclass(frozen=True)
class Lists:
    """A worker's result: (queries, k) positions and degrees, with the time and memory that they took."""

    indices: NDArray[np.int32]
    values: Block
    seconds: float
    peak: int | None


def ranking(source: Degrees, k: int, direction: Direction) -> Ranking:
    """What workers need to rank queries of a source; a UserError if it neither counts words nor compares vectors."""
    options: dict[str, Any] = {"images": source.shape[0]}
    kind: type[Restored]
    if isinstance(source, RowsSource):
        kind, kept = CachedConsensus, kept_rows(source)
    elif isinstance(source, PairRows):
        kind, kept = CachedPairRows, kept_rows(source)
    elif isinstance(source, VectorSource):
        kind, kept = CachedVectors, kept_vectors(source)
    else:
        raise UserError(
            f"relevance: {source.source_name} cannot be ranked in shards; that is for what counts words or compares"
            " vectors"
        )
    options["leave_one_out"] = source.leave_one_out
    if not isinstance(source, RowsSource):
        options["reference"] = source.paired if source.reference == "paired" else source.reference
    return Ranking(kind, kept, source.image_of_caption, options, k, direction)


def edges_of(source: Degrees, direction: Direction, shards: int) -> list[int]:
    """Where shards begin and the last one ends: as even as the source's blocks allow, none of them empty.

    >>> from rungwise.relevance.lexical import TfIdf
    >>> edges_of(TfIdf(["a dog", "a cat", "a fox"], [0, 1, 1]), "t2i", 2)
    [0, 1, 3]
    """
    if shards < 1:
        raise UserError(f"shards must be at least 1, got {shards}")
    asked, _ = source.queries(1, direction)
    grain = source.grain(direction)
    blocks = -(-len(asked) // grain)
    cuts = {min(len(asked), blocks * shard // shards * grain) for shard in range(shards + 1)}
    return sorted(cuts)


def write_in_shards(
    source: Degrees,
    folder: Path,
    work: Path,
    *,
    k: int,
    direction: Direction = "i2t",
    shards: int,
    share: Share = in_turn,
    say: Callable[[str], None] = lambda _: None,
) -> list[ShardRecord]:
    """Write what :func:`~rungwise.relevance.write_degrees` writes with the same ``k`` and direction, in shards.

    Args:
        source: Source that counts words or compares vectors.
        folder: An empty folder for the degrees.
        work: Folder of the shards; the caller holds its lock, and removes it when the degrees are written.
        k: Number of candidates of each query.
        direction: Direction of the queries.
        shards: Number of shards; fewer are made where there are not so many blocks of queries.
        share: Executor that makes the shards.
        say: Takes a line for the user whenever a shard is done.

    Returns:
        The record of each shard, in order.

    Raises:
        UserError: If the source cannot be ranked in shards, a worker fails, or the work folder holds anything else.
        OSError: If the disk is full.
    """
    edges = edges_of(source, direction, shards)
    spans = [range(low, high) for low, high in pairwise(edges)]
    asked = ranking(source, k, direction)
    _, candidates = source.queries(k, direction)
    stand = _Shards(work, source, asked, spans, min(k, candidates), say)
    found = stand.open()
    _make(asked, spans, stand, found, share, say)
    header = saved_header(source, k, direction)
    saved.write(folder, header, stand.column(_VALUES), stand.column(_INDICES), source.image_of_caption)
    return [found[number] for number in range(len(spans))]


def prepare(work: Path) -> None:
    """Recover interrupted writes in a work folder; a UserError if it holds anything else than shards."""
    for one in work.glob(".*"):
        if is_draft(one.name):
            sweep(work / one.name[1:].rsplit(".", 2)[0])
    refuse_strangers(work, _WORK, _WHAT)


def remove(work: Path) -> None:
    """Remove a work folder and its shards, once the degrees are written; a UserError if it holds anything else."""
    prepare(work)
    shutil.rmtree(work, ignore_errors=True)


def _make(
    asked: Ranking,
    spans: Sequence[range],
    stand: _Shards,
    found: dict[int, ShardRecord],
    share: Share,
    say: Callable[[str], None],
) -> None:
    """Make the shards that are missing."""
    missing = [number for number in range(len(spans)) if number not in found]
    total = sum(len(spans[number]) for number in missing)
    begun, done = time.monotonic(), 0
    for place, lists in share(rank_shard, asked, (spans[number] for number in missing)):
        number = missing[place]
        found[number] = stand.keep(number, lists)
        done += len(spans[number])
        rate = done / max(1e-9, time.monotonic() - begun)
        say(f"{len(found)} of {len(spans)} shards, {done:,} of {total:,} queries, {rate:,.0f}/s")


def rank_shard(asked: Ranking, queries: range) -> Lists:
    """Compute the lists of some queries, in a worker."""
    begun = time.monotonic()
    with peak_within() as peak:
        positions, values = asked.source().topk(asked.k, asked.direction, queries)
        indices = positions.astype(np.int32)
    return Lists(indices, values, time.monotonic() - begun, peak())


class _Shards:
    """The shards of a ranking in a work folder, each found by the hash of all that it depends on."""

    def __init__(
        self,
        work: Path,
        source: Degrees,
        asked: Ranking,
        spans: Sequence[range],
        width: int,
        say: Callable[[str], None],
    ) -> None:
        self._work = work
        self._kept = KeptFolder(work, most_bytes=None)
        self._spans = spans
        self._width = width
        self._say = say
        of = [source.content_hash(), asked.k, asked.direction]
        self._keys = [digest_of_json([*of, span.start, span.stop]) for span in spans]

    def open(self) -> dict[int, ShardRecord]:
        """Shards that are there, by number; those of other degrees are removed."""
        prepare(self._work)
        own = {self._kept.place(_KIND, key) for key in self._keys}
        if others := [place for place in self._work.glob(f"{_KIND}-*") if place not in own]:
            self._say(f"{self._work}: shards of other captions, options, --top, direction or number; begun anew")
            for place in others:
                shutil.rmtree(place)
        found = {number: shard for number in range(len(self._spans)) if (shard := self._find(number)) is not None}
        if found:
            self._say(f"{self._work}: {len(found)} of {len(self._spans)} shards found, made by a run before this one")
        return found

    def _find(self, number: int) -> ShardRecord | None:
        try:
            kept = self._kept.find(_KIND, self._keys[number])
            return None if kept is None else self._shard(number, kept)
        except (UserError, OSError, ValueError, KeyError, TypeError) as error:
            self._say(f"shard {number + 1} of {len(self._spans)} is made again: {error}")
            return None

    def _shard(self, number: int, kept: CachedSource) -> ShardRecord:
        queries, peak = len(self._spans[number]), kept.facts["peak"]
        for name, kind in ((_VALUES, "f4"), (_INDICES, "i4")):
            array = kept.arrays[name]
            if array.shape != (queries, self._width) or array.dtype != kind:
                raise ValueError(f"{name} has shape {array.shape} of {array.dtype}")
        return ShardRecord(
            number + 1, queries, float(kept.facts["seconds"]), None if peak is None else int(peak), found=True
        )

    def keep(self, number: int, lists: Lists) -> ShardRecord:
        """Write a shard, whole or not at all."""
        facts = {"seconds": lists.seconds, "peak": lists.peak}
        self._kept.keep(
            _KIND, self._keys[number], CachedSource(facts, {_VALUES: lists.values, _INDICES: lists.indices})
        )
        return ShardRecord(number + 1, len(self._spans[number]), lists.seconds, lists.peak)

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        """One array of every shard, one shard at a time."""
        for number, key in enumerate(self._keys):
            if (kept := self._kept.find(_KIND, key)) is None:
                raise UserError(f"{self._work}: shard {number + 1} was removed; run the command again")
            yield kept.arrays[name]
