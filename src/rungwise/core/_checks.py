"""Results of a verification: one line for each thing, also for what could not be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rungwise.core._errors import MissingExtraError, UserError


class UncheckedError(UserError):
    """Something could not be checked, which says nothing of whether it is whole."""

    __module__ = "rungwise.core"


@dataclass(frozen=True)
class Check:
    """Result of one check.

    Attributes:
        what: Name of the checked thing, in a few words.
        found: What was found, as long as nothing is wrong.
        wrong: The fault, with the file and the remedy. Empty if nothing is wrong.
        unchecked: Why the thing could not be checked. Empty if it was.
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
    """Run a check.

    Args:
        what: Name of the checked thing.
        look: Returns what it found. It raises :class:`UncheckedError` where it could not look, and any other
            :class:`~rungwise.core.UserError` to say what is wrong.

    Raises:
        MissingExtraError: If a library is missing that the check needs, which says nothing of what is checked.
    """
    try:
        return Check(what, look())
    except UncheckedError as error:
        return Check(what, unchecked=str(error))
    except MissingExtraError:
        raise
    except UserError as error:
        return Check(what, wrong=str(error))


def summary(checks: Iterable[Check]) -> str:
    """The last line of a verification: all is well only where nothing is wrong and everything was checked.

    >>> summary([Check("a", "1"), Check("b", "2")])
    'all is well: 2 checks'
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
