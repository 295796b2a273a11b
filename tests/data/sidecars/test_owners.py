import unicodedata
from pathlib import Path

import pytest

from rungwise.data.layouts import PictureFolder
from rungwise.data.sidecars._owners import Owners


@pytest.mark.parametrize(
    ("names", "beside", "owners"),
    [
        (["a.jpg"], "a.txt", ["a.jpg"]),
        (["a.jpg"], "a.jpg.txt", ["a.jpg"]),
        (["a.jpg", "a.png"], "a.txt", ["a.jpg", "a.png"]),
        (["a.jpg", "a.png"], "a.png.txt", ["a.png"]),
        (["a.jpg", "a.jpg.png"], "a.jpg.txt", ["a.jpg", "a.jpg.png"]),
        (["a.b.jpg"], "a.txt", []),
        (["a.b.jpg"], "a.b.txt", ["a.b.jpg"]),
        (["a.jpg"], "A.txt", []),
        (["a.jpg"], "sub/a.txt", []),
        (["sub/a.jpg"], "a.txt", []),
        (["a.jpg", "a.cr2"], "a.txt", ["a.jpg", "a.cr2"]),
        (["a.jpg", "a.heic"], "a.txt", ["a.heic", "a.jpg"]),
        (["a.jpg", "a.mov"], "a.txt", ["a.jpg"]),
        ([" a.jpg", "a.jpg"], " a.txt", [" a.jpg"]),
        (["Plan 1.5 north.png", "Plan 1.5 south.png"], "Plan 1.5 south.txt", ["Plan 1.5 south.png"]),
    ],
)
def test_a_name_decides(tmp_path: Path, names: list[str], beside: str, owners: list[str]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = Owners(PictureFolder(tmp_path), [Path(beside)])
    assert sorted(path.as_posix() for path in found.of(Path(beside))) == sorted(owners)
    assert [found.is_read(path) for path in found.of(Path(beside)) if path.suffix == ".cr2"] in ([], [False])


def test_composed_and_decomposed_names_are_one_where_no_other_is_the_same(tmp_path: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    (tmp_path / f"{composed}.jpg").touch()
    one = Owners(PictureFolder(tmp_path), [Path("x.txt")])
    assert [path.stem for path in one.of(Path(f"{decomposed}.txt"))] == [composed]
    (tmp_path / f"{decomposed}.jpg").touch()
    if len(PictureFolder(tmp_path).pictures) == 2:
        both = Owners(PictureFolder(tmp_path), [Path("x.txt")])
        assert [path.stem for path in both.of(Path(f"{decomposed}.txt"))] == [decomposed]
