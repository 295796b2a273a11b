import re
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import read
from tests.pages import pages_below

ROWS = np.arange(6, dtype=np.float16).reshape(3, 2)
TABLE = "image,caption,split\nb,A dog.,train\na,A cat.,test\nb,A pup.,train\n"


def write(root: Path, captions: str | None = TABLE, ids: str | None = None, rows: object = ROWS) -> Path:
    np.save(root / "features.npy", rows)
    if captions is not None:
        (root / "captions.csv").write_text(captions)
    if ids is not None:
        (root / "ids.txt").write_text(ids)
    return root


@pytest.mark.parametrize("given", [".", "captions.csv", "features.npy"])
def test_ids_say_which_row_belongs_to_which_image(tmp_path: Path, given: str) -> None:
    data = read(write(tmp_path, ids="a\nlonely\nb\n") / given)
    assert (data.layout, data.image_ids) == ("table", ("b", "a", "lonely"))
    assert data.splits == ("train", "test", "none")
    assert data.image_of_caption.tolist() == [0, 1, 0]
    assert data.features is not None
    np.testing.assert_array_equal(data.features[:], ROWS[[2, 0, 1]], strict=True)
    assert isinstance(data.features.parts[0], np.memmap)


def test_without_ids_rows_are_in_the_order_of_first_appearance(tmp_path: Path) -> None:
    data = read(write(tmp_path, rows=ROWS[:2]))
    assert data.features is not None
    assert (data.image_ids, data.features[:].tolist()) == (("b", "a"), [[0, 1], [2, 3]])
    write(tmp_path)
    with pytest.raises(UserError, match=r"features.npy: 3 rows, but the captions name 2 images; write ids.txt beside"):
        read(tmp_path)


def test_features_change_nothing_that_hashes(tmp_path: Path) -> None:
    with_rows = read(write(tmp_path, ids="a\nb\n", rows=ROWS[:2]))
    assert with_rows.content_hash() == read(tmp_path, captions_only=True).content_hash()


def test_an_image_without_a_row_is_left_out_and_said(tmp_path: Path) -> None:
    data = read(write(tmp_path, ids="a\nx\ny\n"))
    assert (data.image_ids, data.captions) == (("a", "x", "y"), ("A cat.",))
    assert {(issue.kind, issue.where) for issue in data.issues} == {("missing row", "b")}
    assert [issue.detail.partition("ids.txt; ")[2] for issue in data.issues] == ["left out: 'A dog.', 'A pup.'"]


def test_rows_without_captions_can_be_indexed(tmp_path: Path) -> None:
    data = read(write(tmp_path, captions=None, ids="a.jpg\nb.jpg\nc.jpg\n"))
    assert (data.layout, data.image_ids, len(data.captions)) == ("features", ("a.jpg", "b.jpg", "c.jpg"), 0)
    assert data.features is not None
    np.testing.assert_array_equal(data.features[:], ROWS)


def test_features_beside_the_other_kinds_of_captions(tmp_path: Path) -> None:
    write(tmp_path, captions=None, ids="1.jpg\n2.jpg\n3.jpg\n", rows=np.zeros((3, 36, 8)))
    (tmp_path / "x.token.txt").write_text("2.jpg#0\tA dog .\n")
    assert read(tmp_path).image_ids == ("2.jpg", "1.jpg", "3.jpg")
    (tmp_path / "x.token.txt").unlink()
    (tmp_path / "dataset_x.json").write_text(
        '{"images": [{"filename": "3.jpg", "split": "test", "sentences": [{"raw": "A dog.", "sentid": 7}]}]}'
    )
    data = read(tmp_path)
    assert (data.layout, data.caption_ids, data.pictures[:].shape) == ("karpathy", ("7",), (3, 36, 8))  # type: ignore[union-attr]


def test_pictures_come_first_unless_the_rows_are_asked_for(tmp_path: Path) -> None:
    write(tmp_path, rows=ROWS[:2])
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    data = read(tmp_path)
    assert (data.features, len(data.paths)) == (None, 2)
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("features left out", "there are pictures too; give this file itself to read its rows")
    ]
    data = read(tmp_path / "features.npy")
    assert (data.paths, len(data.pictures), data.issues) == ((), 2, ())


def test_captions_alone_leave_the_rows(tmp_path: Path) -> None:
    data = read(write(tmp_path), captions_only=True)
    assert (data.image_ids, data.has_pictures) == (("b", "a"), False)


@pytest.mark.parametrize(
    ("captions", "ids", "message"),
    [
        (TABLE, "a\nb\n", "ids.txt: 2 ids, but features.npy has 3 rows; write one id for each row"),
        (TABLE, "a\n\nb\n", "ids.txt, line 2: an empty line; write one id a line"),
        (TABLE, "a\nb\na\n", "ids.txt, line 3: id 'a' stands already in line 1; ids are unique"),
        (TABLE, "x\ny\nz\n", r"none of its ids \(the first is 'x'\) is that of an image .*first is 'b'\); write"),
        (None, None, "features.npy: neither captions nor ids.txt beside it; add one of them"),
    ],
)
def test_mistakes_get_one_line(tmp_path: Path, captions: str | None, ids: str | None, message: str) -> None:
    write(tmp_path, captions, ids)
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


def test_two_files_of_features_need_a_choice(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "old").mkdir()
    np.save(tmp_path / "old" / "features.npy", ROWS)
    with pytest.raises(
        UserError, match=r"2 files of features \(features.npy, old/features.npy\); give the one to read"
    ):
        read(tmp_path)
    (tmp_path / "cat.jpg").touch()
    assert read(tmp_path).has_pictures


def test_the_example_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = pages_below("guide/data")
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "features.npy" in code)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    promised = re.findall(r"print\(.*\)  # (.*)", example)
    assert len(promised) == 2
    assert capsys.readouterr().out.splitlines() == promised
