"""Checks of the JSON file of a result, so that its numbers may be believed.

Numbers of a file with values per query are computed again from these, and a checksum covers everything. Neither proves
who wrote the file; both find later changes and damage.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from rungwise.core import UserError
from rungwise.core.formats import IN_FILE
from rungwise.evaluation.statistics import ByClass, ClassNumbers
from rungwise.metrics import DIRECTIONS, Measure, Total, parse

_SAME = 1e-9
"""Relative difference below which numbers are the same: sums in another order differ in their last bits."""


class Parts(Protocol):
    """Parts of a :class:`rungwise.evaluation.Result` that are compared with one another."""

    @property
    def numbers(self) -> Mapping[str, float]:
        """Values by name."""
        ...

    @property
    def units(self) -> Mapping[str, str]:
        """Units by name."""
        ...

    @property
    def gallery(self) -> Mapping[str, Sequence[int]]:
        """Number of candidates in each fold, per direction."""
        ...

    @property
    def queries(self) -> Mapping[str, int]:
        """Number of queries over all folds, per direction."""
        ...

    @property
    def by_class(self) -> ByClass | None:
        """Numbers class by class, if they were measured."""
        ...


class OfQueries(BaseModel):
    """The part of a file that holds one entry per query.

    Attributes:
        per_query: One value, or one row of values, per query, by name.
        image_of_query: Per direction, the position of each query's image.
        query_ids: Per direction, the id of each query; empty without ids.
    """

    model_config = IN_FILE

    per_query: dict[str, list[float | list[float | None] | None]]
    image_of_query: dict[str, list[int]]
    query_ids: dict[str, list[str]]


def values_of(name: str, values: Sequence[float | list[float | None] | None]) -> NDArray[np.float64]:
    """Values per query as an array: (queries,), or (queries, parts) for a measure whose values are rows.

    Raises:
        ValueError: If rows differ in length, or stand beside single numbers.

    >>> values_of("t2i/R@1", [100.0, None])
    array([100.,  nan])
    """
    rows = [row for row in values if isinstance(row, list)]
    if rows and (len(rows) < len(values) or len({len(row) for row in rows}) > 1):
        raise ValueError(f"per_query of {name}: rows of different lengths")
    return np.array(rows or values, dtype=np.float64)


def check(found: Parts, of_queries: OfQueries, per_query: Mapping[str, NDArray[np.float64]]) -> None:
    """Compare the parts of a file with one another, and its numbers with its values per query.

    Raises:
        ValueError: If parts do not fit together, or values contradict a number; the message names it.
    """
    _folds(found)
    lists: tuple[tuple[str, Mapping[str, Sequence[Any]]], ...] = (
        ("per_query", of_queries.per_query),
        ("image_of_query", of_queries.image_of_query),
        ("query_ids", of_queries.query_ids),
    )
    for what, by_name in lists:
        for name, own in by_name.items():
            wanted = found.queries.get(name.partition("/")[0], -1)
            if len(own) not in (wanted, 0 if what == "query_ids" else wanted):
                raise ValueError(f"{what} of {name}: {len(own)} values for {wanted} queries")
    for way, images in of_queries.image_of_query.items():
        if images and not 0 <= min(images) <= max(images) < 1 << 62:
            raise ValueError(f"image_of_query of {way}: {min(images)}..{max(images)} are no positions of images")
    if unknown := per_query.keys() - found.numbers.keys():
        raise ValueError(f"values per query of {min(unknown)}, which is no number of it")
    for name, number in found.numbers.items():
        measure = measure_named(name)
        if name not in found.units:
            raise ValueError(f"{name} has no unit")
        if measure is None:
            continue
        _check_bounds(name, np.array([number]), measure.bounds)
        if isinstance(measure, Total):
            _check_sum(name, number, measure, found.numbers)
        elif name in per_query:
            values = per_query[name]
            if values.shape[1:] != (() if measure.parts == 1 else (measure.parts,)):
                raise ValueError(f"per_query of {name}: {measure.parts} numbers for each query are needed")
            _check_bounds(f"{name} of a query", values, measure.value_bounds)
            _check_same(name, number, number_of(measure, values, found, name), "values per query")
    for way, classes in () if found.by_class is None else found.by_class.classes.items():
        for one in classes:
            _check_class(way, one, found)


def _check_class(way: str, one: ClassNumbers, found: Parts) -> None:
    if not 0 < one.queries <= found.queries.get(way, 0):
        raise ValueError(f"by_class, {way}, {one.label!r}: {one.queries} of {found.queries.get(way, 0)} queries")
    for name, number in one.numbers.items():
        if f"{way}/{name}" not in found.numbers:
            raise ValueError(f"by_class, {way}, {one.label!r}: {name} was not measured")
        measure = measure_named(f"{way}/{name}")
        if measure is not None:
            _check_bounds(f"by_class, {way}, {one.label!r}: {name}", np.array([number]), measure.bounds)


def checksum(
    content: Mapping[str, Any], per_query: Mapping[str, NDArray[np.float64]], images: Mapping[str, NDArray[np.int64]]
) -> str:
    """SHA-256 of all content of a file, independent of its layout, as 64 hexadecimal digits."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode())
    for name, array in sorted([*per_query.items(), *images.items()]):
        plain = np.ascontiguousarray(array, "<f8" if array.dtype.kind == "f" else "<i8")
        digest.update(f"\0{name}\0{len(plain)}\0".encode("utf-8", "surrogatepass"))
        digest.update((np.where(np.isnan(plain), np.nan, plain) if plain.dtype.kind == "f" else plain).tobytes())
    return digest.hexdigest()


def _folds(found: Parts) -> dict[str, Sequence[int]]:
    """Per direction, the number of queries in each fold."""
    if set(found.gallery) != set(DIRECTIONS) or set(found.queries) != set(DIRECTIONS):
        raise ValueError(f"gallery and queries are not those of {' and '.join(DIRECTIONS)}")
    folds = {"i2t": found.gallery["t2i"], "t2i": found.gallery["i2t"]}
    for way, sizes in folds.items():
        if not sizes or min(sizes) < 0 or sum(sizes) != found.queries[way]:
            raise ValueError(f"{found.queries[way]} queries {way}, but the galleries are {found.gallery}")
    if len(folds["i2t"]) != len(folds["t2i"]):
        raise ValueError(f"the galleries {found.gallery} are not of the same folds")
    return folds


def measure_named(name: str) -> Measure | Total | None:
    """The measure of a number; None for a measure that this version does not know."""
    way, slash, measure = name.partition("/")
    if slash and way not in DIRECTIONS:
        raise ValueError(f"{name!r} is in no direction; there are {' and '.join(DIRECTIONS)}")
    try:
        found = parse(measure if slash else name)
    except UserError:
        return None
    if isinstance(found, Total) == bool(slash):
        raise ValueError(f"{name!r} is a sum with a direction, or a measure without one")
    return found


def _check_bounds(name: str, values: NDArray[np.float64], bounds: tuple[float, float]) -> None:
    low, high = bounds
    slack = _SAME * max(1.0, abs(low), min(abs(high), 1e9))
    wrong = (values < low - slack) | (values > high + slack)
    if wrong.any():
        raise ValueError(f"{name} is {values[wrong][0]:g}, where {low:g}..{high:g} is possible")


def terms_in(total: Total, numbers: Mapping[str, float]) -> list[str]:
    """Names of the numbers that a sum adds up; empty where one of them was not measured."""
    terms = terms_of_total(total)
    return terms if all(term in numbers for term in terms) else []


def terms_of_total(total: Total) -> list[str]:
    """Names of the numbers that a sum adds up."""
    return [f"{way}/{term}" for way in DIRECTIONS for term in total.terms]


def number_of(measure: Measure, values: NDArray[np.float64], found: Parts, name: str) -> float:
    """The number of a measure that follows from its values per query: the mean over folds."""
    parts = np.split(values, np.cumsum(_folds(found)[name.partition("/")[0]])[:-1])
    return float(np.mean([measure.aggregate(part) for part in parts]))


def _check_sum(name: str, number: float, total: Total, numbers: Mapping[str, float]) -> None:
    if terms := terms_in(total, numbers):
        _check_same(name, number, sum(numbers[term] for term in terms), "terms")


def _check_same(name: str, written: float, found: float, of: str) -> None:
    if math.isnan(written) and math.isnan(found):
        return
    if not math.isclose(written, found, rel_tol=_SAME, abs_tol=_SAME):
        raise ValueError(f"{name} is {written:.10g}, but its {of} give {found:.10g}")
