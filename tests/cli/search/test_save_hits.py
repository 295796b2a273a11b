from pathlib import Path

import pytest

from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.cli.search._save_hits import copy_to, open_hits
from rungwise.core import UserError
from tests.colour_model import picture_bytes

RED, BLUE = picture_bytes((200, 0, 0)), picture_bytes((0, 0, 200))


def hit(item_id: str, content: bytes | None = RED, name: str = "", path: str | None = None) -> SearchedPage:
    return SearchedPage(item_id, path, 0.5, ("a caption <b>",), content=None if content is None else lambda: content,
                 file_name=name)  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_that_is_there_is_overwritten_and_names_stay_apart(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "found"
    folder.mkdir(parents=True)
    (folder / "a.png").write_text("of a stranger")
    hits = [hit("x/a.png"), hit("y/a.png", BLUE), hit("b.png", BLUE)]
    assert str(copy_to(folder, hits)) == "3 pictures copied"
    assert (folder / "a.png").read_text() == "of a stranger"
    assert (folder / "a-2.png").read_bytes() == RED
    assert (folder / "a-3.png").read_bytes() == BLUE
    assert str(copy_to(folder, hits)) == "0 pictures copied, 3 there already"
    assert names(folder) == ["a-2.png", "a-3.png", "a.png", "b.png"]


@pytest.mark.parametrize(
    ("item_id", "name", "written"),
    [
        ("../../etc/passwd", "", "passwd.png"),
        ("..", "", "picture.png"),
        ("a/b\\c.png", "", "c.png"),
        ("1", "sub/photo.PNG", "photo.PNG"),
        ("row 7\x1b[2J", "", "row 7_x1b[2J.png"),
        ("x" * 300 + ".png", "", "x" * 150 + ".png"),
        (".png", "", "png.png"),
        ("caf\udcff.png", "", "caf_udcff.png"),
    ],
)
def test_names_lead_out_of_no_folder(item_id: str, name: str, written: str, tmp_path: Path) -> None:
    copy_to(tmp_path / "found", [hit(item_id, name=name)])
    assert names(tmp_path / "found") == [written]
    assert names(tmp_path) == ["found"]


def test_what_cannot_be_read_is_counted_and_listed(tmp_path: Path) -> None:
    def unreadable() -> bytes:
        raise UserError("b.jpg: no such file; correct the path")

    copied = copy_to(tmp_path, [hit("a.png"), SearchedPage("b.jpg", "/b.jpg", 0.1, content=unreadable), hit("7", None)])
    assert str(copied) == "1 picture copied, 2 could not be read"
    assert copied.failed == ("b.jpg: no such file; correct the path", "7: has no picture file")


def test_a_folder_that_is_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "found").write_text("a file")
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        copy_to(tmp_path / "found", [hit("a.png")])


def test_one_file_is_opened_itself_and_several_on_a_page_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "a dog.png"
    file.write_bytes(RED)
    opened: list[str] = []
    assert open_hits(SearchOutput("", (hit("a dog.png", path=str(file)),)), "dogs", opened.append) == file
    two = (hit("a dog.png", path=str(file)), hit("<i>", b"no picture"), hit("rows", None))
    place = open_hits(SearchOutput("", two), "dogs & cats", opened.append)
    assert opened == [file.as_uri(), place.as_uri()]
    text = place.read_text()
    assert "dogs &amp; cats" in text
    assert "data:image/jpeg;base64," in text
    assert "a caption &lt;b&gt;" in text
    assert text.count('class="missing"') == 2
    assert not any(word in text for word in ("http:", "https:", "<i>", "<script"))


def test_nothing_to_open_is_said() -> None:
    with pytest.raises(UserError, match="no picture was found"):
        open_hits(SearchOutput("", ()), "dogs", pytest.fail)
