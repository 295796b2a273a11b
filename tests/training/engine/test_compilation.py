"""Compiled encoders train as others do, and what cannot be compiled is one line."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.encoders import FeatureConfig
from rungwise.models import Compilable, JointEmbedding, load
from rungwise.training.config import TrainConfig
from rungwise.training.engine import _compilation as compilation
from rungwise.training.engine import train
from rungwise.training.steps._strategies import CachedGradients
from tests.training.conftest import once, trainable
from tests.training.steps.test_optimizer_step import Heard


@pytest.mark.parametrize(
    "compiler",
    [
        "eager",  # which traces the graph and runs it as it is
        pytest.param(
            "inductor",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler: g++"),
            ],
        ),
    ],
)
def test_a_compiled_run_ends_where_the_other_does(
    compiler: str, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch
) -> None:
    """One linear layer is compiled; a whole backbone takes minutes."""
    monkeypatch.setattr(JointEmbedding, "compilable", lambda self: [Compilable(self.image_projection, True)])
    compiled_by = torch.nn.Module.compile
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **how: compiled_by(self, backend=compiler, **how))
    config, said = once(config), Heard()
    ends = []
    for how in ("no", "yes"):
        out = tmp_path / how
        train(replace(config, compile=how), coloured, out, cache=cache, watcher=said)
        ends.append(load_file(out / "checkpoint.safetensors"))
    plain, compiled = ends
    assert plain.keys() == compiled.keys(), "names of weights are those of the model as it is"
    for name in (name for name in plain if name.startswith("model/") and plain[name].is_floating_point()):
        torch.testing.assert_close(compiled[name], plain[name], atol=1e-5, rtol=1e-4, msg=name)
    assert "1 of the model's parts are compiled" in said.lines
    assert isinstance(load(tmp_path / "yes" / "model"), JointEmbedding)


def test_what_cannot_be_compiled_is_one_line(
    config: TrainConfig, coloured, cache: Path, tmp_path: Path, monkeypatch
) -> None:
    with pytest.raises(UserError, match="compile: no encoder that is trained can be compiled; a GRU is as quick"):
        train(replace(config, compile="yes"), coloured, tmp_path / "run", cache=cache)
    config = replace(trainable(config), compile="yes")
    with pytest.raises(UserError, match="compile: encoders that see a chunk twice must draw the same both times"):
        train(replace(config, step=CachedGradients(chunk=4)), coloured, tmp_path / "run", cache=cache)

    def no_compiler(*_: object) -> None:
        raise RuntimeError("No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')")

    monkeypatch.setattr(compilation, "_try_batch", no_compiler)
    with pytest.raises(
        UserError, match=r"torch found no working compiler \(No working C\+\+ .*\); install g\+\+"
    ) as caught:
        train(config, coloured, tmp_path / "run", cache=cache)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_auto_goes_on_without_a_compiler_and_says_so(config: TrainConfig, coloured, tmp_path, monkeypatch) -> None:
    """On a GPU, as far as a machine without one can tell."""
    torch.manual_seed(0)
    model = JointEmbedding.create(trainable(config).model, coloured.captions)
    before, said = model.state_dict().keys(), []

    def no_compiler(*_: object) -> None:
        raise RuntimeError("Cannot find a working triton installation")

    monkeypatch.setattr(compilation, "_try_batch", no_compiler)
    monkeypatch.setattr(JointEmbedding, "device", torch.device("cuda"))
    compilation.compile_encoders(trainable(config), model, coloured.captions, None, said.append)
    assert said == [
        "the encoders are not compiled: torch found no working compiler (Cannot find a working triton installation);"
        " install g++ (on a GPU Triton, too)"
    ]
    assert model.backbone._compiled_call_impl is None
    assert model.state_dict().keys() == before
    said.clear()
    compilation.compile_encoders(replace(config, compile="no"), model, coloured.captions, None, said.append)
    assert said == []


def test_which_parts_pay(config: TrainConfig, coloured: ImageCaptions) -> None:
    def parts(model: JointEmbedding) -> list[tuple[str, bool]]:
        names = {id(module): name for name, module in model.named_children()}
        return [(names[id(part.module)], part.one_shape) for part in model.compilable()]

    def created(**changes: object) -> JointEmbedding:
        return JointEmbedding.create(replace(config.model, **changes), coloured.captions)

    assert parts(created()) == []
    assert parts(created(image=replace(config.model.image, frozen=False))) == [("backbone", True)]
    assert FeatureConfig().frozen
