"""What is an address and what is a folder: ``s3://bucket/prefix``, ``milvus://host:19530/name``, ``photos.index``.

An address may come as a text or as a path, which has one slash less.
"""

from __future__ import annotations

import re
from pathlib import Path

MILVUS = "milvus://"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,2}([^/].*)", re.DOTALL)


def address_of(place: Path | str) -> str | None:
    """The address that a place is, with both of its slashes; None for a folder.

    >>> address_of(Path("s3://bucket/pets")), address_of("s3://bucket/pets/"), address_of(Path("pets"))
    ('s3://bucket/pets', 's3://bucket/pets', None)
    >>> address_of("C:/pets") is None
    True
    """
    found = _ADDRESS.fullmatch(str(place))
    return f"{found[1]}://{found[2].rstrip('/')}" if found else None


def named(place: Path | str) -> str:
    """A place as people write it.

    >>> named(Path("s3://bucket/pets")), named(Path("pets"))
    ('s3://bucket/pets', 'pets')
    """
    return address_of(place) or str(place)


def is_milvus(place: Path | str) -> bool:
    """Whether a place is in Milvus.

    >>> is_milvus(Path("milvus://localhost/pets")), is_milvus("s3://bucket/pets")
    (True, False)
    """
    return (address_of(place) or "").startswith(MILVUS)
