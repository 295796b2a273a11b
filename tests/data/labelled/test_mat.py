"""The lists of the Wikipedia set beside such a file are tested in test_wikipedia.py."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError
from rungwise.data import read

SIZES = {"tr": 4, "te": 3, "va": 2, "val": 2, "db": 5}
SINGLE = {end: np.arange(size) % 2 + 1 for end, size in SIZES.items()}
SEVERAL = {end: np.eye(3, dtype=np.uint8)[np.arange(size) % 3] for end, size in SIZES.items()}


def arrays(*ends: str, labels: dict[str, np.ndarray] | None = None) -> dict[str, object]:
    draw = np.random.default_rng(0)
    found: dict[str, object] = {}
    for end in ("tr", "te", *ends):
        found |= {f"I_{end}": draw.normal(size=(SIZES[end], 6)), f"T_{end}": draw.integers(0, 9, (SIZES[end], 3))}
        found |= {f"L_{end}": labels[end]} if labels else {}
    return found


def write(root: Path, found: dict[str, object], names: str = "", **more: object) -> Path:
    whole = {name: value for name, value in {**found, **more}.items() if value is not None}
    scipy.io.savemat(root / "nus.mat", whole)
    if names:
        (root / "classes.txt").write_text(names)
    return root


@pytest.mark.parametrize("validation", ["va", "val"])
def test_all_parts_with_labels_of_several_classes(tmp_path: Path, validation: str) -> None:
    data = read(write(tmp_path, arrays(validation, "db", labels=SEVERAL), "sky\nsea\nsand\n"))
    assert (data.layout, data.issues, data.name) == ("labelled_features", (), tmp_path.name)
    assert data.splits == ("train",) * 4 + ("val",) * 2 + ("test",) * 3 + ("db",) * 5
    assert data.split("db").labels == (("sky",), ("sea",), ("sand",), ("sky",), ("sea",))
    stored = scipy.io.loadmat(tmp_path / "nus.mat")
    for split, end in (("train", "tr"), ("val", validation), ("test", "te"), ("db", "db")):
        part = data.split(split)
        assert part.features is not None
        assert part.text_features is not None
        np.testing.assert_array_equal(part.features[:], stored[f"I_{end}"])
        np.testing.assert_array_equal(part.text_features[:], stored[f"T_{end}"])
        assert part.text_features.dtype == np.float32  # counts of words


def test_one_class_a_row_whatever_the_array_is_called_along(tmp_path: Path) -> None:
    for shape in ((-1, 1), (1, -1)):
        labels = {end: values.reshape(shape) for end, values in SINGLE.items()}
        data = read(write(tmp_path, arrays(labels=labels)))
        assert data.labels == (("1",), ("2",), ("1",), ("2",), ("1",), ("2",), ("1",))


def test_labels_of_one_part_alone(tmp_path: Path) -> None:
    data = read(write(tmp_path, arrays(labels=SEVERAL), L_te=None))
    assert data.labels[3:5] == (("1",), ())
    assert [(issue.kind, issue.detail) for issue in data.issues] == [("no label", "3 of 3 rows of test")]


def lists(root: Path) -> None:
    for split, end in (("train", "tr"), ("test", "te")):
        lines = [f"t{split}{row} i{split}{row} {label}\n" for row, label in enumerate(SINGLE[end])]
        (root / f"{split}set_txt_img_cat.list").write_text("".join(lines))


def test_lists_give_ids_and_agree_with_labels(tmp_path: Path) -> None:
    lists(write(tmp_path, arrays("db", labels=SINGLE), "art\nbiology\n"))
    data = read(tmp_path)
    assert (data.layout, data.image_ids[:2], data.labels[:2]) == (
        "wikipedia",
        ("itrain0", "itrain1"),
        (("art",), ("biology",)),
    )
    assert [(issue.kind, issue.detail) for issue in data.issues] == [("missing list", "the 5 rows are numbered")]
    write(tmp_path, arrays("db", labels=SINGLE | {"te": np.array([1, 2, 2])}))
    said = (
        r"nus\.mat, L_te, row 2: biology, but testset_txt_img_cat\.list says art; correct one, or move the lists away"
    )
    with pytest.raises(UserError, match=said):
        read(tmp_path)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"T_te": None}, r"nus\.mat: holds no array 'T_te'; give a file with I_tr, T_tr, I_te, T_te"),
        ({"I_db": np.ones((2, 6))}, r"nus\.mat: holds 'I_db', but no array 'T_db'; save both, or neither"),
        ({"L_db": np.ones((2, 1))}, r"nus\.mat: holds 'L_db', but no array 'I_db'"),
        (arrays("va", "val"), r"nus\.mat: holds both 'I_va' and 'I_val'; keep one validation part"),
        ({"I_tr": np.ones((6, 4)), "T_tr": np.ones((3, 4))}, r"I_tr of shape \(6, 4\) and T_tr .* transpose both"),
        ({"L_tr": np.ones((3, 4))}, r"nus\.mat, L_tr: labels of shape \(3, 4\) for 4 rows; transpose the labels"),
        ({"L_tr": np.full((4, 3), 2)}, r"nus\.mat, L_tr, row 0: 2 in column 1 of the labels"),
        ({"L_tr": "words"}, r"nus\.mat: 'L_tr' is no full array of real numbers"),
        ({"L_tr": np.array([1, 2, 1, 3]), "L_te": None}, r"L_tr, row 3: class 3, but classes\.txt names 2"),
        ({"I_tr": np.ones((4, 7))}, r"nus\.mat: I_te is of shape \(3, 6\), but the rows of I_tr have 7 numbers"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, more: dict[str, object], said: str) -> None:
    """Also where the folder is given, which holds nothing else."""
    names = "sky\nsea\n" if "names 2" in said else ""
    write(tmp_path, arrays(labels=SEVERAL), names, **more)
    for path in (tmp_path / "nus.mat", tmp_path):
        with pytest.raises(UserError, match=said) as caught:
            read(path)
        assert "\n" not in str(caught.value)
