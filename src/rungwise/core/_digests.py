"""SHA-256, which identifies values, texts and arrays, and CRC-32, which detects damaged records."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def digest_of_json(value: Any) -> str:
    """SHA-256 of a value that JSON can hold, whatever the order of the names in its mappings."""
    return digest_of_parts([json.dumps(value, sort_keys=True)])


def digest_of_parts(parts: Iterable[str | bytes | NDArray[Any]]) -> str:
    """SHA-256 of texts, bytes and arrays, one after the other, as 64 hexadecimal digits.

    Args:
        parts: Texts, bytes and arrays, taken one at a time. Texts count as UTF-8, arrays by their numbers in C order,
            without type and shape.

    >>> import numpy as np
    >>> table = np.array([[97, 98], [99, 100]], np.uint8)
    >>> digest_of_parts(["a", b"bcd"]) == digest_of_parts([table]) != digest_of_parts([table.T])
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        data: Any = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        view = memoryview(data)
        digest.update(view if view.c_contiguous else view.tobytes())
    return digest.hexdigest()


def checksums(records: bytes, size: int, covered: int | None = None) -> list[int]:
    """CRC-32 of each record; never 0 for a record of zeros, which a disk may leave after a power cut.

    Args:
        records: Records of one size, one after the other.
        size: Bytes of a record.
        covered: Bytes of a record, from its beginning, that the checksum covers; all of them if None.

    >>> checksums(b"ab.ab!", 3, covered=2), 0 in checksums(bytes(8), 4)
    ([2659403885, 2659403885], False)
    """
    covered = size if covered is None else covered
    return [zlib.crc32(records[at : at + covered]) for at in range(0, len(records), size)]
