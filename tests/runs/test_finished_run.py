"""A finished run as one file: what it holds, how it is known, and what is refused."""

import json

import numpy as np
import pytest

from rungwise.core import UserError, to_plain
from rungwise.evaluation import evaluate
from rungwise.runs import FinishedRun, find_runs, systems_of
from rungwise.training.config import TrainConfig


@pytest.fixture
def kept(tmp_path):
    """The file of a finished run."""
    result = evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], measures=["rsum"])
    record = {"settings": to_plain(TrainConfig(epochs=(1,), learning_rates=(1e-3,), seed=3))}
    path = FinishedRun.file_of(tmp_path / "max" / "seed-3")
    path.parent.mkdir()
    FinishedRun.of(record, ({"epoch": 1.0, "rsum": 600.0},), {"asked": result}).to_json(path)
    return path


def test_it_stands_for_its_run(kept):
    ((run,), unreadable) = find_runs([kept.parent])
    assert unreadable == ()
    assert (run.folder, run.config.seed, run.results[0]["rsum"]) == (kept.with_suffix(""), 3, 600.0)
    assert run.epochs == ({"epoch": 1.0, "rsum": 600.0},)
    ((alone,), _) = find_runs([kept])
    assert alone.folder == run.folder


def test_it_is_known_by_what_it_says(kept, tmp_path):
    assert FinishedRun.is_one(kept)
    other = tmp_path / "other.json"
    other.write_text('{"format": "rungwise-result/1"}')
    assert not FinishedRun.is_one(other)
    assert not FinishedRun.is_one(tmp_path)
    assert not FinishedRun.is_one(tmp_path / "missing.json")
    other.with_suffix(".txt").write_bytes(kept.read_bytes())
    assert not FinishedRun.is_one(other.with_suffix(".txt"))


def test_runs_of_other_data_are_other_systems(tmp_path):
    """Their files do not say where the data lay."""
    settings = to_plain(TrainConfig(epochs=(1,), learning_rates=(1e-3,)))
    for name, data_hash in (("clean", "a"), ("noisy", "b")):
        for seed in (0, 1):
            (tmp_path / name).mkdir(exist_ok=True)
            record = {"settings": {**settings, "seed": seed}, "data_hash": data_hash}
            FinishedRun.of(record, (), {}).to_json(tmp_path / name / f"seed-{seed}.json")
    runs, _ = find_runs([tmp_path])
    assert [(one.name, len(one.runs)) for one in systems_of(runs)] == [("clean", 2), ("noisy", 2)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content["history"].clear(), "was altered"),
        (lambda content: content["results"]["asked"]["numbers"].update({"rsum": 1.0}), "damaged|altered"),
        (lambda content: content.pop("record"), "record"),
    ],
)
def test_a_file_that_was_altered_is_refused_and_named(kept, change, said):
    content = json.loads(kept.read_text())
    change(content)
    kept.write_text(json.dumps(content))
    with pytest.raises(UserError, match=f"seed-3.json: the finished run .*{said}|{said}"):
        FinishedRun.from_json(kept)
    _, unreadable = find_runs([kept.parent])
    assert len(unreadable) == 1
    assert "seed-3.json: cannot be read" in unreadable[0]


def test_a_record_without_settings_is_refused(tmp_path):
    FinishedRun({}, (), {}).to_json(tmp_path / "seed-0.json")
    with pytest.raises(
        UserError, match=r"the finished run is damaged \(its record has no settings\); remove the file, and the study"
    ):
        FinishedRun.from_json(tmp_path / "seed-0.json")
