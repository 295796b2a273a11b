"""Which heavy libraries each public package and each command loads: no more than it uses.

A library that is missing from a line here is imported inside the function that uses it. Whoever finds that a line lists
one that is not loaded any more takes it out.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rungwise.cli import COMMANDS, main
from tests.house import modules, room_of
from tests.published import photos

HEAVY = {
    "PIL", "accelerate", "datasets", "faiss", "fastapi", "grpc", "huggingface_hub", "httpx", "lance", "lancedb",
    "lemminflect", "matplotlib", "mlflow", "nltk", "numba", "numpy", "onnx", "onnxruntime", "open_clip", "pandas",
    "prometheus_client", "pyarrow", "pydantic", "pymilvus", "ray", "requests", "safetensors", "scipy",
    "sentence_transformers", "sklearn", "starlette", "tensorboard", "timm", "tokenizers", "torch", "torchvision",
    "transformers", "uvicorn", "wandb", "watchfiles",
}  # fmt: skip
"""What takes longer than some hundredths of a second."""

PACKAGES = {
    "rungwise": "",
    "rungwise.calibration": "",
    "rungwise.cli": "",
    "rungwise.core": "",
    "rungwise.core.compute._topk": "numpy",
    "rungwise.data": "",
    "rungwise.demo": "",
    "rungwise.doctor": "",
    "rungwise.encoders": "",
    "rungwise.evaluation": "",
    "rungwise.grading": "",
    "rungwise.index": "",
    "rungwise.integrations": "",
    "rungwise.jobs": "",
    "rungwise.language": "",
    "rungwise.metrics": "numpy",
    "rungwise.model_server": "",
    "rungwise.models": "",
    "rungwise.parts": "",
    "rungwise.planning": "",
    "rungwise.quality": "",
    "rungwise.relevance": "",
    "rungwise.runs": "",
    "rungwise.scenes": "",
    "rungwise.serving": "",
    "rungwise.similarity": "",
    "rungwise.training": "",
}
"""What importing a package, or a module that light programs use, loads."""

WITH_TORCH = {
    "rungwise.losses": "numpy pydantic torch",
    "rungwise.training.config._run": "PIL numpy pydantic safetensors tokenizers torch",
    "rungwise.training.engine._loop": "PIL numpy pydantic safetensors scipy tokenizers torch",
}
"""The same of those that compute with tensors."""

HELP = {"relevance": "numpy pydantic", "train": "pydantic"}
"""What ``--help`` of a command loads, and an option that there is not; nothing for any other command."""

USES = {
    "index photos": "PIL numpy pydantic safetensors",
    "index compact photos.index": "PIL numpy pydantic",
    "inspect photos": "PIL numpy pydantic",
    "search photos.index --where 'year > 2020'": "PIL numpy pydantic",
    "presets": "pydantic",
    "plan 1M": "pydantic",
}
"""What commands load that are given a folder of pictures, and its index in which nothing is to be changed."""

USES_WITH_TORCH = {
    "search photos.index 'a dog'": "PIL numpy pydantic safetensors scipy tokenizers torch",
    "doctor photos": "PIL numpy pydantic safetensors tokenizers torch",
}
"""The same of commands that take longer."""


def loads(cases: dict[str, object], folder: Path) -> dict[str, str]:
    """The heavy modules that each case loads in a process of its own; see :mod:`tests.start_up`."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("start_up.py"))],
        cwd=folder, input=json.dumps(cases), stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return {name: " ".join(sorted(HEAVY.intersection(found))) for name, found in json.loads(done.stdout).items()}


def uses(commands: dict[str, str]) -> dict[str, object]:
    return {line: [(shlex.split(line), 0)] for line in commands}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With pictures, and an index that a model without a backbone made."""
    import torch

    from rungwise.encoders.images import ConvolutionsConfig
    from rungwise.encoders.texts import GRUConfig
    from rungwise.models import JointEmbedding, VSEConfig

    folder = tmp_path_factory.mktemp("start_up")
    (folder / "photos").mkdir()
    lines = ["image,caption,year"]
    for number, file in enumerate(photos()):
        (folder / "photos" / f"{number}.jpg").write_bytes(file)
        lines.append(f"{number}.jpg,a dog,{2018 + number}")
    (folder / "photos" / "captions.csv").write_text("\n".join(lines))
    torch.manual_seed(0)
    config = VSEConfig(
        image=ConvolutionsConfig(size=8, channels=(4,), halving=()), text=GRUConfig(8, min_count=1), dimension=8
    )
    JointEmbedding.create(config, ["a dog"]).save_pretrained(folder / "model")
    options = ["--model", str(folder / "model"), "--store", "exact"]
    assert main(["index", str(folder / "photos"), *options]) == 0
    return folder


def test_every_room_has_its_line():
    rooms = {f"rungwise.{room_of(module)}".rstrip(".") for module in modules()}
    assert rooms - {"rungwise.__main__", "rungwise._exports"} == {
        one for one in {**PACKAGES, **WITH_TORCH} if one.count(".") < 2
    }


@pytest.mark.smoke
def test_a_package_loads_what_it_uses(tmp_path: Path):
    assert loads(dict(zip(PACKAGES, PACKAGES, strict=True)), tmp_path) == PACKAGES


@pytest.mark.slow
def test_a_package_that_computes_with_tensors_loads_what_it_uses(tmp_path: Path):
    assert loads(dict(zip(WITH_TORCH, WITH_TORCH, strict=True)), tmp_path) == WITH_TORCH


@pytest.mark.smoke
def test_help_and_refused_options_load_next_to_nothing(tmp_path: Path):
    of_all = [(["--help"], 0), (["--version"], 0), (["no-such-command"], 2)]
    cases = {name: [([name, "--help"], 0), ([name, "--no-such-option"], 2)] for name in COMMANDS}
    assert loads({"": of_all, **cases}, tmp_path) == {"": "", **{name: HELP.get(name, "") for name in COMMANDS}}


@pytest.mark.smoke
def test_a_command_loads_what_it_uses(folder: Path):
    """An index in which nothing is to be changed opens no model."""
    assert loads(uses(USES), folder) == USES


@pytest.mark.slow
def test_a_command_that_computes_loads_what_it_uses(folder: Path):
    assert loads(uses(USES_WITH_TORCH), folder) == USES_WITH_TORCH
