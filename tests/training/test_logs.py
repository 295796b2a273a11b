import errno
import threading
from pathlib import Path

import pytest

from rungwise.training.logs import TensorBoardWatcher
from rungwise.training.reports import EpochReport, StepReport

NUMBERS = {"learning_rate": 2e-4, "loss": 21.7852, "pairs_per_second": 123456.0, "rsum": 512.25}


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
