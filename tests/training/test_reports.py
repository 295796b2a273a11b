import errno
import io
import threading
from pathlib import Path

import pytest
from rich.console import Console

from rungwise.data import Issue
from rungwise.training.reports import EpochReport, StepReport, TensorBoardWatcher, TerminalWatcher

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


def test_skipped_items_are_listed_and_counted() -> None:
    written = io.StringIO()
    watcher = TerminalWatcher(Console(file=written, width=80, force_terminal=False))
    watcher.skipped(tuple(Issue("unreadable picture", f"{number}.jpg", "truncated") for number in range(13)))
    lines = written.getvalue().splitlines()
    assert lines[0] == "skipped: 0.jpg: truncated"
    assert len(lines) == 11
    assert "and 3 more" in lines[-1]


def test_tensorboard_has_the_numbers(tmp_path: Path) -> None:
    watcher = TensorBoardWatcher(tmp_path, 1)
    watcher.epoch(EpochReport(235, 1, 30, NUMBERS, best=True))
    watcher.close()
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert events.Scalars("epoch/rsum")[0].value == pytest.approx(512.25)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_full_disk_ends_the_events_and_not_the_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tensorboard")
    said: list[str] = []
    hook = threading.excepthook
    watcher = TensorBoardWatcher(tmp_path, 1, said.append)
    queue = watcher.writer.file_writer.event_writer._async_writer

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    queue._writer.write = full
    for number in range(30):
        watcher.step(StepReport(number, 1, number, 30, 1.0, 10.0, batch_loss=0.4, spread=0.1))
    watcher.epoch(EpochReport(30, 1, 1, NUMBERS, best=True))
    queue._worker.join(10)
    watcher.epoch(EpochReport(30, 1, 1, NUMBERS, best=True))
    watcher.close()
    assert said == [f"{tmp_path}: no more TensorBoard events (no space left on device); the run goes on without them"]
    assert "Traceback" not in capfd.readouterr().err
    assert threading.excepthook is hook


def test_codes_in_names_never_reach_a_terminal() -> None:
    written = io.StringIO()
    TerminalWatcher(Console(file=written, width=80)).say("skipped: \x1b[2Ja.jpg")
    assert "\x1b" not in written.getvalue()
