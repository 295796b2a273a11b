import json
from dataclasses import replace

import pytest

from rungwise.core import UserError
from rungwise.runs.study import (
    RUN_RECORD,
    STUDY_RECORD,
    ChosenTrial,
    Machine,
    Opening,
    StudyRecord,
    StudyRun,
    TriedSettings,
    identity_of_run,
    opened_for_others,
)
from tests.training.conftest import small_config

MACHINE = Machine("cpu", "Xeon", True, "bfloat16", 2, "2.6")


def test_a_run_is_known_again(tmp_path):
    identity = identity_of_run(small_config(), "data")
    record = StudyRun.of(identity).on(MACHINE).on(MACHINE)
    assert StudyRun.read(tmp_path) is None
    record.write(tmp_path)
    found = StudyRun.read(tmp_path)
    assert found == record
    assert found.identity.key == identity.key
    assert found.machines == (MACHINE,)
    assert found.on(replace(MACHINE, bfloat16=False)).machines[1].bfloat16 is False


@pytest.mark.parametrize("part", ["settings", "key", "machines", "format"])
def test_an_altered_record_is_refused(part, tmp_path):
    StudyRun.of(identity_of_run(small_config(), "data")).write(tmp_path)
    path = tmp_path / RUN_RECORD
    values = json.loads(path.read_text())
    values[part] = {"settings": {"seed": 9}, "key": "0", "machines": [1], "format": "rungwise-study-run/9"}[part]
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=RUN_RECORD) as caught:
        StudyRun.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_study_is_known_again(tmp_path):
    assert StudyRecord.read(tmp_path) == StudyRecord()
    trials = (
        TriedSettings({"loss.margin": 0.1}, 300.5, "a", 9.5),
        TriedSettings({"loss.margin": 0.2}, float("nan"), "b", 9.0),
    )
    chosen = ChosenTrial("rsum", 2, trials, 1, "val")
    record = StudyRecord({"max": chosen}, (Opening("2026-01-02", (0, 1), {"max": {"epochs": [1]}}),))
    record.write(tmp_path)
    found = StudyRecord.read(tmp_path)
    assert found.searches["max"].values == {"loss.margin": 0.1}
    assert found.openings == record.openings
    (tmp_path / STUDY_RECORD).write_text("{}")
    with pytest.raises(UserError, match=r"study\.json: is not a rungwise-study/1 file.*or name another folder"):
        StudyRecord.read(tmp_path)
    replace(record, searches={"max": replace(chosen, chosen=3)}).write(tmp_path)
    with pytest.raises(UserError, match="the chosen trial of max is none of its trials"):
        StudyRecord.read(tmp_path)


def test_what_was_chosen_after_the_test_split_was_seen_is_said():
    first = Opening("2026-01-02", (0, 1), {"max": {"loss": {"margin": 0.2}}, "sum": {}})
    record = StudyRecord().opened(first)
    assert record.opened(replace(first, date="2026-01-03")) == record
    assert opened_for_others(record) == opened_for_others(StudyRecord()) == ()
    later = record.opened(Opening("2026-01-04", (0, 1, 2), {"max": {"loss": {"margin": 0.3}}, "best": {}}))
    assert opened_for_others(later) == (
        "the test split was opened on 2026-01-02 for other systems: sum was taken out; best was added;"
        " max: loss.margin: 0.2 then, 0.3 now; seeds 0 1 then, 0 1 2 now",
    )


def test_systems_with_the_same_change_are_said_together():
    systems = [f"arm-{number}" for number in range(40)]
    then, now = ({name: {"precision": word} for name in systems} for word in ("auto", "float32"))
    record = StudyRecord().opened(Opening("2026-01-02", (0,), then)).opened(Opening("2026-01-03", (0,), now))
    (line,) = opened_for_others(record)
    assert line.endswith("arm-9, arm-10, ... (40): precision: 'auto' then, 'float32' now")


def test_a_choice_that_was_taken_back_is_said_too():
    one, other = Opening("2026-01-02", (0,), {"a": {"x": 1}}), Opening("2026-01-03", (0,), {"a": {"x": 2}})
    record = StudyRecord().opened(one).opened(other).opened(replace(one, date="2026-01-04"))
    assert [line.partition(": ")[2] for line in opened_for_others(record)] == [
        "an earlier choice was taken back since",
        "a: x: 2 then, 1 now",
    ]
