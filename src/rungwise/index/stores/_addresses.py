"""Addresses of an index: ``s3://bucket/prefix``, ``milvus://host:19530/name``, or a folder."""

from __future__ import annotations

from pathlib import Path

from rungwise.core.network import address_of

MILVUS = "milvus://"


def named(place: Path | str) -> str:
    """A place as people write it.

    >>> named(Path("s3://bucket/pets")), named(Path("pets"))
    ('s3://bucket/pets', 'pets')
    """
    return address_of(place) or str(place)


def is_milvus(place: Path | str) -> bool:
    """Whether a place is in Milvus."""
    return (address_of(place) or "").startswith(MILVUS)
