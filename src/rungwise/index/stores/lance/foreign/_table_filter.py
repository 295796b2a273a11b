"""Filters as LanceDB reads them, over a table whose columns somebody else chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rungwise.core import UserError
from rungwise.core.output import one_line
from rungwise.index.filters import Both, Condition, Either, Expression, Not

if TYPE_CHECKING:
    import pyarrow as pa


def sql_of(expression: Expression, schema: pa.Schema) -> str:
    """A filter as the engine reads it: names and texts are quoted, and a missing value fulfils no condition."""
    match expression:
        case Not(of=of):
            return f"(not {sql_of(of, schema)})"
        case Both(of=of):
            return f"({' and '.join(sql_of(one, schema) for one in of) or 'true'})"
        case Either(of=of):
            return f"({' or '.join(sql_of(one, schema) for one in of) or 'false'})"
    return f"(({_condition(expression, schema)}) is true)"


def _condition(condition: Condition, schema: pa.Schema) -> str:
    if condition.column not in schema.names:
        return "false"
    type_ = schema.field(condition.column).type
    kind, column, value = kind_of(type_), quoted(condition.column), condition.value
    if isinstance(value, tuple):
        each = (_condition(Condition(condition.column, "==", one), schema) for one in value)
        return " or ".join(f"({one})" for one in each) or "false"
    if condition.operator == "has":
        return f"array_has({column}, {literal(str(value))})" if kind == "list" else "false"
    if condition.operator == "contains":
        if kind not in ("text", "date", "list"):
            return "false"
        texts = f"array_to_string({column}, '\n')" if kind == "list" else f"cast({column} as string)"
        return f"contains(lower({texts}), {literal(str(value).lower())})"
    operator = "=" if condition.operator == "==" else condition.operator
    if isinstance(value, bool):
        return f"{column} {operator} {str(value).lower()}" if kind == "truth" else "false"
    if isinstance(value, str):
        return f"cast({column} as string) {operator} {literal(value)}" if kind in ("text", "date") else "false"
    return f"cast({column} as double) {operator} {float(value)!r}" if kind == "number" else "false"


def kind_of(type_: Any) -> str:
    """What a filter compares values of this Arrow type as; empty where it cannot."""
    import pyarrow as pa

    of = pa.types
    if of.is_boolean(type_):
        return "truth"
    if of.is_integer(type_) or of.is_floating(type_):
        return "number"
    if is_text(type_):
        return "text"
    if of.is_date(type_) or of.is_timestamp(type_):
        return "date"
    return "list" if (of.is_list(type_) or of.is_large_list(type_)) and is_text(type_.value_type) else ""


def is_text(type_: Any) -> bool:
    """Whether values of this Arrow type are texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def quoted(column: str) -> str:
    """A column's name in a filter.

    Raises:
        UserError: If it holds a backtick.
    """
    if "`" in column:
        raise UserError(f"column {one_line(column, 40)!r}: LanceDB takes no backtick in a filter; rename the column")
    return f"`{column}`"


def literal(value: str) -> str:
    """A text in a filter.

    >>> literal("a dog's life")
    "'a dog''s life'"
    """
    return "'" + value.replace("'", "''") + "'"
