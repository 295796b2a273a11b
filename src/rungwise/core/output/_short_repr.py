"""What values print in a session: at most a dozen lines, however much they hold.

A value that holds a picture for each of a million rows is printed by mistake more often than on purpose. Long texts,
arrays and collections are therefore cut, and say how long they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from itertools import islice

from rungwise.core.output._printable import printable

MOST_LINES = 12
"""Number of lines that a value prints at most."""
WIDTH = 118
"""Number of characters of such a line at most."""
_ROOMS = (WIDTH, 72, 48, 32, 20, 12)
"""Characters for one field, from generous to scarce; the first that gives few enough lines counts."""


def short(value: object, room: int = 60) -> str:
    """The value as it prints, in one line of about ``room`` characters at most; what is cut says how much there is.

    >>> short(("a", "b")), short(tuple(range(40_000)), 30), short("a dog " * 99, 16)
    ("('a', 'b')", '(0, 1, 2, 3, ... 40,000 items)', "'a dog a dog a…'")
    """
    if isinstance(value, str | bytes):
        return _text(value, room)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array(value, room)
    if isinstance(value, Mapping):
        entries = (f"{short(name, room // 3)}: {short(one, room // 2)}" for name, one in value.items())
        return _listed(entries, len(value), "{}", room)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named = (f"{name}={short(one, room // 2)}" for name, one in zip(value._fields, value, strict=True))
        return type(value).__name__ + _listed(named, len(value), "()", room)
    if isinstance(value, tuple | list | Set) and not isinstance(value, range):
        marks = "()" if isinstance(value, tuple) else "[]" if isinstance(value, list) else "{}"
        each = room // 2 if len(value) > 1 else room - 3
        text = _listed((short(one, each) for one in value), len(value), marks, room)
        return f"{text[:-1]},)" if isinstance(value, tuple) and len(value) == 1 and text.endswith(")") else text
    if is_dataclass(value) and not isinstance(value, type):
        text = _in_one_line(value, room)
        return text if len(text) <= room else f"{type(value).__name__}(...)"
    return cut(repr(value), room)


def short_repr(self: object) -> str:
    r"""The ``__repr__`` of a dataclass or named tuple whose fields may be long: as usual where that fits into one line.

    Longer ones take a few lines, and fields are cut as far as that needs.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Found:
    ...     ids: tuple[str, ...]
    ...     text: str = ""
    ...     __repr__ = short_repr
    >>> Found(("a",)), len(repr(Found(("a",) * 9_000, "word " * 9_000)).splitlines())
    (Found(ids=('a',), text=''), 4)
    """
    name = type(self).__name__
    named = self._fields if isinstance(self, tuple) else [one.name for one in fields(self) if one.repr]  # type: ignore[attr-defined,arg-type]
    shown = [(one, getattr(self, one, None)) for one in named]
    for room in _ROOMS:
        parts = [f"{field}={short(value, room - len(field))}" for field, value in shown]
        whole = f"{name}({', '.join(parts)})"
        if len(whole) <= WIDTH:
            return whole
        lines = _packed(parts)
        if len(lines) <= MOST_LINES - 2:
            break
    else:
        left = len(lines) - (MOST_LINES - 3)
        lines = [*lines[: MOST_LINES - 3], f"... {left} more lines of fields"]
    return "\n".join([f"{name}(", *(f"  {line}" for line in lines), ")"])


def in_few_lines(head: str, facts: Iterable[tuple[str, str]]) -> str:
    """A line that names a value, and below it a line for each fact that is there; none is too long.

    >>> print(in_few_lines("Collection 'pets'", [("splits", "train 3"), ("labels", ""), ("first", "a, b")]))
    Collection 'pets'
      splits: train 3
      first: a, b
    """
    lines = [head, *(f"  {name}: {text}" for name, text in facts if text)]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 1], f"  ... {len(lines) - MOST_LINES + 1} more"]
    return "\n".join(cut(line, WIDTH) for line in lines)


def some_of(values: Sequence[str], room: int = 90) -> str:
    """The first of some texts, and how many there are where not all fit.

    >>> some_of(("a.jpg", "b.jpg")), some_of([f"{n}.jpg" for n in range(8_091)], 24)
    ('a.jpg, b.jpg', '0.jpg, ... (8,091)')
    """
    return _listed((one_line(one, room // 2) for one in values), len(values), ("", ""), room, "({:,})")


def one_line(text: str, most: int) -> str:
    r"""A text of anybody's in one printable line of ``most`` characters at most.

    >>> one_line("a\ndog \x1b[31m", 30), one_line("a dog in the snow", 8)
    ('a dog \\x1b[31m', 'a dog i…')
    """
    return cut(printable(" ".join(text[: 4 * most].split())), most)


def cut(text: str, most: int) -> str:
    """The first line of a text, cut with an ellipsis where it is too long."""
    line, more, _ = text.partition("\n")
    return line if not more and len(line) <= most else f"{line[: max(1, most - 1)]}…"


def _text(value: str | bytes, room: int) -> str:
    most = max(4, room - 2)
    if len(value) <= most and len(whole := repr(value)) <= room + 2:
        return whole
    text = repr(value[:most])
    return f"{text[: max(2, most)]}…{text[-1]}"


def _array(value: object, room: int) -> str:
    shape, dtype = value.shape, str(value.dtype).removeprefix("torch.")  # type: ignore[attr-defined]
    text = repr(value) if 0 < getattr(value, "size", 0) <= 8 else "\n"
    if "\n" not in text and len(text) <= room:
        return text
    return f"<{dtype} {' x '.join(f'{one:,}' for one in shape) or 'number'}>"


def _in_one_line(value: object, room: int) -> str:
    given = [(one.name, getattr(value, one.name, None)) for one in fields(value) if one.repr]  # type: ignore[arg-type]
    return f"{type(value).__name__}({', '.join(f'{name}={short(one, room)}' for name, one in given)})"


def _listed(texts: Iterable[str], count: int, marks: str | tuple[str, str], room: int, said: str = "{:,} items") -> str:
    opening, closing = marks[0], marks[1]
    found = list(islice(texts, max(2, room // 2)))
    whole = f"{opening}{', '.join(found)}{closing}"
    if len(found) == count and len(whole) <= room:
        return whole
    more = f"... {said.format(count)}"
    kept: list[str] = []
    left = room - len(opening) - len(closing) - len(more)
    for text in found:
        left -= len(text) + 2
        if left < 0:
            break
        kept.append(text)
    return f"{opening}{', '.join([*kept, more])}{closing}"


def _packed(parts: Sequence[str]) -> list[str]:
    """Fields in lines, as many in each as fit."""
    lines: list[str] = []
    for part in parts:
        text = cut(part, WIDTH - 3) + ","
        if lines and len(lines[-1]) + 1 + len(text) <= WIDTH - 2:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines
