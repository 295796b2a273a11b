"""Parser of command lines into typed values, with help in two lengths and errors of one line.

The options of a command are the fields of a dataclass, and its docstring is their help. ``--help`` shows the usual
ones, a line each; ``--help-all`` shows every option in full. A field with the metadata :data:`rungwise.jobs.ADVANCED`
is left out of the short help, and one with :data:`rungwise.jobs.PYTHON` of the command line.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core import UserError
from rungwise.core.compute import ADDRESS, LOCAL
from rungwise.core.disk.folders import require_writable
from rungwise.core.network import address_of
from rungwise.core.text import near_names, refuse_idle
from rungwise.jobs import flag

T = TypeVar("T")

HELP, HELP_ALL = ("-h", "--help"), "--help-all"

_MODULE_LINE = "--module NAME, with any command, imports a module of your own first."
_OF_ALL = ("--module", "--traceback")
"""Options of every command."""
_NEAR = 0.75
"""Least similarity of an unknown option to the one that was meant."""
_WIDTH = 80
_LONGEST_CHOICES = 14
"""Largest number of characters of choices that stand in the place of a value."""
_SIDES, _BOX = "│|", "╭╮╰╯│─-|+ "
"""Characters of boxes, in terminals with and without box-drawing characters."""
_PYTHON_SAYS = (
    (re.compile(r"invalid literal for int\(\) with base 10: (.+)"), r"\1 is no whole number"),
    (re.compile(r"could not convert string to float: (.+)"), r"\1 is no number"),
    (re.compile(r"Could not find valid parse for arguments: \[(.{1,10000})\]"), r"\1 is none of what it takes"),
    (re.compile(r"Error parsing (--[\w.-]+)"), r"\1"),
    (re.compile(r"^Missing from [^:]+: (\S+).*"), r"\1 is missing"),
    (re.compile(r"^Unrecognized options: (.+)"), r"one word too many: \1; put quotes around a text of several words"),
    (
        re.compile(r"^invalid choice (.{1,1000}) for argument '([^']{1,100})'\. Expected one of \((.{1,10000})\)"),
        r"\2: \1 is none of \3",
    ),
)
"""Patterns of Python's error messages that the parser passes on, with their replacements."""


@dataclass(frozen=True)
class Option:
    """An option as the help shows it; a positional one has no flags.

    Attributes:
        flags: As it may be typed; one that ends with a dot stands for its prefix.
        label: As it is shown, with what stands for its value.
        help: What it does, in full.
        default: Remark on its default, in parentheses; empty where there is none to tell of.
        advanced: Whether the short help leaves it out.
        written: Whether it names a file or folder to write.
    """

    flags: tuple[str, ...]
    label: str
    help: str
    default: str
    advanced: bool
    written: bool = False


@dataclass(frozen=True)
class CommandForm:
    """What a command asks.

    Attributes:
        command: Name such as ``"rungwise search"``.
        about: What it is for.
        options: Its positional arguments and its options, in the order of the help.
        examples: Whole command lines.
    """

    command: str
    about: str
    options: tuple[Option, ...]
    examples: tuple[str, ...]


_FORMS: ContextVar[list[CommandForm] | None] = ContextVar("_FORMS", default=None)
"""Where :func:`parse` leaves what a command asks, in place of parsing; None parses."""


def parse(
    kind: type[T],
    arguments: Sequence[str],
    command: str,
    *,
    examples: Sequence[str] = (),
    default: T | None = None,
    config: tuple[Any, ...] = (),
    description: str | None = None,
    more: int = 0,
) -> T:
    """Parse the options of a command, and check that it can write the files that it will write.

    Args:
        kind: Dataclass with a field for each option. Fields that are dataclasses are groups of options.
        arguments: Words after the command.
        command: Name such as ``"rungwise search"``.
        examples: Whole command lines for the end of the help.
        default: Values of options that are not given, where they are not those of the dataclass.
        config: Markers of tyro for all options.
        description: Purpose of the command, where it is not the docstring of the dataclass.
        more: Number of options that the dataclass does not have.

    Raises:
        SystemExit: With status 0, after printing the help.
        UserError: If an option is unknown, lacks its value or has a wrong one, or names a file or folder to write that
            cannot be written (such options have ``metadata`` like :data:`~rungwise.core.disk.folders.WRITTEN_FILE`).

    >>> @dataclass
    ... class Count:
    ...     '''Count things.
    ...
    ...     Attributes:
    ...         k: How many. At least one.
    ...     '''
    ...
    ...     k: int = 3
    >>> parse(Count, ["--k", "5"], "count").k
    5
    >>> parse(Count, ["--kk", "5"], "count")
    Traceback (most recent call last):
    rungwise.core.UserError: there is no option --kk; did you mean --k? count --help-all lists the options
    """
    words = list(arguments)
    before = words[: words.index("--")] if "--" in words else words
    if (forms := _FORMS.get()) is not None:
        about = description or inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:")[0]
        forms.append(CommandForm(command, about, tuple(_options(kind, default)), tuple(examples)))
        raise SystemExit(0)
    ask = partial(tyro.cli, kind, prog=command, config=config, description=description)
    if default is not None:
        ask = partial(ask, default=default)
    if HELP_ALL in before:
        try:
            ask(args=["--help"])
        finally:
            print(_MODULE_LINE)
    elif any(word in HELP for word in before):
        print(short_help(kind, command, examples, default, description, more))
        raise SystemExit(0)
    refuse_unknown(options(kind, default), before, command)
    written = {one.flags[0]: one for one in _options(kind, default) if one.written}
    _refuse_empty_names(written, words)
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            asked: T = ask(args=words)
    except SystemExit as end:
        if not end.code:
            raise
        raise UserError(f"{_reason(said.getvalue())}; {command} {HELP_ALL} lists the options") from None
    _refuse_idle(asked, _typed(before))
    if os.environ.get("RANK", "0") == "0":  # of the processes of a run, the first one alone writes
        _require_places(asked)
    return asked


def form_of(main: Callable[[list[str]], object]) -> CommandForm | None:
    """What a command asks, from the parser that it makes; None where it makes none for ``--help``.

    Args:
        main: The command, such as ``lambda words: rungwise.cli.main(["search", *words])``.
    """
    forms: list[CommandForm] = []
    token = _FORMS.set(forms)
    try:
        with suppress(SystemExit), redirect_stdout(io.StringIO()):
            main([HELP[1]])
    finally:
        _FORMS.reset(token)
    return forms[0] if forms else None


def _typed(words: Sequence[str]) -> frozenset[str]:
    """Options among words, as they are named in the dataclass, in its groups, and with ``no`` taken away."""
    names = (word.partition("=")[0].removeprefix("--") for word in words if word.startswith("--"))
    return frozenset(name.removeprefix("no-").replace("-", "_") for name in names)


def _refuse_idle(asked: Any, typed: frozenset[str], prefix: str = "") -> None:
    """Refuse options that change nothing, also those of groups (:func:`rungwise.core.text.refuse_idle`)."""
    own = frozenset(one.removeprefix(prefix) for one in typed if one.startswith(prefix))
    hints = get_type_hints(type(asked), include_extras=True)

    def option(name: str) -> str:
        _, given, is_positional = _unwrapped(hints.get(name))
        return ((given and given.metavar) or name.upper()).strip("[]") if is_positional else flag(f"{prefix}{name}")

    refuse_idle(asked, typed=own, option=option)
    for field in fields(asked):
        if is_dataclass(value := getattr(asked, field.name)):
            given = _unwrapped(hints[field.name])[1]
            name = field.name if given is None or given.name is None else given.name
            _refuse_idle(value, typed, f"{prefix}{name}." if name else prefix)


def _refuse_empty_names(written: Iterable[str], words: Sequence[str]) -> None:
    """Refuse an empty path, such as from an unset variable: it would be the current folder."""
    for word, following in zip(words, [*words[1:], "none"], strict=False):
        for option in written:
            if word == f"{option}=" or (word == option and following == ""):
                raise UserError(f"{option}: an empty name; give the place to write to, or leave {option} out")


def _require_places(asked: Any) -> None:
    """Refuse early files and folders that cannot be written."""
    for field in fields(asked):
        value = getattr(asked, field.name)
        if is_dataclass(value):
            _require_places(value)
        elif isinstance(value, Path) and (written := field.metadata.get("written")) and not address_of(value):
            require_writable(value, written)


def with_ray(arguments: Sequence[str]) -> list[str]:
    """Words of a command with ``local`` inserted where ``--ray`` stands without its value.

    >>> with_ray(["photos", "--ray"]), with_ray(["--ray", "head:6379", "photos"]), with_ray(["--ray", "photos"])
    (['photos', '--ray', 'local'], ['--ray', 'head:6379', 'photos'], ['--ray', 'local', 'photos'])
    """
    words: list[str] = []
    for at, word in enumerate(arguments):
        words.append(word)
        following = arguments[at + 1] if at + 1 < len(arguments) else ""
        if word == "--ray" and following != LOCAL and not ADDRESS.fullmatch(following):
            words.append(LOCAL)
    return words


def options(kind: type[Any], default: Any = None) -> list[str]:
    """All options of a command as :func:`parse` takes it; one that ends with a dot stands for its prefix.

    >>> @dataclass
    ... class Count:
    ...     k: int = 3
    ...     fast: bool = True
    >>> options(Count)
    ['--k', '--fast', '--no-fast']
    """
    return [name for one in _options(kind, default) for name in one.flags]


def refuse_unknown(known: Sequence[str], words: Sequence[str], command: str) -> None:
    """Refuse the first word that looks like an option and is none; the message names the one that was meant.

    >>> refuse_unknown(["--where", "--loss."], ["--loss.margin=1", "--were"], "rungwise search")
    Traceback (most recent call last):
    rungwise.core.UserError: there is no option --were; did you mean --where? rungwise search --help-all lists the
    options
    """
    begins = tuple(one for one in known if one.endswith("."))
    for word in words:
        name = word.partition("=")[0]
        if not re.match(r"--[A-Za-z]", name):
            continue
        dashed = name.replace("_", "-")
        if dashed not in known and not (begins and dashed.startswith(begins)):
            meant = _meant(dashed, known)
            guess = f"did you mean {meant}? " if meant else ""
            raise UserError(f"there is no option {name}; {guess}{command} {HELP_ALL} lists the options")


def _meant(name: str, known: Sequence[str]) -> str:
    """The option that was probably meant by an unknown one; empty where none is near.

    >>> _meant("--losses.margin", ["--loss."]), _meant("--margin", ["--loss.margin"])
    ('--loss.margin', '--loss.margin')
    >>> _meant("--schedule.floor", ["--schedule", "--seed"]), _meant("--tracebak", []), _meant("--x", ["--y"])
    ('--schedule', '--traceback', '')
    """
    whole = [one for one in known if not one.endswith(".")]
    if near := near_names(name, [*whole, HELP[1], HELP_ALL, *_OF_ALL], least=_NEAR):
        return near[0]
    if inner := [one for one in whole if one.endswith(f".{name.removeprefix('--')}")]:
        return inner[0]
    group, dot, last = name.rpartition(".")
    while dot:  # the group is misspelt, and its options may not be known here
        if near := near_names(f"{group}.", [one for one in known if one.endswith(".")], least=_NEAR):
            return f"{near[0]}{last}"
        if group in whole:
            return group
        group, dot, inner_last = group.rpartition(".")
        last = f"{inner_last}.{last}"
    return ""


def short_help(
    kind: type[Any],
    command: str,
    examples: Sequence[str] = (),
    default: Any = None,
    description: str | None = None,
    more: int = 0,
) -> str:
    """Short help: the usual options, one line each, with arguments as for :func:`parse`.

    >>> @dataclass
    ... class Count:
    ...     '''Count things.
    ...
    ...     Attributes:
    ...         k: How many. At least one.
    ...     '''
    ...
    ...     k: int = 3
    >>> print(short_help(Count, "count", ["count --k 5"]))
    usage: count [OPTIONS]
    <BLANKLINE>
    Count things.
    <BLANKLINE>
      --k NUMBER  How many. (3)
    <BLANKLINE>
    example:
      count --k 5
    <BLANKLINE>
    --module NAME, with any command, imports a module of your own first.
    """
    every = list(_options(kind, default))
    usual = [one for one in every if not one.advanced]
    positional = [one for one in usual if not one.flags]
    rows = [*positional, *(one for one in usual if one.flags)]
    width = min(28, max((len(one.label) for one in rows), default=0))
    lines = [" ".join(["usage:", command, *(one.label for one in positional), "[OPTIONS]"]), ""]
    lines += textwrap.wrap(description or _summary(kind), _WIDTH)
    lines += [""]
    for one in rows:
        text = _fitted(_first_sentence(one.help), _WIDTH - width - 4 - len(one.default)) + one.default
        if len(one.label) > width:
            lines += [f"  {one.label}"]
        lines += [f"  {one.label if len(one.label) <= width else '':<{width}}  {text}".rstrip()]
    if examples:
        lines += ["", "example:" if len(examples) == 1 else "examples:", *(f"  {one}" for one in examples)]
    if hidden := more + sum(one.advanced for one in every):
        others = f"{hidden} more options" if hidden > 1 else "one more option"
        lines += ["", f"{HELP_ALL} shows {others}, and all in full."]
    lines += [*([] if hidden else [""]), _MODULE_LINE]
    return "\n".join(lines)


def _options(kind: type[Any], default: Any = None, prefix: str = "", advanced: bool = False) -> Iterator[Option]:
    hints = get_type_hints(kind, include_extras=True)
    said = _attributes(kind)
    for field in fields(kind):
        if field.metadata.get("python"):
            continue
        plain, given, is_positional = _unwrapped(hints[field.name])
        name = given.name if given is not None and given.name is not None else field.name
        hidden = advanced or bool(field.metadata.get("advanced"))
        value = _default(field, default)
        if is_dataclass(plain) and isinstance(plain, type):
            inner = f"{prefix}{name}." if name else prefix
            # A field may be declared as what several kinds of configuration have in common.
            yield from _options(plain if value is None else type(value), value, inner, hidden)
            continue
        if get_origin(plain) is Literal and len(get_args(plain)) == 1:
            continue  # the kind of a configuration, which is chosen already
        metavar = given.metavar if given is not None and given.metavar else None
        text = (given and given.help) or said.get(field.name, "")
        if is_positional:
            yield Option((), metavar or name.upper(), text, "", hidden)
            continue
        dashed = f"{prefix}{name}".replace("_", "-")
        flags = [f"--{dashed}"]
        if plain is bool:
            group, dot, last = dashed.rpartition(".")
            flags.append(f"--{group}{dot}no-{last}")
            label = f"--{group}{dot}[no-]{last}" if value is True else flags[0]
        else:
            metavar = metavar or _metavar(plain)
            if metavar.startswith("{") and len(metavar) > _LONGEST_CHOICES:
                text = text or metavar.strip("{}").replace(",", ", ")
                metavar = "NAME"
            label = f"{flags[0]} {metavar}"
        flags += given.aliases or () if given is not None else ()
        if not _is_one_value(hints[field.name]) and any(is_dataclass(one) for one in (value, *_members(plain))):
            flags.append(f"--{dashed}.")
        needed = field.default is MISSING and field.default_factory is MISSING and value is None
        written = "written" in field.metadata
        yield Option(tuple(flags), label, text, " (required)" if needed else _shown(value), hidden, written)


def _unwrapped(hint: Any) -> tuple[Any, Any, bool]:
    """The plain type, tyro's settings of it, and whether it is positional."""
    given, is_positional = None, False
    while get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        for extra in extras:
            if hasattr(extra, "prefix_name"):
                given = extra
            is_positional = is_positional or extra is _POSITIONAL
    return hint, given, is_positional


def _is_one_value(hint: Any) -> bool:
    """Whether an option takes a configuration as one word, such as ``{kind: cosine, floor: 0.1}``."""
    return get_origin(hint) is Annotated and any(isinstance(one, PrimitiveConstructorSpec) for one in get_args(hint))


_POSITIONAL = get_args(tyro.conf.Positional[int])[1]


def _members(plain: Any) -> list[Any]:
    return [_unwrapped(one)[0] for one in get_args(plain)]


def _metavar(hint: Any) -> str:
    plain = _unwrapped(hint)[0]
    origin, inner = get_origin(plain), [one for one in get_args(plain) if one not in (type(None), Ellipsis)]
    if origin is Literal:
        return "{" + ",".join(map(str, inner)) + "}"
    if origin in (Union, UnionType) and inner:
        return _metavar(inner[0])
    if origin is tuple and inner:
        return f"{_metavar(inner[0])} ..."
    return "NUMBER" if plain in (int, float) else "PATH" if plain is Path else "TEXT"


def _default(field: Field[Any], of: Any) -> Any:
    if of is not None and hasattr(of, field.name):
        return getattr(of, field.name)
    if field.default is not MISSING:
        return field.default
    return None if field.default_factory is MISSING else field.default_factory()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return " (on)" if value else ""
    return f" ({value})" if isinstance(value, str | int | float | Path) and str(value) else ""


def _summary(kind: type[Any]) -> str:
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def _attributes(kind: type[Any]) -> dict[str, str]:
    """Texts of the section ``Attributes`` by name, including those of base classes."""
    said: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        section = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        entries = (entry.partition(":") for entry in re.split(r"\n(?=\w+: )", textwrap.dedent(section)))
        said |= {name.strip(): " ".join(text.split()) for name, _, text in entries}
    return said


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.])\s+(?=[A-Z])", text, maxsplit=1)[0]


def _fitted(text: str, room: int) -> str:
    """The text in at most ``room`` characters, cut where its first part can stand alone.

    >>> _fitted("The longest n-gram; 1 is words.", 25), _fitted("No room here.", 8)
    ('The longest n-gram.', 'No...')
    """
    if len(text) <= room:
        return text
    whole = [match.start() for match in re.finditer(r"[;:] ", text[:room])][:1]
    ends = whole or [match.start() for match in re.finditer(r", | \(", text[:room])]
    return f"{text[: ends[-1]]}." if ends else f"{text[: max(0, room - 3)].rpartition(' ')[0]}..."


def _reason(printed: str) -> str:
    """The parser's error message without the box around it, which has a title, the reason, a rule and advice."""
    inside = [line.strip().strip(_SIDES).strip() for line in printed.splitlines()[1:]]
    lines: list[str] = []
    for line in inside:
        is_rule = bool(line) and not line.strip(_BOX)
        if is_rule and lines:
            break
        lines += [] if is_rule or not line else [line]
    text = " ".join(" ".join(lines).split()).rstrip(".") or "this is no command line that can be understood"
    for pattern, plain in _PYTHON_SAYS:
        text = pattern.sub(plain, text)
    return text
