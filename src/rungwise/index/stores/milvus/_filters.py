"""Filters as expressions of Milvus.

Milvus has no expression for "a text holds this part", and a row may be too large for its columns. So a filter becomes
an expression that lets through at least the rows that fulfil it, with a mark whether it lets through more: then the
records are checked. Milvus takes values as parts of the text of an expression; :func:`literal` writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rungwise.index.filters import OWN, Both, Condition, Either, Expression, Not, Scalar
from rungwise.index.stores._column_counts import Type
from rungwise.index.stores._engine_rows import ID, NO_NUMBER, NO_TEXT, as_number, as_text, column_of, to_engine
from rungwise.index.stores.milvus._rows import COLUMNS, FIELDS_OF_THEIR_OWN

_Side = str | bool
"""An expression, or the one answer that it has for all rows."""


@dataclass(frozen=True)
class Filter:
    """A filter for Milvus.

    Attributes:
        text: Expression that lets through all rows that fulfil the filter; True for all rows, False for none.
        whole: Whether it lets through no others.
    """

    text: str | bool
    whole: bool


def compiled(expression: Expression, fields: Collection[str]) -> Filter:
    """Compile a filter for Milvus; ``fields`` are the columns that have fields of their own.

    >>> compiled(Condition("year", ">=", 2020), ["number_year"])
    Filter(text='number_year >= 2020.0', whole=True)
    >>> compiled(Condition("title", "contains", "red"), ["text_title"]).whole
    False
    """
    most, least = _bounds(expression, fields)
    return Filter(most, most == least)


def literal(value: str | float) -> str:
    r"""A value as Milvus reads it in an expression.

    >>> literal(2020.0), literal('a "red" boat\n')
    ('2020.0', '"a \\"red\\" boat\\x0a"')
    """
    if not isinstance(value, str):
        return repr(value)
    escaped = (
        f"\\{one}" if one in '"\\' else f"\\x{ord(one):02x}" if ord(one) < 32 or ord(one) == 127 else one
        for one in value
    )
    return f'"{"".join(escaped)}"'


def one_of(field: str, values: Iterable[str | int]) -> str:
    """Expression for rows whose field is one of these values."""
    return f"{field} in [{', '.join(map(literal, values))}]"


def both(*parts: _Side) -> _Side:
    """Expression for rows that all parts let through."""
    if any(one is False for one in parts):
        return False
    return _joined([one for one in parts if isinstance(one, str)], "and", empty=True)


def either(*parts: _Side) -> _Side:
    """Expression for rows that one of the parts lets through."""
    if any(one is True for one in parts):
        return True
    return _joined([one for one in parts if isinstance(one, str)], "or", empty=False)


def _joined(parts: list[str], word: str, *, empty: bool) -> _Side:
    if len(parts) < 2:
        return parts[0] if parts else empty
    return f"({f' {word} '.join(parts)})"


def _negated(side: _Side) -> _Side:
    return not side if isinstance(side, bool) else f"not ({side})"


def _bounds(expression: Expression, fields: Collection[str]) -> tuple[_Side, _Side]:
    """Expressions for at least the rows that fulfil a filter, and for none but those."""
    match expression:
        case Not(of=of):
            most, least = _bounds(of, fields)
            return _negated(least), _negated(most)
        case Both(of=of):
            sides = [_bounds(one, fields) for one in of]
            return both(*(most for most, _ in sides)), both(*(least for _, least in sides))
        case Either(of=of):
            sides = [_bounds(one, fields) for one in of]
            return either(*(most for most, _ in sides)), either(*(least for _, least in sides))
    if expression.column.startswith(OWN):
        return False, False
    if expression.operator == "contains":
        return either(_present("text", expression.column, fields), _present("list", expression.column, fields)), False
    exactly = _condition(expression, fields)
    return exactly, exactly


def _condition(condition: Condition, fields: Collection[str]) -> _Side:
    entry, value = condition.column, condition.value
    if isinstance(value, tuple):
        by_kind: dict[Type, list[str | float]] = {}
        for one in value:
            by_kind.setdefault(_kind(one), []).append(_stored(one))
        return either(
            *(
                f"{_field(kind, entry, fields)} in [{', '.join(map(literal, values))}]"
                for kind, values in by_kind.items()
            )
        )
    if condition.operator == "has":
        return f"json_contains({_field('list', entry, fields)}, {literal(as_text(str(value)))})"
    kind = _kind(value)
    if kind == "truth":
        # The other of the two truth values, since a row without any holds none.
        wanted = int(bool(value) == (condition.operator == "=="))
        return f"{_field(kind, entry, fields)} == {wanted}"
    compared = f"{_field(kind, entry, fields)} {condition.operator} {literal(_stored(value))}"
    if condition.operator in ("==", ">", ">="):  # which what stands for nothing never is
        return compared
    return both(compared, _present(kind, entry, fields))


def _kind(value: Scalar) -> Type:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"


def _stored(value: Scalar) -> str | float:
    if isinstance(value, bool):
        return int(value)
    return as_text(value) if isinstance(value, str) else as_number(value)


def _field(kind: Type, entry: str, fields: Collection[str]) -> str:
    name = column_of(kind, entry)
    return name if name in fields else f'{COLUMNS}["{name}"]'


def _present(kind: Type, entry: str, fields: Collection[str]) -> str:
    field = _field(kind, entry, fields)
    if kind in FIELDS_OF_THEIR_OWN and column_of(kind, entry) in fields:
        return f"{field} > {literal(NO_TEXT if kind == 'text' else NO_NUMBER)}"
    return f"(exists {field})"


def without(ids: Iterable[str]) -> _Side:
    """Expression for all rows but those with these ids."""
    keys = sorted(map(to_engine, ids))
    return f"not ({one_of(ID, keys)})" if keys else True
