from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rungwise.core import UserError
from rungwise.data.files import is_header, is_words, matrix, read_numbers


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "train_images.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", ["1,2\n3,4.5\n", "1;2\r\n3;4.5\r\n", "1\t2\n\n3\t4.5", "a, b\n1, 2\n3, 4.5\n\n"])
def test_delimiters_headers_and_blank_lines(tmp_path: Path, text: str) -> None:
    found = read_numbers(csv(tmp_path, text))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, 2], [3, 4.5]])


def test_numbers_of_columns_are_a_header_as_pandas_writes_it(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read_numbers(csv(tmp_path, "0,1,2\n5,6,7\n")), [[5, 6, 7]])
    np.testing.assert_array_equal(read_numbers(csv(tmp_path, "0,1\n5,6\n")), [[0, 1], [5, 6]])
    assert not is_header("0,1,2,2", ",")


@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-1e6, 1e6, width=32)))
def test_what_is_written_is_read(values: np.ndarray) -> None:
    lines = [(number, ";".join(map(repr, row))) for number, row in enumerate(values.tolist(), 1)]
    np.testing.assert_array_equal(matrix(lines, ";", Path("a.csv")).astype(np.float32), values)


def test_one_array_of_a_mat_file(tmp_path: Path) -> None:
    path = tmp_path / "train_img.mat"
    scipy.io.savemat(path, {"whatever": np.arange(6, dtype=np.uint8).reshape(2, 3), "note": "a text"})
    np.testing.assert_array_equal(read_numbers(path), [[0, 1, 2], [3, 4, 5]])


def test_a_numpy_file_is_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 3)))
    assert isinstance(read_numbers(tmp_path / "a.npy"), np.memmap)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,2\n3,x\n", r"line 2: 'x' in column 2 is no number"),
        ("1,2\n3,\n", r"line 2: '' in column 2 is no number"),
        ("1,2\n\n3\n", r"line 3: 1 numbers, but line 1 has 2"),
        (",0,1\n0,1,2\n", r"line 1: '' in column 1 is no number"),
        ("0,5;0,7\n1,5;1,7\n", r"line 2: '1,5' in column 1 is no number; write numbers with a decimal point"),
        ("1_0,2\n", r"line 1: '1_0' in column 1 is no number"),
        ("a,b\n", "a header without rows"),
        ("\n", "the file is empty"),
    ],
)
def test_csv_that_is_no_array(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        read_numbers(csv(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "train_images.csv" in str(caught.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for arrays_in_it, said in (({}, "holds 0 full arrays"), ({"a": 1, "b": 2}, r"holds 2 full arrays .* \(a, b\)")):
        scipy.io.savemat(tmp_path / "a.mat", arrays_in_it)
        with pytest.raises(UserError, match=said):
            read_numbers(tmp_path / "a.mat")
    with pytest.raises(UserError, match=r"files of this ending; save them as \.npy, \.csv, \.mat"):
        read_numbers(tmp_path / "a.h5")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image,caption\na.jpg,A dog.\n", True),
        ("image,caption\n12,A dog.\n", True),
        ("id,file_name,width,height\n1,a.jpg,640,480\n", True),
        ("red,green\n1,2\n", False),
        ("1,2\n", False),
        ("red,green\n1,x\n2,3\n", False),
        ("", False),
    ],
)
def test_a_table_of_texts_is_told_from_numbers(tmp_path: Path, text: str, words: bool) -> None:
    assert is_words(csv(tmp_path, text)) == words


def test_a_first_line_beyond_what_is_looked_at_is_no_header_of_texts(tmp_path: Path) -> None:
    assert not is_words(csv(tmp_path, ",".join(f"feature_{at}" for at in range(10_000)) + "\n1,2\n"))
    assert not is_words(tmp_path)
