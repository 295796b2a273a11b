from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import NOT_READ, read


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("rome/a.jpg", "rome/sub/b.jpg", "oslo/a.jpg", "other/rome/a.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_ids_say_the_folder_and_stay_when_another_comes(root: Path) -> None:
    two = read([root / "rome", root / "oslo"])
    assert two.image_ids == ("rome/a.jpg", "rome/sub/b.jpg", "oslo/a.jpg")
    assert (two.layout, two.name) == ("several", "rome+oslo")
    three = read([root / "oslo", f"old={root / 'other/rome'}", root / "rome"])
    assert set(three.image_ids) == {*two.image_ids, "old/a.jpg"}
    assert dict(zip(three.image_ids, three.paths, strict=True))["old/a.jpg"] == root / "other/rome/a.jpg"
    assert read([root / "oslo"]).image_ids == ("oslo/a.jpg",)


def test_each_is_read_in_its_own_layout(root: Path) -> None:
    (root / "rome/captions.csv").write_text("image,caption,year,split\na.jpg,Old stones.,2020,train\n")
    (root / "oslo/a.txt").write_text("A ship.")
    (root / "oslo/clip.mov").touch()
    data = read([root / "rome", root / "oslo"])
    assert data.captions == ("Old stones.", "A ship.")
    assert [data.image_ids[at] for at in data.image_of_caption] == ["rome/a.jpg", "oslo/a.jpg"]
    assert data.caption_ids == ("rome/a.jpg#0", "oslo/a.jpg#0")
    assert data.columns == {"year": (2020, None, None)}
    assert data.splits == ("train", "none", "none")
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        (NOT_READ, "in oslo: 1 video (.mov), such as clip.mov")
    ]
    (root / "oslo/captions.tsv").write_text("image\tcaption\tyear\na.jpg\tA ship.\tlong ago\n")
    data = read([root / "rome", root / "oslo"])
    assert data.columns == {"year": ("2020", None, "long ago")}
    assert ("column of several kinds", "year") in [(issue.kind, issue.where) for issue in data.issues]


def test_patterns_hold_in_each(root: Path) -> None:
    data = read([root / "rome", root / "oslo"], exclude=["sub/"])
    assert data.image_ids == ("rome/a.jpg", "oslo/a.jpg")
    assert [issue.where for issue in data.issues] == ["in rome: 1 excluded file or folder, such as sub"]


def test_what_cannot_be_joined_is_refused(root: Path) -> None:
    (root / "rows").mkdir()
    np.save(root / "rows/features.npy", np.ones((2, 3), np.float32))
    (root / "rows/ids.txt").write_text("a\nb\n")
    (root / "link").symlink_to(root / "oslo")
    for paths, message in (
        ([], "path= is an empty list; give at least one folder or picture"),
        (["rome", "other/rome"], "'rome' is the name of .*rome too; give one as NAME="),
        (["rome", "rome/sub"], "lies in the other; give the outer one alone"),
        (["rome/sub", "rome"], "lies in the other"),
        (["oslo", "link"], "is the same as .*oslo; give it once"),
        (["rome", "rows"], "rows: holds rows of features, which cannot be joined"),
        (["rome", "none"], "none: no such file or folder"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            read([root / one for one in paths])
        assert "\n" not in str(caught.value)


def test_a_path_with_a_sign_of_equality_may_be_a_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "x=oslo").mkdir()
    (root / "x=oslo/c.jpg").touch()
    assert read(["x=oslo", "y=oslo"]).image_ids == ("x=oslo/c.jpg", "y/a.jpg")
