import io

import pytest
from rich.console import Console

from rungwise.data import Issue
from rungwise.training.reports import EpochReport, StepReport, TerminalWatcher

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
