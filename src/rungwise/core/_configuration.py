"""Typed dataclasses as the single source of configuration: YAML in, YAML out, one-line errors."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core._errors import UserError
from rungwise.core._untrusted_files import MissingFileError, read_text
from rungwise.core.text import near_setting
from rungwise.core.version import __version__

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")

_MOST_VALUES = 100_000
_LONGEST_NUMBER = 1000

Count = Annotated[int, Field(ge=0, le=1 << 53, strict=True)]
"""For a field with a count, in a file that somebody may have written to."""

Natural = Annotated[int, Field(ge=0)]
"""A whole number of at least 0."""

AtLeastOne = Annotated[int, Field(ge=1)]
"""A number of epochs, steps or items."""

Size = Annotated[int, Field(ge=1, le=1 << 20)]
"""A length that memory must hold, such as that of a vector."""

NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A finite number of at least 0, such as a weight."""

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A finite number above 0."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""

SomeShare = Annotated[float, Field(gt=0, le=1)]
"""A number above 0 and up to 1."""

BelowOne = Annotated[float, Field(ge=0, lt=1)]
"""A number from 0 and below 1, such as a dropout or a momentum."""

STRICT = ConfigDict(extra="forbid")
"""``__pydantic_config__`` of a config dataclass: a misspelt key is an error, not a silently ignored wish."""


_WORDS = {
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "dataclass_type", "model_type", "model_attributes_type"), "must be a mapping"),
    "string_type": "must be text",
    "finite_number": "must be a finite number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "too_short": "the number of its values must be at least {min_length}",
    "too_long": "the number of its values must be at most {max_length}",
    "missing": "is missing",
    "value_error": "{error}",
}
"""What pydantic's kinds of errors are called in our messages; the others keep their own words."""


def from_plain(kind: type[T], values: Any, where: str) -> T:
    """Build a config dataclass from plain values such as YAML gives.

    Args:
        kind: The dataclass.
        values: A mapping of its fields.
        where: Place that an error names, usually the file; empty for values that a program gave.

    Raises:
        UserError: Naming the first field that is unknown or of the wrong type; or the refusal of the dataclass itself.

    >>> @dataclasses.dataclass
    ... class Recipe:
    ...     margin: float = 0.2
    >>> from_plain(Recipe, {"margin": "wide"}, "recipe.yaml")
    Traceback (most recent call last):
    rungwise.core.UserError: recipe.yaml: margin: must be a number (got 'wide')
    """
    before = f"{where}: " if where else ""
    if not isinstance(values, dict):
        raise UserError(f"{before}expected a mapping of settings, found {type(values).__name__}")
    try:
        built: T = adapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "unexpected_keyword_argument":
            place = ".".join(map(str, first["loc"]))
            near = near_setting(kind, first["loc"])
            hints = [f" did you mean {near}?"] if near else []
            hints += [f" a file of a newer version needs a newer rungwise (this is {__version__})"] if where else []
            said = ";" + "".join(hints) if hints else ""
            raise UserError(f"{before}{place}: unexpected, there is no such setting{said}") from None
        raise UserError(f"{before}{_reason(error)}") from None
    except UserError as error:
        raise UserError(f"{before}{error}") from None
    if place := _not_a_number(values):
        raise UserError(f"{before}{place}: NaN is no number to compute with; give another value, or leave it out")
    return built


def _reason(error: ValidationError, *place: str) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, (*place, *first['loc'])))}: {in_words(first)} (got {_shown(first['input'])})"


def in_words(error: ErrorDetails) -> str:
    """What a value must be: pydantic speaks of inputs and of Python's types, and people write numbers and lists.

    >>> try:
    ...     adapter(Size).validate_python(0)
    ... except ValidationError as error:
    ...     print(in_words(error.errors()[0]))
    must be at least 1
    """
    words = _WORDS.get(error["type"])
    return error["msg"] if words is None else words.format_map(error.get("ctx", {}))


@dataclasses.dataclass(frozen=True)
class Cancelled:
    """A setting that another setting, or the data, leaves without effect.

    Attributes:
        line: Both settings with their values, and the remedy.
        refused: Whether it can only be a mistake that wastes the run; otherwise it is said and the run goes on.
    """

    line: str
    refused: bool = False


class Bounded:
    """A base of configurations: a value outside its field's bounds is refused however the object is made.

    The bounds are those of the annotations, such as :data:`Size`, by which :func:`from_plain` reads a file.

    Attributes:
        place: Setting of a run that holds such a configuration, for errors; empty takes its ``kind``.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Recipe(Bounded):
    ...     batch_size: Size = 128
    >>> Recipe(batch_size=0)
    Traceback (most recent call last):
    rungwise.core.UserError: batch_size: must be at least 1 (got 0)
    """

    place: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Compare all fields with their bounds; a class with rules between its fields calls this first."""
        own: Any = type(self)
        for name, hint in _bounds(own).items():
            try:
                adapter(hint).validate_python(getattr(self, name), strict=True)
            except ValidationError as error:
                place = self.place or getattr(self, "kind", "")
                raise UserError(_reason(error, *filter(None, (place, name)))) from None

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Fields that other fields of this configuration leave without effect; none by default.

        ``place`` is the setting that holds the configuration, such as ``model.text``.
        """
        yield from ()


@lru_cache
def _bounds(kind: Any) -> dict[str, Any]:
    """The annotations of a dataclass that set a bound or list values, by field."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if _has_bound(hints[field.name])}


def _has_bound(hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return True
    said = any(isinstance(one, FieldInfo) and one.metadata for one in getattr(hint, "__metadata__", ()))
    return said or any(_has_bound(inner) for inner in get_args(hint))


def _not_a_number(values: Any, place: str = "") -> str:
    """Path of the first NaN, such as ``loss.margin``; empty where there is none."""
    if isinstance(values, float):
        return place if math.isnan(values) else ""
    if isinstance(values, dict):
        inner: Iterable[tuple[Any, Any]] = values.items()
    elif isinstance(values, list | tuple):
        inner = enumerate(values)
    else:
        return ""
    return next((found for key, one in inner if (found := _not_a_number(one, f"{place}.{key}".lstrip(".")))), "")


def adapter(kind: Any) -> TypeAdapter[Any]:
    """Pydantic's reader of a type, kept because making one takes up to a tenth of a second."""
    return _adapter(kind)


_adapter = lru_cache(TypeAdapter)


by_name = BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value)
"""For a field with one of several configurations told apart by ``kind``: the bare kind means all its defaults."""


def on_command_line(kinds: Any) -> PrimitiveConstructorSpec[Any]:
    """Parser of a field with one of several configurations: one argument, a name or a mapping as YAML writes it.

    Args:
        kinds: A union of dataclasses that each have a default ``kind``.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Plain:
    ...     kind: str = "plain"
    >>> @dataclasses.dataclass(frozen=True)
    ... class Chunked:
    ...     kind: str = "chunked"
    ...     chunk: int = 64
    >>> on_command_line(Plain | Chunked).instance_from_str(["{kind: chunked, chunk: 8}"])
    Chunked(kind='chunked', chunk=8)
    """
    classes = {kind: one for one in get_args(kinds) or (kinds,) for kind in (_kind_of(one),)}

    def read(words: list[str]) -> Any:
        try:
            values = parse_yaml(words[0], "the value")
        except UserError as error:
            raise ValueError(str(error)) from None
        values = {"kind": values} if isinstance(values, str) else values
        if not isinstance(values, dict) or values.get("kind") not in classes:
            raise ValueError(f"{words[0]!r} is none of {', '.join(classes)}, alone or as {{kind: NAME, option: value}}")
        try:
            return from_plain(classes[values["kind"]], values, values["kind"])
        except UserError as error:
            raise ValueError(str(error)) from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + ",".join(classes) + "}",
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, tuple(classes.values())),
        str_from_instance=lambda value: [short_text(value)],
    )


def short_text(config: Any) -> str:
    """A configuration with a ``kind`` as one line that :func:`on_command_line` reads back.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Chunked:
    ...     kind: str = "chunked"
    ...     chunk: int = 64
    >>> short_text(Chunked()), short_text(Chunked(chunk=8))
    ('chunked', '{kind: chunked, chunk: 8}')
    """
    values = changed(config)
    if not values:
        return str(config.kind)
    return yaml_line({"kind": config.kind} | values)


def changed(config: Any) -> dict[str, Any]:
    """The plain values of the fields that are not at their defaults."""
    values, usual = to_plain(config), _defaults(type(config))
    return {name: value for name, value in values.items() if name not in usual or value != usual[name]}


def _defaults(kind: Any) -> dict[str, Any]:
    usual = {}
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            usual[field.name] = _inner_plain(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            made = field.default_factory()
            usual[field.name] = _inner_plain(made)
    return usual


def _kind_of(one: type) -> str:
    return str(next(field.default for field in dataclasses.fields(one) if field.name == "kind"))


def load_yaml(kind: type[T], path: Path) -> T:
    """Read a config dataclass from a YAML file."""
    try:
        values = parse_yaml(read_text(path, "settings_bytes"), path)
    except MissingFileError:
        raise UserError(f"{path}: no such configuration file") from None
    return from_plain(kind, {} if values is None else values, str(path))


def parse_yaml(text: str, where: object) -> Any:
    """The plain values of YAML text; tags that name Python objects are refused. ``where`` is what an error names.

    Raises:
        UserError: If it is not YAML, is nested too deeply, or unfolds into more values than anybody writes.

    >>> parse_yaml("a: *b", "recipe.yaml")
    Traceback (most recent call last):
    rungwise.core.UserError: recipe.yaml, line 1: not valid YAML; found undefined alias 'b'
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {}, where)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{where}{line}: not valid YAML; {getattr(error, 'problem', 'unreadable')}") from None
    except (ValueError, TypeError, RecursionError) as error:  # a date that there is not, a list as a key, no end
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise UserError(f"{where}: not valid YAML; {reason}") from None


def yaml_line(value: Any) -> str:
    """Plain values as YAML in one line, in their order, as a command line takes them.

    >>> yaml_line({"pad_type": "same", "drop_rate": 0.1})
    '{pad_type: same, drop_rate: 0.1}'
    """
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6).strip()


def _count(node: yaml.Node, known: dict[int, int], where: object) -> int:
    """Number of values of a node with every alias written out; counted before they are made.

    Raises:
        UserError: If there are too many, a value holds itself, or a number has too many digits.
    """
    if (size := known.get(id(node))) is not None:
        return size
    known[id(node)] = _MOST_VALUES + 1  # whoever meets it before it is counted stands inside it
    size = 1
    if isinstance(node, yaml.CollectionNode):
        pairs = isinstance(node, yaml.MappingNode)
        inner = [one for pair in node.value for one in pair] if pairs else node.value
        if pairs:
            _refuse_double(node, where)
        size += sum(_count(one, known, where) for one in inner)
    elif len(node.value) > _LONGEST_NUMBER and node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
        raise UserError(f"{where}, line {node.start_mark.line + 1}: not valid YAML; a number of too many digits")
    if size > _MOST_VALUES:
        raise UserError(f"{where}: unfolds into more than {_MOST_VALUES:,} values; write out what its aliases mean")
    known[id(node)] = size
    return size


def _refuse_double(node: yaml.Node, where: object) -> None:
    """Refuse a mapping with one key twice, of which YAML would take the last."""
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if (key.tag, key.value) in seen:
                line = key.start_mark.line + 1
                raise UserError(f"{where}, line {line}: {key.value[:60]!r} stands twice; leave one of them out")
            seen.add((key.tag, key.value))


def to_plain(config: Any) -> dict[str, Any]:
    """Fields as plain lists, mappings, numbers and strings, as YAML and JSON take them."""
    return {key: _plain(value) for key, value in dataclasses.asdict(config).items()}


ELSEWHERE: Mapping[str, Any] = MappingProxyType({"elsewhere": True})
"""``metadata`` of a field that tells where something came from, or how it is trained, and changes no vector."""


def identity(config: Any) -> dict[str, Any]:
    """The plain values that decide what a model computes, in the form that the hashes of saved models remember.

    Fields with the metadata :data:`ELSEWHERE` are left out.
    """
    hints, known = get_type_hints(type(config)), {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if hints[field.name] is float and isinstance(value, int):
            value = float(value)  # as it is read back from a file
        if not field.metadata.get("elsewhere"):
            known[field.name] = _identity_of(value)
    return known


def _identity_of(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return identity(value)
    return [_identity_of(one) for one in value] if isinstance(value, list | tuple) else _plain(value)


def _inner_plain(value: Any) -> Any:
    return to_plain(value) if dataclasses.is_dataclass(value) else _plain(value)


def without_places(config: Any) -> dict[str, Any]:
    """The plain values for a file that others will read: a path of this machine keeps only its last part.

    Only texts with the metadata :data:`ELSEWHERE` can be paths; names that a model hub knows stay whole.

    >>> @dataclasses.dataclass
    ... class Side:
    ...     weights: str = dataclasses.field(default="hub", metadata=ELSEWHERE)
    >>> without_places(Side("/models/resnet.safetensors")), without_places(Side("hf:someone/model"))
    ({'weights': 'resnet.safetensors'}, {'weights': 'hf:someone/model'})
    """
    return {field.name: _shown_of(field, getattr(config, field.name)) for field in dataclasses.fields(config)}


def _shown_of(field: dataclasses.Field[Any], value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return without_places(value)
    if isinstance(value, list | tuple):
        return [_shown_of(field, one) for one in value]
    return _without_place(value) if field.metadata.get("elsewhere") and isinstance(value, str) else _plain(value)


def without_any_place(values: Any) -> Any:
    """Plain values for others to see: every text that is a path of this machine keeps only its last part.

    A text that holds a mapping in one line, as :func:`short_text` writes it, is searched as well.

    >>> without_any_place({"data": {"path": "/data/photos"}, "start": "{kind: folder, path: /data/run}", "seed": 0})
    {'data': {'path': 'photos'}, 'start': '{kind: folder, path: run}', 'seed': 0}
    """
    if isinstance(values, Mapping):
        return {name: without_any_place(one) for name, one in values.items()}
    if isinstance(values, list | tuple):
        return [without_any_place(one) for one in values]
    if not isinstance(values, str):
        return values
    if values.startswith("{"):
        return yaml_line(without_any_place(parse_yaml(values, "the value")))
    return _without_place(values)


def _without_place(text: str) -> str:
    """The last part of a path, after a prefix such as ``hf:``; any other text as it is."""
    prefix = match[0] if (match := re.match(r"[a-z_]{2,}:", text)) else ""
    place = text.removeprefix(prefix)
    is_place = place.startswith((".", "~")) or "\\" in place or Path(place).is_absolute() or os.path.lexists(place)
    return prefix + re.split(r"[/\\]", place.rstrip("/\\"))[-1] if is_place else text


def dump_yaml(config: Any) -> str:
    """The configuration as YAML text, fields in their order of definition."""
    return yaml.safe_dump(to_plain(config), sort_keys=False, allow_unicode=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, Path):
        return value.as_posix()
    return value


def _shown(value: Any, most: int = 200) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a list in itself
        return f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= most else f"{text[:most]}..."
