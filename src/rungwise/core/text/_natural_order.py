"""The order in which people list names, such as those of classes."""

from __future__ import annotations

_DIGITS = 18
"""Most digits of a name that is read as a number."""


def natural_key(name: str) -> tuple[bool, int, str]:
    """A key to sort by: numbers by size, then words by their letters.

    >>> sorted(["art", "10", "9", "02", "2"], key=natural_key)
    ['02', '2', '9', '10', 'art']
    """
    is_number = name.isascii() and name.isdecimal() and len(name) <= _DIGITS
    return not is_number, int(name) if is_number else 0, name
