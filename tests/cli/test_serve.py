"""Who is let in by ``rungwise serve``, and what it says of that."""

from pathlib import Path

import pytest

from rungwise.cli import main, serve
from rungwise.index import Index
from tests.colour_model import ColourModel, colour_pictures

TOKEN = "correct-horse"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index").folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What the server was asked to do; it says that it is ready, and ends."""
    calls: list[dict[str, object]] = []

    def served(*_: object, ready: object, **named: object) -> None:
        calls.append(named)
        ready("http://192.0.2.7:8000/")

    monkeypatch.delenv(serve.TOKEN, raising=False)
    monkeypatch.setattr("rungwise.serving.server.serve", served)
    monkeypatch.setattr(serve, "read_dual_encoder", lambda *_, **__: ColourModel())
    return calls


def test_this_machine_alone_needs_no_token(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(folder), "--device", "cpu"]) == 0
    assert (asked[0]["token"], asked[0]["open_to_all"]) == (None, False)
    assert capsys.readouterr().out == "2 pictures at http://192.0.2.7:8000/   (Ctrl-C ends)\n"


def test_others_get_a_token_that_is_printed_with_the_address(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lambda host, bound, port: (f"http://127.0.0.1:{port}/", f"http://192.0.2.7:{port}/")  # noqa: E731
    monkeypatch.setattr(serve, "addresses", seen)
    for _ in range(2):
        assert main(["serve", str(folder), "--device", "cpu", "--host", "0.0.0.0"]) == 0
    first, second = (call["token"] for call in asked)
    assert first != second
    warning, ready, others, *_ = capsys.readouterr().out.splitlines()
    assert "2 pictures and 2 captions can be seen by everybody who has the token" in warning
    assert ready == f"2 pictures at http://192.0.2.7:8000/?token={first}   (Ctrl-C ends)"
    assert others == f"from other machines: http://192.0.2.7:8000/?token={first}"


def test_open_is_said_and_warned_of(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(folder), "--device", "cpu", "--host", "0.0.0.0", "--open"]) == 0
    assert (asked[0]["token"], asked[0]["open_to_all"]) == (None, True)
    out = capsys.readouterr().out
    assert "everybody who can reach this machine" in out
    assert "token=" not in out


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_token_of_ones_own(
    folder: Path, asked: list[dict[str, object]], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["serve", str(folder), "--device", "cpu", "--host", host]
    assert main([*given, "--token", TOKEN]) == 0
    monkeypatch.setenv(serve.TOKEN, "from-the-environment")
    assert main(given) == 0
    assert main([*given, "--token", TOKEN]) == 0
    assert [call["token"] for call in asked] == [TOKEN, "from-the-environment", TOKEN]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--token", "short"], "--token: a token has at least 8 characters"),
        (["--token", TOKEN, "--open"], "--open serves without a token, and one was given"),
        (["--host", "no host"], "no such address"),
        (["--limits.connections", "0"], "connections must be above 0"),
    ],
)
def test_mistakes_are_one_line(
    folder: Path,
    asked: list[dict[str, object]],
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", str(folder), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not asked


def test_names_and_limits_reach_the_server(folder: Path, asked: list[dict[str, object]]) -> None:
    names = ["--allowed-host", "a.example", "--allowed-host", "b.example"]
    assert main(["serve", str(folder), "--device", "cpu", *names, "--limits.upload-pixels", "1000"]) == 0
    assert asked[0]["allowed_hosts"] == ("a.example", "b.example")
    assert asked[0]["limits"].upload_pixels == 1000
