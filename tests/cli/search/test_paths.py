import sys

import pytest

from rungwise.cli.search._paths import print_paths
from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.jobs import messages_apart

HITS = (
    SearchedPage("b.jpg", "/photos/b.jpg", 0.5),
    SearchedPage("7", None, 0.4),
    SearchedPage("dog", "/photos/0.tar, dog.jpg", 0.3, packed=True),
    SearchedPage("two\nlines.jpg", "/photos/two\nlines.jpg", 0.2),
    SearchedPage("\udcff.jpg", "/photos/\udcff.jpg", 0.1),
)


def test_names_arrive_as_the_file_system_has_them(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with messages_apart():
        print_paths(SearchOutput("", HITS), b"\0")
    assert capsysbinary.readouterr().out == b"/photos/b.jpg\0/photos/two\nlines.jpg\0/photos/\xff.jpg\0"


def test_what_no_line_could_name_is_listed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with messages_apart():
        print_paths(SearchOutput("", HITS, notes=("a note",)))
    printed = capsysbinary.readouterr()
    assert printed.out == b"/photos/b.jpg\n/photos/\xff.jpg\n"
    assert printed.err.decode().splitlines() == [
        "not printed: 7 (it has no picture file)",
        "not printed: dog (it is part of a larger file, /photos/0.tar, dog.jpg; --copy-to makes a file of it)",
        "not printed: two lines.jpg (its path has a line break; --print0 prints it)",
        "a note",
    ]


def test_a_terminal_gets_no_codes(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_paths(SearchOutput("", (SearchedPage("a", "/photos/\x1b[31m.jpg", 0.5),)))
    assert b"\x1b" not in capsysbinary.readouterr().out


def test_nothing_found_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with messages_apart():
        print_paths(SearchOutput("", ()))
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "nothing found\n")
