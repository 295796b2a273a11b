import json
from dataclasses import replace

import pytest

from rungwise.core import UserError
from rungwise.core.disk.locks import LOCK
from rungwise.runs.study import RunTask, StudyRun, StudyRunState, remaining_seconds, remove_run
from rungwise.runs.study._running import train_task
from rungwise.training.config._stage import Stage
from rungwise.training.tracking import Watcher
from tests.training.conftest import once, small_config


def test_a_run_is_missing_begun_or_done(planned, coloured, cache):
    config = small_config()
    run = planned(config)
    assert run.name == "max/seed-0"
    assert run.state() == StudyRunState("missing")
    run.folder.mkdir(parents=True)
    (run.folder / LOCK).touch()
    StudyRun.of(run.identity).write(run.folder)
    assert run.state() == StudyRunState("missing")
    task = RunTask(run.name, config, run.folder, run.identity, cache, "cpu")
    assert train_task(task, coloured, Watcher()) is None
    state = run.state()
    assert (state.word, state.epoch) == ("done", 2)
    lines = [json.loads(line) for line in (run.folder / "history.jsonl").read_text().splitlines()]
    assert state.seconds == pytest.approx(sum(one["seconds"] + one["validation_seconds"] for one in lines))
    replace(StudyRun.read(run.folder), finished=False).write(run.folder)
    assert (run.state().word, run.state().epoch) == ("begun", 2)


def test_a_run_of_other_settings_is_refused_and_may_be_made_again(planned):
    run = planned(small_config())
    run.folder.mkdir(parents=True)
    StudyRun.of(run.identity).write(run.folder)
    other = planned(replace(small_config(), batch_size=16, clip_norm=1.0), folder=run.folder)
    with pytest.raises(UserError) as caught:
        other.state()
    assert str(caught.value) == (
        f"{run.folder}: is of other settings: batch_size: 8 then, 16 now; clip_norm: 2.0 then, 1.0 now; --again trains"
        " it anew, another --out keeps it"
    )
    assert other.state(again=True) == StudyRunState("missing")
    remove_run(run)
    assert run.folder.exists()
    (run.folder / "notes.txt").touch()
    with pytest.raises(UserError, match=r"holds notes\.txt, which no run writes; move it elsewhere"):
        remove_run(other)
    (run.folder / "notes.txt").unlink()
    remove_run(other)
    assert not run.folder.exists()
    remove_run(other)


def test_a_folder_that_no_study_made_is_refused(planned):
    run = planned(small_config())
    run.folder.mkdir(parents=True)
    (run.folder / "holiday.jpg").touch()
    with pytest.raises(UserError, match=r"seed-0: holds holiday\.jpg, which this study did not make"):
        run.state(again=True)
    remove_run(run)
    assert (run.folder / "holiday.jpg").exists()
    file = planned(small_config(), folder=run.folder / "holiday.jpg")
    with pytest.raises(UserError, match="a file stands where the run is to be"):
        file.state()


def test_epochs_of_all_stages_count(planned):
    config = replace(once(small_config()), stages=(Stage("one", {}), Stage("two", {"epochs": [3]})))
    assert planned(config).epochs == 4


def test_the_time_left_follows_from_what_was_timed(planned):
    one, other = small_config(), replace(small_config(), seed=1)
    runs = [planned(one), planned(other), planned(one, "sum"), planned(other, "sum"), planned(one, "odd")]
    states = [
        StudyRunState("done", 2, 10.0),
        StudyRunState("missing"),
        StudyRunState("begun", 1, 4.0),
        StudyRunState("missing"),
        StudyRunState("missing"),
    ]
    assert remaining_seconds(runs, states) == (14.0, 2)
    assert remaining_seconds([], []) == (0.0, 0)
