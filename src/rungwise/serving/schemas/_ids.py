"""Ids of pictures in answers and addresses.

An id is any text up to a limit of :data:`rungwise.core._limits`, usually a file name. A name that is no UTF-8 is in
Python a text with lone surrogates, which neither JSON nor an address can hold; and a browser takes the addresses ``.``
and ``..`` for folders. These ids get names of their own.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

_PREFIX = "bytes:"


def sendable(item_id: str) -> str:
    r"""The form in which an id is sent; no two ids are sent alike.

    >>> sendable("dogs/7.jpg"), sendable("dog \udcff.jpg"), sendable("..")
    ('dogs/7.jpg', 'bytes:ZG9nIO2zvy5qcGc=', 'bytes:Li4=')
    """
    odd = not item_id.isascii() and any("\ud800" <= character <= "\udfff" for character in item_id)
    if not odd and item_id not in (".", "..") and not item_id.startswith(_PREFIX):
        return item_id
    return _PREFIX + urlsafe_b64encode(item_id.encode("utf-8", "surrogatepass")).decode("ascii")


def possible(sent: str) -> tuple[str, ...]:
    r"""Ids that a sent form may stand for, the likeliest first.

    People also write addresses by hand, so a text that looks like one of :func:`sendable` may be the id itself.

    >>> possible("bytes:ZG9nIO2zvy5qcGc=")
    ('dog \udcff.jpg', 'bytes:ZG9nIO2zvy5qcGc=')
    >>> possible("dogs/7.jpg"), possible("bytes:x")
    (('dogs/7.jpg',), ('bytes:x',))
    """
    if not sent.startswith(_PREFIX):
        return (sent,)
    try:
        named = urlsafe_b64decode(sent.removeprefix(_PREFIX).encode("ascii")).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeError):
        return (sent,)
    return (named, sent) if sendable(named) == sent else (sent,)


def as_sent(given: str) -> str:
    r"""The form in which a client sends an id, be it an id or already its sent form; in doubt the latter.

    >>> as_sent(".."), as_sent("bytes:Li4="), as_sent("7.jpg")
    ('bytes:Li4=', 'bytes:Li4=', '7.jpg')
    """
    return given if possible(given)[0] != given else sendable(given)
