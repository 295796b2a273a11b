import errno
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import unsealed
from rungwise.data import ImageCaptions
from rungwise.training import STEPS
from rungwise.training.engine import train
from rungwise.training.tracking import EpochReport, StepReport, Watcher
from rungwise.training.tracking._logs import StepsWatcher, TensorBoardWatcher
from tests.training.conftest import TrainedRun, files, once

NUMBERS = {"learning_rate": 2e-4, "loss": 21.7852, "pairs_per_second": 123456.0, "rsum": 512.25}


def test_tensorboard_has_the_numbers(tmp_path: Path) -> None:
    watcher = TensorBoardWatcher(tmp_path, 1)
    watcher.epoch(EpochReport(235, 1, 30, NUMBERS, best=True))
    watcher.close()
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert events.Scalars("epoch/rsum")[0].value == pytest.approx(512.25)


def test_no_thread_of_tensorboard_stays_after_a_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    before = set(threading.enumerate())
    watcher = TensorBoardWatcher(tmp_path, 1)
    watcher.epoch(EpochReport(235, 1, 30, NUMBERS, best=True))
    watcher.close()
    assert set(threading.enumerate()) <= before


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
    queue._worker.join()
    watcher.epoch(EpochReport(30, 1, 1, NUMBERS, best=True))
    watcher.close()
    assert said == [f"{tmp_path}: no more TensorBoard events (no space left on device); the run goes on without them"]
    assert "Traceback" not in capfd.readouterr().err
    assert threading.excepthook is hook


def reported(total_step: int, loss: float = 0.5) -> StepReport:
    return StepReport(total_step, 1, total_step, 30, loss, 100.0, 0.4, float("nan"), 2, 1.5, 1e-3, 4.0, 0.25)


def numbers_in(path: Path) -> list[tuple[int, float]]:
    return [(one["total_step"], one["loss"]) for one in map(json.loads, path.read_text().splitlines())]


def test_lines_of_steps_say_what_a_laboratory_plots(tmp_path: Path) -> None:
    watcher = StepsWatcher(tmp_path / STEPS, 1)
    watcher.step(reported(10))
    watcher.saving()
    assert unsealed((tmp_path / STEPS).read_bytes()) == {
        "total_step": 10, "epoch": 1, "loss": 0.5, "learning_rate": 1e-3, "gradient_norm": 1.5, "spread": None,
        "pairs_per_second": 100.0, "seconds": 4.0, "data_seconds": 0.25,
    }  # fmt: skip


def test_lines_are_written_once_a_second_at_most(tmp_path: Path) -> None:
    moments = iter([0.0, 0.5, 1.0, 1.0, 1.5])
    watcher = StepsWatcher(tmp_path / STEPS, 1, clock=lambda: next(moments))
    watcher.step(reported(10))
    assert not (tmp_path / STEPS).exists()
    watcher.step(reported(20))
    watcher.step(reported(30))
    assert numbers_in(tmp_path / STEPS) == [(10, 0.5), (20, 0.5)]


@pytest.mark.parametrize("torn", ["", '{"total_step": 30, "lo', "\0\0\0", "[1]\n", '{"step": 1}\n'])
def test_a_resumed_run_replaces_the_lines_that_it_repeats(torn: str, tmp_path: Path) -> None:
    path = tmp_path / STEPS
    first = StepsWatcher(path, 1)
    for step in (10, 20, 30):
        first.step(reported(step))
    first.close()
    with path.open("a") as file:
        file.write(torn)
    second = StepsWatcher(path, 21)
    assert numbers_in(path) == [(10, 0.5), (20, 0.5)]
    second.step(reported(30, 0.25))
    second.close()
    assert numbers_in(path) == [(10, 0.5), (20, 0.5), (30, 0.25)]


def test_lines_that_cannot_be_written_do_not_end_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    watcher = StepsWatcher(tmp_path / STEPS, 1, said.append)
    (tmp_path / STEPS).mkdir()
    for step in (10, 20):
        watcher.step(reported(step))
        watcher.saving()
    (line,) = said
    assert line.startswith(f"{tmp_path / STEPS}: no more lines of steps (")
    assert line.endswith("; the run goes on without them")


def test_a_link_in_their_place_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine\n")
    (tmp_path / STEPS).symlink_to(other)
    said: list[str] = []
    with pytest.raises(UserError, match="a link stands here"):
        StepsWatcher(tmp_path / STEPS, 1, said.append)
    assert other.read_text() == "mine\n"


def test_a_run_writes_what_its_configuration_names(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    class Cut(Watcher):
        def step(self, report: StepReport) -> None:
            if report.total_step > steps:
                raise KeyboardInterrupt

    expected = numbers_in(trained_run.folder / STEPS)
    steps = expected[len(expected) // 2][0]
    config = replace(trained_run.config, logs=("jsonl",))
    with pytest.raises(KeyboardInterrupt):
        train(config, coloured, tmp_path / "cut", cache=cache, watcher=Cut())
    train(config, coloured, tmp_path / "cut", cache=cache, resume=True)
    assert numbers_in(tmp_path / "cut" / STEPS) == expected
    assert {"config.yaml", "model", "checkpoint.safetensors", "history.jsonl", STEPS} == files(tmp_path / "cut")
    last = trained_run.result.history[-1]
    assert 0 <= last["data_seconds"] <= last["seconds"]
    assert last["validation_seconds"] > 0
    assert last["peak_memory_gb"] > 0.05
    assert train(replace(once(config), logs=()), coloured, tmp_path / "silent", cache=cache).finished
    assert {"config.yaml", "model", "checkpoint.safetensors", "history.jsonl"} == files(tmp_path / "silent")
