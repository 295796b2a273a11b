import hashlib
import zlib

import numpy as np
import pytest

from rungwise.core import checksums, digest_of_json, digest_of_parts


def test_parts_are_hashed_one_after_the_other_by_their_bytes() -> None:
    table = np.arange(6, dtype="<i8").reshape(2, 3)
    wanted = hashlib.sha256("é\udcff".encode("utf-8", "surrogatepass") + b"\0" + table.T.tobytes()).hexdigest()
    assert digest_of_parts(part for part in ("é\udcff", b"\0", table.T)) == wanted


@pytest.mark.parametrize("array", [np.float32(1.5).reshape(()), np.zeros((0, 3)), np.zeros((2, 2))])
def test_arrays_of_any_shape_count(array) -> None:
    assert digest_of_parts([array]) == hashlib.sha256(array.tobytes()).hexdigest()


def test_json_values_count_whatever_the_order_of_names() -> None:
    assert digest_of_json({"b": [1, None], "a": "é"}) == hashlib.sha256(b'{"a": "\\u00e9", "b": [1, null]}').hexdigest()


def test_checksums_cover_the_beginning_of_each_record() -> None:
    records = b"abcd1234efgh5678"
    assert checksums(records, 8, covered=4) == [zlib.crc32(b"abcd"), zlib.crc32(b"efgh")]
    assert checksums(records, 8) == [zlib.crc32(records[:8]), zlib.crc32(records[8:])]
    assert checksums(b"", 8) == []
