from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data.files import FeatureRows
from rungwise.data.files._feature_rows import map_rows, place_of


def mapped(path: Path, values: NDArray[Any]) -> NDArray[Any]:
    np.save(path, values)
    array: NDArray[Any] = np.load(path, mmap_mode="r")
    return array


def test_rows_of_several_files_are_counted_through(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(7, 3, 2)).astype(np.float16)
    rows = FeatureRows(mapped(tmp_path / "a.npy", values[:2]), values[2:2], mapped(tmp_path / "b.npy", values[2:]))
    assert (len(rows), rows.shape, rows.dtype) == (7, (7, 3, 2), np.float16)
    for which in (slice(None), slice(5, 0, -2), slice(3, 3), [6, 1, 1, 2], np.array([0, -1]), np.arange(7) > 3):
        np.testing.assert_array_equal(rows[which], values[which], strict=True)
    np.testing.assert_array_equal(rows[-1], values[6], strict=True)
    np.testing.assert_array_equal(np.array(list(rows)), values)  # an int beyond the end raises IndexError
    with pytest.raises(IndexError):
        rows[[7]]


def test_taking_keeps_the_map_and_reading_gives_a_copy(tmp_path: Path) -> None:
    source = mapped(tmp_path / "a.npy", np.arange(12.0).reshape(6, 2))
    chosen = FeatureRows(source).take([5, 0, 5]).take(np.array([2, 1]))
    assert chosen.parts[0] is source
    assert chosen.positions.tolist() == [5, 0]
    read = chosen[:]
    assert type(read) is np.ndarray
    read[:] = -1
    assert chosen[0].tolist() == [10.0, 11.0]


def test_numbers_come_in_the_byte_order_of_this_machine_and_hash_alike_in_either() -> None:
    values = np.arange(6.0).reshape(3, 2)
    swapped, straight = FeatureRows(values.astype(">f8")), FeatureRows(values.astype("<f8"))
    assert swapped[:].dtype.isnative
    np.testing.assert_array_equal(swapped[:], values)
    assert swapped.content_hash() == straight.content_hash()


def test_a_hash_is_of_values_type_shape_and_order() -> None:
    values = np.random.default_rng(0).normal(size=(5, 4))
    rows = FeatureRows(values)
    assert rows.digest(2) == rows.take([4, 2]).digest(1) != rows.digest(3)
    assert rows.content_hash() == FeatureRows(values[:2], values[2:]).content_hash()
    others = [rows.take([1, 0, 2, 3, 4]), FeatureRows(values.reshape(5, 2, 2)), FeatureRows(values.astype(np.float32))]
    assert rows.content_hash() not in {other.content_hash() for other in others}


def test_many_rows_are_hashed_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FeatureRows(np.random.default_rng(0).normal(size=(50, 4)))
    at_once = rows.content_hash()
    monkeypatch.setattr("rungwise.data.files._feature_rows._READ_BYTES", 7 * 4 * 8)
    assert rows.content_hash() == at_once


@pytest.mark.parametrize(
    ("parts", "positions", "message"),
    [
        ([], None, "features: no array of rows was given; give at least one"),
        ([np.zeros(3)], None, r"features: an array of shape \(3,\), but .*; save one row for each image"),
        ([np.zeros((2, 2, 2, 2))], None, r"an array of shape \(2, 2, 2, 2\)"),
        ([np.zeros((2, 2), np.uint8)], None, "numbers of type uint8, .*; save them as float32"),
        ([np.zeros((2, 2), complex)], None, "numbers of type complex128"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], None, r"rows of shape \(3,\), but features has rows of shape \(2,\)"),
        ([np.zeros((2, 2))], [0, 2], r"positions run 0..2 but there are 2 rows, so positions must lie in 0..1"),
        ([np.zeros((2, 2))], [-1], "positions run -1..-1"),
    ],
)
def test_what_is_no_array_of_rows_gets_one_line(parts: list[NDArray[Any]], positions: list[int], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        FeatureRows(*parts, positions=positions)
    assert "\n" not in str(caught.value)


def test_a_mapped_file_is_named(tmp_path: Path) -> None:
    whole = mapped(tmp_path / "a.npy", np.zeros((4, 2)))
    assert place_of(whole[1:]) == str(tmp_path / "a.npy")
    with pytest.raises(UserError, match=r"a\.npy: rows of shape"):
        FeatureRows(np.zeros((1, 3)), whole)


def test_arrays_may_be_given_names_for_messages() -> None:
    rows = FeatureRows(np.zeros((1, 2)), np.zeros((3, 2)), places=("I_tr", "I_te")).take([3, 0]).take([1, 0])
    assert [rows.place(position) for position in (0, 1)] == ["I_tr, row 0", "I_te, row 2"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", r"missing.npy: no such file; correct the path"),
        ("objects", r"objects.npy: cannot be mapped into memory \(it holds Python objects\); save an array of numbers"),
        ("short", r"short.npy: cannot be mapped into memory \(.*\); it may be cut short: copy or write it again"),
        ("text", "text.npy: not a NumPy file; write it with numpy.save"),
        ("empty", r"empty.npy: an array of shape \(0, 4\) holds no features; write it again"),
        ("whole", "whole.npy: numbers of type int64, but features are floating-point; save them as float32"),
    ],
)
def test_a_file_that_cannot_be_mapped_gets_one_line(tmp_path: Path, name: str, message: str) -> None:
    np.save(tmp_path / "objects.npy", np.array([[1, "a"]], object), allow_pickle=True)
    np.save(tmp_path / "empty.npy", np.zeros((0, 4)))
    np.save(tmp_path / "whole.npy", np.zeros((2, 4), np.int64))
    np.save(tmp_path / "short.npy", np.zeros((50, 4)))
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:300])
    (tmp_path / "text.npy").write_text("1 2 3\n")
    with pytest.raises(UserError, match=message) as caught:
        map_rows(tmp_path / f"{name}.npy")
    assert "\n" not in str(caught.value)


def test_a_file_is_mapped_not_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(6.0).reshape(3, 2)))
    rows = map_rows(tmp_path / "a.npy")
    assert isinstance(rows, np.memmap)
    assert FeatureRows(rows)[1].tolist() == [2.0, 3.0]


def test_the_file_of_a_selection_is_that_of_its_first_image() -> None:
    rows = FeatureRows(np.zeros((1, 2)), np.zeros((3, 2)), places=("train.npy", "test.npy"))
    assert [rows.file, rows.take([3, 0]).file, rows.take([0, 3]).file] == ["train.npy", "test.npy", "train.npy"]
    assert rows.take([]).file == "train.npy"
    with pytest.raises(UserError, match=r"^train\.npy: positions run 0\.\.4"):
        FeatureRows(*rows.parts, positions=[0, 4], places=("train.npy", "test.npy"))
