"""``rungwise grade``: what it asks for, serves and prints."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import pytest

from rungwise.cli import main
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions
from rungwise.jobs import shortest
from rungwise.relevance.human import Judgement, add_judgement, now
from rungwise.scenes import SceneConfig, generate
from tests.grading.conftest import write_pairs


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ImageCaptions]:
    folder = tmp_path_factory.mktemp("grade") / "scenes"
    return folder, generate(folder, SceneConfig(pictures=6, side=32))


@pytest.fixture
def table(scenes: tuple[Path, ImageCaptions], tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "wrong.csv", scenes[1], [(0, 7), (1, 12), (2, 3), (3, 21)])


def judge(out: Path, data: ImageCaptions, who: str, *grades: int) -> None:
    for image, grade in enumerate(grades):
        text = hash_of_text(data.captions[7])
        add_judgement(out, Judgement(data.image_ids[image], data.caption_ids[7], grade, who, now(), text))


@pytest.mark.slow
def test_the_page_is_served_until_ctrl_c(scenes: tuple[Path, ImageCaptions], table: Path) -> None:
    command = [sys.executable, "-m", "rungwise", "grade", str(table), "--data", str(scenes[0]), "--port", "0"]
    process = subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("4 pairs to grade at http://127.0.0.1:")
        assert line.endswith("(Ctrl-C ends)\n")
        assert process.stdout.readline() == f"judgements are kept in {table.with_name('judgements.jsonl')}\n"
        with urlopen(f"{line.split()[5]}grading/about") as answer:
            assert b'"pairs":4' in answer.read()
        judge(table.with_name("judgements.jsonl"), scenes[1], "Ada", 4, 1)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, error) == (0, "")
    assert "judgements.jsonl: 2 judgements of 2 pairs" in out
    assert "  Ada: 2 pairs" in out
    assert f"evaluate MODEL {shortest(scenes[0])} --positives " in out


def test_what_the_server_is_given(
    scenes: tuple[Path, ImageCaptions], table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fastapi.testclient import TestClient

    served: list[dict[str, object]] = []

    def serve_app(make, *, open_browser, ready, settings) -> None:  # type: ignore[no-untyped-def]
        about = (
            TestClient(make(replace(settings, allowed_hosts=["testserver"]), "127.0.0.1")).get("/grading/about").json()
        )
        served.append({**about, "port": settings.port, "browser": open_browser})
        ready("http://127.0.0.1:9/")

    monkeypatch.setattr("rungwise.serving._server.serve_app", serve_app)
    out = table.with_name("mine.jsonl")
    with table.open("a", encoding="utf-8") as file:
        file.write("i2t,nothing,nothing,1,0.5,1,0.5,x\n")
    given = ["--data", str(scenes[0]), "--limit", "2", "--grader", " Ada ", "--out", str(out), "--port", "9"]
    assert main(["grade", str(table), *given]) == 0
    (about,) = served
    assert (about["pairs"], about["grader"], about["file"], about["out"]) == (2, "Ada", "wrong.csv", out.name)
    assert str(table.parent) not in json.dumps(about)
    assert (about["port"], about["browser"], about["left_out_count"]) == (9, True, 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 left out:"
    assert lines[1].startswith("row of an unknown picture: ")
    assert lines[2] == "2 pairs to grade at http://127.0.0.1:9/   (Ctrl-C ends)"
    assert lines[3] == f"judgements are kept in {out}"
    assert not out.exists()


def test_what_was_said_meanwhile_is_summed_up_at_the_end(
    scenes: tuple[Path, ImageCaptions], table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = table.with_name("judgements.jsonl")
    monkeypatch.setattr("rungwise.serving._server.serve_app", lambda *_, **__: judge(out, scenes[1], "Ada", 4, 1))
    assert main(["grade", str(table), "--data", str(scenes[0]), "--layout", "scenes", "--no-browser"]) == 0
    said = capsys.readouterr().out
    assert "judgements.jsonl: 2 judgements of 2 pairs" in said
    assert "  Ada: 2 pairs" in said
    assert f"evaluate MODEL {shortest(scenes[0])} --layout scenes --positives " in said


def test_a_file_of_something_else_is_neither_added_to_nor_read(
    scenes: tuple[Path, ImageCaptions], table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for other in (table, scenes[0] / "captions.jsonl"):
        before = other.read_bytes()
        for given in (["--data", str(scenes[0]), "--no-browser"], ["--agreement"]):
            assert main(["grade", str(table), "--out", str(other), *given]) == 2
            assert f"{other}: holds something else than judgements; name another file" in capsys.readouterr().err
        assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"--data is missing: .*wrong\.csv names pictures and captions by their ids"),
        (["--data", "SCENES", "--limit", "0"], "--limit must be at least 1, got 0"),
        (["--data", "SCENES", "--seed", "-1"], "--seed must not be negative"),
        (["--data", "SCENES", "--grader", " "], "--grader: a person's name needs a letter"),
        (["--data", "SCENES", "--grader", "a" * 81], "--grader: a person's name has 81"),
        (["--data", "nowhere"], "nowhere: no such file or folder"),
        (["--data", "SCENES", "--port", "70000"], "port 70000: not a port"),
        (["--agreement", "--layout", "scenes"], "--layout changes nothing beside --agreement"),
        (["--agreement", "--key", "stem"], "--key changes nothing beside --agreement"),
        (
            ["--data", "SCENES", "--layout", "folder"],
            "4 of its 4 rows are not of scenes, the first at line 2 .row of an unknown caption",
        ),
        (["--agreement"], r"judgements\.jsonl: holds no judgements yet"),
    ],
)
def test_mistakes_are_one_line(
    scenes: tuple[Path, ImageCaptions],
    table: Path,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    message: str,
) -> None:
    import re

    words = [str(scenes[0]) if word == "SCENES" else word for word in given]
    assert main(["grade", str(table), *words, "--no-browser"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error)


def test_a_table_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grade", "nowhere.csv", "--agreement"]) == 2
    assert "nowhere.csv: no such file" in capsys.readouterr().err


def test_agreement_is_printed_without_a_page(
    scenes: tuple[Path, ImageCaptions], table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = table.with_name("judgements.jsonl")
    judge(out, scenes[1], "Ada", 4, 1, 2)
    judge(out, scenes[1], "Bo", 4, 1, 1)
    out.write_bytes(out.read_bytes() + b"damaged\n")
    assert main(["grade", str(table), "--agreement"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"damaged judgement: {out}, line 7")
    assert lines[1] == f"{out}: 6 judgements of 3 pairs"
    assert lines[4] == "  Ada and Bo: 2 of 3 pairs alike, Cohen's kappa 0.50, with quadratic weights 0.91"
    assert lines[5] == "  all: Krippendorff's alpha (ordinal) 0.78 over 3 pairs"
