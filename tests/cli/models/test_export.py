from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.models import load
from tests.models.exported import of_features


@pytest.fixture
def model(tmp_path: Path) -> Path:
    of_features().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_it_says_how_close_the_graphs_are(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(model), "--out", str(tmp_path / "onnx")]) == 0
    said = capsys.readouterr().out
    assert said.count("least cosine with the model's 1.0000000") + said.count("0.9999999") == 3
    assert "texts of several lengths, padded" in said
    assert f"rungwise index PICTURES --model {tmp_path / 'onnx'} --out INDEX" in said
    assert load(tmp_path / "onnx").kind == "onnx"


def test_an_export_is_replaced_when_that_is_asked_for(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["export", str(model), "--out", str(tmp_path / "onnx")]
    assert main(asked) == 0
    assert main(asked) == 2
    assert "an exported model stands here already" in capsys.readouterr().err
    assert main([*asked, "--overwrite"]) == 0
    assert main(["export", str(model), "--out", str(model)]) == 2
    assert "which is no part of an exported model" in capsys.readouterr().err


def test_an_export_is_not_exported(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(model), "--out", str(tmp_path / "onnx")]) == 0
    assert main(["export", str(tmp_path / "onnx"), "--out", str(tmp_path / "twice")]) == 2
    assert "a model of kind 'onnx' is not exported" in capsys.readouterr().err
