"""Ids of pictures in answers and addresses.

An id is any text, mostly the name of a file. A name that is no UTF-8 stands in Python as a text with halves of
characters in it, which neither JSON nor an address can hold; it gets a name of its own.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

_PREFIX = "bytes:"


def sendable(item_id: str) -> str:
    r"""The id as it is sent.

    >>> sendable("dogs/7.jpg"), sendable("dog \udcff.jpg")
    ('dogs/7.jpg', 'bytes:ZG9nIO2zvy5qcGc=')
    """
    if item_id.isascii() or not any("\ud800" <= character <= "\udfff" for character in item_id):
        return item_id
    return _PREFIX + urlsafe_b64encode(item_id.encode("utf-8", "surrogatepass")).decode("ascii")


def possible(sent: str) -> tuple[str, ...]:
    r"""The ids that what was sent may stand for, the likeliest first.

    >>> possible("bytes:ZG9nIO2zvy5qcGc=")
    ('bytes:ZG9nIO2zvy5qcGc=', 'dog \udcff.jpg')
    >>> possible("dogs/7.jpg")
    ('dogs/7.jpg',)
    """
    if not sent.startswith(_PREFIX):
        return (sent,)
    try:
        named = urlsafe_b64decode(sent.removeprefix(_PREFIX).encode("ascii")).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeError):
        return (sent,)
    return (sent, named)
