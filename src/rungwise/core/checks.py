"""What looking something through found: one line for each thing that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rungwise.core.errors import UserError


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        what: It, in a few words.
        found: What was found of it, as long as nothing is wrong.
        wrong: What is wrong with it: the file, and the remedy. Empty if nothing is.

    >>> str(Check("values", "12 numbers")), str(Check("values", wrong="values.npy: cut off; copy it anew"))
    ('ok: values: 12 numbers', 'wrong: values.npy: cut off; copy it anew')
    """

    what: str
    found: str = ""
    wrong: str = ""

    def __str__(self) -> str:
        """The line for a person."""
        return f"wrong: {self.wrong}" if self.wrong else f"ok: {self.what}: {self.found}"


def checked(what: str, look: Callable[[], str]) -> Check:
    """Look at something.

    Args:
        what: Is looked at.
        look: Gives what was found, or raises a :class:`~rungwise.core.errors.UserError` that says what is wrong.

    >>> def look():
    ...     raise UserError("values.npy: cut off; copy it anew")
    >>> checked("values", look).wrong, checked("values", lambda: "12 numbers").found
    ('values.npy: cut off; copy it anew', '12 numbers')
    """
    try:
        return Check(what, look())
    except UserError as error:
        return Check(what, wrong=str(error))
