import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.data.files import read_lines, read_text


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_byte_order_marks_are_understood(tmp_path: Path, mark: bytes, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(mark + "Käse\r\n".encode(encoding))
    assert read_text(path) == "Käse\r\n"


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_another_encoding_is_named_with_its_place(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(mark + b"image,caption\na.jpg,K\xe4se\n")
    offset = len(mark) + 21
    with pytest.raises(UserError, match=f"a.csv, line 2: byte 0xe4 at offset {offset} is not UTF-8; save"):
        read_text(path)


@pytest.mark.parametrize("content", [b"", b" \n", codecs.BOM_UTF8])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"a.csv: the file is empty"):
        read_text(tmp_path / "a.csv")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a.csv: no such file; correct the path"):
        read_text(tmp_path / "a.csv")


@given(st.lists(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])), min_size=1))
def test_only_line_feeds_end_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(("x\r\n" + "\n".join(lines)).encode())
    expected = [(number, line) for number, line in enumerate(["x", *lines], start=1) if line.strip()]
    assert list(read_lines(path)) == expected


@pytest.mark.parametrize("content", [b"a dog\n\0", "a dog\n".encode("utf-16-le"), b"\0" * 1000])
def test_zero_bytes_are_no_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(
        UserError, match=r"a.csv, line [12]: holds a zero byte, so it is no text; save the file as UTF-8"
    ):
        read_text(tmp_path / "a.csv")


def test_a_text_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(3 << 30)  # which takes no room
    with pytest.raises(UserError, match=r"a.csv: 3.0 GiB, where at most 2.0 GiB are read; .*RUNGWISE_MAX_TEXT_BYTES"):
        read_text(tmp_path / "a.csv")
