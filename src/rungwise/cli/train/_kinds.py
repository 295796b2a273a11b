"""Options that choose the kind of a part of a configuration."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

from rungwise.core import from_plain, to_plain

T = TypeVar("T")

_OPTION = re.compile(r"--([\w.-]+)\.kind(?:=(.*))?", re.DOTALL)


def with_kinds(settings: T, arguments: Sequence[str]) -> T:
    """The settings with every part of the kind that an option such as ``--model.text.kind gru`` names.

    A part of another kind begins with the defaults of that kind, which further options change.

    Raises:
        UserError: If there is no such kind.

    >>> from rungwise.training.config import TrainConfig
    >>> with_kinds(TrainConfig(), ["--model.text.kind", "bag_of_words"]).model.text.weights
    'idf'
    """
    for option, names, kind in _typed(arguments):
        if not _becomes_another(settings, names, kind):
            continue
        plain: dict[str, Any] = to_plain(settings)
        owner = plain
        for name in names[:-1]:
            owner = owner[name]
        owner[names[-1]] = {"kind": kind}
        settings = from_plain(type(settings), plain, option)
    return settings


def without_kinds(settings: Any, arguments: Sequence[str]) -> list[str]:
    """The words without the options that :func:`with_kinds` has followed; parts of one kind have no such option.

    >>> from rungwise.training.config import TrainConfig
    >>> without_kinds(TrainConfig(), ["--model.text.kind", "gru", "--loss.kind=max_of_hinges", "--seed", "1"])
    ['--seed', '1']
    """
    words = list(arguments)
    for option, names, kind in _typed(arguments):
        if getattr(_part(settings, names), "kind", None) == kind:
            at = words.index(option) if option in words else words.index(f"{option}={kind}")
            del words[at : at + (2 if words[at] == option else 1)]
    return words


def _typed(arguments: Sequence[str]) -> Iterator[tuple[str, list[str], str]]:
    """Options that name a kind: the option, the names of fields that lead to the part, and the kind."""
    for at, word in enumerate(arguments):
        if (match := _OPTION.fullmatch(word)) is None:
            continue
        kind = match[2] if match[2] is not None else "".join(arguments[at + 1 : at + 2])
        yield word.partition("=")[0], match[1].replace("-", "_").split("."), kind


def _becomes_another(settings: Any, names: Sequence[str], kind: str) -> bool:
    """Whether the part exists and its class cannot be of that kind."""
    part = _part(settings, names)
    if not dataclasses.is_dataclass(part) or not hasattr(part, "kind"):
        return False
    return kind not in get_args(get_type_hints(type(part)).get("kind"))


def _part(settings: Any, names: Sequence[str]) -> Any:
    """The part of a configuration to which names of fields lead; None where there is none."""
    for name in names:
        settings = getattr(settings, name, None)
    return settings
