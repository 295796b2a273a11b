from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.training.config import TrainConfig
from rungwise.training.engine import train
from rungwise.training.engine._out_of_memory import for_model, for_steps, memory_explained
from rungwise.training.steps._strategies import CachedGradients, GlobalNegativesStep
from rungwise.training.tracking import StepReport, Watcher
from tests.training.conftest import trainable

CUDA = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.12 GiB is free."
)


def of_numpy() -> None:
    np.empty((1 << 45, 1024))


def of_torch() -> None:
    torch.empty(1 << 45, 1024)


def of_a_gpu() -> None:
    raise torch.cuda.OutOfMemoryError(CUDA)


def of_python() -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("fill", "asked"),
    [
        (of_numpy, ", 256. PiB more were asked for"),
        (of_torch, r", 134217728\.0 GiB more were asked for"),
        (of_a_gpu, ", 2.00 GiB more were asked for"),
        (of_python, ""),
    ],
)
def test_the_want_of_memory_is_one_line_with_the_present_values(fill, asked: str) -> None:
    with (
        pytest.raises(
            UserError, match=f"^out of memory in training on cpu{asked}: lower batch_size [(]now 64[)], "
        ) as caught,
        memory_explained("in training on cpu", lambda: for_steps(trainable(TrainConfig(batch_size=64)))),
    ):
        fill()
    assert "\n" not in str(caught.value)
    assert "{kind: cached_gradients, chunk: 16}" in str(caught.value)
    assert "gradient_checkpointing: true (now false)" in str(caught.value)
    assert "precision: bfloat16 (now float32)" in str(caught.value)


def test_other_errors_go_through() -> None:
    with pytest.raises(RuntimeError, match="shapes differ"), memory_explained("here", lambda: ""):
        raise RuntimeError("shapes differ")


def test_remedies_are_those_that_are_left() -> None:
    config = TrainConfig(step=CachedGradients(chunk=48), precision="bfloat16")
    assert for_steps(config) == "lower batch_size (now 128), or lower step.chunk (now 48)"
    assert "{kind: global_negatives, chunk: 32}" in for_steps(replace(config, step=GlobalNegativesStep()))
    assert "model.image.backbone" in for_model(config)


def test_a_run_says_it_and_what_stood_stays(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    class Full(Watcher):
        def step(self, report: StepReport) -> None:
            if report.total_step > 6:
                of_a_gpu()

    with pytest.raises(UserError, match=r"in training on cpu, 2.00 GiB more .*: lower batch_size \(now 8\), .* anew$"):
        train(config, coloured, tmp_path / "run", cache=cache, watcher=Full(), device="cpu")
    assert train(config, coloured, tmp_path / "run", cache=cache, resume=True, device="cpu").finished
