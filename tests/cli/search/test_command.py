"""Searching on the command line, in an index of this machine and on a server.

Also tests rungwise.cli.search._local, rungwise.cli.search._remote and rungwise.cli.search._options.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import RUNGS, QueryJudgement
from rungwise.cli import main
from rungwise.cli.serve import _entrance as entrance
from rungwise.index import Index
from rungwise.serving import ServerSettings, background, create_app
from tests.colour_model import ColourModel, colour_pictures

COLOURS = ["red", "blue", "green", "yellow"]
TOKEN = "correct-horse"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("search")
    data = colour_pictures(root / "photos", COLOURS)
    for hours, path in enumerate(data.paths):
        os.utime(path, (1_600_000_000 - 3600 * hours,) * 2)  # 2020-09-13T12:26:40Z, and earlier
    days = ("2020-05-01T09:00:00", "2020-05-31T10:20:30+02:00", "2020-06-01", None)
    prices = {"price": (1, 2, 3, 4), "tags": (("a",), ("a", "b"), (), ()), "day": days}
    Index.build(replace(data, columns=prices), ColourModel(), root / "index", model_location="colours")
    return root / "index"


@pytest.fixture
def address(folder: Path, connected: Callable[[object], str]) -> str:
    return connected(create_app(Index.open(folder), ColourModel(), settings=ServerSettings(token=TOKEN)))


@pytest.fixture(params=["an index", "a server"])
def place(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", lambda *_, **__: ColourModel())
    if request.param == "an index":
        return str(folder)
    return f"{request.getfixturevalue('address')}?token={TOKEN}"


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["search", *arguments, "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert isinstance(read, dict)
    return read


def ids(answer: dict[str, object]) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]  # type: ignore[attr-defined]


def test_json_is_one_object_and_both_answer_alike(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = found(capsys, place, "red", "--k", "2", "--all")
    assert answer["query"] == "red"
    assert ids(answer)[0] == "0-red"
    first = answer["hits"][0]  # type: ignore[index]
    assert list(first)[:4] == ["id", "path", "score", "captions"]
    assert first["path"].endswith("0-red.png" if "://" not in place else "images/0-red")
    assert (first["captions"], first["price"], first["tags"]) == (["a red square"], 1, ["a"])
    assert answer["more"] is True


@pytest.mark.parametrize("query", [(), ("red",)])
def test_a_date_covers_its_day_in_whatever_answers(
    query: tuple[str, ...], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for where, right in (
        ("day between '2020-05-01' and '31.5.2020'", ["0-red", "1-blue"]),
        ("day == 'May 2020' and modified == '2020-09-13T13:26+02:00'", ["1-blue"]),
        ("day != '2020-05-31' and folder == 'photos/'", ["0-red", "2-green"]),
    ):
        assert sorted(ids(found(capsys, place, *query, "--where", where, "--all"))) == right
    noted = found(capsys, place, *query, "--where", "day == '2020-05-31T10:20:30-05:00'", "--all")
    assert (ids(noted), noted["notes"][-1:]) == (  # type: ignore[index]
        ["1-blue"],
        ["'day' holds local times: the offset from UTC of '2020-05-31T10:20:30-05:00' was left aside"],
    )
    assert main(["search", place, *query, "--where", "day > '01.05.2020'"]) == 2
    assert "'day' holds dates, and '01.05.2020' could be 2020-05-01 or 2020-01-05" in capsys.readouterr().err


def test_filters_pictures_and_pages(place: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ids(found(capsys, place, "red", "--where", "price >= 2 and tags has 'b'", "--all")) == ["1-blue"]
    assert ids(found(capsys, place, "--where", "price > 3")) == ["3-yellow"]
    assert ids(found(capsys, place, "--where", "price > 0")) == ["0-red", "1-blue", "2-green", "3-yellow"]
    assert ids(found(capsys, place, "--where", "price > 1", "--k", "1", "--offset", "1")) == ["2-green"]
    assert ids(found(capsys, place, "--like", "2-green", "--k", "1")) != ["2-green"]
    picture = str(folder.parent / "photos" / "3-yellow.png")
    answer = found(capsys, place, "--image", picture, "--k", "1")
    assert ids(answer) == ["3-yellow"]
    assert answer["captions"][0]["text"] == "a yellow square"  # type: ignore[index]
    every = ids(found(capsys, place, "red", "--k", "4", "--all"))
    assert ids(found(capsys, place, "red", "--k", "2", "--offset", "2", "--all")) == every[2:]


def test_lines_and_copies(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", place, "red", "--k", "1", "--end", "off", "--copy-to", str(tmp_path / "found")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  1 ") and "0-red" in line and "40x30" in line for line in said) or "://" in place
    assert any("a red square" in line and "price: 1" in line for line in said)
    assert said[-2:] == ["for more: --offset 1", f"1 picture copied: {tmp_path / 'found'}"]
    (copy,) = (tmp_path / "found").iterdir()
    assert copy.name == "0-red.png"


class TwoFit:
    """The best hit is exactly right, the second loosely related."""

    source, names, relevant_from, learnt = "two fit", RUNGS, 0.5, None

    def judge_hits(self, scores, background, known=None) -> QueryJudgement:  # type: ignore[no-untyped-def]
        rungs = np.array([1, 3, *[4] * (len(scores) - 2)])
        return QueryJudgement(np.linspace(1, 0, len(scores)), rungs, 2, 1.0)


def test_bands_and_the_end_are_shown_by_both(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.index.cutoff._cutoff.calibration_of", lambda index: TwoFit())
    assert main(["search", place, "red", "--words", "off", "--copy-to", str(tmp_path / "found")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line in ("exactly", "close", "loosely related")] == ["exactly", "loosely related"]
    assert said[-3:] == [
        "-- relevance ends here --",
        "2 more, less related: --all shows them",
        f"2 pictures copied: {tmp_path / 'found'}",
    ]
    assert main(["search", place, "red", "--words", "off", "--all"]) == 0
    assert sum(line.startswith(f"  {rank} ") for line in capsys.readouterr().out.splitlines() for rank in "1234") == 4
    before = [(1, "exactly"), (3, "loosely related")]
    for more, bands, left_out in (((), before, 2), (("--all",), [*before, (4, ""), (4, "")], 0)):
        answer = found(capsys, place, "red", "--words", "off", *more)
        assert [(hit["rung"], hit["band"]) for hit in answer["hits"]] == bands  # type: ignore[attr-defined]
        end = answer["end"]
        assert (end["shown"], end["left_out"], end["source"]) == (2, left_out, "two fit")  # type: ignore[index]
    assert "end" not in found(capsys, place, "red", "--words", "off", "--end", "off")


def test_json_says_more_only_where_more_is_given(
    place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.index.cutoff._cutoff.calibration_of", lambda index: TwoFit())
    for k, more, left_out, asked in ((1, True, 0, ()), (2, False, 0, ()), (3, False, 1, ()), (2, True, 0, ("--all",))):
        answer = found(capsys, place, "red", "--words", "off", "--k", str(k), *asked)
        assert (answer.get("more", False), answer["end"]["left_out"]) == (more, left_out)  # type: ignore[index]
    assert ids(found(capsys, place, "red", "--words", "off", "--offset", "2")) == []


def paths(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], list[str]]:
    """Lines of the standard output and of the standard error."""
    assert main(["search", *arguments, "--paths"]) == 0
    printed = capsys.readouterr()
    return printed.out.splitlines(), printed.err.splitlines()


def test_paths_are_those_of_the_hits_before_the_end(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.index.cutoff._cutoff.calibration_of", lambda index: TwoFit())
    of_json = [hit["path"] for hit in found(capsys, place, "red", "--words", "off", "--all")["hits"]]  # type: ignore[attr-defined]
    assert all(path.startswith("http://") or Path(path).is_file() for path in of_json)
    assert paths(capsys, place, "red", "--words", "off") == (of_json[:2], [])
    assert paths(capsys, place, "red", "--words", "off", "--all") == (of_json, [])
    more = ["for more: --offset 1 (2 before relevance ends)"]
    assert paths(capsys, place, "red", "--words", "off", "--k", "1") == (of_json[:1], more)
    copied = paths(capsys, place, "red", "--words", "off", "--copy-to", str(tmp_path / "found"))
    assert copied == (of_json[:2], [f"2 pictures copied: {tmp_path / 'found'}"])
    assert main(["search", place, "red", "--words", "off", "--paths", "--print0"]) == 0
    assert capsys.readouterr().out == "".join(f"{path}\0" for path in of_json[:2])


class NothingFits(TwoFit):
    """No hit is relevant."""

    def judge_hits(self, scores, background, known=None) -> QueryJudgement:  # type: ignore[no-untyped-def]
        return QueryJudgement(np.zeros(len(scores)), np.full(len(scores), 4), 0, 0.0)


def test_where_nothing_is_relevant_no_path_is_printed(
    place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rungwise.index.cutoff._cutoff.calibration_of", lambda index: NothingFits())
    printed, said = paths(capsys, place, "qwertyuiop", "--words", "off")
    assert (printed, said[0]) == ([], "nothing relevant found; 4 less related: --all prints them")
    assert said[1].startswith("try other words")
    assert paths(capsys, place, "--where", "price > 99") == ([], ["nothing found"])
    assert found(capsys, place, "qwertyuiop", "--words", "off")["hits"] == []


def test_what_was_found_is_opened(
    place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("rungwise.cli.search._save_hits.webbrowser.open", opened.append)
    assert main(["search", place, "red", "--k", "2", "--open"]) == 0
    assert opened[0].startswith("file:///")
    assert capsys.readouterr().out.splitlines()[-1].startswith("opened: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["red", "--where", "pric > 3"], "no picture has a column 'pric'; did you mean price?"),
        (["red", "--where", "price >"], "--where, character 8"),
        (["--image", "nowhere.png"], "nowhere.png"),
        (["--like", "no such id"], "picture"),
    ],
)
def test_mistakes_are_one_line_of_both(
    place: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", place, *arguments]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_misspelt_filter_is_refused_before_a_model_is_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", lambda *_, **__: loaded.append(1))
    assert main(["search", str(folder), "red", "--where", "pric > 3"]) == 2
    assert "did you mean price?" in capsys.readouterr().err
    assert loaded == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["INDEX"], "give a text, --image FILE or --like ID"),
        (["INDEX", " "], "the query is empty"),
        (["INDEX", "a", "--paths", "--json"], "--paths and --json contradict each other; give one"),
        (["INDEX", "a", "--print0"], "--print0 changes nothing without --paths"),
        (["INDEX", "a", "--k", "0"], "--k must be at least 1, got 0"),
        (["INDEX", "a", "--offset", "-1"], "--offset must be at least 0"),
        (["INDEX", "a", "--diversity", "nan"], "--diversity must lie in 0..1, got nan"),
        (["INDEX", "a", "--rerank", "m", "--rerank-top", "0"], "--rerank-top must be at least 1"),
        (["INDEX", "a", "--token", TOKEN], "--token changes nothing in a folder"),
        (
            ["INDEX", "a", "--why"],
            "--why changes nothing without a model that reads regions and words; leave it out, or name one",
        ),
        (["INDEX", "--like", "0-red", "--why"], "--why changes nothing without words"),
        (["http://127.0.0.1:9/", "a", "--exact"], "--exact changes nothing at a server"),
        (["http://127.0.0.1:9/", "a"], "cannot be asked"),
        (["http://[", "a"], "no address of a server"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    folder: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", *(str(folder) if one == "INDEX" else one for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_token_may_stand_in_the_environment(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(entrance.TOKEN, raising=False)
    assert main(["search", address, "red"]) == 2
    assert "token" in capsys.readouterr().err
    monkeypatch.setenv(entrance.TOKEN, TOKEN)
    assert ids(found(capsys, address, "red", "--k", "1")) == ["0-red"]


@pytest.mark.slow
def test_a_server_is_asked_without_torch(folder: Path) -> None:
    code = (
        "import sys; from rungwise.cli import main; code = main(['search', *sys.argv[1:]]);"
        "sys.exit(code or bool({'torch', 'lancedb', 'pyarrow', 'numba', 'fastapi'} & set(sys.modules)))"
    )
    with background(Index.open(folder), ColourModel(), settings=ServerSettings(token=TOKEN)) as address:
        command = [sys.executable, "-c", code, f"{address}?token={TOKEN}", "red", "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["hits"]
