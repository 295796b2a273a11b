"""Files for the programs of TREC: runs, qrels, and degrees as they are.

A run has the candidates of each query in the order in which our measures rank them. Its scores are the number of
candidates in the query's list less those before: whole numbers, which float32 tells apart, so that no program makes
ties of ours. Each direction has a file, since a program's mean is over all queries of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.compute import top_columns
from rungwise.core.disk import replacing
from rungwise.evaluation._evaluate import Gallery
from rungwise.evaluation.inputs import DEGREE_HEADER, RankOnly, file_of_direction, trec_ids
from rungwise.metrics import DIRECTIONS, CheckedDegrees, Direction, Positions, Scores

DEPTH = 1000
"""Default number of candidates of a query in a run, that of trec_eval."""

DEEPEST = 1 << 24
"""Largest number of candidates whose whole-number scores are all different in float32."""

_BLOCK_VALUES = 1 << 22
"""Number of scores or degrees read at a time."""

Ids = tuple[Sequence[str], Sequence[str]]
"""Ids of the images and of the captions."""


def write_run(place: Path, galleries: Sequence[Gallery], ids: Ids, depth: int = DEPTH) -> list[Path]:
    """Write the rankings of every query as TREC runs, a file for each direction.

    Args:
        place: Name of both files without the direction, such as ``run.trec``, which makes ``run.i2t.trec``.
        galleries: Galleries of the evaluation.
        ids: Ids of all images and of all captions.
        depth: Largest number of candidates of a query; where a query was given as a shorter list, its length.

    Returns:
        The files. A direction without lists has none.

    Raises:
        UserError: If ``depth`` is no number from 1 to 16,777,216, ids cannot be written, or the disk does not take it.
    """
    if not 1 <= depth <= DEEPEST:
        raise UserError(
            f"depth must be from 1 to {DEEPEST:,}, beyond which float32 does not tell ranks apart; got {depth}"
        )
    return _by_direction(place, galleries, ids, lambda one, way, names: _run_lines(one, way, names, depth))


def write_qrels(place: Path, galleries: Sequence[Gallery], ids: Ids) -> list[Path]:
    """Write what is right for each query as qrels with 1, a file for each direction; arguments are those of a run."""

    def lines(one: Gallery, way: Direction, names: Ids) -> Iterator[str]:
        queries, candidates = names
        right = (one.right or one.annotated)[way]
        for query, candidate in zip(right.query.tolist(), right.candidate.tolist(), strict=True):
            yield f"{queries[query]} 0 {candidates[candidate]} 1\n"

    return _by_direction(place, galleries, ids, lines)


def write_levels(
    place: Path, galleries: Sequence[Gallery], ids: Ids, degrees: CheckedDegrees, levels: int
) -> tuple[list[Path], float]:
    """Write degrees as qrels of whole numbers, a file for each direction; other arguments are those of a run.

    The level of a degree is the whole number nearest to ``levels`` x degree / the largest degree, halves upward. Pairs
    of level 0 and below are left out, which programs take as 0, and so are pairs without a degree.

    Returns:
        The files, and the largest degree.

    Raises:
        UserError: If ``levels`` is less than 1, or no degree is above 0.
    """
    if levels < 1:
        raise UserError(f"levels must be at least 1, got {levels}")
    largest = max(
        (float(np.nanmax(block, initial=0.0)) for one in galleries for _, block in _degrees(one, "i2t", degrees)),
        default=0.0,
    )
    if not largest > 0:
        raise UserError("no degree of relevance is above 0, so there is no level to write; give other degrees")

    def lines(one: Gallery, way: Direction, names: Ids) -> Iterator[str]:
        queries, candidates = names
        for which, block in _degrees(one, way, degrees):
            for query, row in zip(which.tolist(), levels_of(block, levels, largest), strict=True):
                found = np.flatnonzero(row)
                for candidate, value in zip(found.tolist(), row[found].tolist(), strict=True):
                    yield f"{queries[query]} 0 {candidates[candidate]} {value}\n"

    return _by_direction(place, galleries, ids, lines), largest


def levels_of(degrees: Scores, levels: int, largest: float) -> NDArray[np.int64]:
    """Whole-number levels of degrees, as :func:`write_levels` writes them; 0 without a degree.

    >>> levels_of(np.array([0.0, 0.24, 0.25, 1.0, -1.0, np.nan]), 2, 1.0)
    array([0, 0, 1, 2, 0, 0])
    """
    nearest = np.floor(np.nan_to_num(degrees.astype(np.float64)) / largest * levels + 0.5)
    return np.maximum(nearest, 0).astype(np.int64)


def write_degrees(place: Path, degrees: CheckedDegrees, shape: tuple[int, int], ids: Ids) -> int:
    """Write degrees as a table of image, caption and degree, with every digit; pairs of degree 0 are left out.

    ``rungwise evaluate --relevance`` reads it. Returns the number of pairs.

    Raises:
        UserError: If a pair has no degree, ids cannot be written, or the disk does not take it.
    """
    images, captions = _names(ids)
    everything, pairs = np.arange(shape[1]), 0
    with replacing(place) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(DEGREE_HEADER) + "\n")
        for which in _runs(*shape):
            for image, row in zip(which.tolist(), degrees.block(which, everything), strict=True):
                found = np.flatnonzero(row)
                pairs += len(found)
                file.writelines(
                    f"{images[image]}\t{captions[caption]}\t{degree!r}\n"
                    for caption, degree in zip(found.tolist(), row[found].tolist(), strict=True)
                )
    return pairs


def directions_of(galleries: Iterable[Gallery]) -> tuple[Direction, ...]:
    """Directions that have rankings."""
    first = next(iter(galleries)).source
    return first.directions if isinstance(first, RankOnly) else DIRECTIONS


def _by_direction(
    place: Path, galleries: Sequence[Gallery], ids: Ids, lines: Callable[[Gallery, Direction, Ids], Iterable[str]]
) -> list[Path]:
    """Write a file for each direction: the lines of each gallery, with the ids of its queries and candidates."""
    names = _names(ids)
    files = []
    for way in directions_of(galleries):
        files.append(file_of_direction(place, way))
        with replacing(files[-1]) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
            for one in galleries:
                file.writelines(lines(one, way, _of_fold(one, way, names)))
    return files


def _run_lines(one: Gallery, way: Direction, names: Ids, depth: int) -> Iterator[str]:
    queries, candidates = names
    lengths = one.source.lengths(way) if isinstance(one.source, RankOnly) else None
    chunk = max(1, _BLOCK_VALUES // max(1, len(candidates)))
    for which, scores in one.source.rows(chunk) if way == "i2t" else one.source.columns(chunk):
        listed = top_columns(scores, depth)
        for query, own in zip(which.tolist(), listed.tolist(), strict=True):
            best = own if lengths is None else own[: lengths[query]]
            head = f"{queries[query]} Q0 "
            ends = _ends(len(best))
            yield "".join([f"{head}{candidates[each]}{end}" for each, end in zip(best, ends, strict=True)])


@lru_cache(maxsize=4)
def _ends(length: int) -> tuple[str, ...]:
    """What stands behind the candidates of a list: rank, score and the name of the run."""
    return tuple(f" {rank} {length - rank + 1} rungwise\n" for rank in range(1, length + 1))


def _degrees(one: Gallery, way: Direction, degrees: CheckedDegrees) -> Iterator[tuple[Positions, Scores]]:
    """Queries of a gallery and their (queries, candidates) degrees."""
    own = degrees.select(one.fold.images, one.fold.captions)
    images, captions = (np.arange(len(side)) for side in (one.fold.images, one.fold.captions))
    if way == "i2t":
        for which in _runs(len(images), len(captions)):
            yield which, own.block(which, captions)
    else:
        for which in _runs(len(captions), len(images)):
            yield which, own.block(images, which).T


def _runs(queries: int, candidates: int) -> Iterator[Positions]:
    step = max(1, _BLOCK_VALUES // max(1, candidates))
    for start in range(0, queries, step):
        yield np.arange(start, min(start + step, queries))


def _names(ids: Ids) -> Ids:
    return trec_ids(ids[0], "image"), trec_ids(ids[1], "caption")


def _of_fold(one: Gallery, way: Direction, names: Ids) -> Ids:
    """Ids of the queries and of the candidates of a gallery."""
    images = [names[0][place] for place in one.fold.images]
    captions = [names[1][place] for place in one.fold.captions]
    return (images, captions) if way == "i2t" else (captions, images)
