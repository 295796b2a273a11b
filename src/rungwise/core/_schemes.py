"""Schemes of addresses, and addresses in lines for people: a path that holds one has lost one of its two slashes."""

from __future__ import annotations

import re

SCHEMES = "s3|gs|gcs|az|abfs|abfss|hdfs|milvus"
"""Schemes of the addresses that may stand where a folder may, as a pattern; hf:/folder names a model."""
_SHORT = re.compile(rf"(?<![A-Za-z0-9_])({SCHEMES}):/(?=[^/\s])")


def with_slashes(text: str) -> str:
    """A line in which every address has both of its slashes.

    >>> with_slashes("milvus:/127.0.0.1/pets: 3 rows"), with_slashes("s3://bucket/pets hf:/folder")
    ('milvus://127.0.0.1/pets: 3 rows', 's3://bucket/pets hf:/folder')
    """
    return _SHORT.sub(r"\1://", text)
