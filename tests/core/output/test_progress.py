import io

import pytest
from rich.console import Console

from rungwise.core.output import Pace, Progress, format_duration, line


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_that_of_the_last_minute() -> None:
    clock = Clock()
    pace = Pace(10_000, clock)
    for done in range(1, 101):  # from a cache: a thousand a second
        clock.now += 0.001
        pace.left(done)
    for done in range(101, 401):  # then one a second, for five minutes
        clock.now += 1
        left = pace.left(done)
    assert left == pytest.approx(9600, rel=0.01)


def test_nothing_is_said_to_be_left_before_anything_is_known() -> None:
    clock = Clock()
    pace = Pace(10, clock)
    assert pace.left(0) is None
    clock.now = 5
    assert pace.left(0) is None
    assert pace.left(10) == 0
    assert line("pictures", 0, 10, None) == "pictures 0/10, 0 %"
    assert line("pictures", 0, 0, None) == "pictures 0/0"
    resumed = Pace(100, clock, done=90)
    clock.now += 1
    assert resumed.left(91) == 9
    assert [format_duration(one) for one in (99.4, 99.5, 3599, 86399)] == ["99 s", "2 min", "1 h 0 min", "1 day 0 h"]


def test_a_pipe_gets_a_line_every_ten_seconds_and_the_results_none(capsys: pytest.CaptureFixture[str]) -> None:
    clock, results = Clock(), io.StringIO()
    with Progress("pictures", 80, Console(file=results), clock) as progress:
        for _ in range(80):
            clock.now += 0.5
            progress.advance()
    assert capsys.readouterr().err.splitlines() == [
        "pictures 20/80, 25 %, 30 s left",
        "pictures 40/80, 50 %, 20 s left",
        "pictures 60/80, 75 %, 10 s left",
    ]
    assert results.getvalue() == ""


def test_a_terminal_gets_a_bar_with_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock, shown = Clock(), io.StringIO()
    with Progress("[b]pictures", 10, Console(file=shown, force_terminal=True, width=80), clock) as progress:
        clock.now = 60
        progress.at(5, detail="loss 1")
    text = shown.getvalue()
    assert "[b]pictures" in text
    assert "5/10" in text
    assert "60 s left" in text
    assert "loss 1" in text
    assert capsys.readouterr().err == ""
