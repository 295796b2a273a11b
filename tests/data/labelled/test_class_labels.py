from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data.labelled._class_labels import (
    ClassLabels,
    ClassNames,
    class_names,
    labels_in_array,
    named,
    read_labels,
)

NAMES = ClassNames(Path("classes.txt"), ("sky", "sea", "sand"))
SETS = st.lists(st.sets(st.integers(0, 2)), min_size=2, max_size=6).filter(lambda rows: any(rows))


def indicator(rows: list[set[int]]) -> NDArray[np.uint8]:
    return np.array([[column in row for column in range(3)] for row in rows], np.uint8)


def names_of(rows: list[set[int]]) -> list[tuple[tuple[str, ...], ...]]:
    return [tuple(tuple(NAMES.names[one] for one in sorted(row)) for row in rows)]


def of_csv(folder: Path, text: str, rows: int) -> ClassLabels:
    path = folder / "train_labels.csv"
    path.write_text(text)
    return read_labels(path, rows)


@given(SETS, st.sampled_from(["u1", "i8", "f4", "f8", "?"]))
def test_an_indicator_is_read_back(rows: list[set[int]], kind: str) -> None:
    assert named([labels_in_array(indicator(rows).astype(kind), len(rows), "L")], NAMES) == names_of(rows)


@given(rows=SETS, between=st.sampled_from([",", ";", "\t"]), header=st.sampled_from(["", "a{0}b{0}c\n", "0{0}1{0}2\n"]))
def test_an_indicator_in_csv_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[set[int]], between: str, header: str
) -> None:
    lines = "".join(between.join(map(str, row)) + "\n" for row in indicator(rows).tolist())
    found = of_csv(tmp_path_factory.mktemp("csv"), header.format(between) + lines, len(rows))
    assert named([found], NAMES) == names_of(rows)


@given(rows=SETS, between=st.sampled_from(["|", "; "]), header=st.booleans())
def test_words_in_csv_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[set[int]], between: str, header: bool
) -> None:
    (expected,) = names_of(rows)
    text = "labels\n" * header + "".join(f"{between.join(row)}\n" for row in expected)
    assert named([of_csv(tmp_path_factory.mktemp("csv"), text, len(rows))], NAMES) == [expected]


@given(st.lists(st.integers(0, 2), min_size=2, max_size=6), st.booleans(), st.sampled_from([(-1,), (-1, 1), (1, -1)]))
def test_numbers_of_classes_are_read_back(numbers: list[int], from_zero: bool, shape: tuple[int, ...]) -> None:
    base = 0 if from_zero else 1
    array = np.array(numbers).reshape(shape) + base
    # Numbers count from 0 only where a 0 says so.
    whole = array if from_zero and 0 in numbers else np.array(numbers).reshape(shape) + 1
    found = named([labels_in_array(whole, len(numbers), "L")], NAMES)
    assert found == [tuple((NAMES.names[one],) for one in numbers)]
    assert named([labels_in_array(array, len(numbers), "L")], None) == [tuple((str(one + base),) for one in numbers)]


def test_one_row_is_a_number_or_an_indicator_by_its_width() -> None:
    assert labels_in_array(np.array([[2]]), 1, "L").rows == ((2,),)
    assert labels_in_array(np.array([[0, 1, 1]]), 1, "L").rows == ((2, 3),)


def test_rows_without_a_label(tmp_path: Path) -> None:
    assert labels_in_array(np.array([1, np.nan]), 2, "L").rows == ((1,), ())
    assert labels_in_array(np.zeros((2, 3)), 2, "L").rows == ((), ())
    assert of_csv(tmp_path, "1\n\n2\n", 3).rows == ((1,), (), (2,))
    assert of_csv(tmp_path, "1,0\n\n0,1\n", 3).rows == ((1,), (), (2,))
    assert of_csv(tmp_path, "label\nsky\n\n", 2).rows == (("sky",), ())
    assert of_csv(tmp_path, 'sky\n""\n', 2).rows == (("sky",), ())
    assert labels_in_array(np.zeros((0, 3)), 0, "L").rows == ()


def test_where_zero_occurs_in_one_part_all_count_from_zero() -> None:
    train, test = (labels_in_array(np.array(values), 2, "L") for values in ([0, 2], [1, 2]))
    assert named([train, test], NAMES) == [(("sky",), ("sand",)), (("sea",), ("sand",))]


def test_several_numbers_a_line(tmp_path: Path) -> None:
    found = of_csv(tmp_path, "3|1\n2\n1.0\n", 3)
    assert named([found], NAMES) == [(("sand", "sky"), ("sea",), ("sky",))]
    assert of_csv(tmp_path, "3;1\n2\n", 2).rows == ((3, 1), (2,))


def test_numbers_in_one_line(tmp_path: Path) -> None:
    assert of_csv(tmp_path, "3,1,2\n", 3).rows == ((3,), (1,), (2,))


def test_a_label_with_a_comma_stands_in_quotes(tmp_path: Path) -> None:
    assert of_csv(tmp_path, '"sky, blue|sea"\nsand\n', 2).rows == (("sky, blue", "sea"), ("sand",))


def test_a_class_may_be_called_label(tmp_path: Path) -> None:
    assert of_csv(tmp_path, "label\nclass\n", 2).rows == (("label",), ("class",))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([[0, 1], [2, 1], [0, 0]]), "L_tr, row 1: 2 in column 1 of the labels"),
        (np.array([[0, 1], [np.nan, 1], [0, 0]]), "L_tr, row 1: nan in column 1"),
        (np.array([[0, 1], [-1, 1], [0, 0]]), "L_tr, row 1: -1 in column 1"),
        (np.zeros((2, 3)), r"labels of shape \(2, 3\) for 3 rows; transpose"),
        (np.zeros((2, 4)), r"labels of shape \(2, 4\) for 3 rows; save the labels of each row"),
        (np.zeros((3, 2, 2)), r"labels of shape \(3, 2, 2\) for 3 rows"),
        (np.array([1, 2.5, 1]), "L_tr, row 1: 2.5 is no number of a class"),
        (np.array([1, -1, 1]), "L_tr, row 1: -1 is no number of a class"),
        (np.array([1, np.inf, 1]), "L_tr, row 1: inf is no number of a class"),
        (np.array([1, 2**40, 1]), "is no number of a class"),
        (np.array(["a", "b", "c"]), "labels of type <U1; save numbers, and words in a CSV"),
        (np.ones(3, complex), "labels of type complex128"),
    ],
)
def test_arrays_that_are_no_labels(values: NDArray[Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        labels_in_array(values, 3, "L_tr")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\nb\n", "2 lines of labels for 3 rows"),
        ("a\nb\nc\nd\n", "4 lines of labels for 3 rows"),
        ("0\n1\n2\n0\n", "4 lines of labels for 3 rows"),
        ("a,b\nc\nd\n", "line 1: columns of words"),
        ("id,label\n1,a\n2,b\n3,c\n", "4 lines of labels for 3 rows"),
        ('"a\nb\nc\n', "line 1: unexpected end of data; correct the quotation marks"),
        ("1,0\n2,0\n0,1\n", "line 2: 2 in column 1 of the labels"),
        ("h,i\n1,0\n\n0,3\n", "line 4: 3 in column 2 of the labels"),
        ("1,0\n1,x\n0,1\n", "line 2: 'x' in column 2 is no number"),
        ("1,0\n1,0,1\n0,1\n", "line 2: 3 numbers, but line 1 has 2"),
        ("1,0\n0,1\n", r"labels of shape \(2, 2\) for 3 rows"),
        ("\n\n\n", "the file is empty"),
    ],
)
def test_csv_that_is_no_labels(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        of_csv(tmp_path, text, 3)
    assert "\n" not in str(caught.value)
    assert "train_labels.csv" in str(caught.value)


def test_classes_beyond_the_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"L, row 1: class 4, but classes\.txt names 3, counted from 1; correct one"):
        named([labels_in_array(np.array([1, 4]), 2, "L")], NAMES)
    with pytest.raises(UserError, match=r"L, row 1: class 3, but classes\.txt names 3, counted from 0, as class 0"):
        named([labels_in_array(np.array([0, 3]), 2, "L")], NAMES)
    with pytest.raises(UserError, match="line 2: class 4"):
        named([of_csv(tmp_path, "1\n4\n", 2)], NAMES)
    with pytest.raises(UserError, match=r"L: labels of 2 classes, but classes\.txt names 3"):
        named([labels_in_array(np.zeros((2, 2)), 2, "L")], NAMES)


def test_parts_say_their_classes_alike() -> None:
    one = labels_in_array(np.zeros((3, 2)), 3, "L_tr")
    for other, said in (
        (labels_in_array(np.zeros((3, 4)), 3, "L_te"), "L_te: labels are an indicator of 4 classes, but those of L_tr"),
        (labels_in_array(np.ones(3), 3, "L_te"), "L_te: labels are numbers of classes, but those of L_tr"),
    ):
        with pytest.raises(UserError, match=said):
            named([one, other], None)
    assert named([one, labels_in_array(np.zeros((0, 9)), 0, "L_te")], None) == [((), (), ()), ()]


def test_names_of_classes(tmp_path: Path) -> None:
    assert class_names(tmp_path) is None
    (tmp_path / "classes.txt").write_text("sky\n\n sea \n")
    (found,) = [class_names(tmp_path)]
    assert found is not None
    assert found.names == ("sky", "sea")
    (tmp_path / "categories.list").write_text("art\nart\n")
    with pytest.raises(UserError, match=r"categories\.list, line 2: 'art' stands already in line 1"):
        class_names(tmp_path)
