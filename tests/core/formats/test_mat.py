import io
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from numpy.typing import NDArray

from rungwise.core import UserError, limited
from rungwise.core.formats import read_arrays, read_only_array, variable_names

ARRAYS: dict[str, NDArray[Any]] = {
    "vectors": np.random.default_rng(0).normal(size=(7, 5)),
    "whole": np.arange(12.0).reshape(3, 4),  # SciPy stores it as it is, MATLAB as bytes
    "single": np.ones((2, 3), np.float32),
    "bytes": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "long": np.array([[-(1 << 40)]], np.int64),
    "none": np.zeros((0, 4)),
    "cube": np.arange(24.0).reshape(2, 3, 4),
    "n": np.array([[2.5]]),
}


def element(kind: int, data: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(
    name: bytes, shape: tuple[int, ...], numbers: bytes, *, kind: int = 6, stored: int = 9, order: str = "<"
) -> bytes:
    dimensions = struct.pack(f"{order}{len(shape)}i", *shape)
    body = element(6, struct.pack(f"{order}II", kind, 0), order) + element(5, dimensions, order)
    body += element(1, name, order) + element(stored, numbers, order)
    return struct.pack(f"{order}II", 14, len(body)) + body


def header(order: str = "<", version: int = 0x0100) -> bytes:
    return b"MATLAB 5.0".ljust(124) + struct.pack(f"{order}H", version) + (b"IM" if order == "<" else b"MI")


@pytest.mark.parametrize("packed", [False, True])
def test_arrays_are_those_of_scipy(tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {**ARRAYS, "text": "words", "cell": np.array([1, "a"], object)}, do_compression=packed)
    assert variable_names(file) == [*ARRAYS, "text", "cell"]
    found = read_arrays(file, list(ARRAYS))
    assert found.keys() == ARRAYS.keys()
    for name, values in scipy.io.loadmat(file, variable_names=list(ARRAYS)).items():
        if name in ARRAYS:
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype
            assert found[name].flags.c_contiguous


def test_big_ends_and_numbers_that_are_stored_short(tmp_path: Path) -> None:
    file = tmp_path / "a.mat"
    numbers = struct.pack(">6h", *range(6))
    file.write_bytes(header(">") + matrix(b"x", (2, 3), numbers, stored=3, order=">"))
    found = read_arrays(file, ["x"])["x"]
    assert found.dtype == np.float64
    assert found.tolist() == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("packed", [False, True])
def test_the_only_array_of_numbers_whatever_else_is_there(tmp_path: Path, packed: bool) -> None:
    file = tmp_path / "one.mat"
    others = {"text": "words", "complex": np.ones(3, complex), "cell": np.array(["a"], object)}
    for name, values in ARRAYS.items():
        scipy.io.savemat(file, {**others, name: values}, do_compression=packed)
        np.testing.assert_array_equal(read_only_array(file), values)
    for found, said in (
        ({}, "holds 0 full arrays of real numbers; save"),
        (ARRAYS, r"8 full arrays .* \(vectors, whole,"),
    ):
        scipy.io.savemat(file, {**others, **found})
        with pytest.raises(UserError, match=said):
            read_only_array(file)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("words", "'x' is no full array of real numbers"),
        (np.array([1, "a"], object), "'x' is no full array of real numbers"),
        ({"a": 1.0}, "'x' is no full array of real numbers"),
        (np.ones((2, 2)) * 1j, "'x' is no full array of real numbers"),
        (scipy.sparse.eye(3).tocsc(), "'x' is no full array of real numbers"),
    ],
)
def test_nothing_but_full_real_arrays(tmp_path: Path, value: object, said: str) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"x": value})
    with pytest.raises(UserError, match=said):
        read_arrays(tmp_path / "a.mat", ["x"])


NUMBERS = struct.pack("<6d", *range(6))
GOOD = matrix(b"x", (2, 3), NUMBERS)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a MAT file of version 5"),
        (b"PK\x03\x04" * 100, "not a MAT file of version 5"),
        (header(version=0x0200), "of version 7.3, which is not read; save it in MATLAB with -v7"),
        (header(version=0x0300), "of version 0x300"),
        (header() + b"\x0e\x00\x00", "damaged MAT file"),
        (header() + GOOD[:60], "it ends .* bytes early"),
        (header() + element(15, b"no zlib stream"), "damaged MAT file"),
        (header() + element(9, NUMBERS), "an element of type 9 where an array should be"),
        (header() + matrix(b"x", (2, 4), NUMBERS), r"48 bytes of float64 for an array of shape \(2, 4\)"),
        (header() + matrix(b"x", (-2, -3), NUMBERS), r"an array of shape \(-2, -3\)"),
        (header() + matrix(b"x", (2, 3), NUMBERS, stored=99), "numbers of type 99"),
        (header() + matrix(b"x" * 1000, (2, 3), NUMBERS), "1000 bytes at the beginning of an array"),
        (header() + matrix(b"x", (1,) * 99, NUMBERS), "396 bytes at the beginning of an array"),
        (header() + GOOD + GOOD, "'x' stands twice"),
        (header() + GOOD.replace(struct.pack("<II", 9, 48), struct.pack("<II", 9, 1 << 31)), "2147483648 bytes of"),
        (
            header() + matrix(b"x", (1 << 14, 1 << 14), b"").replace(
                struct.pack("<II", 9, 0), struct.pack("<II", 9, 1 << 31)
            ),
            "it ends 2147483648 bytes early",
        ),
    ],
)  # fmt: skip
def test_damaged_files_are_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.mat").write_bytes(data)
    with pytest.raises(UserError, match=said) as caught:
        read_arrays(tmp_path / "a.mat", ["x"])
    assert "\n" not in str(caught.value)


def test_a_small_file_of_many_numbers_is_refused_before_they_are_there(tmp_path: Path) -> None:
    packed = zlib.compress(matrix(b"x", (1 << 12, 1 << 11), bytes(8 << 23)))
    (tmp_path / "a.mat").write_bytes(header() + struct.pack("<II", 15, len(packed)) + packed)
    with limited(unpacked_bytes=1 << 20), pytest.raises(UserError, match="a.mat, x: 64.0 MiB, where at most 1.0 MiB"):
        read_arrays(tmp_path / "a.mat", ["x"])
    assert variable_names(tmp_path / "a.mat") == ["x"]


def test_any_change_is_read_or_refused(tmp_path: Path) -> None:
    good = io.BytesIO()
    scipy.io.savemat(good, {"x": ARRAYS["vectors"], "y": ARRAYS["bytes"]})
    draw = random.Random(0)
    refused: list[str] = []
    for _ in range(150):
        data = bytearray(good.getvalue())
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(124, len(data))] = draw.randrange(256)
        (tmp_path / "a.mat").write_bytes(data)
        try:
            read_arrays(tmp_path / "a.mat", ["x", "y"])
        except UserError as error:
            refused.append(str(error))
    assert len(refused) > 25
    assert not any("\n" in line for line in refused)
