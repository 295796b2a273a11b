import json
import subprocess
import sys

import pytest

from rungwise.cli import main
from rungwise.training.recipes import load_preset, preset_names, systems


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["presets", *words]) == 0
    return capsys.readouterr().out


def test_the_list_names_every_system_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys).splitlines()
    assert set(systems()) <= {line.split()[0] for line in lines if line and not line.startswith(" ")}
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith(f"{len(preset_names())} presets")


@pytest.mark.parametrize("system", systems())
def test_a_system_is_listed_with_its_variants_and_rows(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, system).splitlines()
    assert max(map(len, lines)) <= 80
    shown, place = [], ""
    for line in lines:
        if line.startswith(f"{system}/"):
            place = line
            shown.append(place)
        elif line.startswith("  :"):
            shown.append(place + line.split()[0])
    assert shown == preset_names(system)


def test_one_preset_is_shown_with_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "order0/coco")
    assert "row: VSE++ Table 4, 4.3" in text
    assert "assumed: clip_norm 2.0" in text
    assert "learning_rates: [0.001, 0.0001]" in text
    assert "&id" not in said(capsys, "convsepp/coco:d-64")


def test_json_holds_what_a_program_needs(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "cmal2r", "--json"))
    assert [one["name"] for one in found] == preset_names("cmal2r")
    preset = load_preset("cmal2r/wikipedia")
    assert found[0]["reproduces"] == [dict(one) for one in preset.reproduces]
    assert found[0]["settings"]["loss"]["kind"] == "adaptive_listwise"


def test_a_system_that_there_is_not_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "vsep"]) == 2
    refused = capsys.readouterr().err
    assert "there is no preset 'vsep'; do you mean vsepp" in refused
    assert len(refused.splitlines()) == 1


def test_the_list_needs_no_torch() -> None:
    look = "import sys; from rungwise.cli import main; main(['presets', 'sam']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", look], check=True, capture_output=True)
