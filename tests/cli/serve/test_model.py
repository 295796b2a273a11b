"""What ``rungwise serve-model`` asks of the server, and what it says. Also tests rungwise.cli.serve._entrance."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rungwise.cli import main
from rungwise.cli.serve import _entrance as entrance
from rungwise.cli.serve import _model as command
from rungwise.model_server import ModelLimits
from rungwise.serving import TOKEN as ONE
from rungwise.serving import ServerSettings
from rungwise.similarity import Order
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.model_server import recorded

TOKEN = "correct-horse"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the server was asked to do; it says that it is ready, and ends."""
    calls: list[dict[str, Any]] = []

    def served(make: object, *, ready: Callable[[str], None], settings: ServerSettings, **named: object) -> None:
        calls.append(named | vars(settings) | {"make": make, "settings": settings})
        ready("http://192.0.2.7:3003/")

    for name in (ONE, entrance.TOKENS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("rungwise.serving._server.serve_app", served)
    monkeypatch.setattr(command, "read_dual_encoder", lambda *_, **__: ColourModel())
    return calls


def test_this_machine_alone_needs_no_token(asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve-model", "colours", "--device", "cpu"]) == 0
    assert capsys.readouterr().out == "vectors of 3 numbers at http://192.0.2.7:3003/   (Ctrl-C ends)\n"
    (call,) = asked
    assert (call["host"], call["port"], call["token"], call["open_to_all"]) == ("127.0.0.1", 3003, None, False)
    assert (call["open_browser"], call["limits"], call["log"]) == (False, ModelLimits(), None)


def test_what_is_served_is_the_model_with_its_names(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--name", "colours", "--name", "ViT-B-32__openai"]
    assert main(["serve-model", "colours", *given]) == 0
    assert main(["serve-model", "colours"]) == 0
    body = recorded.form(recorded.VISUAL, image=picture_bytes(COLOURS["red"]))
    capsys.readouterr()
    for call, name in zip(asked, ("colours", "rungwise-c0ffeec0ffee"), strict=True):
        app = call["make"](replace(call["settings"], allowed_hosts=None), "127.0.0.1")
        with TestClient(app) as client:
            assert client.get("/").json()["model"] == name
            assert client.post("/predict", content=body, headers=recorded.HEAD).status_code == 200
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("'ViT-B-32__openai' is asked for; rungwise-c0ffeec0ffee answers, with 3 numbers a vector")


def test_others_get_a_token_that_is_printed(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lambda host, bound, port: (f"http://127.0.0.1:{port}/", f"http://192.0.2.7:{port}/")  # noqa: E731
    monkeypatch.setattr(entrance, "addresses", seen)
    assert main(["serve-model", "colours", "--host", "0.0.0.0"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "warning: pictures and texts can be encoded by everybody who has a token, and what is sent is not encrypted",
        "vectors of 3 numbers at http://192.0.2.7:3003/   (Ctrl-C ends)",
        "from other machines: http://192.0.2.7:3003/",
        f"the token, sent as 'Authorization: Bearer TOKEN': {asked[0]['token']}",
    ]
    assert main(["serve-model", "colours", "--host", "0.0.0.0", "--open", "--allowed-host", "rungwise"]) == 0
    assert (asked[1]["token"], asked[1]["open_to_all"], asked[1]["allowed_hosts"]) == (None, True, ("rungwise",))
    assert "everybody who can reach this machine" in capsys.readouterr().out


def test_several_tokens_and_a_log(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"immich read {TOKEN}\n")
    file.chmod(0o600)
    assert main(["serve-model", "colours", "--tokens", str(file), "--log", "json"]) == 0
    assert asked[0]["tokens"].bearer_of(TOKEN).right == "read"
    assert asked[0]["log"] is not None
    assert "tokens: immich (read)" in capsys.readouterr().out


def test_a_similarity_that_is_no_cosine_is_said(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "read_dual_encoder", lambda *_, **__: ColourModel(similarity=Order()))
    assert main(["serve-model", "colours"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "vectors are compared by order: programs that compare by cosine rank otherwise"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--token", "short"], "--token: a token has at least 8 characters"),
        (["--open"], "--open changes nothing at an address that no other machine reaches"),
        (["--limits.inputs", "0"], "inputs must be above 0"),
        (["--limits.kept-bytes", "5"], "--limits.kept-bytes changes nothing for a model"),
        (["--limits.uploads-per-client", "129"], "--limits.uploads-per-client changes nothing above"),
        (["--host", "no host"], "no such address"),
    ],
)
def test_mistakes_are_one_line(
    asked: list[dict[str, Any]], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve-model", "colours", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not asked


def test_a_model_that_is_nowhere_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["serve-model", str(tmp_path / "gone")]) == 2
    assert "gone: no such folder" in capsys.readouterr().err
