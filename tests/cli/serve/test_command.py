"""Who is let in by ``rungwise serve``, and what it says of that."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.cli.serve import _command as serve
from rungwise.cli.serve import _entrance as entrance
from rungwise.data import read
from rungwise.index import Index
from rungwise.index.layout import manifest
from rungwise.jobs import open_searcher
from rungwise.serving import Reranker, ServerSettings, _server
from tests.colour_model import COLOURS, ColourModel, colour_pictures
from tests.pointing_model import PointingModel

TOKEN = "correct-horse"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = colour_pictures(tmp_path / "photos", ["red", "blue"])
    return Index.build(data, ColourModel(), tmp_path / "index", model_location="colours").folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What the server was asked to do; it says that it is ready, and ends."""
    calls: list[dict[str, object]] = []

    def served(*_: object, ready: object, settings: ServerSettings, **named: object) -> None:
        named |= vars(settings)
        calls.append(named)
        ready("http://192.0.2.7:8000/")

    for name in (entrance.TOKEN, entrance.TOKENS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("rungwise.serving._server.serve", served)
    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", lambda *_, **__: ColourModel())
    return calls


def test_this_machine_alone_needs_no_token(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(folder), "--device", "cpu"]) == 0
    assert (asked[0]["token"], asked[0]["open_to_all"]) == (None, False)
    assert capsys.readouterr().out == "2 pictures at http://192.0.2.7:8000/   (Ctrl-C ends)\n"


def test_it_follows_the_folder_of_the_index(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread looks once for what changed before; here nothing more is to come, so that it ends."""
    served = _server.serve

    def after_the_follower(*given: object, **named: object) -> None:
        for thread in threading.enumerate():
            if thread.name == serve.FOLLOWER:
                thread.join()
        served(*given, **named)

    monkeypatch.setattr("rungwise.serving._server.serve", after_the_follower)
    monkeypatch.setattr("rungwise.index.update._watch.changes_below", lambda *_, **__: iter([False]))
    assert main(["serve", str(folder), "--device", "cpu", "--follow"]) == 2
    assert "does not say of which folder it was made; index it anew" in capsys.readouterr().err
    photos = folder.parent / "photos"
    place = Index.build(read(photos), ColourModel(), photos.parent / "followed", model_location="colours").folder
    colour_pictures(photos, ["green"])
    assert main(["serve", str(place), "--device", "cpu", "--follow"]) == 0
    said = capsys.readouterr().out
    assert f"following {photos}" in said
    assert "1 added, 0 changed, 0 removed, 2 unchanged" in said
    assert len(Index.open(place)) == 3


def test_an_index_that_takes_the_place_of_another_is_followed_by_its_own_rules(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the new one leaves out does not come in again, and its folders are watched from then on."""
    photos, others = folder.parent / "photos", folder.parent / "others"
    colour_pictures(others, ["green"])
    place = folder.parent / "followed"
    watched: list[list[Path]] = []
    found: list[list[str]] = []

    def build(folder: Path, *exclude: str) -> None:
        data = read(folder, exclude=exclude)
        Index.build(data, ColourModel(), place, model_location="colours", overwrite=True)

    def changes(folders: tuple[Path, ...], _: Path) -> Iterator[bool]:
        watched.append(list(folders))
        yield True
        found.append(sorted(Index.open(place).picture_store.ids()))
        if len(watched) == 1:
            build(photos, "*red*")
            yield True
            found.append(sorted(Index.open(place).picture_store.ids()))
            build(others)
            yield True

    def after_the_follower(*_: object, **__: object) -> None:
        for thread in threading.enumerate():
            if thread.name == serve.FOLLOWER:
                thread.join()

    monkeypatch.setattr("rungwise.serving._server.serve", after_the_follower)
    monkeypatch.setattr("rungwise.index.update._watch.changes_below", changes)
    build(photos)
    assert main(["serve", str(place), "--device", "cpu", "--follow"]) == 0
    assert found == [["0-red.png", "1-blue.png"], ["1-blue.png"], ["0-green.png"]]
    assert watched == [[photos], [others]]
    assert f"following {others}" in capsys.readouterr().out


def test_a_reranker_is_read_said_and_handed_on(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "read_model", lambda *_, **__: PointingModel(COLOURS))
    assert main(["serve", str(folder), "--device", "cpu", "--rerank", "run/model", "--rerank-top", "20"]) == 0
    reranker = asked[0]["reranker"]
    assert isinstance(reranker, Reranker)
    assert (reranker.name, reranker.top) == ("pointing", 20)
    first = capsys.readouterr().out.splitlines()[0]
    assert first == (
        "the first 20 hits of searches with words are ranked anew by pointing, which shows why they were found"
    )
    assert main(["serve", str(folder), "--rerank", "run/model", "--rerank-top", "0"]) == 2
    assert "--rerank-top must be at least 1" in capsys.readouterr().err


def test_processes_get_what_the_server_was_asked_for(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[object, ...]] = []

    def begin(number: int, place: Path, opener: object, options: object, **more: object) -> AbstractContextManager[str]:
        begun.append((number, place, opener, options, more))
        return nullcontext("processes")

    monkeypatch.setattr("rungwise.serving.SearchProcesses", begin)
    plain = ["serve", str(folder), "--device", "cpu", "--processes", "3", "--limits.store-seconds", "7"]
    options = {"name": None, "device": "cpu", "altered": False, "modules": ()}
    for words, anew in (([], None), (["--reload"], options)):
        assert main([*plain, *words]) == 0
        assert begun.pop() == (3, folder, open_searcher, options, {"options_anew": anew, "store_seconds": 7.0})
    assert [one["processes"] for one in asked] == ["processes"] * 2
    assert main(["serve", str(folder)]) == 0
    assert asked[-1]["processes"] is None
    assert main(["serve", str(folder), "--processes", "0"]) == 2
    assert "--processes must be at least 1, got 0; leave it out" in capsys.readouterr().err


def test_a_new_model_is_read_from_where_the_index_names_it_if_that_is_asked_for(
    folder: Path, asked: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["serve", str(folder), "--device", "cpu"]) == 0
    assert asked[0]["reload"] is None
    read_from: list[str] = []

    def read_dual_encoder(name: str, *_: object, **__: object) -> ColourModel:
        read_from.append(name)
        return ColourModel()

    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", read_dual_encoder)
    assert main(["serve", str(folder), "--device", "cpu", "--model", "moved", "--reload"]) == 0
    asked[1]["reload"](Index.open(folder))
    assert read_from == ["moved", "colours"]


def test_others_get_a_token_that_is_printed_with_the_address(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lambda host, bound, port: (f"http://127.0.0.1:{port}/", f"http://192.0.2.7:{port}/")  # noqa: E731
    monkeypatch.setattr(entrance, "addresses", seen)
    for _ in range(2):
        assert main(["serve", str(folder), "--device", "cpu", "--host", "0.0.0.0"]) == 0
    first, second = (call["token"] for call in asked)
    assert first != second
    warning, ready, others, *_ = capsys.readouterr().out.splitlines()
    assert "2 pictures and 2 captions can be seen by everybody who has a token" in warning
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
    monkeypatch.setenv(entrance.TOKEN, "from-the-environment")
    assert main(given) == 0
    assert main([*given, "--token", TOKEN]) == 0
    assert [call["token"] for call in asked] == [TOKEN, "from-the-environment", TOKEN]


def test_several_tokens_come_from_a_file_or_the_environment(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder.parent / "tokens"
    file.write_text(f"ada write {TOKEN}\nbob read another-horse\n")
    file.chmod(0o600)
    given = ["serve", str(folder), "--device", "cpu", "--host", "0.0.0.0"]
    assert main([*given, "--tokens", str(file)]) == 0
    out = capsys.readouterr().out
    assert "everybody who has a token" in out
    assert "tokens: ada (write), bob (read)" in out
    assert TOKEN not in out
    assert "token=" not in out
    monkeypatch.setenv(entrance.TOKENS, f"ada grade {TOKEN}; bob read another-horse")
    assert main(given) == 0
    assert [call["token"] for call in asked] == [None, None]
    assert asked[1]["tokens"].bearer_of(TOKEN).right == "grade"
    capsys.readouterr()
    for more, said in (
        (["--tokens", str(file)], "--tokens names a file of tokens, and RUNGWISE_TOKENS holds some too"),
        (["--token", TOKEN], "--token gives one token and RUNGWISE_TOKENS several; leave out one of the two"),
        (["--open"], "--open serves without a token, and one was given"),
    ):
        assert main([*given, *more]) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setenv(entrance.TOKENS, "ada rule")
    assert main(given) == 2
    assert "RUNGWISE_TOKENS, entry 1: has 2 words" in capsys.readouterr().err
    monkeypatch.setenv(entrance.TOKENS, " ")  # as of a variable that nobody filled: never a server without tokens
    assert main(given) == 2
    assert "RUNGWISE_TOKENS is set and holds no token" in capsys.readouterr().err
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--token", "short"], "--token: a token has at least 8 characters"),
        (["--token", TOKEN, "--open"], "--open serves without a token, and one was given"),
        (["--host", "no host"], "no such address"),
        (["--log-queries"], "--log-queries changes nothing without --log json"),
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
    assert "meaning" in asked[0]


def test_a_line_for_every_request_is_written_where_it_is_asked_for(
    folder: Path, asked: list[dict[str, object]]
) -> None:
    for options in ([], ["--log", "json"], ["--log", "json", "--log-queries"]):
        assert main(["serve", str(folder), "--device", "cpu", *options]) == 0
    assert asked[0]["log"] is None
    assert [call["log"].queries for call in asked[1:]] == [False, True]


def test_a_model_that_is_nowhere_is_told_with_what_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = Index.open(folder)
    manifest.write_manifest(folder, replace(index.manifest, model_location=str(folder / "gone")))
    assert main(["serve", str(folder)]) == 2
    assert "gone: no such folder" in (error := capsys.readouterr().err)
    assert "if the model has moved, name it: --model" in error
    manifest.write_manifest(folder, replace(index.manifest, model_location=""))
    assert main(["serve", str(folder)]) == 2
    assert "the index does not say where its model is; name it: --model" in capsys.readouterr().err


def test_a_model_that_gives_no_vectors_is_told_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pairs:
        kind = "pairs"

    monkeypatch.setattr("rungwise.models._loading.read_stored", lambda *_, **__: Pairs())
    assert main(["serve", str(folder), "--model", str(folder), "--device", "cpu"]) == 2
    assert "scores pairs and gives no vectors, so that nothing is indexed" in capsys.readouterr().err


def test_queries_are_kept_where_that_is_asked_for_and_said(
    folder: Path, asked: list[dict[str, object]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(folder), "--device", "cpu"]) == 0
    assert asked[0]["keep_queries"] is None
    assert "kept" not in capsys.readouterr().out
    assert main(["serve", str(folder), "--device", "cpu", "--keep-queries", "30"]) == 0
    assert asked[1]["keep_queries"] == 30
    said = f"what people search for is kept for 30 days in {folder / 'queries.jsonl'}; remove the file to forget it"
    assert said in capsys.readouterr().out
    (folder / "queries.jsonl").mkdir()
    assert main(["serve", str(folder), "--device", "cpu", "--keep-queries", "30"]) == 2
    assert "queries.jsonl: a folder stands here; name a file" in capsys.readouterr().err
