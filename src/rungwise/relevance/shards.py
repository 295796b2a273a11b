"""Top-K lists made shard by shard: the queries are cut into shards, and each meets all candidates.

A shard that is done is kept in a work folder, so that a run that was killed goes on where it was. Joined, the shards
are to the bit what :meth:`rungwise.relevance.base.Degrees.topk` gives for all queries at once: what counts words gives
a pair the same bits in every block, and what compares vectors gets shards that end where its blocks end.

The work folder holds the ledger ``shards.json``, which says of what the shards are, and a folder for each shard with
its arrays, a note on how it was made, and the checksums of all three.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core.drafts import is_draft, sweep
from rungwise.core.errors import UserError
from rungwise.core.files import explained, make_folder, replacing
from rungwise.core.folders import refuse_strangers, replacing_folder
from rungwise.core.memory import peak_within
from rungwise.core.npy import NpyWriter, mapped
from rungwise.core.reading import read_json
from rungwise.core.seals import check_seal
from rungwise.core.sharing import Share, in_turn
from rungwise.relevance.base import Block, Degrees, Direction, Positions
from rungwise.relevance.kept import Kept
from rungwise.relevance.lexical import RowsSource
from rungwise.relevance.restored import (
    RestoredConsensus,
    RestoredPairRows,
    RestoredVectors,
    kept_rows,
    kept_vectors,
)
from rungwise.relevance.tfidf import PairRows
from rungwise.relevance.vectors import VectorSource

LEDGER = "shards.json"
KEPT = "kept"
"""Folder in the work folder where what the source has computed may be kept, for a run that goes on."""
_VALUES, _INDICES, _NOTE = "values.npy", "indices.npy", "shard.json"
_SHARD = frozenset({_VALUES, _INDICES, _NOTE})
_WORK = frozenset({LEDGER, *(f"shard-*/{name}" for name in (*_SHARD, "SHA256SUMS")), f"{KEPT}/*", f"{KEPT}/*/*"})
_WHAT = "the shards of a run that was broken off"
_VERSION = 1
_ROWS = 1 << 14
"""Rows of a shard that are copied at a time."""

Restored = RestoredConsensus | RestoredPairRows | RestoredVectors


@dataclass(frozen=True)
class Shard:
    """How one was made.

    Attributes:
        number: From 1.
        queries: How many it ranks.
        seconds: That it took.
        peak: The most memory that the process which made it had meanwhile, in bytes; None where that is not known.
        found: It was made by a run that was broken off.
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
        kept: What it was computed from.
        owners: (captions,) the position of each caption's image.
        options: Of the class.
        k: How many candidates of each query.
        direction: Whose queries.
    """

    kind: type[Restored]
    kept: Kept
    owners: Positions
    options: Mapping[str, Any]
    k: int
    direction: Direction

    def source(self) -> Restored:
        """The source itself."""
        return self.kind(self.kept, None, self.owners, **self.options)


@dataclass(frozen=True)
class Lists:
    """What a worker gives back: (queries, k) positions and degrees, and what they cost."""

    indices: NDArray[np.int32]
    values: Block
    seconds: float
    peak: int | None


def ranking(source: Degrees, k: int, direction: Direction) -> Ranking:
    """What workers need of a source.

    Raises:
        UserError: If it is none that counts words or compares vectors.

    >>> from rungwise.relevance import TfIdf
    >>> ranking(TfIdf(["a dog", "a cat"], [0, 1]), 1, "t2i").source().topk(1, "t2i")[0].tolist()
    [[0], [1]]
    """
    options: dict[str, Any] = {"images": source.shape[0]}
    kind: type[Restored]
    if isinstance(source, RowsSource):
        kind, kept = RestoredConsensus, kept_rows(source)
    elif isinstance(source, PairRows):
        kind, kept = RestoredPairRows, kept_rows(source)
    elif isinstance(source, VectorSource):
        kind, kept = RestoredVectors, kept_vectors(source)
    else:
        raise UserError(
            f"relevance: {source.source_name} cannot be ranked in shards; that is for what counts words or compares"
            " vectors"
        )
    options["leave_one_out"] = source.leave_one_out
    if not isinstance(source, RowsSource):
        options["reference"] = source.reference
        if source.reference == "paired":
            options["paired"] = source.paired
    return Ranking(kind, kept, source.image_of_caption, options, k, direction)


def edges_of(source: Degrees, direction: Direction, shards: int) -> list[int]:
    """Where shards begin and the last one ends: as even as the source's blocks allow, none of them empty.

    Raises:
        UserError: If there is no shard.

    >>> from rungwise.relevance import TfIdf
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
) -> list[Shard]:
    """Write what :meth:`~rungwise.relevance.base.Degrees.write` writes with the same ``k`` and direction, in shards.

    Args:
        source: That counts words or compares vectors.
        folder: An empty one for the degrees.
        work: Folder of the shards; the caller holds its lock, and removes it when the degrees stand.
        k: How many candidates of each query.
        direction: Whose queries.
        shards: How many; fewer where there are not so many blocks of queries.
        share: Makes the shards.
        say: Takes a line for the user whenever a shard is done.

    Returns:
        How each shard was made, in order.

    Raises:
        UserError: If the source cannot be ranked in shards, a worker fails, or the work folder holds anything else.
        OSError: If the disk is full.

    >>> import tempfile
    >>> from rungwise.relevance import TfIdf, load
    >>> place = Path(tempfile.mkdtemp())
    >>> source = TfIdf(["a dog", "a cat", "a fox"], [0, 1, 1])
    >>> (place / "degrees").mkdir()
    >>> made = write_in_shards(source, place / "degrees", place / "work", k=1, direction="t2i", shards=2)
    >>> [shard.queries for shard in made], load(place / "degrees", source).topk(1, "t2i")[0].ravel().tolist()
    ([1, 2], [0, 1, 1])
    """
    edges = edges_of(source, direction, shards)
    spans = [range(low, high) for low, high in pairwise(edges)]
    asked = ranking(source, k, direction)
    _, candidates = source.queries(k, direction)
    ledger = _Ledger(work, source, asked, spans, min(k, candidates), say)
    found = ledger.open()
    _make(asked, spans, ledger, found, share, say)
    source.write_lists(folder, k, direction, ledger.column(_VALUES), ledger.column(_INDICES))
    return [found[number] for number in range(len(spans))]


def prepare(work: Path) -> None:
    """Refuse a work folder that holds anything else than shards.

    Raises:
        UserError: If it does.
    """
    for one in work.glob(".*"):
        if is_draft(one.name):
            sweep(work / one.name[1:].rsplit(".", 2)[0])
    refuse_strangers(work, _WORK, _WHAT)


def remove(work: Path) -> None:
    """Remove a work folder and its shards, once the degrees stand.

    Raises:
        UserError: If something else was put there.
    """
    prepare(work)
    shutil.rmtree(work, ignore_errors=True)


def _make(
    asked: Ranking,
    spans: Sequence[range],
    ledger: _Ledger,
    found: dict[int, Shard],
    share: Share,
    say: Callable[[str], None],
) -> None:
    """Make the shards that are missing."""
    missing = [number for number in range(len(spans)) if number not in found]
    total = sum(len(spans[number]) for number in missing)
    begun, done = time.monotonic(), 0
    for place, lists in share(rank_shard, asked, (spans[number] for number in missing)):
        number = missing[place]
        found[number] = ledger.keep(number, lists)
        done += len(spans[number])
        rate = done / max(1e-9, time.monotonic() - begun)
        say(f"{len(found)} of {len(spans)} shards, {done:,} of {total:,} queries, {rate:,.0f}/s")


def rank_shard(asked: Ranking, queries: range) -> Lists:
    """The lists of some queries: what a worker does."""
    begun = time.monotonic()
    with peak_within() as peak:
        positions, values = asked.source().topk(asked.k, asked.direction, queries)
        indices = positions.astype(np.int32)
    return Lists(indices, values, time.monotonic() - begun, peak())


class _Ledger:
    """The shards in a work folder."""

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
        self._spans = spans
        self._width = width
        self._say = say
        self._of = {
            "version": _VERSION,
            "content_hash": source.content_hash(),
            "k": asked.k,
            "direction": asked.direction,
            "edges": [spans[0].start, *(span.stop for span in spans)] if spans else [],
        }

    def open(self) -> dict[int, Shard]:
        """Shards that stand, by number; those of other degrees are removed."""
        with explained(self._work):
            make_folder(self._work)
        prepare(self._work)
        ledger = self._work / LEDGER
        before = self._read(ledger)
        if before != self._of:
            if before is not None:
                self._say(f"{self._work}: holds shards of {self._difference(before)}; begun anew")
            for old in self._work.glob("shard-*"):
                shutil.rmtree(old)
            with replacing(ledger) as draft:
                draft.write_text(json.dumps(self._of, indent=1), encoding="ascii")
            return {}
        found = {number: shard for number in range(len(self._spans)) if (shard := self._find(number)) is not None}
        if found:
            self._say(f"{self._work}: {len(found)} of {len(self._spans)} shards found, made by a run before this one")
        return found

    def _read(self, ledger: Path) -> Any:
        if not ledger.exists():
            return None
        try:
            return read_json(ledger)
        except UserError as error:
            self._say(f"{error}; its shards are made again")
            return None

    def _difference(self, before: Any) -> str:
        if not isinstance(before, dict) or before.get("version") != _VERSION:
            return "another program"
        if before.get("content_hash") != self._of["content_hash"]:
            return "other captions or options"
        names = {"k": "another --top", "direction": "the other direction", "edges": "another number of shards"}
        return next((said for name, said in names.items() if before.get(name) != self._of[name]), "another run")

    def _find(self, number: int) -> Shard | None:
        place = self._place(number)
        if not place.exists():
            return None
        try:
            check_seal(place)
            note = read_json(place / _NOTE)
            peak = note["peak"]
            shard = Shard(
                number + 1, len(self._spans[number]), float(note["seconds"]), None if peak is None else int(peak), True
            )
            for name, kind in ((_VALUES, "f4"), (_INDICES, "i4")):
                array = mapped(place / name)
                if array.shape != (shard.queries, self._width) or array.dtype != kind:
                    raise ValueError(f"{name} has shape {array.shape} of {array.dtype}")
        except (UserError, OSError, ValueError, KeyError, TypeError) as error:
            self._say(f"shard {number + 1} of {len(self._spans)} is made again: {error}")
            shutil.rmtree(place, ignore_errors=True)
            return None
        return shard

    def keep(self, number: int, lists: Lists) -> Shard:
        """Write a shard, whole or not at all."""
        shard = Shard(number + 1, len(self._spans[number]), lists.seconds, lists.peak)
        with replacing_folder(self._place(number), _SHARD, "a shard", header=_NOTE) as draft:
            for name, array in ((_VALUES, lists.values), (_INDICES, lists.indices)):
                with NpyWriter(draft / name, array.shape[1:], array.dtype) as writer:
                    writer.append(array)
            (draft / _NOTE).write_text(json.dumps(asdict(shard)), encoding="ascii")
        return shard

    def column(self, name: str) -> Iterator[NDArray[Any]]:
        """One array of all shards, some rows at a time."""
        for number in range(len(self._spans)):
            array = mapped(self._place(number) / name)
            for start in range(0, len(array), _ROWS):
                yield np.asarray(array[start : start + _ROWS])

    def _place(self, number: int) -> Path:
        return self._work / f"shard-{number + 1:05d}"
