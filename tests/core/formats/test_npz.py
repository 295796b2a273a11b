import io
import struct
import zipfile

import numpy as np
import pytest

from rungwise.core import UserError, limited
from rungwise.core.formats import opened_npz


def header(shape, dtype="<f4"):
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}}}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_saved(tmp_path, save):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.eye(3)), "text": np.array("train")}
    save(tmp_path / "a.npz", **arrays)
    with opened_npz(tmp_path / "a.npz") as found:
        assert found.names == ("a", "b", "text")
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
        with pytest.raises(KeyError):
            found["c"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (header((10**6, 10**6)) + b"few", "cut off: an array of shape .* needs 4000000000"),
        (header((2**62, 4)), "larger than any array"),
        (header((-1, 4)), "claims the shape"),
        (header((True, 4)) + b"\0" * 16, "claims the shape"),
        (header((2,), "|O") + b"\0" * 16, "holds Python objects"),
        (b"\x93NUMPY\2\0\xff\xff\xff\x7f", "its header claims 2147483647 bytes"),
        (b"no array", "no header of an array"),
        (b"", "no header of an array"),
    ],
)
def test_a_member_that_lies_is_a_value_error(tmp_path, content, said):
    with opened_npz(archive(tmp_path / "a.npz", a=content)) as found, pytest.raises(ValueError, match=said):
        found["a"]


def test_what_unpacks_beyond_the_limit_is_refused_before_it_is_unpacked(tmp_path):
    zeros = header((1 << 20, 1)) + b"\0" * (4 << 20)
    archive(tmp_path / "a.npz", a=zeros, b=zeros)
    assert (tmp_path / "a.npz").stat().st_size < 20_000
    with opened_npz(tmp_path / "a.npz") as found, limited(unpacked_bytes=6 << 20):
        assert found["a"].shape == (1 << 20, 1)
        with pytest.raises(UserError, match=r"a.npz, array 'b': 8.0 MiB, where at most 6.0 MiB are read"):
            found["b"]


def bent(tmp_path, start, change):
    whole = archive(tmp_path / "whole.npz", a=header((3,)) + b"\1" * 12).read_bytes()
    at = whole.rindex(b"PK\1\2") + start
    return whole[:at] + change + whole[at + len(change) :]


@pytest.mark.parametrize(
    "content",
    [
        lambda p: b"PK\3\4 cut off",
        lambda p: b"",
        lambda p: bent(p, 8, b"\1\0"),  # encrypted
        lambda p: bent(p, 10, b"\x63\0"),  # packed in a way that nobody knows
        lambda p: bent(p, 16, b"\0\0\0\0"),  # another checksum
        lambda p: bent(p, 42, b"\xff\0\0\0"),  # begins elsewhere
    ],
)
def test_a_damaged_archive_is_a_value_error(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content(tmp_path))

    def read():
        with opened_npz(tmp_path / "a.npz") as found:
            return found["a"]

    with pytest.raises(ValueError):
        read()


def test_arrays_of_any_order_survive(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.arange(12.0).reshape(3, 4).T, version=(2, 0))
    with opened_npz(archive(tmp_path / "a.npz", a=buffer.getvalue())) as found:
        np.testing.assert_array_equal(found["a"], np.arange(12.0).reshape(3, 4).T)
