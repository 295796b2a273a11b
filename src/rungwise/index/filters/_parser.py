"""Filters as people type them: ``year >= 2020 and (tags has 'beach' or not title contains 'red')``.

A text becomes a tree of conditions, and nothing else: no text of a user reaches the query language of an engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple, cast

from rungwise.core import UserError, check_length, limits
from rungwise.core.output import quoted
from rungwise.core.text import near_names
from rungwise.index.filters._conditions import Both, Condition, Either, Expression, Not, Operator, Scalar, Where

DEEPEST = 50
"""Number of parentheses and ``not`` that may stand in each other."""
MOST_VALUES = 1000
"""Number of values that one ``in`` may have."""

_QUOTES = {
    "'": "'", '"': '"', "“": "”", "”": "”", "„": "“”", "‘": "’", "’": "’", "‚": "‘’", "«": "»", "»": "«»", "`": "`",
}  # fmt: skip
_SAME = {"=": "==", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_SIGNS = re.compile(r"==|!=|<>|<=|>=|[=<>≠≤≥]")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_KEYWORDS = frozenset(("and", "or", "not", "in", "has", "contains", "between", "true", "false"))
_TRUTH = {"true": True, "false": False}
_EXAMPLE = "year >= 2020 and tags has 'beach'"
_SHOWN = 80
"""Number of typed characters that a remedy repeats."""


_OPTION = {"filter": "where"}


class WhereError(UserError):
    """A filter that cannot be read; the message is one line and names the place.

    Attributes:
        place: Position of the wrong character, from 0.
    """

    __module__ = "rungwise.index.filters"

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message, parameters=_OPTION)
        self.place = place


class _Token(NamedTuple):
    kind: Literal["name", "quoted", "number", "sign", "mark", "end"]
    text: str
    place: int

    @property
    def keyword(self) -> str:
        return self.text.lower() if self.kind == "name" and self.text.lower() in _KEYWORDS else ""


def parse_where(text: str) -> Where:
    """Read a filter.

    Conditions are ``COLUMN OPERATOR VALUE`` with ``==`` (or ``=``), ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``has`` (a
    list holds this text), ``contains`` (a text has this one in it, case ignored), ``in (VALUE, ...)`` and ``between
    VALUE and VALUE`` (both ends included). They are joined by ``and``, ``or``, ``not`` and parentheses; ``not`` binds
    before ``and``, ``and`` before ``or``. Values are texts in quotes, numbers, ``true`` and ``false``. A quote in a
    text is written twice, or behind a backslash; a backslash itself is written twice. Columns with spaces, and those
    named as a word of the filter, stand in quotes or backticks; ``attrs.colour`` needs none. An index then says what
    dates and folders mean (:meth:`rungwise.index.Index.understood`).

    Raises:
        WhereError: If it cannot be read; it says where and what to write.

    >>> parse_where("year >= 2020 and not tags has 'beach'").conditions
    (Condition(column='year', operator='>=', value=2020),
     Not(of=Condition(column='tags', operator='has', value='beach')))
    >>> parse_where("year >= and tags has 'beach'")
    Traceback (most recent call last):
    rungwise.index.filters.WhereError: filter, character 9 (year >= HERE and tags has 'beach'): expected a value;
    write a number, true, false or a text in quotes
    """
    return _Reader(text).whole()


def write_where(where: Where) -> str:
    """Text of a filter, as :func:`parse_where` reads it; ids that are left out are no part of the text.

    >>> write_where(parse_where("a=1 and (b = 'it''s' or not c in (1,2))"))
    "a == 1 and (b == 'it''s' or not c in (1, 2))"
    """
    return " and ".join(_nested(one) for one in where.conditions)


def columns_of(where: Where) -> tuple[str, ...]:
    """The columns that a filter names, each once."""

    def named(clause: Expression) -> Iterator[str]:
        match clause:
            case Condition():
                yield clause.column
            case Not():
                yield from named(clause.of)
            case _:
                for one in clause.of:
                    yield from named(one)

    return tuple(dict.fromkeys(name for clause in where.conditions for name in named(clause)))


def check_columns(where: Where, columns: Collection[str]) -> None:
    """Refuse a filter on a column that no row has; the message names the nearest columns, and all if they are few.

    A part of a name with dots, as columns of nested JSON have, is near to it.

    >>> check_columns(parse_where("yaer >= 2020"), ["year", "title"])
    Traceback (most recent call last):
    rungwise.core.UserError: filter: no picture has a column 'yaer'; did you mean year? There are: title, year
    """
    for name in columns_of(where):
        if name in columns:
            continue
        of_lower = {one.lower(): one for one in sorted(columns)}
        near = near_names(name.lower(), of_lower, 3) or [one for one in of_lower if name.lower() in one.split(".")][:3]
        meant = f"; did you mean {' or '.join(_written_name(of_lower[one]) for one in near)}?" if near else "."
        raise UserError(
            f"filter: no picture has a column {quoted(name)}{meant} There are: {_listed(sorted(columns))}",
            parameters=_OPTION,
        )


def _listed(names: list[str], most: int = 30) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(_written_name, names[:most])) + more if names else "none"


class _Reader:
    """Parser of a filter by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            check_length(text, "filter")
        except UserError as error:
            raise WhereError(str(error), limits().query_characters) from None
        self._tokens = list(self._cut())
        self._at = 0
        self._depth = 0

    def whole(self) -> Where:
        if self._now.kind == "end":
            raise self._error("the filter is empty", f"write a condition, as in {_EXAMPLE}")
        alternatives = self._alternatives()
        self._end()
        if len(alternatives) == 1:
            return Where(tuple(alternatives[0]))
        return Where((Either(tuple(map(_both, alternatives))),))

    def _end(self) -> None:
        if self._now.kind != "end":
            raise self._error("expected and, or, or the end", "join conditions with and, or")

    def _alternatives(self) -> list[list[Expression]]:
        found = [self._all_of()]
        while self._passed("or"):
            found.append(self._all_of())
        return found

    def _all_of(self) -> list[Expression]:
        found = [self._clause()]
        while self._passed("and"):
            found.append(self._clause())
        return found

    def _clause(self) -> Expression:
        if self._now.keyword != "not" and not self._is_mark("("):
            return self._condition()
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} parentheses in each other", "write it flatter")
        clause: Expression
        if self._passed("not"):
            clause = Not(self._clause())
        else:
            self._at += 1
            alternatives = self._alternatives()
            self._expect(")")
            both = [_both(one) for one in alternatives]
            clause = both[0] if len(both) == 1 else Either(tuple(both))
        self._depth -= 1
        return clause

    def _condition(self) -> Expression:
        column = self._column()
        negated = self._passed("not")
        sign = self._now
        operator = _SAME.get(sign.text, sign.text) if sign.kind == "sign" else sign.keyword
        if not (sign.kind == "sign" and not negated) and operator not in ("in", "has", "contains", "between"):
            remedy = f"write one of == != < <= > >= in has contains between, as in {_EXAMPLE}"
            if sign.kind == "name" and not sign.keyword:
                remedy = f'put a column of several words in quotes, as in "{f"{column} {sign.text}"[:_SHOWN]}" == 1'
            raise self._error("expected a comparison", remedy)
        self._at += 1
        clause: Expression
        try:
            if operator == "between":
                least = self._value()
                if not self._passed("and"):
                    raise self._error("expected and", f"write {column} between 1 and 9")
                clause = Both((Condition(column, ">=", least), Condition(column, "<=", self._value())))
            elif operator == "in":
                clause = Condition(column, "in", self._values())
            else:
                clause = Condition(column, cast(Operator, operator), self._value())
        except WhereError:
            raise
        except UserError as error:
            raise WhereError(f"filter, character {sign.place + 1}: {error}", sign.place) from None
        return Not(clause) if negated else clause

    def _column(self) -> str:
        token = self._now
        if token.kind == "quoted" or (token.kind == "name" and not token.keyword):
            self._at += 1
            return token.text
        remedy = f'put the name in quotes, as in "{token.text}" == 1' if token.keyword else f"as in {_EXAMPLE}"
        raise self._error("expected a column", remedy)

    def _value(self) -> Scalar:
        token = self._now
        if token.kind not in ("quoted", "number") and token.keyword not in _TRUTH:
            if token.kind == "name" and not token.keyword:
                raise self._error("expected a value", f"put texts in quotes: {_quoted(token.text[:_SHOWN])}")
            raise self._error("expected a value", "write a number, true, false or a text in quotes")
        self._at += 1
        if token.kind == "quoted":
            return token.text
        if token.kind == "number":
            return int(token.text) if re.fullmatch(r"[+-]?\d+", token.text) else float(token.text)
        return _TRUTH[token.keyword]

    def _values(self) -> tuple[Scalar, ...]:
        self._expect("(", "list the values, as in year in (2020, 2021)")
        values = [self._value()]
        while self._is_mark(","):
            self._at += 1
            values.append(self._value())
            if len(values) > MOST_VALUES:
                raise self._error(f"more than {MOST_VALUES} values", "ask in several searches")
        self._expect(")")
        return tuple(values)

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _is_mark(self, mark: str) -> bool:
        """Whether a mark comes next; the same sign in quotes is a name or a text."""
        return self._now.kind == "mark" and self._now.text == mark

    def _passed(self, keyword: str) -> bool:
        found = self._now.keyword == keyword
        self._at += found
        return found

    def _expect(self, mark: str, remedy: str = "") -> None:
        if not self._is_mark(mark):
            raise self._error(f"expected {mark}", remedy or f"add {mark}")
        self._at += 1

    def _error(self, wrong: str, remedy: str, place: int | None = None) -> WhereError:
        place = self._now.place if place is None else place
        before, after = " ".join(self._text[:place].split()), " ".join(self._text[place:].split())
        before = before if len(before) <= 40 else f"...{before[-40:]}"
        after = after if len(after) <= 40 else f"{after[:40]}..."
        excerpt = " ".join(part for part in (before, "HERE", after) if part)
        return WhereError(f"filter, character {place + 1} ({excerpt}): {wrong}; {remedy}", place)

    def _cut(self) -> Iterator[_Token]:
        text, at = self._text, 0
        while at < len(text):
            letter = text[at]
            if letter.isspace():
                at += 1
            elif letter in "(),":
                yield _Token("mark", letter, at)
                at += 1
            elif letter in _QUOTES:
                said, after = self._quoted_at(at)
                yield _Token("quoted", said, at)
                at = after
            elif found := _SIGNS.match(text, at):
                yield _Token("sign", found[0], at)
                at = found.end()
            elif found := _NUMBER.match(text, at):
                follows = text[found.end() : found.end() + 1]
                if follows.isalnum() or follows in tuple("-:/_."):
                    word = text[at:].split()[0]
                    raise self._error("no number", f"put dates and texts in quotes: {_quoted(word[:_SHOWN])}", at)
                if len(found[0]) > 400:
                    raise self._error("a number of more than 400 digits", "shorten it", at)
                yield _Token("number", found[0], at)
                at = found.end()
            elif found := _NAME.match(text, at):
                yield _Token("name", found[0], at)
                at = found.end()
            else:
                raise self._error(f"{letter!r} means nothing here", f"write conditions as in {_EXAMPLE}", at)
        yield _Token("end", "", len(text))

    def _quoted_at(self, at: int) -> tuple[str, int]:
        """The text between quotes, and the position after it.

        A closing quote that is doubled or follows a backslash is part of the text. A backslash before anything but such
        a quote or a backslash is a plain character.
        """
        closing, place = _QUOTES[self._text[at]], at + 1
        said: list[str] = []
        while place < len(self._text):
            letter, following = self._text[place], self._text[place + 1 : place + 2]
            if letter == "\\" and following and following in f"{closing}\\":
                letter, place = following, place + 1
            elif letter in closing:
                if following != letter:
                    return "".join(said), place + 1
                place += 1
            said.append(letter)
            place += 1
        raise self._error("the quote is not closed", f"add {closing[0]}", at)


def _both(clauses: list[Expression]) -> Expression:
    return clauses[0] if len(clauses) == 1 else Both(tuple(clauses))


def _nested(clause: Expression) -> str:
    """Text of a clause beside others, in parentheses where it has several parts itself."""
    match clause:
        case Condition():
            return _written(clause)
        case Not():
            return f"not {_nested(clause.of)}"
        case _:
            inner = " or " if isinstance(clause, Either) else " and "
            return f"({inner.join(_nested(one) for one in clause.of)})"


def _written(condition: Condition) -> str:
    value = condition.value
    said = f"({', '.join(map(_written_value, value))})" if isinstance(value, tuple) else _written_value(value)
    return f"{_written_name(condition.column)} {condition.operator} {said}"


def _written_value(value: Scalar) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else repr(value)


def _written_name(name: str) -> str:
    plain = _NAME.fullmatch(name) and name.lower() not in _KEYWORDS
    return name if plain else _quoted(name, '"')


def _quoted(text: str, quote: str = "'") -> str:
    inside = text.replace("\\", "\\\\").replace(quote, quote * 2)
    return f"{quote}{inside}{quote}"
