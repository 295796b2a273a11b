"""What a study does, in which order, and what it does not do twice.

Also tests rungwise.jobs.studies._all_runs, rungwise.jobs.studies._study_answers.
"""

import csv
import json
import shutil
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import rungwise
from rungwise.core import UserError
from rungwise.core.disk import read_seal
from rungwise.core.version import __version__
from rungwise.evaluation import Result
from rungwise.jobs.studies import _study_answers as answers
from rungwise.runs import FinishedRun, find_runs, systems_of
from rungwise.runs.study import RUN_RECORD, Machine, StudyRecord, StudyRun
from rungwise.runs.study import _running as running
from rungwise.training import CHECKPOINT
from tests.jobs.studies.conftest import numbers

SEARCH = {"trials": 2, "ranges": {"loss.margin": {"uniform": [0.1, 0.4]}}, "fixed": {"data.share": 0.5}}


@pytest.fixture
def trained(monkeypatch):
    """Names of the folders in which something was trained, and whether it was resumed."""
    found, real = [], running.run_stages

    def watched(config, data, folder, **more):
        found.append((f"{folder.parent.name}/{folder.name}", more["resume"]))
        return real(config, data, folder, **more)

    monkeypatch.setattr(running, "run_stages", watched)
    return found


@contextmanager
def sums_fail(monkeypatch):
    """Trainings with the sum of hinges fail."""
    real = running.run_stages

    def failing(config, *rest, **more):
        if config.loss.kind == "sum_of_hinges":
            raise UserError("the loss is no longer finite")
        return real(config, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(running, "run_stages", failing)
        yield


@pytest.fixture
def asked(monkeypatch):
    """What was evaluated: the folder of the run and the split, and whether its run was done by then."""
    found, real = [], answers.evaluate

    def watched(model, data, *, split, **more):
        found.append((model.split("/out/")[1].removesuffix("/model"), split))
        return real(model, data, split=split, **more)

    monkeypatch.setattr(answers, "evaluate", watched)
    return found


def weights(out):
    return {
        path.parent.parent.relative_to(out).as_posix(): read_seal(path.parent)["model.safetensors"]
        for path in out.rglob("model/model.safetensors")
    }


def test_every_run_is_trained_once_and_is_a_run_of_a_system(study, trained, tmp_path):
    found = study()
    names = ["max/seed-0", "max/seed-1", "sum/seed-0", "sum/seed-1"]
    assert trained == [(name, False) for name in names]
    assert [(one.name, one.state) for one in found.runs] == [(name, "done") for name in names]
    runs, unreadable = find_runs([tmp_path / "out"])
    assert unreadable == ()
    systems = systems_of(runs)
    assert [one.name for one in systems] == ["max", "sum"]
    for system in systems:
        ((question, results),) = system.results().items()
        assert (question.split, len(results)) == ("test", 2)
        values = [one["rsum"] for one in results]
        assert numbers(found)[system.name]["rsum"] == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    before = weights(tmp_path / "out")
    again = study()
    assert len(trained) == 4
    assert again.table == found.table
    assert weights(tmp_path / "out") == before
    (record,) = {StudyRun.read(one.folder).version for one in found.runs}
    assert record == __version__


def test_a_run_that_was_deleted_is_made_again(study, trained, tmp_path):
    found = study()
    before = weights(tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "max" / "seed-1")
    trained.clear()
    again = study()
    assert trained == [("max/seed-1", False)]
    assert weights(tmp_path / "out") == before
    assert again.table == found.table
    assert again.notes == ()
    assert len(StudyRecord.read(tmp_path / "out").openings) == 1


def test_a_run_that_was_cut_off_goes_on(study, trained, tmp_path, monkeypatch):
    """A run that dies after its first checkpoint is resumed: the same weights as those of one that nobody disturbed."""
    whole = study(options={"out": tmp_path / "whole"})
    real = running.run_stages

    def dies(config, data, folder, **more):
        if (folder.parent.name, folder.name) == ("sum", "seed-0"):
            from rungwise.training.engine import _loop as loop

            with monkeypatch.context() as patch:
                steps = iter(range(100))
                step = loop._Run._step
                patch.setattr(loop._Run, "_step", lambda run, *rest: 1 / 0 if next(steps) == 4 else step(run, *rest))
                return real(config, data, folder, **more)
        return real(config, data, folder, **more)

    with monkeypatch.context() as patch:
        patch.setattr(running, "run_stages", dies)
        found = study()
    assert list(found.failed) == ["sum/seed-0"]
    assert [one.text for one in found.runs] == ["done", "done", "failed after 0 of 1 epochs", "done"]
    assert (tmp_path / "out" / "sum" / "seed-0" / CHECKPOINT).exists()
    trained.clear()
    found = study()
    assert trained == [("sum/seed-0", True)]
    assert found.failed == {}
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")
    assert found.table == whole.table


def test_a_changed_setting_is_refused_before_anything_is_trained(study, trained, tmp_path):
    study(arms=[{"name": "max"}])
    trained.clear()
    changed = [{"name": "new"}, {"name": "max", "loss.margin": 0.3}]
    with pytest.raises(UserError) as caught:
        study(arms=changed)
    assert str(caught.value) == (
        f"{tmp_path / 'out' / 'max' / 'seed-0'}: is of other settings: loss.margin: 0.2 then, 0.3 now; again= trains it"
        " anew, another out= keeps it"
    )
    assert trained == []
    found = study(arms=changed, options={"again": True})
    assert trained == [(f"{arm}/seed-{seed}", False) for arm in ("new", "max") for seed in (0, 1)]
    assert len(found.notes) == 1
    assert found.notes[0].startswith("the test split was opened on 2")
    assert "new was added; max: loss.margin: 0.2 then, 0.3 now" in found.notes[0]
    assert found.notes[0] in (tmp_path / "out" / "table.md").read_text()


def test_one_failing_arm_does_not_stop_the_others_and_the_test_split_stays_closed(study, asked, monkeypatch):
    with sums_fail(monkeypatch):
        found = study()
    assert found.failed == dict.fromkeys(("sum/seed-0", "sum/seed-1"), "the loss is no longer finite")
    assert found.notes == ("the test split stays closed until every run is finished",)
    assert (list(numbers(found)), found.split) == (["max"], "validation")
    assert asked == [("max/seed-0", "val"), ("max/seed-1", "val")]
    assert "sum/seed-0 failed: the loss is no longer finite" in found.to_markdown()
    found = study()
    assert (list(numbers(found)), found.split, found.failed) == (["max", "sum"], "test", {})


def test_a_study_that_went_on_after_a_failure_opened_the_test_split_once(study, monkeypatch, tmp_path):
    with sums_fail(monkeypatch):
        assert list(numbers(study(keep="results"))) == ["max"]
    assert study(keep="results").notes == ()
    (opening,) = StudyRecord.read(tmp_path / "out").openings
    assert list(opening.systems) == ["max", "sum"]


def test_a_search_sees_the_validation_split_alone_and_the_test_split_is_opened_at_the_end(
    study, asked, trained, tmp_path
):
    found = study(search=SEARCH, seeds=[0])
    trials = [f".trials/{arm}/trial-{number}" for arm in ("max", "sum") for number in (1, 2)]
    assert asked == [(trial, "val") for trial in trials] + [("max/seed-0", "test"), ("sum/seed-0", "test")]
    assert [name for name, _ in trained[:4]] == [f"{arm}/trial-{number}" for arm in ("max", "sum") for number in (1, 2)]
    for trial in trials:
        (path,) = (tmp_path / "out" / trial / "results").glob("*.json")
        assert Result.from_json(path).split == "val"
    for arm in ("max", "sum"):
        chosen = found.chosen[arm]
        assert (chosen.budget, chosen.measure, chosen.split, len(chosen.trials)) == (2, "rsum", "val", 2)
        best = max(chosen.trials, key=lambda one: one.value)
        assert chosen.values == best.values
        record = StudyRun.read(tmp_path / "out" / arm / "seed-0")
        assert record.settings["loss"]["margin"] == best.values["loss.margin"]
        assert record.settings["data"]["share"] == 1.0
        trial = StudyRun.read(tmp_path / "out" / ".trials" / arm / "trial-1")
        assert trial.settings["data"]["share"] == 0.5
    runs, _ = find_runs([tmp_path / "out"])
    assert len(runs) == 2
    asked.clear()
    assert study(search=SEARCH, seeds=[0]).table == found.table
    assert asked == []


def test_when_the_test_split_is_opened_all_is_trained(study, monkeypatch, tmp_path):
    """Until then it cannot be read at all."""
    real = answers.evaluate

    def guarded(model, data, *, split, **more):
        if split == "test":
            done = [StudyRun.from_json(path).finished for path in (tmp_path / "out").rglob(RUN_RECORD)]
            assert len(done) == 8
            assert all(done)
            assert StudyRecord.read(tmp_path / "out").openings
        return real(model, data, split=split, **more)

    monkeypatch.setattr(answers, "evaluate", guarded)
    assert study(search=SEARCH).split == "test"


def test_an_arm_with_a_failed_trial_is_not_chosen_for(study, monkeypatch):
    real = running.run_stages

    def failing(config, data, folder, **more):
        if folder.parent.name == "sum" and folder.name == "trial-2":
            raise UserError("no")
        return real(config, data, folder, **more)

    monkeypatch.setattr(running, "run_stages", failing)
    found = study(search=SEARCH, seeds=[0])
    assert found.failed == {"sum/trial-2": "no", "sum/seed-0": "a trial of sum failed, so that none is chosen"}
    assert {one.name for one in found.runs if one.state == "failed"} == set(found.failed)
    assert list(numbers(found)) == ["max"]
    assert list(found.chosen) == ["max"]


def test_the_winner_alone_is_tested_where_the_study_says_so(study, asked):
    found = study(test="winner")
    assert found.winner in ("max", "sum")
    assert [split for _, split in asked[:4]] == ["val"] * 4
    assert asked[4:] == [(f"{found.winner}/seed-{seed}", "test") for seed in (0, 1)]
    assert list(numbers(found)) == [found.winner]


def test_a_study_that_tests_nobody_shows_validation(study, asked, tmp_path):
    found = study(test="none")
    assert {split for _, split in asked} == {"val"}
    assert found.split == "validation"
    assert StudyRecord.read(tmp_path / "out").openings == ()


def test_validation_answers_the_questions_where_nobody_is_tested(study, tmp_path):
    """Each run is measured as it ends, and of its model nothing is kept."""
    found = study(test="none", keep="results", evaluation={"measures": ["nDCG@10"], "relevance": "tfidf"})
    assert {"i2t/nDCG@10", "t2i/nDCG@10"} == set(numbers(found)["max"])
    kept = FinishedRun.from_json(tmp_path / "out" / "max" / "seed-1.json")
    assert [one.split for one in kept.measured.values()] == ["val"]
    assert not (tmp_path / "out" / "max" / "seed-1").exists()
    assert StudyRecord.read(tmp_path / "out").openings == ()
    with pytest.raises(UserError, match="evaluation, question 1: nDCG@10 needs degrees of relevance"):
        study(test="none", evaluation={"measures": ["nDCG@10"]})


def test_data_without_a_test_split_are_said_so(study, coloured):
    found = study(options={"data": coloured})
    assert "no test split in the data: nothing was tested" in found.notes
    assert found.split == "validation"


def test_a_plan_writes_nothing(study, tmp_path, trained):
    found = study(search=SEARCH, options={"dry_run": True})
    assert not (tmp_path / "out").exists()
    assert [one.state for one in found.runs] == ["missing"] * 4 + ["waiting for the search"] * 4
    assert (found.seconds_left, found.untimed) == (0.0, 8)
    study(arms=[{"name": "max"}])
    planned = study(arms=[{"name": "max"}], seeds=[0, 1, 2], options={"dry_run": True})
    assert [one.state for one in planned.runs] == ["done", "done", "missing"]
    assert planned.seconds_left > 0
    assert planned.untimed == 0
    assert "1 missing" in planned.counted()
    assert planned.time_left().startswith("about ")


def test_arms_of_the_same_settings_are_said(study):
    found = study(arms=[{"name": "max"}, {"name": "again", "loss": {"margin": 0.2}}], seeds=[0])
    assert "max and again have the same settings: they are one system" in found.notes


def test_runs_of_machines_with_and_without_bfloat16_are_not_compared(study, tmp_path):
    study()
    folder = tmp_path / "out" / "max" / "seed-1"
    record = StudyRun.read(folder)
    machine = replace(record.machines[0], bfloat16=not record.machines[0].bfloat16, name="another")
    replace(record, machines=(machine,)).write(folder)
    found = study()
    assert list(numbers(found)) == ["sum"]
    (note,) = found.notes
    assert note.startswith("not compared: runs of machines")
    assert "max/seed-1 (cpu, another" in note
    assert note.endswith("left out: max")
    assert isinstance(record.machines[0], Machine)


def test_runs_of_several_versions_are_said(study, tmp_path):
    study(seeds=[0])
    folder = tmp_path / "out" / "max" / "seed-0"
    replace(StudyRun.read(folder), version="0.0.9").write(folder)
    assert study(seeds=[0]).notes == (f"runs were trained by several versions of rungwise: 0.0.9, {__version__}",)


def test_a_grid_of_shares_and_several_questions(study, tmp_path):
    found = study(
        arms=[{"name": "max"}],
        grid={"data.share": [1.0, 0.5]},
        evaluation=[{"measures": ["R@1", "rsum"]}, {"measures": ["nDCG@10", "R@1"], "relevance": "tfidf"}],
    )
    assert list(numbers(found)) == ["max/share=1.0", "max/share=0.5"]
    (block,) = found.table.blocks  # what reads no degrees stands beside what does
    assert {"rsum", "i2t/R@1", "i2t/nDCG@10"} <= set(block.names)
    assert "degrees TfIdf" in block.title
    rows = list(csv.DictReader((tmp_path / "out" / "table.csv").read_text().splitlines()))
    assert len(rows) == 2 * len(block.names)
    assert (tmp_path / "out" / "curves-by-data.share.svg").is_file()


def test_all_mistakes_are_said_at_once_before_anything_is_read_twice(study, trained, tmp_path):
    with pytest.raises(UserError) as caught:
        study(
            arms=[{"name": "a", "loss": "hinge"}, {"name": "b", "batch_size": 0}, {"name": "c", "start": "./none"}],
            evaluation=[{"measures": ["nDCG@10"]}, {"protocol": "flickr8k-1k"}, {"relevance": "no/such"}],
        )
    said = str(caught.value)
    assert said.startswith("6 mistakes: arm a: loss")
    assert "arm b: batch_size: must be at least 1 (got 0)" in said
    assert "arm c: ./none" in said
    assert "evaluation, question 1: nDCG@10 needs degrees of relevance" in said
    assert "evaluation, question 2: " in said
    assert "evaluation, question 3: relevance: no/such is neither a source nor a folder; correct it" in said
    assert "\n" not in said
    assert trained == []
    assert not (tmp_path / "out").exists()


def test_strangers_are_not_swallowed(study, tmp_path, trained):
    out = tmp_path / "out"
    (out / "sum" / "seed-1").mkdir(parents=True)
    (out / "sum" / "seed-1" / "thesis.tex").write_text("all of it")
    with pytest.raises(UserError, match=r"holds thesis\.tex, which this study did not make"):
        study(options={"again": True})
    assert trained == []
    shutil.rmtree(out)
    out.mkdir()
    (out / "table.md").write_text("mine")
    with pytest.raises(UserError, match=r"table\.md: is of no study that stands here"):
        study()
    (out / "table.md").unlink()
    (out / "study.json").write_text("[]")
    with pytest.raises(UserError, match=r"study\.json: is not a rungwise-study/1 file"):
        study()


def test_a_run_is_no_place_for_a_study(study, tmp_path):
    study(arms=[{"name": "max"}], seeds=[0])
    with pytest.raises(UserError, match="holds a run; name another folder for the study"):
        study(options={"out": tmp_path / "out" / "max" / "seed-0"})


def test_a_collection_in_memory_is_of_one_process(study):
    with pytest.raises(UserError, match="jobs=: other processes cannot read a collection in memory"):
        study(options={"jobs": 2})
    with pytest.raises(UserError, match="ray=: other processes cannot read a collection in memory"):
        study(options={"ray": "local"})


def test_a_study_needs_data(study):
    with pytest.raises(UserError, match=r"arms max, sum: no data: name a folder or a caption file"):
        study(options={"data": None})


def test_the_record_of_a_run_holds_its_machine(study, tmp_path):
    study(arms=[{"name": "max"}], seeds=[0])
    values = json.loads((tmp_path / "out" / "max" / "seed-0" / RUN_RECORD).read_text())
    (machine,) = values["machines"]
    assert (machine["device"], machine["precision"]) == ("cpu", "float32")
    assert isinstance(machine["bfloat16"], bool)


CLAIMS = [{"name": "sum", "says": "The sum beats the max.", "better": "sum", "than": "max", "measure": "rsum"}]


def files_of(out):
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*.json"))


def test_where_results_alone_are_kept_a_file_stands_for_each_run(study, trained, tmp_path):
    whole = study(options={"out": tmp_path / "whole"})
    found = study(keep="results")
    out = tmp_path / "out"
    assert files_of(out) == ["max/seed-0.json", "max/seed-1.json", "study.json", "sum/seed-0.json", "sum/seed-1.json"]
    assert not list(out.rglob("model"))
    assert numbers(found) == numbers(whole)
    assert [one.state for one in found.runs] == ["done"] * 4
    trained.clear()
    again = study(keep="results")
    assert trained == []
    assert again.table == found.table
    runs, unreadable = find_runs([out])
    assert unreadable == ()
    assert [one.name for one in systems_of(runs)] == ["max", "sum"]
    assert rungwise.compare(out / "max", out / "sum")["rsum"].seeds is not None


def test_a_file_of_a_run_that_was_deleted_is_made_again_to_the_same_numbers(study, trained, tmp_path):
    found = study(keep="results", claims=CLAIMS)
    path = tmp_path / "out" / "sum" / "seed-1.json"
    before = FinishedRun.from_json(path)
    path.unlink()
    trained.clear()
    again = study(keep="results", claims=CLAIMS)
    assert trained == [("sum/seed-1", False)]
    assert again.table == found.table
    assert again.claims == found.claims
    after = FinishedRun.from_json(path)
    assert (after.results, after.record["key"]) == (before.results, before.record["key"])
    assert len(StudyRecord.read(tmp_path / "out").openings) == 1


def test_runs_that_were_trained_with_their_models_are_turned_into_files(study, trained, tmp_path):
    found = study()
    trained.clear()
    again = study(keep="results")
    assert trained == []
    assert numbers(again) == numbers(found)
    assert not list((tmp_path / "out").rglob("model"))


def test_a_question_that_a_file_does_not_answer_is_said(study, tmp_path):
    study(keep="results")
    with pytest.raises(
        UserError, match=r"max/seed-0\.json: has no answer to MedR of the test split, and its model was"
    ):
        study(keep="results", evaluation={"measures": ["MedR"]})


def test_a_file_of_other_settings_is_refused_and_again_replaces_it(study, base, trained, tmp_path):
    study(keep="results")
    other = [{"name": "max", "loss.margin": 0.3}, {"name": "sum", "loss": "sum_of_hinges"}]
    with pytest.raises(UserError, match=r"max/seed-0\.json: is of other settings: loss\.margin: .* then, 0\.3 now"):
        study(keep="results", arms=other)
    trained.clear()
    study(keep="results", arms=other, options={"again": True})
    assert [name for name, _ in trained] == ["max/seed-0", "max/seed-1"]


def test_a_choice_that_is_written_down_needs_no_trials(study, trained, tmp_path):
    found = study(keep="results", search=SEARCH)
    shutil.rmtree(tmp_path / "out" / ".trials")
    trained.clear()
    again = study(keep="results", search=SEARCH)
    assert trained == []
    assert again.chosen == found.chosen
    assert again.table == found.table


def test_the_winner_alone_is_tested_where_results_alone_are_kept(study, asked, tmp_path):
    found = study(keep="results", test="winner")
    assert {name.split("/")[0] for name, split in asked if split == "test"} == {found.winner}
    assert not list((tmp_path / "out").rglob("model"))


def test_claims_are_judged_on_the_test_split(study, tmp_path):
    found = study(claims=CLAIMS)
    (one,) = found.claims
    assert one.verdict in ("holds", "does not show", "contradicted here")
    assert (one.difference.baseline, one.difference.system) == ("max", "sum")
    folders = [tmp_path / "out" / "max", tmp_path / "out" / "sum"]
    compared = rungwise.compare(*folders, primary="rsum", draws=20_000)["rsum"]
    assert one.difference.pictures == compared.pictures
    assert "The sum beats the max." in one.lines()[0]
    assert study().claims == ()


def test_no_claim_is_judged_as_long_as_the_test_split_is_closed(study):
    assert study(options={"dry_run": True}, claims=CLAIMS).claims == ()
