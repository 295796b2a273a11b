import unicodedata
from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.data.folder import PictureFolder, read_folder


def folder_with(root: Path, *names: str) -> PictureFolder:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return PictureFolder(root)


def found(files: PictureFolder, reference: str) -> list[str]:
    return [path.relative_to(files.root).as_posix() for path in files.find(reference)]


def test_pictures_are_sorted_and_hidden_things_left_out(tmp_path: Path) -> None:
    files = folder_with(tmp_path, "b/z.png", "a.JPEG", ".hidden.jpg", ".cache/c.jpg", "notes.md", "._a.jpg")
    assert [path.as_posix() for path in files.pictures] == ["a.JPEG", "b/z.png"]
    assert [path.as_posix() for path in files.others] == ["notes.md"]


@pytest.mark.parametrize(
    "reference",
    ["sub/a.jpg", "./sub/a.jpg", "sub\\a.jpg", "a.jpg", "a", "A.JPG", " a.jpg ", "/elsewhere/data/sub/a.jpg"],
)
def test_names_that_mean_the_same_file(tmp_path: Path, reference: str) -> None:
    assert found(folder_with(tmp_path, "sub/a.jpg", "b.jpg"), reference) == ["sub/a.jpg"]


@pytest.mark.parametrize("reference", ["c.jpg", "other/a.jpg", "a.jpg.1", "a.png", "", "/", "sub"])
def test_names_that_mean_no_file(tmp_path: Path, reference: str) -> None:
    assert found(folder_with(tmp_path, "sub/a.jpg", "b.jpg"), reference) == []


def test_composed_and_decomposed_names_are_one(tmp_path: Path) -> None:
    name = "Zoë über Köln.jpg"
    for stored, asked in (("NFC", "NFD"), ("NFD", "NFC")):
        root = tmp_path / stored
        files = folder_with(root, unicodedata.normalize(stored, name))
        assert len(files.find(unicodedata.normalize(asked, name))) == 1


def test_the_same_name_in_two_folders_needs_the_folder(tmp_path: Path) -> None:
    files = folder_with(tmp_path, "cat/1.jpg", "dog/1.jpg", "dog/2.jpg")
    assert found(files, "dog/1.jpg") == ["dog/1.jpg"]
    assert found(files, "1.jpg") == ["cat/1.jpg", "dog/1.jpg"]
    assert found(files, "bird/1.jpg") == []


def test_a_file_at_the_top_wins_over_one_below(tmp_path: Path) -> None:
    assert found(folder_with(tmp_path, "1.jpg", "sub/1.jpg"), "1.jpg") == ["1.jpg"]


def test_letter_case_decides_where_it_must(tmp_path: Path) -> None:
    files = folder_with(tmp_path, "x/a.jpg", "x/A.jpg")
    if len(files.pictures) < 2:
        pytest.skip("this file system does not tell letter case")
    assert found(files, "A.jpg") == ["x/A.jpg"]
    assert found(files, "a.jpg") == ["x/a.jpg"]
    assert found(files, "a.JPG") == ["x/A.jpg", "x/a.jpg"]


def test_references_may_lead_outside_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "pictures" / "a.jpg"
    outside.parent.mkdir()
    outside.touch()
    files = folder_with(tmp_path / "annotations", "captions.csv")
    assert [path.resolve() for path in files.find("../pictures/a.jpg")] == [outside]
    assert files.find(str(outside)) == [outside]
    assert files.find("../pictures/b.jpg") == []


def test_detours_and_full_paths_come_back_to_the_same_file(tmp_path: Path) -> None:
    files = folder_with(tmp_path, "x/a.jpg")
    for reference in ("x/../x/a.jpg", str(tmp_path / "x" / "a.jpg"), "../" + tmp_path.name + "/x/a.jpg"):
        assert files.find(reference) == [tmp_path / "x" / "a.jpg"]


def test_linked_folders_are_followed_and_loops_end(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.jpg").touch()
    (tmp_path / "data").mkdir()
    try:
        (tmp_path / "data" / "linked").symlink_to(tmp_path / "store")
        (tmp_path / "store" / "loop").symlink_to(tmp_path / "data")
    except OSError:
        pytest.skip("this system does not let tests make links")
    assert [path.as_posix() for path in PictureFolder(tmp_path / "data").pictures] == ["linked/a.jpg"]


def test_a_bare_folder_has_pictures_and_no_captions(tmp_path: Path) -> None:
    data = read_folder(folder_with(tmp_path, "b/z.png", "a.jpg", "raw.heic", "notes.md"))
    assert data.image_ids == ("a.jpg", "b/z.png")
    assert data.paths == (tmp_path / "a.jpg", tmp_path / "b" / "z.png")
    assert data.captions == ()
    assert data.splits == ("none", "none")
    assert data.name == tmp_path.name
    assert {issue.where for issue in data.issues} <= {"raw.heic"}


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no pictures in this folder or below \(.*\.jpg.*give another folder"):
        read_folder(folder_with(tmp_path, "notes.md"))
