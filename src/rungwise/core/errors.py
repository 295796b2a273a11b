"""Errors that are meant for a person rather than for a programmer."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message is one line: what is wrong, in which file and place, and the remedy.

    The command line prints it without a traceback and exits with status 2; a caller catches it like any exception.

    >>> raise UserError("captions.csv, line 3: no picture named 'a.jpg'; correct the name")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: captions.csv, line 3: no picture named 'a.jpg'; correct the name
    """


class UnavailableError(UserError):
    """What holds the data does not answer now, such as a database on another machine; later it may."""
