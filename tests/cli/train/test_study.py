"""``rungwise study``, and a study that is killed in its middle."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from rungwise.cli import main
from rungwise.core import to_plain
from rungwise.core.disk import read_seal
from rungwise.scenes import SceneConfig, generate
from tests.pages import pages_below
from tests.training.conftest import once, small_config

STUDIES = pages_below("guide/evaluation")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "scenes"
    generate(folder, SceneConfig(pictures=60, captions_per_picture=3, side=32, seed=4))
    return folder


@pytest.fixture
def file(scenes, tmp_path, monkeypatch):
    """The file of a study of two arms and two seeds; its folder is the current one."""
    monkeypatch.chdir(tmp_path)
    base = {
        name: value for name, value in to_plain(once(small_config(), 1e-2)).items() if name not in ("preset", "data")
    }
    values = {"data": str(scenes), "base": base, "arms": [{"name": "max"}, {"name": "sum", "loss": "sum_of_hinges"}]}
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps({**values, "seeds": [0, 1]}))
    return path


def weights(out):
    return {
        path.parent.parent.relative_to(out).as_posix(): read_seal(path.parent)["model.safetensors"]
        for path in out.rglob("model/model.safetensors")
    }


def test_a_study_prints_a_plan_then_its_table(file, tmp_path, capsys):
    assert main(["study", "s.yaml", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"  max/seed-0 +missing", lines[0])
    assert lines[-2:] == ["4 runs: 4 missing", "still to do: 4 runs of a kind that is not timed yet"]
    assert not (tmp_path / "s").exists()
    assert main(["study", "s.yaml", "--cache", "cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "max/seed-0: run 1 of 4" in lines
    assert "sum/seed-1: done" in lines
    at = lines.index("test split, 2 seeds")
    assert sum(line.startswith(("max, 2 seeds", "sum, 2 seeds")) for line in lines[at:]) >= 2
    assert any("rsum" in line for line in lines[at:])
    assert all(len(line) <= 80 for line in lines[at:])
    assert lines[-1] == "4 runs: 4 done"
    assert main(["study", "s.yaml", "--cache", "cache", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "4 runs: 4 done"


def test_a_plan_says_what_cannot_act_and_what_is_the_same(file, capsys):
    values = json.loads(file.read_text())
    never = {"loss": {"kind": "max_of_hinges", "margin": 2.5}}
    arms = [*values["arms"], {"name": "far", **never}, {"name": "again", **never}]
    file.write_text(json.dumps({**values, "arms": arms}))
    assert main(["study", "s.yaml", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[8].startswith("arms far, again: loss.margin 2.5 is never reached")
    assert lines[9] == "far and again have the same settings: they are one system"
    assert lines[10] == "8 runs: 8 missing"


def test_a_run_that_fails_is_listed_with_its_reason(file, capsys, monkeypatch):
    from rungwise.core import UserError
    from rungwise.runs.study import _running as running

    def failing(config, *rest, **more):
        raise UserError("the loss is no longer finite")

    monkeypatch.setattr(running, "run_stages", failing)
    assert main(["study", "s.yaml", "--cache", "cache"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "failed: max/seed-0: the loss is no longer finite" in lines
    assert "the test split stays closed until every run is finished" in lines
    assert lines[-1] == "4 runs: 4 failed"


def test_a_study_that_is_stopped_says_how_it_goes_on(file, capsys, monkeypatch):
    from dataclasses import replace

    from rungwise.runs.study import _running as running

    real = running.run_stages
    monkeypatch.setattr(running, "run_stages", lambda *given, **more: replace(real(*given, **more), finished=False))
    assert main(["study", "s.yaml", "--cache", "cache"]) == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "stopped; go on with: rungwise study s.yaml --cache cache"


def test_a_mistake_is_one_line(file, capsys):
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, "arms": [{"name": "max", "loss": {"margn": 1}}]}))
    assert main(["study", "s.yaml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rungwise study: s.yaml: arm max: loss.")
    assert main(["study"]) == 2


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on_to_the_same_models(file, tmp_path, scenes):
    """SIGKILL in the middle of a run: nothing that is done is done again, and every model is the same to the bit."""
    values = json.loads(file.read_text())
    values["base"] |= {"epochs": [3], "learning_rates": [1e-2], "checkpoint_steps": 1}
    file.write_text(json.dumps(values))
    command = [sys.executable, "-m", "rungwise", "study", "s.yaml", "--cache", "cache"]
    child = subprocess.Popen([*command, "--out", "killed"], stdout=subprocess.DEVNULL)
    history = tmp_path / "killed" / "max" / "seed-1" / "history.jsonl"
    while not history.exists() and child.poll() is None:
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    first = tmp_path / "killed" / "max" / "seed-0" / "model" / "model.safetensors"
    written = first.stat().st_mtime_ns
    assert not (tmp_path / "killed" / "sum").exists()
    plan = subprocess.run([*command, "--out", "killed", "--dry-run"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"max/seed-1 +begun, epoch [123] of 3", plan)
    assert "4 runs: 1 done, 1 begun, 2 missing" in plan
    again = subprocess.run([*command, "--out", "killed"], capture_output=True, text=True, check=True).stdout
    assert "resumed after epoch" in again
    assert first.stat().st_mtime_ns == written
    subprocess.run([*command, "--out", "whole", "--jobs", "2"], capture_output=True, check=True)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert len(weights(tmp_path / "whole")) == 4
    for name in ("table.md", "table.tex", "table.csv"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text()


@pytest.mark.slow
def test_the_study_of_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    """The first file of docs/guide/evaluation/studies.md, on generated scenes."""
    monkeypatch.chdir(tmp_path)
    generate(tmp_path / "scenes", SceneConfig(pictures=60, captions_per_picture=3, side=32, seed=4))
    text = STUDIES
    (tmp_path / "losses.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    assert main(["study", "losses.yaml", "--cache", "cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith(" done")
    assert any("is chosen by rsum on the val split" in line for line in lines)


def test_every_block_of_the_page_is_a_part_of_a_study():
    from rungwise.core import parse_yaml
    from rungwise.runs.study import StudyConfig, study_of

    blocks = re.findall(r"```yaml\n(.*?)```", STUDIES, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        assert isinstance(study_of(parse_yaml(block, "the page")), StudyConfig)
