"""Forms of several parts (multipart/form-data, RFC 7578), as programs send them; they are read from memory."""

from __future__ import annotations

from email.message import Message
from email.parser import HeaderParser

from fastapi import HTTPException

from rungwise.core.output import quoted

_MOST_PARTS = 16
_LONGEST_KIND = 256
_LARGEST_HEAD = 1024
_LONGEST_BOUNDARY = 70
"""Largest number of characters of a boundary (RFC 2046, section 5.1.1)."""


def parts_of(body: bytes, kind: str) -> dict[str, bytes]:
    r"""The parts of a form by their names.

    Args:
        body: Body of the request.
        kind: Its ``Content-Type``.

    Raises:
        HTTPException: 422 if it is no such form, is cut off, has too many parts, or has a name twice.

    >>> part = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\na dog\r\n'
    >>> parts_of(part + b"--x--\r\n", "multipart/form-data; boundary=x")
    {'text': b'a dog'}
    """
    start = b"--" + _boundary(kind)
    if not body.startswith(start):
        raise _refusal("does not begin with its boundary")
    *parts, end = body[len(start) :].split(b"\r\n" + start, _MOST_PARTS + 1)
    if not end.startswith(b"--"):
        raise _refusal(f"has more than {_MOST_PARTS} parts" if len(parts) > _MOST_PARTS else "is cut off")
    found: dict[str, bytes] = {}
    for part in parts:
        head, blank, content = part.partition(b"\r\n\r\n")
        if not blank or not head.startswith(b"\r\n") or len(head) > _LARGEST_HEAD:
            raise _refusal(f"has a part without a head of at most {_LARGEST_HEAD} bytes")
        name = _name(head)
        if name in found:
            raise _refusal(f"has the part {quoted(name)} twice")
        found[name] = content
    return found


def _boundary(kind: str) -> bytes:
    header = Message()
    header["Content-Type"] = kind[:_LONGEST_KIND]
    boundary = header.get_param("boundary", "")
    if header.get_content_type() != "multipart/form-data" or not isinstance(boundary, str):
        raise _refusal("is not announced; send the header 'Content-Type: multipart/form-data; boundary=...'")
    if not 0 < len(boundary) <= _LONGEST_BOUNDARY or not boundary.isascii():
        raise _refusal(f"has no boundary of 1 to {_LONGEST_BOUNDARY} ASCII characters")
    return boundary.encode("ascii")


def _name(head: bytes) -> str:
    headers = HeaderParser().parsestr(head[2:].decode("utf-8", "replace"))
    name = headers.get_param("name", header="content-disposition")
    if headers.get_content_disposition() != "form-data" or not isinstance(name, str) or not name:
        raise _refusal("has a part without a name; send 'Content-Disposition: form-data; name=\"...\"'")
    return name


def _refusal(what: str) -> HTTPException:
    return HTTPException(422, f"the form {what}" + ("" if ";" in what else "; send it anew, as multipart/form-data"))
