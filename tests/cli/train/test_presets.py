import json
import re

import pytest

from rungwise.cli import main
from rungwise.cli.train._presets import row_text
from rungwise.training.config import datasets_of, load_preset, preset_names, presets, systems
from tests.pages import pages_below


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
    assert "assumed: The loss is summed over the batch" in text
    assert "learning_rates: [0.001, 0.0001]" in text
    assert "&id" not in said(capsys, "convsepp/coco:d-64")


def test_json_holds_what_a_program_needs(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "cmal2r", "--json"))
    assert [one["name"] for one in found] == preset_names("cmal2r")
    preset = load_preset("cmal2r/pascal_voc2007")
    assert found[0]["reproduces"] == [dict(one) for one in preset.reproduces]
    assert found[0]["settings"]["loss"]["kind"] == "adaptive_listwise"


def test_a_system_that_there_is_not_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "vsep"]) == 2
    refused = capsys.readouterr().err
    assert "there is no preset 'vsep'; do you mean vsepp" in refused
    assert len(refused.splitlines()) == 1


def test_the_page_of_presets_says_what_they_are() -> None:
    page = pages_below("explanation/published")
    for part in (systems_table(), printed_rows()):
        assert part in page, f"a page of docs/explanation/published should hold\n\n{part}"
    listed = re.findall(r"^\* .+ \(`[\w-]+/.*`\)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(assumptions()), "the pages of assumptions are not those of the presets"


def test_the_page_says_of_every_system_with_printed_rows_what_may_still_differ() -> None:
    page = pages_below("explanation/published")
    section = page.partition("## What may still differ")[2].partition("\n## ")[0]
    said = {
        word
        for line in section.splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([\w-]+)`", line.partition(" | ")[0])
    }
    assert {preset.system for preset in presets() if preset.reproduces} <= said <= set(systems())


def systems_table() -> str:
    """The systems, as the page lists them."""
    lines = ["| system | what it is | datasets |", "| --- | --- | --- |"]
    for system in systems():
        about = load_preset(system).about
        what = (about.rpartition("; ")[0] or about).rstrip(".")
        lines.append(f"| `{system}` | {what} | {', '.join(datasets_of(system))} |")
    return "\n".join(lines)


def printed_rows() -> str:
    """The printed rows of every preset that has some."""
    lines = ["| preset | rows |", "| --- | --- |"]
    lines += [
        f"| `{preset.name}` | {'; '.join(map(row_text, preset.reproduces))} |"
        for preset in presets()
        if preset.reproduces
    ]
    return "\n".join(lines)


def assumptions() -> list[str]:
    """What was assumed, with the presets that share it, as lines of a list."""
    sharing: dict[str, list[str]] = {}
    for preset in presets():
        known = load_preset(f"{preset.system}/{preset.dataset}").assumes if preset.variant else ()
        for one in preset.assumes[len(known) :]:
            sharing.setdefault(one, []).append(f"`{preset.name}`")
    return [f"* {one} ({', '.join(names)})" for one, names in sharing.items()]
