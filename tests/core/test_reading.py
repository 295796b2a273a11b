import os
import socket
import threading
from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.core.limits import limited
from rungwise.core.reading import (
    MissingFileError,
    is_regular,
    opened,
    parse_json,
    read_bytes,
    read_json,
    read_text,
    require_regular,
    require_there,
    user_path,
)

PSEUDO_FILE = Path("/proc/self/pagemap")


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def make_device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are files on POSIX alone")
@pytest.mark.parametrize(
    ("make", "what"),
    [(make_pipe, "a pipe"), (make_socket, "a socket"), (make_device, "a device"), (os.mkdir, "a folder")],
)
def test_only_regular_files_are_opened_and_none_is_waited_for(tmp_path, monkeypatch, make, what):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = tmp_path.relative_to(tmp_path) / "a.csv"
    make(path)
    said: list[str] = []

    def read() -> None:
        for reader in (lambda: read_bytes(path, "text_bytes"), lambda: require_regular(path)):
            try:
                reader()
            except UserError as error:
                said.append(str(error))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert said == [f"a.csv: is {what}, not a file; give a regular file"] * 2
    assert not is_regular(path)


def test_missing_files_are_an_error_of_their_own(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "a.csv", tmp_path / "file" / "a.csv", tmp_path / "dangling"):
        if path.name == "dangling":
            path.symlink_to("nowhere")
        with pytest.raises(MissingFileError, match="no such file; correct the path"):
            read_bytes(path, "text_bytes")


@pytest.mark.parametrize("name", ["a" * 5000, "nul\0byte"])
def test_impossible_names_get_one_line(tmp_path, name):
    with pytest.raises(UserError, match="cannot be read"):
        read_bytes(tmp_path / name, "text_bytes")
    assert not is_regular(tmp_path / name)


def test_size_limits(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"12345")
    with limited(text_bytes=5):
        assert read_bytes(file, "text_bytes") == b"12345"
    with limited(text_bytes=4), pytest.raises(UserError, match="5 bytes, where at most 4 bytes are read"):
        read_bytes(file, "text_bytes")
    with limited(text_bytes=4), opened(file, None) as reader:
        assert reader.read() == b"12345"


def test_a_file_that_grows_is_read_as_it_was(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"one\ntwo\n")
    with opened(file, "text_bytes") as reader:
        with file.open("ab") as more:
            more.write(b"three\n" * 1000)
        assert list(reader) == [b"one\n", b"two\n"]
        assert reader.seek(0) == 0
        assert reader.read() == b"one\ntwo\n"
        assert reader.seek(-4, os.SEEK_END) == 4
        assert reader.read(100) == b"two\n"


@pytest.mark.skipif(not PSEUDO_FILE.exists(), reason="needs a pseudo file")
def test_a_pseudo_file_without_end_is_empty():
    assert read_bytes(PSEUDO_FILE, "text_bytes") == b""


def test_files_are_closed(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"12345")
    with opened(file, None) as reader:
        number = reader.fileno()
    with pytest.raises(OSError):
        os.fstat(number)
    held = []

    def fail() -> None:
        with opened(file, None) as reader:
            held.append(reader.fileno())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(OSError):
        os.fstat(held[0])


def test_text(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9")
    assert read_text(file, "settings_bytes") == "café"
    file.write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match=r"byte 0xe9 at offset 3 is not UTF-8"):
        read_text(file, "settings_bytes")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ("9" * 5000, "a number of too many digits"),
        ('{"a": -Infinity}', "-Infinity is no number that JSON knows"),
        ("", "Expecting value"),
    ],
)
def test_json_that_is_none(tmp_path, text, reason):
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(UserError, match=rf"a\.json: not valid JSON \({reason}") as caught:
        read_json(file)
    assert len(str(caught.value).splitlines()) == 1


def test_json(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"a": [1, 2.5, "é"]}', encoding="utf-8")
    assert read_json(file) == {"a": [1, 2.5, "é"]}
    assert parse_json("[NaN]", "a", finite=False)[0] != 0
    with pytest.raises(UserError, match="offset 0 is not UTF-8"):
        parse_json(b"\xff", "a")


def test_all_of_a_file_is_read_in_one_step(tmp_path, monkeypatch):
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(range(256)) * 4000)
    reads = []
    read = os.read
    monkeypatch.setattr(os, "read", lambda handle, count: reads.append(count) or read(handle, count))
    assert read_bytes(file, "picture_bytes") == bytes(range(256)) * 4000
    assert len(reads) <= 2


def test_a_place_in_json_is_a_column_and_where_there_are_several_a_line():
    for text, place in (
        ('{"a": ]', r"\(Expecting value, column 7\)"),
        ('{"a":\n]', r"\(Expecting value, line 2, column 1\)"),
    ):
        with pytest.raises(UserError, match=place):
            parse_json(text, "a.json")


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere", "no such file or folder"), ("a" * 5000, "file name too long"), ("a\0", "embedded null byte")],
)
def test_a_place_that_is_not_there(path, said):
    with pytest.raises(UserError, match=said):
        require_there(Path(path))
    require_there(Path())


def test_home_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert user_path("~/a") == tmp_path / "a"
    with pytest.raises(UserError, match="there is no such home folder"):
        user_path("~nobody of this name")
