import os
from pathlib import Path

import numpy as np
import pytest

from rungwise.core.formats import NpyWriter, mapped


@pytest.mark.parametrize("dtype", [np.float32, np.int64, ">f4"])
@pytest.mark.parametrize("row", [(), (3,), (2, 3)])
@pytest.mark.parametrize("parts", [[], [0], [2, 0, 5]])
def test_the_file_is_the_one_that_numpy_writes(tmp_path, dtype, row, parts):
    whole = np.arange(sum(parts) * int(np.prod(row))).reshape(-1, *row)
    with NpyWriter(tmp_path / "rows.npy", row, dtype) as writer:
        for part in np.split(whole, np.cumsum(parts)[:-1]) if parts else []:
            writer.append(part)
    assert writer.rows == sum(parts)
    np.save(tmp_path / "numpy.npy", whole.astype(np.dtype(dtype).newbyteorder("<")))
    assert (tmp_path / "rows.npy").read_bytes() == (tmp_path / "numpy.npy").read_bytes()


def test_rows_of_another_shape_are_refused(tmp_path):
    with NpyWriter(tmp_path / "rows.npy", (2,), np.float32) as writer:
        with pytest.raises(ValueError, match=r"shape \(2,\), got \(3,\)"):
            writer.append(np.zeros((1, 3)))
        writer.append(np.zeros((4, 2)))
    assert np.load(tmp_path / "rows.npy").shape == (4, 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here that is always full")
def test_a_full_disk_is_an_error():
    def fill() -> None:
        with NpyWriter(Path("/dev/full"), (2,), np.float32) as writer:
            writer.append(np.zeros((4, 2)))

    with pytest.raises(OSError, match="No space left"):
        fill()


def test_an_error_in_the_block_closes_the_file_and_is_not_hidden(tmp_path):
    def interrupted() -> None:
        with NpyWriter(tmp_path / "rows.npy", (2,), np.float32) as writer:
            writer.append(np.zeros((4, 2)))
            raise KeyError("model")

    with pytest.raises(KeyError, match="model"):
        interrupted()
    assert np.load(tmp_path / "rows.npy").shape == (0, 2)


def test_an_array_is_mapped_not_read(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    found = mapped(tmp_path / "a.npy")
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable
    assert found.tolist() == [0, 1, 2]


@pytest.mark.parametrize("content", [b"", b"PK\3\4 an archive that was cut off", b"\x93NUMPY\1\0\x08\0{'shape'"])
def test_what_is_no_array_is_a_value_error(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError):
        mapped(tmp_path / "a.npy")


def test_an_array_that_was_cut_off_is_a_value_error(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(300))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-8])
    with pytest.raises(ValueError):
        mapped(tmp_path / "a.npy")


def header(text: str, version: int = 1) -> bytes:
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUM",
        b"PK\x03\x04",
        b"\x93NUMPY\x02\x00\xff\xff\xff\x7f",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x07\x00\x10\x00" + b" " * 16,
        header("{" * 5000),
        header("-" * 9000 + "1"),
        header("(" * 3000),
        header("\x00"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 1000000000000)}\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n"),
        header("{'descr': '<f99', 'fortran_order': False, 'shape': (2,)}\n"),
        header("{'descr': [('a', '<f4', 999999999999)], 'fortran_order': False, 'shape': (2,)}\n"),
        header("{'descr': '<f4'}\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}\n"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2.0)}\n"),
        header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**63}, 0)}}\n"),
        header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {2**62}, {2**62})}}\n"),
        header(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'1, ' * 65})}}\n"),
        header("__import__('os').system('true')\n"),
    ],
)
def test_a_header_that_lies_is_a_value_error(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(ValueError):
        mapped(tmp_path / "a.npy")


@pytest.mark.skipif(os.name != "posix", reason="pipes are files on POSIX alone")
def test_no_pipe_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.npy")
    with pytest.raises(ValueError, match="is a pipe, not a file"):
        mapped(tmp_path / "a.npy")


@pytest.mark.parametrize("descr", ["'(4,)<f4'", "'<f4,<f4'", "[('a', '<f4')]", "'|V0'", "'<U0'"])
def test_records_and_what_takes_no_room_are_value_errors(tmp_path, descr):
    (tmp_path / "a.npy").write_bytes(
        header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,)}}\n") + b"\0" * 64
    )
    with pytest.raises(ValueError):
        mapped(tmp_path / "a.npy")


def test_a_mapped_file_may_be_replaced_but_not_swapped_in_between(tmp_path):
    """The array is that of the file that was opened, whatever takes its place afterwards."""
    np.save(tmp_path / "a.npy", np.arange(3))
    found = mapped(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.zeros(5))
    (tmp_path / "b.npy").replace(tmp_path / "a.npy")
    assert found.tolist() == [0, 1, 2]
    assert found.filename == str(tmp_path / "a.npy")
