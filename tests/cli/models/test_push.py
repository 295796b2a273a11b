from pathlib import Path

import pytest

from rungwise.cli import main


def test_what_is_asked_reaches_the_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def stub(folder: Path, repository: str, *, private: bool) -> str:
        asked.append((folder, repository, private))
        return "the place"

    monkeypatch.setattr("rungwise.models.io._hub_upload.push_to_hub", stub)
    assert main(["push", "run/model", "me/model", "--private"]) == 0
    assert asked == [(Path("run/model"), "me/model", True)]
    assert "uploaded: the place" in capsys.readouterr().out


def test_what_is_no_model_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["push", str(tmp_path), "me/model"]) == 2
    assert "no model here (config.json is missing)" in capsys.readouterr().err
