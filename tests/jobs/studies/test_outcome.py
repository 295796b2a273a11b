import os
from dataclasses import replace
from pathlib import Path

from rungwise.evaluation.tables import Block, Cell, ResultTable, TableLine
from rungwise.jobs.studies import StudiedRun, StudyOutcome

RUNS = (
    StudiedRun("max/seed-0", Path("out/max/seed-0"), "done", 2, 2),
    StudiedRun("max/seed-1", Path("out/max/seed-1"), "begun", 1, 2),
    StudiedRun("sum/seed-0", None, "waiting for the search", 0, 0),
)
PLAN = StudyOutcome(Path("out"), RUNS, seconds_left=90.0, untimed=1)
DONE = replace(
    PLAN,
    table=ResultTable(
        "losses: test split",
        (
            Block(
                "flickr8k",
                ("rsum",),
                (
                    TableLine("max, 2 seeds", {"rsum": Cell(305.0, 7.07, mark="best")}),
                    TableLine("sum, 2 seeds", {"rsum": Cell(205.0, 7.07)}),
                ),
            ),
        ),
        marks=("a remark",),
    ),
    split="test",
    failed={"sum/seed-1": "no memory"},
)


def test_a_plan_prints_its_runs():
    assert repr(PLAN).splitlines() == [
        "study out: 3 runs: 1 done, 1 begun, 1 waiting for the search",
        "  max/seed-0  done",
        "  max/seed-1  begun, epoch 1 of 2",
        "  sum/seed-0  waiting for the search",
    ]
    assert PLAN.time_left() == "about 90 s one after the other; and 1 run of a kind that is not timed yet"
    assert StudyOutcome(Path("out"), ()).time_left() == ""
    assert list(PLAN.to_frame().index) == ["max/seed-0", "max/seed-1", "sum/seed-0"]
    assert os.fspath(PLAN) == "out"


def test_a_study_prints_its_systems():
    assert repr(DONE).splitlines()[0] == "study out: 3 runs: 1 done, 1 begun, 1 waiting for the search"
    assert "max, 2 seeds 305.0 ±7.1*" in repr(DONE)
    frame = DONE.to_frame()
    assert frame.loc["sum, 2 seeds", "value"] == 205.0
    html = DONE._repr_html_()
    assert "<strong>305.0 ±7.1</strong>" in html
    assert "a remark" in html
    assert "sum/seed-1 failed: no memory" in html
    assert "| max, 2 seeds | **305.0 ±7.1** |" in DONE.to_markdown()
    assert DONE.to_latex().endswith("% a remark; sum/seed-1 failed: no memory")


def test_many_runs_are_cut_in_print():
    many = StudyOutcome(Path("out"), RUNS * 20)
    assert len(repr(many).splitlines()) == 12
    assert repr(many).splitlines()[-1].strip() == "... and 50 more"
