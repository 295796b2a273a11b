"""Filters: which rows of a store a search may find, as values that every kind of store can evaluate its own way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from rungwise.core import UserError
from rungwise.core.output import quoted, short_repr

Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "has", "contains"]
Scalar = str | bool | int | float

OWN = "rungwise."
"""Prefix of the keys of a record that no filter sees."""


@dataclass(frozen=True)
class Condition:
    """A condition on one column of a row.

    A row without the column, or with another type of value in it, fulfils no condition on it, ``!=`` included. Whole
    numbers and fractions are one type, texts another, truth values a third, lists of texts a fourth. Texts are in order
    of their code points.

    Attributes:
        column: Name of an entry of the row's record.
        operator: Comparison. ``has``: a list of texts holds the value. ``contains``: the value stands in a text, or in
            one text of a list, in any case of letters.
        value: Value to compare with; for ``in`` a tuple, of which one must be equal.

    Raises:
        UserError: If the operator is unknown, or the value is not of a type that it takes.

    >>> Condition("year", "!=", 2020).holds({"title": "2021"})
    False
    >>> Condition("tags", "has", "beach").holds({"tags": ["sea", "beach"]})
    True
    >>> Condition("title", "contains", "RED").holds({"title": "A red boat"})
    True
    """

    column: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        on = f"condition on {_cut(self.column)}"
        if self.operator not in get_args(Operator):
            raise UserError(f"{on}: no operator {_cut(self.operator)}; there are {' '.join(get_args(Operator))}")
        if isinstance(self.value, tuple) != (self.operator == "in"):
            raise UserError(f"{on}: give a tuple of values for `in`, and one value for others")
        if self.operator in ("has", "contains") and not isinstance(self.value, str):
            raise UserError(f"{on}: `{self.operator}` takes a text, not {_cut(self.value)}")
        for value in self.value if isinstance(self.value, tuple) else (self.value,):
            if not isinstance(value, Scalar) or (isinstance(value, float) and not math.isfinite(value)):
                raise UserError(f"{on}: {_cut(value)} is no text, number or truth value to compare with")
            if isinstance(value, bool) and self.operator not in ("==", "!=", "in"):
                raise UserError(f"{on}: truth values are not in order; compare with ==")

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether a row with this record fulfils the condition."""
        found = None if self.column.startswith(OWN) else record.get(self.column)
        if isinstance(self.value, tuple):
            return any(_type(found) is _type(value) and found == value for value in self.value)
        if self.operator == "has":
            return _type(found) is list and self.value in found  # type: ignore[operator]  # a list, then
        if self.operator == "contains":
            sought = str(self.value).lower()
            texts = found if _type(found) is list else [found] if isinstance(found, str) else []
            return any(sought in text.lower() for text in texts)  # type: ignore[union-attr]
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
class Not:
    """An expression that a row must not fulfil. A row without the column that ``of`` names does not fulfil ``of``.

    >>> Not(Condition("year", "==", 2020)).holds({})
    True
    """

    of: Expression

    __repr__ = short_repr

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether a row with this record fulfils it."""
        return not self.of.holds(record)


@dataclass(frozen=True)
class Either:
    """Expressions of which a row must fulfil one at least."""

    of: tuple[Expression, ...]

    __repr__ = short_repr

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether a row with this record fulfils it."""
        return any(one.holds(record) for one in self.of)


@dataclass(frozen=True)
class Both:
    """Expressions of which a row must fulfil all."""

    of: tuple[Expression, ...]

    __repr__ = short_repr

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether a row with this record fulfils it."""
        return all(one.holds(record) for one in self.of)


Expression: TypeAlias = Condition | Not | Either | Both


@dataclass(frozen=True)
class Where:
    """Filter: rows that fulfil all conditions, and are none of those left out.

    Attributes:
        conditions: Expressions that must all hold.
        without: Ids that are left out.

    >>> where = Where((Condition("year", ">=", 2020), Condition("place", "==", "sea")), without=frozenset("a"))
    >>> [where.holds(row, {"year": 2021, "place": "sea"}) for row in ("a", "b")]
    [False, True]
    """

    conditions: tuple[Expression, ...] = ()
    without: frozenset[str] = frozenset()

    __repr__ = short_repr

    def holds(self, row_id: str, record: Mapping[str, Any]) -> bool:
        """Whether the row with this id and record may be found."""
        return row_id not in self.without and all(condition.holds(record) for condition in self.conditions)

    def and_without(self, ids: frozenset[str]) -> Where:
        """The same filter with more ids left out."""
        return Where(self.conditions, self.without | ids)


def _type(value: object) -> type | None:
    if isinstance(value, bool):
        return bool
    if isinstance(value, int | float):
        return float
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return list
    return str if isinstance(value, str) else None


def _cut(value: object) -> str:
    return quoted(value) if isinstance(value, str) else repr(value)[:80]
