"""Options that change nothing beside others: a list for each dataclass of options, and one refusal."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import MISSING, dataclass, fields
from typing import Any

from rungwise.core._errors import UserError
from rungwise.core.output import short_repr


@dataclass(frozen=True)
class IdleCase:
    """A case in which options change nothing.

    A dataclass of options lists its cases in the class attribute ``IDLE``, which :func:`refuse_idle` reads.

    Attributes:
        options: Names of the options, as fields of the dataclass.
        applies: Function of the dataclass that says whether the case is there.
        why: End of the sentence "OPTION changes nothing ...", with names of other options in braces.
        remedy: What to do, with names of options in braces; ``{}`` is the option itself.
    """

    options: tuple[str, ...]
    applies: Callable[[Any], object]
    why: str
    remedy: str

    __repr__ = short_repr

    def reason(self, option: Callable[[str], str] = str) -> str:
        """The reason with the names of options as ``option`` writes them."""
        return _named(self.why, option)


def idle_where(options: str, applies: Callable[[Any], object], why: str, remedy: str = "leave it out") -> IdleCase:
    """The case that a function of the options recognises; names of ``options`` stand between blanks.

    >>> idle_where("sample", lambda asked: not asked.encode, "with {no_encode}").options
    ('sample',)
    """
    return IdleCase(tuple(options.split()), applies, why, remedy)


def idle_without(options: str, *others: str, remedy: str = "") -> IdleCase:
    """The case that none of ``others`` is given.

    >>> idle_without("top", "rerank").reason()
    'without rerank'
    """
    return idle_where(
        options,
        lambda asked: not any(is_given(asked, one) for one in others),
        f"without {_listed(others)}",
        remedy or "give both, or leave {} out",
    )


def idle_beside(options: str, *others: str, remedy: str = "") -> IdleCase:
    """The case that one of ``others`` is given.

    >>> idle_beside("shares", "thresholds").reason()
    'beside thresholds'
    """
    return idle_where(
        options,
        lambda asked: any(is_given(asked, one) for one in others),
        f"beside {_listed(others)}",
        remedy or "leave one of them out",
    )


def is_given(asked: Any, name: str) -> bool:
    """Whether an option differs from its default.

    >>> @dataclass
    ... class Count:
    ...     k: int = 3
    >>> is_given(Count(), "k"), is_given(Count(4), "k")
    (False, True)
    """
    value = getattr(asked, name)
    usual = _default(asked, name)
    if value is usual:
        return False
    # An array would be compared element by element, and what is of another type is no default.
    is_alike = isinstance(value, int | float) or type(value) is type(usual)
    return not (is_alike and value == usual)


def refuse_idle(
    asked: Any,
    *cases: IdleCase,
    typed: Container[str] = (),
    option: Callable[[str], str] = str,
    where: str = "",
) -> None:
    """Refuse the first option that is given and changes nothing.

    Args:
        asked: Dataclass of options.
        cases: The cases; left out, those of its class.
        typed: Names of options that were typed: they are given, whatever their value.
        option: Name of an option in messages by its name as a field.
        where: What the message begins with, such as ``"spice: "``.

    Raises:
        UserError: With the option, why it changes nothing, and the remedy.

    >>> @dataclass
    ... class Search:
    ...     top: int | None = None
    ...     rerank: str | None = None
    ...     IDLE = (idle_without("top", "rerank", remedy="leave it out, or name a second model"),)
    >>> refuse_idle(Search(top=20, rerank="model"))
    >>> refuse_idle(Search(top=20), option="--{}".format)
    Traceback (most recent call last):
    rungwise.core.UserError: --top changes nothing without --rerank; leave it out, or name a second model
    """
    for case in cases or getattr(type(asked), "IDLE", ()):
        for name in case.options:
            if (name in typed or is_given(asked, name)) and case.applies(asked):
                switched_off = getattr(asked, name) is False and _default(asked, name) is True
                own = option(f"no_{name}" if switched_off else name)
                remedy = _named(case.remedy, option).replace("{}", own)
                raise UserError(f"{where}{own} changes nothing {case.reason(option)}; {remedy}")


def _default(asked: Any, name: str) -> Any:
    found = next(one for one in fields(asked) if one.name == name)
    return found.default if found.default_factory is MISSING else found.default_factory()


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(f"{{{one}}}" for one in names)


def _named(text: str, option: Callable[[str], str]) -> str:
    """The text with the names of options in place of what stands in braces."""
    parts = text.split("{")
    named = ((name, end) for name, _, end in (part.partition("}") for part in parts[1:]))
    return parts[0] + "".join((option(name) if name else "{}") + end for name, end in named)
