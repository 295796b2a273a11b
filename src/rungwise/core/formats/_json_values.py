"""Values that are written as JSON and read again: to a text or a file, with strict types, NaN as null."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, overload

from pydantic import ConfigDict, ValidationError, WrapValidator

from rungwise.core import UserError, adapter, digest_of_json, in_words, parse_json, read_json, user_path
from rungwise.core.disk import replacing
from rungwise.core.output import printable

T = TypeVar("T")

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
"""Where the next word of a class name begins."""

IN_FILE = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)
"""Value for ``__pydantic_config__`` of a dataclass that a file holds: types are checked strictly."""

Number = Annotated[float, WrapValidator(lambda value, read: math.nan if value is None else read(value))]
"""Number of a file; NaN where the file says null."""


def as_json(value: Any) -> Any:
    """Plain values for JSON: dataclasses and named tuples as mappings of their public fields, NaN as None.

    >>> as_json({"i2t/R@1": math.nan, "gallery": (3, 4)})
    {'i2t/R@1': None, 'gallery': [3, 4]}
    """
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: as_json(one) for name, one in zip(value._fields, value, strict=True)}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value) if not one.name.startswith("_")}
    return value


def read_as(kind: type[T], values: Mapping[str, Any]) -> T:
    """Read a part of a parsed file as the dataclass or model that it holds.

    Raises:
        ValueError: If a part is missing, unknown, of another type or not finite; the message names the first.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     __pydantic_config__ = IN_FILE
    ...     rows: int
    >>> read_as(Size, {"rows": 0.5})
    Traceback (most recent call last):
    ValueError: rows: must be a whole number
    """
    try:
        reader = adapter(kind)
        # A strict reader makes a dataclass of JSON text alone.
        read: T = reader.validate_json(json.dumps(values)) if is_dataclass(kind) else reader.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {in_words(first)}") from None
    return read


class JsonForm(ABC):
    """What is written as JSON, to a text or a file, and read again from either.

    Attributes:
        format: Name of the format, written into every text.
        remedy: What to do where a text is damaged.
    """

    format: ClassVar[str]
    remedy: ClassVar[str] = "write it again"

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""

    @classmethod
    @abstractmethod
    def _of_content(cls, content: dict[str, Any]) -> Self:
        """The value of such content; a ValueError says in a few words what is wrong with it."""

    @overload
    def to_json(self, path: None = None) -> str: ...
    @overload
    def to_json(self, path: str | Path) -> None: ...
    def to_json(self, path: str | Path | None = None) -> str | None:
        """Everything as JSON: written to a file, which appears whole or not at all, or given as a text.

        Args:
            path: The file; an existing one is replaced. None gives the text.
        """
        content = {"format": self.format} | self._content()
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        if path is None:
            return text
        with replacing(user_path(path)) as draft:
            draft.write_text(text, encoding="utf-8")
        return None

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read what :meth:`to_json` wrote.

        Args:
            source: Path of the file; or the text, which begins with ``{``.

        Raises:
            UserError: If the file is missing, it is another format, its parts do not fit together, or it was altered.
        """
        if not isinstance(source, str | Path):
            raise UserError(f"from_json() got {type(source).__name__}; give the path of a file, or its text")
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        where = f"text of {cls.format}" if is_text else printable(str(source))
        read = parse_json(str(source), where) if is_text else read_json(user_path(source))
        if not isinstance(read, dict) or read.pop("format", None) != cls.format:
            raise UserError(f"{where}: is not a {cls.format} file; give a file that to_json wrote")
        what = _CAPITAL.sub(" ", cls.__name__).lower()
        try:
            return cls._of_content(read)
        except AlteredError as error:
            raise UserError(f"{where}: the {what} was altered after it was written; {cls.remedy}") from error
        except ValueError as error:
            raise UserError(f"{where}: the {what} is damaged ({error}); {cls.remedy}") from error


class CheckedJson(JsonForm):
    """A dataclass whose JSON is its fields and a checksum over all of them."""

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = as_json(self)
        return content | {"checksum": digest_of_json(content)}

    @classmethod
    def _of_content(cls, content: dict[str, Any]) -> Self:
        checked_by = content.pop("checksum", None)
        found = read_as(cls, content)
        if checked_by != digest_of_json(content):
            raise AlteredError
        found._check_parts()
        return found

    @abstractmethod
    def _check_parts(self) -> None:
        """Refuse parts that do not fit together, with a ValueError that says in a few words which."""


class AlteredError(ValueError):
    """The checksum of some content is that of other content."""
