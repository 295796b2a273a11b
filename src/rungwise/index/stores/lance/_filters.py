"""Filters as expressions of LanceDB, built from values: no text of a user ever becomes a part of a query's text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import and_, or_
from typing import TYPE_CHECKING, TypeAlias

from rungwise.index.filters import OWN, Both, Condition, Either, Expression, Not, Scalar
from rungwise.index.stores._engine_rows import NO_NUMBER, NO_TEXT, as_number, as_text, column_of
from rungwise.index.stores.lance._rows import as_list, sought_in_folded

if TYPE_CHECKING:
    from lancedb.expr import Expr

Compiled: TypeAlias = "Expr | bool"
"""A filter as an expression, or the one answer that it has for all rows."""


def compiled(expression: Expression, columns: Collection[str]) -> Compiled:
    """Compile a filter for LanceDB; an entry for which the table has no column, no row has.

    >>> compiled(Condition("year", ">=", 2020), ["number_year"])
    Expr((number_year >= 2020.0))
    >>> compiled(Not(Condition("year", ">=", 2020)), [])
    True
    """
    match expression:
        case Not(of=of):
            inner = compiled(of, columns)
            return not inner if isinstance(inner, bool) else ~inner
        case Both(of=of):
            return all_of(compiled(one, columns) for one in of)
        case Either(of=of):
            return _any_of(compiled(one, columns) for one in of)
    return False if expression.column.startswith(OWN) else _condition(expression, columns)


def all_of(parts: Iterable[Compiled]) -> Compiled:
    """Filter of the rows that pass all parts."""
    found = list(parts)
    if any(one is False for one in found):
        return False
    left = [one for one in found if not isinstance(one, bool)]
    return _joined(left, and_) if left else True


def _any_of(parts: Iterable[Compiled]) -> Compiled:
    found = list(parts)
    if any(one is True for one in found):
        return True
    left = [one for one in found if not isinstance(one, bool)]
    return _joined(left, or_) if left else False


def _joined(parts: list[Expr], join: Callable[[Expr, Expr], Expr]) -> Expr:
    """Join all parts to one expression, halved again and again: the engine ends the process where one is deep."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [join(one, other) for one, other in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def _condition(condition: Condition, columns: Collection[str]) -> Compiled:
    from lancedb.expr import col, lit

    entry, value = condition.column, condition.value
    if isinstance(value, tuple):
        return _any_of(_one_of(entry, [one for one in value if _kind(one) == kind], columns) for kind in _KINDS)
    if condition.operator in ("has", "contains"):
        kind, sought = ("list", as_list([str(value)])) if condition.operator == "has" else ("folded", "")
        column = column_of(kind, entry)
        return col(column).contains(lit(sought or sought_in_folded(str(value)))) if column in columns else False
    kind = _kind(value)
    column = column_of(kind, entry)
    if column not in columns:
        return False
    found, wanted = col(column), lit(_stored(value))
    match condition.operator:
        case "==":
            return found == wanted
        case "!=":
            # The other of the two truth values, since a row without any holds a third one.
            return found == lit(int(not value)) if kind == "truth" else (found != wanted) & _present(column, kind)
        case "<":
            return (found < wanted) & _present(column, kind)
        case "<=":
            return (found <= wanted) & _present(column, kind)
        case ">":
            return found > wanted  # which what stands for nothing never is
        case _:
            return found >= wanted


_KINDS = ("number", "text", "truth")


def _kind(value: Scalar) -> str:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _stored(value: Scalar) -> str | int | float:
    if isinstance(value, bool):
        return int(value)
    return as_text(value) if isinstance(value, str) else as_number(value)


def _one_of(entry: str, values: list[Scalar], columns: Collection[str]) -> Compiled:
    from lancedb.expr import col, lit

    if not values or (column := column_of(_kind(values[0]), entry)) not in columns:
        return False
    return col(column).isin([lit(_stored(one)) for one in values])


def _present(column: str, kind: str) -> Expr:
    from lancedb.expr import col, lit

    return col(column) > lit(NO_TEXT) if kind == "text" else col(column) > lit(NO_NUMBER)
