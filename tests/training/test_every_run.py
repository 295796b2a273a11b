"""Two processes train as one does, whatever the loss; ``pytest -s`` prints how far they are apart."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from rungwise.training.engine import load_checkpoint
from tests.ports import free_port
from tests.training.every_loss import FAMILIES, PLAIN
from tests.training.every_run import RUNS, run_all
from tests.training.test_features import folder_of_features

LOSS, GRADIENT, WEIGHTS = 1e-6, 1e-4, 2e-6
"""The largest differences in float32: of an epoch's loss and of a gradient's norm as shares of them, of a weight after
the run, where weights are of the order of 0.1. Gradients of smooth NDCG have the largest, at the ends of its ramps."""


def of_two(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command += ["--master_port", str(free_port()), "-m", "tests.training.every_run", str(folder)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], env=os.environ | {"OMP_NUM_THREADS": "1"})


@pytest.mark.slow
def test_two_processes_train_to_the_weights_of_one(tmp_path: Path) -> None:
    folder_of_features(tmp_path / "data", (7,))
    running = of_two(tmp_path)
    try:
        norms = run_all(tmp_path)
        assert running.wait() == 0
    finally:
        running.kill()
    others = np.load(tmp_path / "norms.npz")
    largest = {}
    print(f"\n{'run':32} {'loss':>9} {'gradient':>9} {'weights':>9}")
    for name in RUNS:
        one, two = (tmp_path / number / name / "checkpoint.safetensors" for number in ("1", "2"))
        states = [load_checkpoint(path)[0] for path in (one, two)]
        tensors = [load_file(path) for path in (one, two)]
        assert tensors[0].keys() == tensors[1].keys()
        assert states[0].total_steps == states[1].total_steps > 4
        first, second = (np.array([row["loss"] for row in state.history]) for state in states)
        loss = np.max(np.abs(first - second) / np.abs(first))
        gradient = np.max(np.abs(np.array(norms[name]) - others[name]) / norms[name])
        trained = [key for key in tensors[0] if key.startswith(("model/", "loss/", "average/"))]
        weights = max(float((tensors[0][key] - tensors[1][key]).abs().max()) for key in trained)
        print(f"{name:32} {loss:9.1e} {gradient:9.1e} {weights:9.1e}")
        assert any(float(tensor.abs().max()) > 0 for key, tensor in tensors[0].items() if "momentum" in key), name
        largest[name] = (loss, gradient, weights)
    apart = {name: row for name, row in largest.items() if not np.all(np.array(row) < (LOSS, GRADIENT, WEIGHTS))}
    assert apart == {}


def test_no_loss_is_left_out() -> None:
    classes = {*PLAIN, "Weighted"}
    assert {type(make()).__name__ for make in FAMILIES.values()} == classes
    kinds = {type(changes["loss"]).loss_class.__name__ for changes in RUNS.values()}
    assert kinds == classes
