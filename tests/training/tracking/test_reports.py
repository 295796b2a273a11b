import io
import re

import pytest
from rich.console import Console

from rungwise.data import Issue
from rungwise.training.tracking import EpochReport, StepReport, TerminalWatcher

NUMBERS = {"learning_rate": 2e-4, "loss": 21.7852, "pairs_per_second": 123456.0, "rsum": 512.25}


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_fit_eighty_columns(terminal: bool) -> None:
    written = io.StringIO()
    watcher = TerminalWatcher(Console(file=written, width=80, force_terminal=terminal, color_system=None))
    watcher.work("train features", 3, 10)
    watcher.say("train: 10 pictures")
    step = StepReport(40, 1, 40, 235, 21.7, 1234.5, batch_loss=0.4, spread=0.1)
    watcher.step(step)
    watcher.epoch(EpochReport(235, 1, 30, NUMBERS, best=True))
    watcher.step(step)
    watcher.close()
    text = written.getvalue()
    assert "epoch  1/30  lr 2e-04  loss 21.7852  123456 pairs/s  val rsum  512.2  kept" in text
    if not terminal:
        assert max(map(len, text.splitlines())) <= 80
        assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("measure", "value", "end"),
    [
        ("t2i/CS@100", 0.25, "  123456 pairs/s  val t2i/CS@100 0.2500"),
        ("labels/MAP", 26.54, "  123456 pairs/s  val labels/MAP   26.5"),
        ("SR@10(m=1,non_gt,lists=30)", 7.0, "loss 21.7852  val SR@10(m=1,non_gt,lists=30)    7.0"),
    ],
)
def test_the_measure_that_chooses_is_shown(measure: str, value: float, end: str) -> None:
    written = io.StringIO()
    watcher = TerminalWatcher(Console(file=written, width=80, force_terminal=False))
    watcher.epoch(EpochReport(235, 1, 30, NUMBERS | {measure: value}, best=False, measure=measure))
    assert written.getvalue().rstrip().endswith(end)
    assert max(map(len, written.getvalue().splitlines())) <= 80


@pytest.mark.parametrize(
    ("loss", "measure", "line"),
    [
        (
            "sum_of_hinges",
            "rsum",
            "epoch  1/30  lr 2e-04  sum_of_hinges 21.7852  123456 pairs/s  val rsum  512.2",
        ),
        (
            "semantic_adaptive_margin",
            "rsum",
            "epoch  1/30  lr 2e-04  semantic_adaptive_margin 21.7852  val rsum  512.2",
        ),
        (
            "semantic_adaptive_margin",
            "SR@10(m=1,non_gt,lists=30)",
            "epoch  1/30  lr 2e-04  semantic_… 21.7852  val SR@10(m=1,non_gt,lists=30)  512.2",
        ),
    ],
)
def test_an_epoch_names_its_loss(loss: str, measure: str, line: str) -> None:
    written = io.StringIO()
    watcher = TerminalWatcher(Console(file=written, width=80, force_terminal=False))
    numbers = NUMBERS | {measure: 512.25}
    watcher.epoch(EpochReport(235, 1, 30, numbers, best=False, measure=measure, loss_in_force=loss))
    assert written.getvalue().rstrip() == line
    assert len(line) <= 80


def test_skipped_items_are_listed_and_counted() -> None:
    written = io.StringIO()
    watcher = TerminalWatcher(Console(file=written, width=80, force_terminal=False))
    watcher.skipped(tuple(Issue("unreadable picture", f"{number}.jpg", "truncated") for number in range(13)))
    lines = written.getvalue().splitlines()
    assert lines[0] == "skipped: 0.jpg: truncated"
    assert len(lines) == 11
    assert "and 3 more" in lines[-1]


def test_codes_in_names_never_reach_a_terminal() -> None:
    written = io.StringIO()
    TerminalWatcher(Console(file=written, width=80)).say("skipped: \x1b[2Ja.jpg")
    assert "\x1b" not in written.getvalue()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def steps_from(clock: Clock, watcher: TerminalWatcher, first: int, last: int, seconds: float) -> None:
    """Steps of a run of four epochs of 100, each of so many seconds."""
    for step in range(first, last + 1, 10):
        within = (step - 1) % 100 + 1
        watcher.step(StepReport(step, (step - 1) // 100 + 1, within, 100, 0.5, 100.0, 0.4, 0.1, epochs=4))
        clock.now += 10 * seconds


def test_the_time_left_of_a_resumed_run_goes_by_the_pace_it_has_now(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    watcher = TerminalWatcher(Console(file=io.StringIO(), width=80, force_terminal=False), clock)
    steps_from(clock, watcher, 210, 240, 2.0)  # 160 steps are left after the last report, which take 320 s
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "epoch 3/4, step 240/400, 60 %, 5 min left"
    assert not any("1 s left" in line for line in said)


def test_the_time_left_counts_the_validations_to_come_and_no_pause_as_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    watcher = TerminalWatcher(Console(file=io.StringIO(), width=80, force_terminal=False), clock)
    steps_from(clock, watcher, 10, 100, 1.0)
    clock.now += 600.0
    watcher.epoch(EpochReport(100, 1, 4, NUMBERS | {"validation_seconds": 600.0}, best=True))
    steps_from(clock, watcher, 110, 140, 1.0)  # 260 steps of 1 s and three validations of 600 s: 2060 s
    assert capsys.readouterr().err.splitlines()[-1] == "epoch 2/4, step 140/400, 35 %, 34 min left"


def test_a_bar_fits_eighty_columns() -> None:
    written = io.StringIO()
    clock = Clock()
    console = Console(file=written, width=80, force_terminal=True, color_system=None)
    watcher = TerminalWatcher(console, clock)
    watcher.validated = "  rsum 512.2"
    for step in (684_490, 684_500):
        clock.now += 10.0
        watcher.step(StepReport(step, 30, step - 681_500, 23_500, 21.7852, 1234.5, 0.4, 0.1, epochs=30))
        assert watcher.progress is not None
        watcher.progress._bar.refresh()
    watcher.close()
    lines = [line for line in re.split(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]", written.getvalue()) if line.strip()]
    assert any("left" in line for line in lines)
    assert max(map(len, lines)) <= 80
