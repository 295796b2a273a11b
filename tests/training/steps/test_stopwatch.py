import pytest
import torch

from rungwise.training.steps import Spent, memory
from rungwise.training.steps._stopwatch import Stopwatch


def test_a_stopwatch_counts_blocks_that_fail_too() -> None:
    moments = iter([0.0, 1.5, 4.0, 4.25])
    watch = Stopwatch(clock=lambda: next(moments))
    with watch:
        pass
    with pytest.raises(ValueError), watch:
        raise ValueError
    assert watch.seconds == 1.75


def test_a_person_reads_what_time_and_memory_went_to(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Spent(Stopwatch(), steps=200.0)
    spent.data.seconds, spent.validation.seconds = 8.0, 12.5
    monkeypatch.setattr(
        "rungwise.training.steps._stopwatch.memory", lambda device: {"peak_memory_gb": 1.5, "peak_gpu_memory_gb": 3}
    )
    assert spent.summary(3, 215.0, torch.device("cpu")) == (
        "3 epochs in 215.0 s: 200.0 s of steps (4 % of that waiting for data), 12.5 s of validation; peak memory"
        " 1.50 GB, 3.00 GB of the GPU"
    )
    monkeypatch.setattr("rungwise.training.steps._stopwatch.memory", lambda device: {})
    assert spent.summary(1, 1.0, torch.device("cpu")).endswith("12.5 s of validation")


def test_names_are_those_of_the_history() -> None:
    assert memory(torch.device("cpu")).keys() <= {"peak_memory_gb"}
