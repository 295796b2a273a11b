import errno
import os
import sys
import unicodedata
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.data import Issue, read
from rungwise.data.layouts import PictureFolder, read_folder
from tests.odd_files import on_posix, put


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


def test_patterns_of_a_folder_hold_below_it_and_those_given_go_before_them(tmp_path: Path) -> None:
    names = ("a.png", "x/a.png", "x/b.jpg", "x/y/b.jpg", "x/y/c.jpg", "y/b.jpg", "x/keep/b.jpg")
    folder_with(tmp_path, *names)
    (tmp_path / ".rungwiseignore").write_text("*.png\n")
    (tmp_path / "x/.rungwiseignore").write_text("/b.jpg\ny/b.jpg\n!a.png\nkeep/\n")
    files = PictureFolder(tmp_path)
    assert [path.as_posix() for path in files.pictures] == ["x/a.png", "x/y/c.jpg", "y/b.jpg"]
    assert [issue.where for issue in files.not_read()] == ["4 excluded files and folders, such as a.png"]
    files = PictureFolder(tmp_path, exclude=["c.jpg", "!b.jpg"])
    assert [path.as_posix() for path in files.pictures] == ["x/a.png", "x/b.jpg", "x/y/b.jpg", "y/b.jpg"]
    assert PictureFolder(tmp_path, exclude="*.jpg").pictures == [Path("x/a.png")]


def test_pictures_without_a_known_ending_are_known_by_their_content(tmp_path: Path) -> None:
    files = folder_with(tmp_path, "a.jpg", "empty")
    for name in ("no ending", "photo.jpg_large", "10.30", "notes.txt", "page.html"):
        (tmp_path / name).write_bytes(b"\xff\xd8\xff\xe0")
    files = PictureFolder(tmp_path)
    assert [path.name for path in files.pictures] == ["10.30", "a.jpg", "no ending", "photo.jpg_large"]
    assert [path.name for path in files.others] == ["empty", "notes.txt", "page.html"]
    assert [path.name for path in files.find("no ending")] == ["no ending"]


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
    data = read_folder(folder_with(tmp_path, "b/z.png", "a.jpg", "raw.dng", "notes.md"))
    assert data.image_ids == ("a.jpg", "b/z.png")
    assert data.paths == (tmp_path / "a.jpg", tmp_path / "b" / "z.png")
    assert data.captions == ()
    assert data.splits == ("none", "none")
    assert data.name == tmp_path.name
    assert {issue.where for issue in data.issues} <= {"raw.dng"}


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no pictures in this folder or below \(.*\.jpg.*give another folder"):
        read_folder(folder_with(tmp_path, "notes.md"))
    with pytest.raises(UserError, match=r"; 2 RAW pictures \(.cr2\), such as a.cr2: save them as JPEG"):
        read_folder(folder_with(tmp_path, "a.cr2", "b.CR2"))


@on_posix
def test_what_is_no_file_is_listed_and_not_read(tmp_path: Path) -> None:
    put(tmp_path / "pipe.jpg", "pipe")
    put(tmp_path / "socket.csv", "socket")
    put(tmp_path / "endless.jpg", "endless")
    put(tmp_path / "dangling.json", "dangling")
    put(tmp_path / "loop.png", "loop")
    files = folder_with(tmp_path, "a.jpg")
    assert ([path.name for path in files.pictures], files.others) == (["a.jpg"], [])
    assert [(issue.kind, issue.where, issue.detail) for issue in files.issues] == [
        ("not a regular file", "dangling.json", "a link that leads nowhere"),
        ("not a regular file", "endless.jpg", "a device"),
        ("unreadable file", "loop.png", "too many levels of symbolic links"),
        ("not a regular file", "pipe.jpg", "a pipe"),
        ("not a regular file", "socket.csv", "a socket"),
    ]


def refuse_to_list(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As a folder of somebody else does; the user of the tests may read everything."""
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)


def test_a_folder_that_cannot_be_read_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_with(tmp_path, "a.jpg", "private/b.jpg")
    refuse_to_list(monkeypatch, tmp_path / "private")
    files = PictureFolder(tmp_path)
    assert files.pictures == [Path("a.jpg")]
    assert files.issues == [
        Issue("unreadable folder", "private", "permission denied; what is in it is left out"),
    ]
    refuse_to_list(monkeypatch, tmp_path)
    with pytest.raises(UserError, match=r"cannot be read \(permission denied\); correct the path or its permissions"):
        PictureFolder(tmp_path)


@on_posix
def test_folders_nested_beyond_what_a_path_may_hold_are_listed(tmp_path: Path) -> None:
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        for _ in range(20):
            Path("d" * 250).mkdir()
            os.chdir("d" * 250)
    finally:
        os.chdir(here)
    (issue,) = PictureFolder(tmp_path).issues
    assert (issue.kind, issue.detail) == ("unreadable folder", "file name too long; what is in it is left out")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of files are any bytes on Linux alone")
def test_names_that_are_no_text_are_shown_as_bytes(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.jpg")).touch()
    data = read_folder(PictureFolder(folder))
    assert (data.name, data.image_ids) == ("caf\\xe9", ("\\xff.jpg",))
    assert data.paths[0].is_file()


@pytest.mark.parametrize("name", [" .jpg", "\u3000.png", "\\.jpg", "a\\b.jpg", "\x1b[31m.jpg", "e\u0301.jpg"])
def test_odd_names_are_names(tmp_path: Path, name: str) -> None:
    files = folder_with(tmp_path, name, "plain.jpg")
    assert Path(name) in files.pictures
    assert found(files, "plain") == ["plain.jpg"]


@pytest.mark.parametrize(
    "reference",
    [
        "a" * 5000 + ".jpg",
        "/" + "a" * 300 + ".jpg",
        "../" * 3000 + "a.jpg",
        "/nowhere/\0.jpg",
        "../\ud83d.jpg",
        "/dev/zero",
        "/dev/zero/../zero.jpg",
        "..",
        "../..",
        "/",
        "\0",
        "\\" * 100,
    ],
)
def test_references_made_up_by_a_stranger_lead_nowhere(tmp_path: Path, reference: str) -> None:
    assert found(folder_with(tmp_path, "b.png"), reference) == []


@on_posix
def test_references_outside_the_folder_lead_to_pictures_alone(tmp_path: Path) -> None:
    for name in ("pipe.jpg", "endless.jpg", "folder.jpg"):
        put(tmp_path / name, name.partition(".")[0])
    folder_with(tmp_path, "secret.txt", "one.jpg", "two.jpg")
    files = folder_with(tmp_path / "data", "captions.csv")
    for name in ("pipe.jpg", "endless.jpg", "folder.jpg", "secret.txt", "one"):
        assert files.find(f"../{name}") == files.find(str(tmp_path / name)) == []
    assert files.issues == []
    for name in ("one.jpg", "two.jpg", "one.jpg"):
        assert files.find(f"../{name}") == [tmp_path / "data" / ".." / name]
    (issue,) = files.issues
    assert issue.kind == "pictures outside the folder"
    assert (Path(issue.where).name, issue.detail) == ("one.jpg", "named '../one.jpg', with 1 more")


def test_a_file_whose_beginning_cannot_be_read_is_listed(tmp_path: Path) -> None:
    files = folder_with(tmp_path, "a.json", "b.json")
    (tmp_path / "a.json").write_text("abc")
    (tmp_path / "b.json").unlink()
    assert [files.head(path, 2) for path in files.others] == [b"ab", b""]
    (issue,) = files.issues
    assert (issue.kind, issue.where) == ("unreadable file", "b.json")


@on_posix
def test_a_folder_that_is_linked_twice_is_read_once_under_its_own_name(tmp_path: Path) -> None:
    folder_with(tmp_path, "real/x.jpg")
    (tmp_path / "a link").symlink_to("real")
    assert PictureFolder(tmp_path).pictures == [Path("real/x.jpg")]


def test_copies_of_a_folder_make_no_name_ambiguous(tmp_path: Path) -> None:
    for number in range(3):
        for folder in ("Images", "Images - Copy"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{number}.jpg").write_bytes(b"picture %d" % number)
    (tmp_path / "captions.txt").write_text("image,caption\n" + "".join(f"{n}.jpg,mine {n}\n" for n in range(3)))
    data = read(tmp_path)
    owners = {data.captions[at]: data.paths[image] for at, image in enumerate(data.image_of_caption.tolist())}
    assert owners == {f"mine {n}": tmp_path / "Images" / f"{n}.jpg" for n in range(3)}
    (tmp_path / "Images - Copy" / "1.jpg").write_bytes(b"picture x")
    data = read(tmp_path)
    assert data.captions == ("mine 0", "mine 2"), "which of two different ones is meant, nobody knows"
    assert [issue.kind for issue in data.issues] == ["ambiguous picture"]
