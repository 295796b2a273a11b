"""A printed table of a paper with our results in it, in blocks of one protocol, test set and source of degrees each.

Numbers of different protocols, galleries, datasets or captions per image never stand in one block. Results of ours that
fit no block are listed with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import median_place
from rungwise.evaluation.tables._printed import table_named
from rungwise.evaluation.tables._published_rows import CORRELATION, PAPERS, PublishedRow, of_same_protocol, printed
from rungwise.evaluation.tables._result_table import OURS, Block, Cell, ResultTable, TableLine, in_order
from rungwise.metrics import DIRECTIONS, Total, parse


@dataclass(frozen=True)
class Ours:
    """Our results of one run, or of several runs that differ only in their seed, under one protocol.

    Attributes:
        name: Name of the line.
        results: One result per seed, of the same data, split and protocol.
        stands_for: Printed rows that the run reproduces.
        notes: Differences from the printed rows, one sentence each.
    """

    name: str
    results: tuple[Result, ...]
    stands_for: tuple[PublishedRow, ...]
    notes: tuple[str, ...] = ()

    __repr__ = short_repr


@dataclass
class _Building:
    """Notes and reasons collected while the table is built."""

    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def numbered(self, notes: Iterable[str]) -> tuple[int, ...]:
        """Numbers of notes; equal notes share a number."""
        found = []
        for note in notes:
            if note not in self.notes:
                self.notes.append(note)
            found.append(self.notes.index(note) + 1)
        return tuple(found)


_Key = tuple[str, int, str, str]
"""Key of a block: dataset, number of test images, protocol, source of degrees."""


def paper_table(paper: str, table: str, ours: Sequence[Ours] = ()) -> ResultTable:
    """Rows of a printed table (by its roman or arabic number), with our lines below those that they stand for.

    >>> found = paper_table("ladder_loss", "1")
    >>> [block.title for block in found.blocks][:2]
    ['coco, 1,000 images, protocol coco-1k-one-caption', 'coco, 1,000 images, protocol coco-1k']
    >>> found.blocks[0].names
    ('i2t/CS@100', 'i2t/CS@1000', 't2i/CS@100', 't2i/CS@1000')
    """
    named = table_named(paper, table)
    rows = [row for row in printed(paper) if row.table == named]
    building = _Building()
    beside: dict[int, list[TableLine]] = {}
    apart: dict[str, Block] = {}
    for one in ours:
        try:
            found = _lines_of(one, rows, paper, building)
        except UserError as error:
            building.left_out.append(f"{one.name}: {error}")
            continue
        for row, line in found:
            if not row.features:
                below = beside.setdefault(id(row), [])
                if line not in below:  # ranks that were measured along with two sources of degrees are the same
                    below.append(line)
                continue
            first = one.results[0]
            title = f"ours, of other features: {_title((first.dataset, first.gallery['t2i'][0], first.protocol, ''))}"
            before = apart.get(title, Block(title, _columns(rows, _key(row)), ()))
            apart[title] = replace(before, lines=(*before.lines, line))
    blocks = []
    for key in dict.fromkeys(map(_key, rows)):
        own = [row for row in rows if _key(row) == key]
        features = f"; features: {own[0].features}" if own[0].features else ""
        lines = [line for row in own for line in (_printed_line(row, building), *beside.get(id(row), []))]
        blocks.append(Block(_title(key) + features, _columns(rows, key), tuple(lines)))
    blocks += apart.values()
    marks = (f"{OURS}ours; ± standard deviation over seeds",) if beside or apart else ()
    return ResultTable(
        f"{named} of {PAPERS[paper]}",
        tuple(blocks),
        tuple(building.notes),
        tuple(building.left_out),
        marks,
        paper,
        named,
    )


def _lines_of(
    one: Ours, rows: Sequence[PublishedRow], paper: str, building: _Building
) -> list[tuple[PublishedRow, TableLine]]:
    """Our lines, each with the printed row that it stands below; UserError says why there is none."""
    result = one.results[0]
    own = [row for row in one.stands_for if any(row is other for other in rows)]
    if not own:
        raise UserError(f"{paper}: it stands for no row of this table")
    places = _of_other_features(result, own, paper) if own[0].features else _of_same_test(result, own, paper)
    found = []
    reasons = []
    for row in places:
        results, how = _median_run(one.results) if row.of_median_run else (one.results, "")
        cells = {name: cell for name in _columns(rows, _key(row)) if (cell := cell_of(results, name)) is not None}
        if not cells:
            reasons.append(f"none of {', '.join(row.numbers)} was measured")
            continue
        notes = [*one.notes, *([how] if how else [])]
        graded = [name for name in cells if parse(name.rpartition("/")[2]).graded]
        if graded and result.relevance:
            notes.append(f"degrees of {', '.join(graded)}: {result.degrees()}")
        found.append((row, TableLine(one.name, cells, ours=True, notes=building.numbered(notes))))
    if not found:
        raise UserError(f"{paper}: protocol {result.protocol}: {'; '.join(dict.fromkeys(reasons))}")
    return found


def _median_run(results: tuple[Result, ...]) -> tuple[tuple[Result, ...], str]:
    """The run whose rsum is the median, and a note on which one it is."""
    if len(results) == 1:
        return results, "one run, where the paper says that it prints the median of five by rsum"
    chosen = results[median_place([number_in(result, "rsum") for result in results])]
    seed = "" if chosen.seed is None else f", seed {chosen.seed}"
    return (chosen,), f"the median of {len(results)} runs by rsum{seed}; the paper says that it prints that of five"


def _of_same_test(result: Result, own: Sequence[PublishedRow], paper: str) -> list[PublishedRow]:
    """Rows of the same protocol as ``of_same_protocol`` finds them; other data are refused."""
    known = sorted({row.dataset for row in own})
    if not result.dataset:
        raise UserError(f"{paper}: its rows are of {' and '.join(known)}, this result of other data")
    return of_same_protocol(result, own, paper, dataset=result.dataset, split=result.split)


def _of_other_features(result: Result, own: Sequence[PublishedRow], paper: str) -> list[PublishedRow]:
    """Rows with fixed features: ours have other ones, and stand apart whatever the size of the gallery."""
    found = [row for row in own if row.dataset == result.dataset and row.protocol == result.protocol]
    if not found or result.split != "test":
        theirs = " or ".join(sorted({f"{row.dataset}, protocol {row.protocol}, split 'test'" for row in own}))
        raise UserError(
            f"{paper}: its rows are of {theirs}; this result of {result.dataset or 'other data'}, protocol"
            f" {result.protocol}, split {result.split or 'unknown'!r}"
        )
    return found


def _key(row: PublishedRow) -> _Key:
    return row.dataset, row.test_images, row.protocol, row.relevance


def _title(key: _Key) -> str:
    dataset, images, protocol, relevance = key
    if protocol == CORRELATION:
        return f"{dataset}, correlation with people's ratings"
    return f"{dataset}, {images:,} images, protocol {protocol}" + (f", degrees by {relevance}" if relevance else "")


def _columns(rows: Sequence[PublishedRow], key: _Key) -> tuple[str, ...]:
    """Names of all numbers of a block: image to text, text to image, both; ranks after rates."""
    return in_order(name for row in rows if _key(row) == key for name in row.numbers)


def _printed_line(row: PublishedRow, building: _Building) -> TableLine:
    cells = {
        name: Cell(value, row.deviations.get(name), row.doubts.get(name, "")) for name, value in row.numbers.items()
    }
    notes = building.numbered([row.origin] if row.origin else [])
    return TableLine(f"{row.facts['row']} {row.method}".strip(), cells, notes=notes)


def cell_of(results: Sequence[Result], name: str) -> Cell | None:
    """Mean and standard deviation of a number over results; None where one of them lacks it."""
    values = [number_in(result, name) for result in results]
    if any(math.isnan(value) for value in values):
        return None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(float(np.mean(values)), deviation)


def number_in(result: Result, name: str) -> float:
    """A number of a result; a sum or a mean of both directions is computed where its terms were measured."""
    if name in result.numbers or "/" in name:
        return result.numbers.get(name, math.nan)
    measure = parse(name)
    terms = measure.terms if isinstance(measure, Total) else (measure,)
    values = [result.numbers.get(f"{way}/{term}", math.nan) for way in DIRECTIONS for term in terms]
    return float(np.sum(values) if isinstance(measure, Total) else np.mean(values))
