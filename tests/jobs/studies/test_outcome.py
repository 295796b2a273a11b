import os
from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.jobs.studies import StudiedRun, StudyOutcome
from rungwise.runs import Spread

RUNS = (
    StudiedRun("max/seed-0", Path("out/max/seed-0"), "done", 2, 2),
    StudiedRun("max/seed-1", Path("out/max/seed-1"), "begun", 1, 2),
    StudiedRun("sum/seed-0", None, "waiting for the search", 0, 0),
)
PLAN = StudyOutcome(Path("out"), RUNS, seconds_left=90.0, untimed=1)
DONE = replace(
    PLAN,
    spreads={"max": {"rsum": Spread((300.0, 310.0))}, "sum": {"rsum": Spread((200.0, 210.0))}},
    split="test",
    notes=("a remark",),
    failed={"sum/seed-1": "no memory"},
)


def test_a_plan_prints_its_runs():
    assert repr(PLAN).splitlines() == [
        "study out: 3 runs: 1 done, 1 begun, 1 waiting for the search",
        "  run         state",
        "  max/seed-0  done",
        "  max/seed-1  begun, epoch 1 of 2",
        "  sum/seed-0  waiting for the search",
    ]
    assert PLAN.time_left() == "about 90 s one after the other; and 1 run of a kind that is not timed yet"
    assert StudyOutcome(Path("out"), ()).time_left() == ""
    assert list(PLAN.to_frame().index) == ["max/seed-0", "max/seed-1", "sum/seed-0"]
    assert os.fspath(PLAN) == "out"


def test_a_study_prints_its_systems():
    assert repr(DONE).splitlines()[0].endswith("1 failed")
    assert "max     305.0 ± 7.1" in repr(DONE)
    frame = DONE.to_frame()
    assert frame.loc["sum", "rsum"] == 205.0
    assert frame.loc["sum", "rsum deviation"] == pytest.approx(7.0710678)
    html = DONE._repr_html_()
    assert "305.0 ± 7.1" in html
    assert "a remark" in html
    assert "sum/seed-1 failed: no memory" in html
    assert "| max | 305.0 ± 7.1 |" in DONE.to_markdown()
    assert DONE.to_latex().endswith("% a remark; sum/seed-1 failed: no memory")


def test_many_runs_are_cut_in_print():
    many = StudyOutcome(Path("out"), RUNS * 20)
    assert len(repr(many).splitlines()) == 12
    assert repr(many).splitlines()[-1].strip() == "... and 51 more"
