"""Filters: which rows of a store a search may find, as values that every kind of store can evaluate its own way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rungwise.core.errors import UserError

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in"]
Scalar = str | bool | int | float


@dataclass(frozen=True)
class Condition:
    """What one column of a row must fulfil.

    A row without the column, or with another type of value in it, fulfils no condition on it, ``!=`` included, as in
    SQL. Whole numbers and fractions are one type, texts another, truth values a third. Texts are in order of their
    code points.

    Attributes:
        column: Name of an entry of the row's record.
        operator: How it is compared.
        value: With what; for ``in`` a tuple, of which one must be equal.

    Raises:
        UserError: If the operator is unknown, or the value is not of a type that it takes.

    >>> Condition("year", ">=", 2020).holds({"year": 2021.5})
    True
    >>> Condition("year", "!=", 2020).holds({"title": "2021"})
    False
    >>> Condition("place", "in", ("sea", "lake")).holds({"place": "lake"})
    True
    """

    column: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if self.operator not in get_args(Operator):
            raise UserError(
                f"condition on {self.column!r}: no operator {self.operator!r}; there are {' '.join(get_args(Operator))}"
            )
        if isinstance(self.value, tuple) != (self.operator == "in"):
            raise UserError(f"condition on {self.column!r}: give a tuple of values for `in`, and one value for others")
        for value in self.value if isinstance(self.value, tuple) else (self.value,):
            if not isinstance(value, Scalar) or (isinstance(value, float) and not math.isfinite(value)):
                raise UserError(
                    f"condition on {self.column!r}: {value!r} is no text, number or truth value to compare with"
                )
            if isinstance(value, bool) and self.operator not in ("==", "!=", "in"):
                raise UserError(f"condition on {self.column!r}: truth values are not in order; compare with ==")

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether a row with this record fulfils it."""
        found = record.get(self.column)
        if isinstance(self.value, tuple):
            return any(_type(found) is _type(value) and found == value for value in self.value)
        if found is None or _type(found) is not _type(self.value):
            return False
        match self.operator:
            case "==":
                return bool(found == self.value)
            case "!=":
                return bool(found != self.value)
            case "<":
                return bool(found < self.value)
            case "<=":
                return bool(found <= self.value)
            case ">":
                return bool(found > self.value)
            case _:
                return bool(found >= self.value)


@dataclass(frozen=True)
class Where:
    """Rows that fulfil all conditions, and are none of those left out.

    Attributes:
        conditions: All of them must hold.
        without: Ids that are left out.

    >>> where = Where((Condition("year", ">=", 2020), Condition("place", "==", "sea")), without=frozenset("a"))
    >>> [where.holds(row, {"year": 2021, "place": "sea"}) for row in ("a", "b")]
    [False, True]
    """

    conditions: tuple[Condition, ...] = ()
    without: frozenset[str] = frozenset()

    def holds(self, row_id: str, record: Mapping[str, Any]) -> bool:
        """Whether the row with this id and record may be found."""
        return row_id not in self.without and all(condition.holds(record) for condition in self.conditions)


def _type(value: object) -> type | None:
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return float
    return str if isinstance(value, str) else None
