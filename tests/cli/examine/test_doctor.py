import json
import shutil
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.scenes import SceneConfig, generate


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor") / "scenes"
    generate(folder, SceneConfig(pictures=80, side=48, val_share=0.1, test_share=0.1))
    return folder


@pytest.fixture
def leaking(scenes: Path, tmp_path: Path) -> Path:
    """A test picture is a copy of a training picture."""
    folder = tmp_path / "leaking"
    shutil.copytree(scenes, folder)
    rows = [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]
    one, other = (next(row["image"] for row in rows if row["split"] == split) for split in ("train", "test"))
    shutil.copy(folder / one, folder / other)
    return folder


def test_clean_data_end_with_status_0(scenes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(scenes)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "scenes: 80 pictures, 400 captions"
    assert lines[-1] == "nothing wrong found"


def test_a_fault_ends_with_status_1_and_fits_80_columns(leaking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(leaking)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "fault: identical pictures across splits" in lines
    assert any(line.startswith("  cure: ") for line in lines)
    assert lines[-1] == "1 fault, 0 pieces of advice"
    assert max(map(len, lines)) <= 80


def test_json_is_one_object_and_nothing_else(leaking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(leaking), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["faults"] == 1
    assert set(found["findings"][0]) == {"name", "severity", "what", "cure", "places"}


def test_a_configuration_says_the_splits(scenes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.yaml").write_text("data: {validation: dev}\n")
    assert main(["doctor", str(scenes), "--config", str(tmp_path / "own.yaml")]) == 2
    assert "no picture is in split 'dev', which validates; did you mean val?" in capsys.readouterr().err
    arguments = ["doctor", str(scenes), "--config", str(tmp_path / "own.yaml"), "--validation", "val"]
    assert main(arguments) == 0
    assert "nothing wrong found" in capsys.readouterr().out


def test_a_run_is_told_from_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("learning_rates: [0.0, 0.0]\n")
    (tmp_path / "history.jsonl").write_text('{"epoch": 1.0, "loss": 1.0, "rsum": 9.0}\n')
    assert main(["doctor", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "a run" in output.splitlines()[0]
    assert "fault: learning rate is 0" in output
    assert "left out: chance, words and rungs were not looked at" in output


def test_data_are_read_as_a_layout_that_is_named(scenes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", str(scenes), "--layout", "folder"])
    assert "scenes: 80 pictures, 0 captions" in capsys.readouterr().out


@pytest.mark.parametrize("option", [("--layout", "table"), ("--key", "stem"), ("--join-restval",)])
def test_a_run_says_itself_how_its_data_are_read(
    option: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("epochs: [1]\n")
    (tmp_path / "history.jsonl").write_text("")
    assert main(["doctor", str(tmp_path), *option]) == 2
    assert f"{option[0]} changes nothing for a run" in capsys.readouterr().err


def test_what_is_neither_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
