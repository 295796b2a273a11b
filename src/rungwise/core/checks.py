"""What looking something through found: one line for each thing, also for what could not be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rungwise.core.errors import UserError


class UncheckedError(UserError):
    """Something could not be looked at, which says nothing of whether it is whole.

    >>> raise UncheckedError("the disk with the pictures is not there; mount it and verify again")
    Traceback (most recent call last):
    rungwise.core.checks.UncheckedError: the disk with the pictures is not there; mount it and verify again
    """


@dataclass(frozen=True)
class Check:
    """One thing that was to be looked at.

    Attributes:
        what: It, in a few words.
        found: What was found of it, as long as nothing is wrong.
        wrong: What is wrong with it: the file, and the remedy. Empty if nothing is.
        unchecked: Why it could not be looked at. Empty if it was.

    >>> str(Check("values", "12 numbers")), str(Check("values", wrong="values.npy: cut off; copy it anew"))
    ('ok: values: 12 numbers', 'wrong: values.npy: cut off; copy it anew')
    >>> str(Check("sample", unchecked="the pictures are not there"))
    'not checked: sample: the pictures are not there'
    """

    what: str
    found: str = ""
    wrong: str = ""
    unchecked: str = ""

    def __str__(self) -> str:
        """The line for a person."""
        if self.wrong:
            return f"wrong: {self.wrong}"
        return f"not checked: {self.what}: {self.unchecked}" if self.unchecked else f"ok: {self.what}: {self.found}"


def checked(what: str, look: Callable[[], str]) -> Check:
    """Look at something.

    Args:
        what: Is looked at.
        look: Gives what was found. It raises :class:`UncheckedError` where it could not look, and any other
            :class:`~rungwise.core.errors.UserError` to say what is wrong.

    >>> def look():
    ...     raise UserError("values.npy: cut off; copy it anew")
    >>> checked("values", look).wrong, checked("values", lambda: "12 numbers").found
    ('values.npy: cut off; copy it anew', '12 numbers')
    """
    try:
        return Check(what, look())
    except UncheckedError as error:
        return Check(what, unchecked=str(error))
    except UserError as error:
        return Check(what, wrong=str(error))


def summary(checks: Iterable[Check]) -> str:
    """The last line on what was looked at: all is well only where nothing is wrong and everything was looked at.

    >>> summary([Check("a", "1"), Check("b", "2")])
    'all is well: 2 checks'
    >>> summary([Check("a", "1"), Check("b", unchecked="gone")])
    '1 check found nothing wrong; 1 thing was not checked'
    >>> summary([Check("a", "1"), Check("b", wrong="cut off"), Check("c", unchecked="gone")])
    '1 of 2 checks found something wrong; 1 thing was not checked'
    """
    found = list(checks)
    wrong, unchecked = (sum(bool(getattr(one, state)) for one in found) for state in ("wrong", "unchecked"))
    looked = len(found) - unchecked
    if not wrong and not unchecked and looked:
        return f"all is well: {_counted(looked, 'check')}"
    said = f"{wrong} of {_counted(looked, 'check')} found something wrong"
    if not wrong:
        said = f"{_counted(looked, 'check')} found nothing wrong" if looked else "nothing was checked"
    left = f"; {_counted(unchecked, 'thing')} {'was' if unchecked == 1 else 'were'} not checked"
    return said + (left if unchecked else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
