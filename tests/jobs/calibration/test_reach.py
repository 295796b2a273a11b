"""Exports and indexes near a model that its new calibration does not reach."""

from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.calibration import Calibration
from rungwise.index import Index
from rungwise.jobs.calibration._options import Calibrate
from rungwise.jobs.calibration._reach import say_out_of_reach
from rungwise.models import load
from rungwise.models.export import export_onnx
from rungwise.models.io import keep_calibration
from tests.colour_model import ColourModel, colour_pictures
from tests.models.exported import of_features


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    of_features().save_pretrained(tmp_path / "run" / "model")
    return tmp_path / "run" / "model"


def said(model: Path, calibration: Calibration, capsys: pytest.CaptureFixture[str], **asked: Path) -> list[str]:
    capsys.readouterr()
    say_out_of_reach(Calibrate(str(model), **asked), calibration)  # type: ignore[arg-type]
    return capsys.readouterr().out.splitlines()


def test_an_export_made_before_is_named_with_its_remedy(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = load(model, "cpu")
    own = replace(Calibration.unsupervised(), model_fingerprint=whole.fingerprint)
    export_onnx(whole, "exported")
    keep_calibration(model, own)
    (line,) = said(model, own, capsys)
    assert line.startswith("exported: this export was made before and keeps no calibration; export again: ")
    assert line.endswith(f"export {model} --out exported --overwrite")
    export_onnx(load(model, "cpu"), "exported")
    assert said(model, own, capsys) == []
    keep_calibration(model, replace(own, relevant_from=0.25))
    (line,) = said(model, own, capsys)
    assert "keeps an older calibration" in line
    assert said(model, own, capsys, out=Path("own.json")) == said(model, own, capsys, index=Path("index")) == []
    assert said(model, replace(own, model_fingerprint="c0ffee"), capsys) == []
    (Path("exported") / "config.json").write_text("[]")
    assert said(model, own, capsys) == []


def test_an_index_with_a_calibration_of_its_own_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = Index.build(colour_pictures(Path("photos"), ["red", "blue"]), ColourModel(), "photos.index")
    own = replace(Calibration.unsupervised(), model_fingerprint=ColourModel().fingerprint)
    keep_calibration(model, own)
    assert said(model, own, capsys) == []
    index.keep_calibration(own)
    (line,) = said(model, own, capsys)
    assert line.startswith("photos.index: this index keeps a calibration of its own, which goes before the model's;")
    assert line.endswith("calibrate photos.index")
    (Path("photos.index") / "index.json").write_text("{")
    assert said(model, own, capsys) == []


def test_of_an_index_elsewhere_the_export_that_built_it_is_found(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load(model, "cpu")
    export_onnx(whole, "far/away/exported")
    own = replace(Calibration.unsupervised(), model_fingerprint=whole.fingerprint)
    keep_calibration(model, own)
    assert said(model, own, capsys) == []

    class Exported(ColourModel):
        stands_for = whole.fingerprint

    photos = colour_pictures(Path("photos"), ["red", "blue"])
    Index.build(photos, Exported(), "photos.index", model_location="far/away/exported")
    (line,) = said(model, own, capsys)
    assert line.startswith("far/away/exported: this export")
