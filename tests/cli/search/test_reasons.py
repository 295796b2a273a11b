"""Where in the first hits words were found, of an index of this machine and of a server."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from rungwise.cli import main
from rungwise.cli.search._reasons import HITS
from rungwise.index import Index
from rungwise.serving import Reranker, create_app
from tests.colour_model import COLOURS, ColourModel, colour_pictures
from tests.pointing_model import PointingModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reasons")
    data = colour_pictures(root / "photos", ["red", "green", "blue", "yellow", "red", "green", "blue"], captions=False)
    assert data.paths is not None
    two = Image.new("RGB", (80, 60), COLOURS["red"])
    two.paste(COLOURS["blue"], (40, 0, 80, 30))
    two.save(data.paths[0])  # blue above on the right
    Index.build(data, ColourModel(), root / "index", model_location="colours")
    return root / "index"


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", lambda *_, **__: ColourModel())
    monkeypatch.setattr("rungwise.cli.search._local.read_model", lambda *_, **__: PointingModel(COLOURS))


def hits(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str] | None]:
    asked = [*arguments, "--words", "off", "--no-fold", "--end", "off"]
    assert main(["search", *asked, "--json"]) == 0
    return {one["id"]: one.get("why") for one in json.loads(capsys.readouterr().out)["hits"]}


def test_an_index_and_a_server_say_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], connected: Callable[[object], str]
) -> None:
    here = hits(capsys, str(folder), "red blue", "--rerank", "run/model", "--why")
    said = here["0-red"]
    assert said is not None
    assert sorted(one.partition(" (")[0] for one in said) == ["blue: upper right", "red: all over"]
    assert sum(why is not None for why in here.values()) == HITS
    server = create_app(Index.open(folder), ColourModel(), reranker=Reranker(PointingModel(COLOURS)))
    there = hits(capsys, connected(server), "red blue", "--why")
    assert there["0-red"] == said


def test_they_stand_under_the_hit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["red blue", "--rerank", "run/model", "--why", "--words", "off", "--end", "off"]
    assert main(["search", str(folder), *asked]) == 0
    lines = capsys.readouterr().out.splitlines()
    (at,) = (place for place, line in enumerate(lines) if "0-red" in line)
    assert "blue: upper right (" in lines[at + 1]


def test_who_cannot_say_is_named(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    connected: Callable[[object], str],
) -> None:
    monkeypatch.setattr("rungwise.cli.search._local.read_model", lambda *_, **__: ColourModel())
    assert main(["search", str(folder), "red", "--rerank", "run/model", "--why"]) == 2
    assert "--why: a model of kind 'ColourModel' cannot say" in capsys.readouterr().err
    server = connected(create_app(Index.open(folder), ColourModel()))
    assert main(["search", server, "red", "--why"]) == 2
    assert "cannot say why; whoever runs it" in capsys.readouterr().err


def test_a_picture_that_is_gone_is_said_in_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = colour_pictures(tmp_path / "photos", ["red", "green"], captions=False)
    Index.build(data, ColourModel(), tmp_path / "index", model_location="colours")
    (tmp_path / "photos" / "0-red.png").unlink()
    (said,) = hits(capsys, str(tmp_path / "index"), "red", "--rerank", "run/model", "--why")["0-red"] or ()
    assert "0-red.png" in said
