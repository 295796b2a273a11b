"""Results as small JSON: values per query are rounded and packed, and numbers are those of the rounded values.

A value keeps a tenth of a percent, or a thousandth of what runs from -1 to 1 or from 0 to 1. A number over a thousand
queries moves by less than a hundredth of a percent by that. Whole numbers, such as ranks and R@K, stay exact. Left out
are the ids of queries, and the values of measures whose value is a row, such as ``ECE``; the numbers of these stay.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from rungwise.core.formats import IN_FILE, read_as
from rungwise.evaluation.result._result import Result
from rungwise.evaluation.result._result_file import OfQueries, check, measure_named, number_of, terms_in
from rungwise.metrics import CORRELATION, DEGREE, FRACTION, PERCENT, RANK, Measure, Total

_PARTS_OF_ONE = {PERCENT: 10, RANK: 1, CORRELATION: 1000, FRACTION: 1000, DEGREE: 1000}
"""Number of steps in one, by the unit of a measure."""
_NOTHING = -(1 << 31)
"""Stands for NaN."""
_MOST_QUERIES = 1 << 26


class PackedValues(BaseModel):
    """Values of all queries, as whole numbers of steps: compressed 32-bit integers in base 85.

    Attributes:
        count: Number of values.
        parts_of_one: Number of steps in one.
        packed: The integers.
    """

    model_config = IN_FILE

    count: int
    parts_of_one: int
    packed: str

    @classmethod
    def of(cls, values: NDArray[Any], parts_of_one: int = 1) -> PackedValues:
        """Round values to the nearest step, and pack them."""
        steps = np.where(np.isnan(values), _NOTHING, np.rint(values * parts_of_one)).astype("<i4")
        # Bytes of one place stand together: those of the upper places hardly differ.
        planes = steps.view(np.uint8).reshape(-1, 4).T.tobytes()
        return cls(
            count=len(steps), parts_of_one=parts_of_one, packed=base64.b85encode(zlib.compress(planes, 9)).decode()
        )

    def values(self) -> NDArray[np.float64]:
        """(count,) values.

        Raises:
            ValueError: If they are damaged.
        """
        if not 0 <= self.count <= _MOST_QUERIES or self.parts_of_one < 1:
            raise ValueError(f"{self.count} values of 1/{self.parts_of_one} are none that were packed")
        inside = zlib.decompressobj()
        try:
            planes = inside.decompress(base64.b85decode(self.packed), 4 * self.count + 1)
        except (ValueError, zlib.error) as error:
            raise ValueError(f"packed values: {error}") from None
        if len(planes) != 4 * self.count or not inside.eof:
            raise ValueError(f"packed values: not those of {self.count} queries")
        steps = np.frombuffer(planes, np.uint8).reshape(4, -1).T.copy().view("<i4").ravel()
        return np.where(steps == _NOTHING, np.nan, steps / self.parts_of_one)


class CompactQueries(BaseModel):
    """The part of a compact result that holds one entry per query.

    Attributes:
        per_query: Values per query by the names of their numbers.
        image_of_query: Per direction, the position of each query's image.
    """

    model_config = IN_FILE

    per_query: dict[str, PackedValues]
    image_of_query: dict[str, PackedValues]


def compact_result(result: Result) -> dict[str, Any]:
    """A result as plain values for JSON, with its values per query rounded and packed.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["rsum"])
    >>> of_compact(compact_result(result)) == result
    True
    """
    if not result.has_queries:
        return result.plain() | CompactQueries(per_query={}, image_of_query={}).model_dump()
    packed, numbers = {}, dict(result.numbers)
    for name in numbers:
        measure = measure_named(name)
        if isinstance(measure, Measure) and measure.parts == 1 and result.has_values(name):
            packed[name] = PackedValues.of(result.per_query(name), _PARTS_OF_ONE[measure.unit])
            numbers[name] = number_of(measure, packed[name].values(), result, name)
    for name in numbers:
        total = measure_named(name)
        if isinstance(total, Total) and (terms := terms_in(total, numbers)):
            numbers[name] = sum(numbers[term] for term in terms)
    images = {way: PackedValues.of(result.image_of_query(way)) for way in result.queries}
    queries = CompactQueries(per_query=packed, image_of_query=images)
    return replace(result, numbers=numbers).plain() | queries.model_dump()


def of_compact(content: Mapping[str, Any]) -> Result:
    """The result that :func:`compact_result` gave, with its values per query and without the ids of queries.

    Raises:
        ValueError: If a part is missing, damaged, or does not fit the others.
    """
    plain = dict(content)
    queries = read_as(CompactQueries, {name: plain.pop(name, {}) for name in ("per_query", "image_of_query")})
    values = {name: one.values() for name, one in queries.per_query.items()}
    images = {way: one.values().astype(np.int64) for way, one in queries.image_of_query.items()}
    result = read_as(Result, plain)
    of_queries = OfQueries.model_construct(  # they are arrays of the right kind already, and may hold NaN
        per_query={name: own.tolist() for name, own in values.items()},
        image_of_query={way: own.tolist() for way, own in images.items()},
        query_ids={},
    )
    check(result, of_queries, values)
    return replace(result, _per_query=values, _image_of_query=images)
