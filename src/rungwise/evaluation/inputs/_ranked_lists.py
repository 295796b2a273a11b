"""Rankings that come as lists: a TREC run, or the JSON that the program of ECCV Caption takes.

A list gives the order of its first candidates and nothing about the others. So a measure that reads further than the
lists go is refused, and nothing is invented for what was not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data.files import read_lines
from rungwise.evaluation.inputs._rank_only import RankOnly
from rungwise.evaluation.inputs._trec_ids import WrittenIds, direction_in_name
from rungwise.metrics import (
    DEGREE,
    DIRECTIONS,
    MAP,
    RANK,
    Direction,
    MAPAtR,
    Measure,
    P,
    Positions,
    Positives,
    R,
    Recall,
    RPrecision,
    Scores,
)
from rungwise.relevance.human import read_id_lists


class RankedLists(RankOnly):
    """The best candidates of each query, best first; give it to ``evaluate(similarity=...)``.

    As a source of similarities, the candidate at place p of a list of n has n - p + 1, and what is not listed has 0.
    The two directions have lists of their own, so a row and a column need not agree on a pair.

    Args:
        lists: Per direction, (queries,) lists of candidate positions; a direction may be absent.
        shape: Number of images and captions.
        missing_zero: Whether a query whose list is empty counts 0, as ``trec_eval -c`` has it; otherwise measures that
            read its list are refused.

    Raises:
        UserError: If a position stands twice in a list or does not exist.

    >>> lists = RankedLists({"i2t": [[2, 0, 1], [1, 0]]}, (2, 3))
    >>> lists.lengths("i2t"), lists.directions
    (array([3, 2]), ('i2t',))
    >>> [rows.tolist() for _, rows in lists.rows(2)]
    [[[2.0, 1.0, 3.0], [1.0, 2.0, 0.0]]]
    """

    def __init__(
        self,
        lists: Mapping[Direction, Sequence[Sequence[int] | NDArray[np.int64]]],
        shape: tuple[int, int],
        *,
        missing_zero: bool = False,
    ) -> None:
        self.shape = shape
        self.missing_zero = missing_zero
        self.directions: tuple[Direction, ...] = tuple(way for way in DIRECTIONS if way in lists)
        self._lists: dict[Direction, list[NDArray[np.int64]]] = {}
        for way in self.directions:
            queries, candidates = self.sizes(way)
            own = [np.asarray(one, dtype=np.int64) for one in lists[way]]
            if len(own) != queries:
                raise UserError(f"ranked lists, {way}: {len(own)} lists for {queries} queries; give one each")
            for query, one in enumerate(own):
                if one.size and not 0 <= one.min() <= one.max() < candidates:
                    raise UserError(f"ranked lists, {way}, query {query}: a position is not in 0..{candidates - 1}")
                if len(np.unique(one)) < len(one):
                    raise UserError(f"ranked lists, {way}, query {query}: a candidate stands twice; list each once")
            self._lists[way] = own

    def lengths(self, way: Direction) -> NDArray[np.int64]:
        """(queries,) number of candidates in each list."""
        return np.array([len(one) for one in self._lists[way]], dtype=np.int64)

    def counted_zero(self, way: Direction) -> Positions:
        """Positions of the queries without a list, where these count 0."""
        counted = self.missing_zero and way in self.directions
        return np.flatnonzero(self.lengths(way) == 0) if counted else super().counted_zero(way)

    def reads(self, measure: Measure, positives: Mapping[Direction, Positives]) -> str | None:
        """The reason why a measure cannot be taken of these lists; None if it can.

        >>> from rungwise.metrics import MedR
        >>> lists = RankedLists({"i2t": [[2, 0], [1, 0]]}, (2, 3))
        >>> right = {"i2t": Positives(np.array([0, 2, 3]), np.array([0, 1, 2]))}
        >>> lists.reads(R(2), right), lists.reads(MedR(), right)
        (None, 'MedR reads whole rankings, but i2t lists name as few as 2 of 3 candidates; ask for R@2 or less')
        """
        if measure.reads_ends:
            return f"{measure} reads similarities, and ranked lists have none; ask for other measures"
        for way in self.directions:
            own, gallery = positives[way], self.sizes(way)[1]
            lengths = self.lengths(way)
            asking = np.ones(len(lengths), dtype=np.bool_) if measure.graded else own.counts > 0
            if len(zero := self.counted_zero(way)):
                if measure.unit in (RANK, DEGREE):
                    return (
                        f"{measure} is a {measure.unit}, and {len(zero)} {way} queries without a list have none; ask"
                        " for other measures"
                    )
                asking[zero] = False
            if isinstance(measure, MAPAtR | RPrecision):
                needed = own.counts
            elif (isinstance(measure, R | Recall | P | MAP) and measure.k is not None) or (
                measure.graded and measure.depth is not None
            ):
                needed = np.full(len(lengths), getattr(measure, "k", 0))
                if getattr(measure, "non_gt", False):
                    needed = needed + own.counts
            else:
                needed = np.full(len(lengths), gallery)
            if asking.any() and (asking & (lengths < np.minimum(needed, gallery))).any():
                least = int(lengths[asking].min())
                whole = "reads whole rankings" if int(needed.max()) >= gallery else "reads further"
                every = "give a list for every query, or count those without one as 0 (missing_queries)"
                remedy = f"ask for R@{least} or less" if least else every
                return f"{measure} {whole}, but {way} lists name as few as {least} of {gallery} candidates; {remedy}"
        return None

    def blocks(self, way: Direction, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Queries and (queries, all candidates) scores made from places in the lists."""
        queries = self.sizes(way)[0]
        for start in range(0, queries, chunk):
            which = np.arange(start, min(start + chunk, queries))
            yield which, np.stack([self._row(way, int(query)) for query in which])

    def select(self, images: Positions, captions: Positions) -> RankedLists:
        """The lists of these images and captions, in this order; other candidates are removed from them."""
        chosen: dict[Direction, tuple[Positions, Positions]] = {"i2t": (images, captions), "t2i": (captions, images)}
        lists: dict[Direction, list[NDArray[np.int64]]] = {}
        for way in self.directions:
            queries, candidates = chosen[way]
            place = np.full(self.sizes(way)[1], -1, dtype=np.int64)
            place[candidates] = np.arange(len(candidates))
            kept = [place[self._lists[way][query]] for query in queries]
            lists[way] = [one[one >= 0] for one in kept]
        return RankedLists(lists, (len(images), len(captions)), missing_zero=self.missing_zero)

    def _row(self, way: Direction, query: int) -> NDArray[np.float32]:
        row = np.zeros(self.sizes(way)[1], dtype=np.float32)
        if way in self._lists:
            listed = self._lists[way][query]
            row[listed] = np.arange(len(listed), 0, -1)
        return row


def read_ranked_lists(
    paths: Sequence[Path], image_ids: Sequence[str], caption_ids: Sequence[str], *, missing_zero: bool = False
) -> RankedLists:
    r"""Ranked lists of a TREC run (``query Q0 candidate rank score name``) or of JSON ``{query: [candidates]}``.

    A query that is an image's id has captions as candidates, and the other way round; a file may hold both directions,
    or there is one file for each. Where the ids do not tell the direction, the name of the file does, such as
    ``run.i2t.trec``. A TREC run is ordered by falling score, equal scores by rank.

    Args:
        paths: The files.
        image_ids: Ids of the images.
        caption_ids: Ids of the captions.
        missing_zero: Count queries without a list as 0, and do not refuse them.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "run.trec"
    >>> _ = file.write_text("a Q0 a#0 1 0.9 mine\na Q0 b#0 2 0.8 mine\n")
    >>> lists = read_ranked_lists([file], ["a", "b"], ["a#0", "b#0"])
    >>> lists.directions, lists.lengths("i2t")
    (('i2t',), array([2, 0]))
    """
    image_at, caption_at = WrittenIds(image_ids), WrittenIds(caption_ids)
    found: dict[Direction, dict[int, list[int]]] = {}
    for path in paths:
        lists = read_id_lists(path) if path.suffix.lower() == ".json" else _trec(path)
        if not lists:
            raise UserError(f"{path}: holds no list; give one a query")
        named = direction_in_name(path)
        whole = _direction(str(path), lists, image_at, caption_at, named)
        for query, candidates in lists.items():
            where = f"{path}, query {query!r}"
            direction = whole or _direction(where, {query: candidates}, image_at, caption_at, named)
            if direction is None:
                known = candidates and (image_at(query) is not None or caption_at(query) is not None)
                raise UserError(
                    f"{where}: {candidates[0] if known else query!r} is not known as the id of an image or a caption;"
                    " give the data that were ranked"
                )
            query_at, candidate_at = (image_at, caption_at) if direction == "i2t" else (caption_at, image_at)
            asker = query_at(query)
            places = [candidate_at(one) for one in candidates]
            if asker is None or None in places:
                wrong = query if asker is None else candidates[places.index(None)]
                raise UserError(f"{where}: {wrong!r} is not known; give the data that were ranked")
            own = [place for place in places if place is not None]
            if len(set(own)) < len(own):
                twice = next(one for at, one in enumerate(candidates) if own[at] in own[:at])
                raise UserError(f"{where}: {twice!r} stands twice; list each candidate once")
            if asker in found.setdefault(direction, {}):
                raise UserError(f"{where}: has two lists; give one")
            found[direction][asker] = own
    sizes: dict[Direction, int] = {"i2t": len(image_ids), "t2i": len(caption_ids)}
    return RankedLists(
        {way: [lists.get(query, []) for query in range(sizes[way])] for way, lists in found.items()},
        (len(image_ids), len(caption_ids)),
        missing_zero=missing_zero,
    )


def _trec(path: Path) -> dict[str, list[str]]:
    rows: dict[str, list[tuple[float, float, str]]] = {}
    for number, line in read_lines(path):
        cells = line.split()
        try:
            query, _, candidate, rank, score, _ = cells
            rows.setdefault(query, []).append((-float(score), float(rank), candidate))
        except ValueError as error:
            raise UserError(
                f"{path}, line {number}: not a line of a TREC run; write: query Q0 candidate rank score name"
            ) from error
        if np.isnan(rows[query][-1][:2]).any():
            raise UserError(f"{path}, line {number}: rank or score is no number; write numbers")
    return {query: [one for _, _, one in sorted(own, key=lambda row: row[:2])] for query, own in rows.items()}


def _direction(
    where: str,
    lists: Mapping[str, Sequence[str]],
    image_at: WrittenIds,
    caption_at: WrittenIds,
    named: Direction | None,
) -> Direction | None:
    """Direction of all the lists; None where they do not run one way.

    COCO's numbers of images and of captions overlap, so the whole file decides; most of its lists run in one direction.
    """
    ways: tuple[tuple[Direction, WrittenIds, WrittenIds], ...] = (
        ("i2t", image_at, caption_at),
        ("t2i", caption_at, image_at),
    )
    fits = [
        way
        for way, query_at, candidate_at in ways
        if all(query_at(query) is not None for query in lists)
        and all(candidate_at(one) is not None for own in lists.values() for one in own[:1])
    ]
    if len(fits) > 1 and named is None:
        raise UserError(
            f"{where}: ids of images and captions are the same, so the direction is not clear; end the file's name with"
            " .i2t or .t2i before the ending"
        )
    if len(fits) > 1:
        return named
    return fits[0] if fits else None
