"""Degrees of relevance in lines of text: our own table of pairs, or qrels with whole or real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data.files import read_lines
from rungwise.evaluation.inputs._trec_ids import WrittenIds, direction_in_name
from rungwise.metrics import DIRECTIONS

DEGREE_ENDINGS = (".tsv", ".qrels", ".trec", ".txt")
"""Endings of files of lines."""

DEGREE_HEADER = ("image", "caption", "degree")
"""First line of our own table, with tabs between."""

_FORMS = "write image, caption and degree under a line that says so, or qrels: query 0 candidate degree"


def read_degree_lines(path: Path, image_ids: Sequence[str], caption_ids: Sequence[str]) -> NDArray[np.float64]:
    r"""(images, captions) degrees of a table or of qrels; a pair without a line has 0.

    A table has the columns image, caption and degree, with tabs between and their names in the first line. Qrels
    (``query 0 candidate degree``) have none, and are of image queries or of caption queries, which their ids say.

    Raises:
        UserError: If a line has another form, an id is not known, a degree is no finite number, or a pair has two.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "degrees.tsv"
    >>> _ = file.write_text("image\tcaption\tdegree\na\tb#0\t0.25\n")
    >>> read_degree_lines(file, ["a", "b"], ["a#0", "b#0"])
    array([[0.  , 0.25],
           [0.  , 0.  ]])
    """
    lines = read_lines(path)
    _, head = next(lines)
    table = tuple(head.split("\t")) == DEGREE_HEADER
    rows: list[tuple[int, str, str, float]] = []
    for number, line in lines if table else read_lines(path):
        cells = line.split("\t") if table else line.split()
        if len(cells) != (3 if table else 4):
            raise UserError(f"{path}, line {number}: has {len(cells)} columns; {_FORMS}")
        rows.append((number, cells[0], cells[-2], _degree(cells[-1], f"{path}, line {number}")))
    sides = {"i2t": WrittenIds(image_ids), "t2i": WrittenIds(caption_ids)}
    unknown: list[tuple[int, str]] = []
    fits: dict[str, list[tuple[int, int]]] = {}
    for way, other in (DIRECTIONS, DIRECTIONS[::-1]):
        if table and way == "t2i":
            continue
        places: list[tuple[int, int]] = []
        for number, first, second, _ in rows:
            query, candidate = sides[way](first), sides[other](second)
            if query is None or candidate is None:
                unknown.append((number, first if query is None else second))
                break
            places.append((query, candidate) if way == "i2t" else (candidate, query))
        else:
            fits[way] = places
    if not fits:
        number, name = max(unknown, key=lambda one: one[0])
        raise UserError(
            f"{path}, line {number}: {name!r} is not known as the id of an image or a caption; give degrees of the data"
            " that are evaluated"
        )
    named = direction_in_name(path)
    if len(fits) > 1 and named is None:
        raise UserError(
            f"{path}: ids of images and captions are the same, so the direction is not clear; end its name with .i2t or"
            " .t2i before the ending"
        )
    chosen = next(iter(fits)) if len(fits) == 1 else str(named)
    return _matrix(path, rows, fits[chosen], (len(image_ids), len(caption_ids)))


def _matrix(
    path: Path, rows: list[tuple[int, str, str, float]], places: list[tuple[int, int]], shape: tuple[int, int]
) -> NDArray[np.float64]:
    try:
        degrees, seen = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    except MemoryError as error:
        raise UserError(
            f"{path}: the degrees of {shape[0]} images x {shape[1]} captions do not fit into memory; give a .npy file"
        ) from error
    for (number, first, second, degree), place in zip(rows, places, strict=True):
        if seen[place]:
            raise UserError(f"{path}, line {number}: {first!r} with {second!r} stands twice; give a pair one degree")
        seen[place] = True
        degrees[place] = degree
    return degrees


def _degree(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"{where}: {cell[:40]!r} is no degree; write a finite number")
    return value
