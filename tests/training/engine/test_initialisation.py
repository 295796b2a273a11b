"""Runs that begin from another model, and what the configuration says of it. Also tests
rungwise.training.config._fine_tuning.
"""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError, dump_yaml, load_yaml
from rungwise.data import ImageCaptions
from rungwise.encoders import AdapterHead, LinearHead
from rungwise.encoders._heads import MLPHead, StackHead
from rungwise.losses import ContrastiveSum
from rungwise.models import load
from rungwise.training.config import NewHeads, TrainConfig, WholeModel, config_of, load_config
from rungwise.training.config._fine_tuning import WeightsThatFit
from rungwise.training.engine import read_state, started_from, train
from rungwise.training.steps import LearningRates
from rungwise.training.tracking import EpochReport
from tests.published import Published
from tests.training.conftest import TrainedRun, once, trainable
from tests.training.engine.test_loop import Diary


@pytest.fixture
def start(trained_run: TrainedRun, cache: Path) -> tuple[TrainConfig, Path, Path]:
    """A configuration of one epoch, a model to begin from, and a cache."""
    return once(trained_run.config, 1e-2), trained_run.result.model_folder, cache


def vectors(folder: Path, data: ImageCaptions, cache: Path) -> list[np.ndarray]:
    model = load(folder)
    return [model.encode_image(list(data.paths), cache=cache).vectors, model.encode_text(data.captions)]


@pytest.mark.parametrize(
    "tune", [None, WholeModel(image=False), NewHeads(image=AdapterHead(hidden=4), text=AdapterHead(hidden=4))]
)
def test_a_run_without_steps_that_move_gives_the_model_it_began_from(
    tune: WholeModel | NewHeads, start: tuple[TrainConfig, Path, Path], coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, model, cache = start
    begun = replace(config, start=str(model), tune=tune, learning_rates=(0.0,))
    result = train(begun, coloured, tmp_path / "run", cache=cache)
    for here, there in zip(vectors(result.model_folder, coloured, cache), vectors(model, coloured, cache), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-5)


def test_new_heads_learn_while_the_encoders_stay(
    start: tuple[TrainConfig, Path, Path], coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, model, cache = start
    config = replace(
        config,
        start=str(model),
        tune=NewHeads(image=AdapterHead(hidden=8), text=LinearHead()),
        loss=config_of(ContrastiveSum)(reduction="mean"),
        epochs=(3,),
    )
    diary = Diary()
    result = train(config, coloured, tmp_path / "run", cache=cache, watcher=diary)
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    assert any(line.startswith(f"from {model}: image encoder, text encoder") for line in diary.said)
    before, after = load_file(model / "model.safetensors"), load_file(result.model_folder / "model.safetensors")
    backbone = [name for name in before if name.startswith("backbone")]
    assert all(torch.equal(before[name], after[name]) for name in backbone)
    assert not torch.equal(before["image_projection.weight"], after["image_projection.0.weight"])
    again = train(replace(config, epochs=(4,)), coloured, tmp_path / "run", cache=cache, resume=True)
    assert again.finished
    assert load_yaml(TrainConfig, tmp_path / "run" / "config.yaml").tune == config.tune


def test_weights_that_fit_are_taken_and_said(
    start: tuple[TrainConfig, Path, Path], coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, model, cache = start
    mlp = MLPHead(hidden=(8,))
    convse = replace(config.model, image_head=StackHead(of=(LinearHead(), mlp)), text_head=mlp)
    diary = Diary()
    config = replace(config, start=str(model), tune=WeightsThatFit(), model=convse)
    assert train(config, coloured, tmp_path / "run", cache=cache, watcher=diary).finished
    assert any("text encoder, image head (2 of 6 tensors); new: text head" in line for line in diary.said)


def test_fine_tuning_with_recomputed_layers_takes_the_same_steps(
    start: tuple[TrainConfig, Path, Path], coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, model, cache = start
    config = replace(trainable(config), start=str(model))
    found = []
    for name, recompute in (("plain", False), ("recomputed", True)):
        result = train(replace(config, gradient_checkpointing=recompute), coloured, tmp_path / name, cache=cache)
        found.append((result.history[0]["loss"], load_file(tmp_path / name / "checkpoint.safetensors")))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    head = "model/image_projection.weight"
    torch.testing.assert_close(found[0][1][head], found[1][1][head], atol=1e-4, rtol=1e-3)
    frozen = replace(config, tune=WholeModel(image=False), gradient_checkpointing=True)
    with pytest.raises(UserError, match="no encoder that is trained has gradient checkpointing"):
        train(frozen, coloured, tmp_path / "frozen", cache=cache)


def test_mistakes_have_one_line(config: TrainConfig, coloured: ImageCaptions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tune: new_heads needs a model to begin from, .* give --start MODEL"):
        train(replace(config, tune=NewHeads()), coloured, tmp_path / "run")
    with pytest.raises(UserError, match="config.json is missing"):
        train(replace(config, start=str(tmp_path)), coloured, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_begins_from_the_folder_of_another_run(
    start: tuple[TrainConfig, Path, Path], coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, model, cache = start
    begun = replace(config, start=str(model.parent), tune=WholeModel(image=False), learning_rates=(0.0,))
    result = train(begun, coloured, tmp_path / "run", cache=cache)
    assert read_state(tmp_path / "run" / "checkpoint.safetensors").start_hash == load(model).fingerprint
    for here, there in zip(vectors(result.model_folder, coloured, cache), vectors(model, coloured, cache), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-5)
    assert started_from(str(model)) == str(model)


def test_a_run_that_is_not_finished_is_no_start(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    class Impatient(Diary):
        def epoch(self, report: EpochReport) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "half"
    assert not train(config, coloured, out, cache=cache, watcher=Impatient()).finished
    with pytest.raises(
        UserError, match=r"the run is not finished \(epoch 1\); resume it, or begin from its best model"
    ):
        train(replace(config, start=str(out)), coloured, tmp_path / "run", cache=cache)
    assert not (tmp_path / "run").exists()
    assert train(config, coloured, out, cache=cache, resume=True).finished
    assert started_from(str(out)) == str(out / "model")


def test_the_model_that_a_run_began_from_may_move_and_not_change(
    start: tuple[TrainConfig, Path, Path], coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, model, cache = start
    for name in ("here", "there"):
        shutil.copytree(model, tmp_path / name)
    begun = replace(config, start=str(tmp_path / "here"))
    train(begun, coloured, tmp_path / "run", cache=cache)
    moved, other = replace(begun, start=str(tmp_path / "there")), replace(begun, start=str(tmp_path / "run"))
    assert train(moved, coloured, tmp_path / "run", cache=cache, resume=True).finished
    with pytest.raises(UserError, match="the run began from another model than .*run is now"):
        train(other, coloured, tmp_path / "run", cache=cache, resume=True)


@pytest.mark.parametrize("tune", ["whole", "new_heads", "weights", "{kind: new_heads, text: none, image: residual}"])
def test_what_is_written_is_read_back(tune: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(f"start: there\ntune: {tune}\n")
    config = load_yaml(TrainConfig, path)
    path.write_text(dump_yaml(config))
    assert load_yaml(TrainConfig, path) == config


@pytest.mark.parametrize(
    ("library", "name"), [("hf", "clip"), pytest.param("open_clip", "open_clip", marks=pytest.mark.slow)]
)
def test_published_models_are_improved_and_fine_tuned(
    library: str, name: str, published: Published, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    source = f"{library}:{getattr(published, name)}"
    before = load(source, "cpu")
    improve = replace(load_config("improve"), start=source, epochs=(1,), batch_size=16)
    still = train(replace(improve, learning_rates=(0.0,)), coloured, tmp_path / "still", cache=cache)
    same = load(still.model_folder, "cpu").encode_text(coloured.captions)
    np.testing.assert_allclose(same, before.encode_text(coloured.captions), atol=1e-5)
    moved = train(replace(improve, learning_rates=(1e-2,)), coloured, tmp_path / "moved", cache=cache)
    assert not np.allclose(load(moved.model_folder, "cpu").encode_text(coloured.captions), same, atol=1e-3)
    whole = replace(
        improve,
        tune=WholeModel(),
        rates=LearningRates(image=0.5, layer_decay=0.5),
        gradient_checkpointing=True,
        batch_size=8,
    )
    tuned = load(train(whole, coloured, tmp_path / "tuned", cache=cache).model_folder, "cpu")
    for side in ("backbone", "text_encoder"):
        pairs = zip(getattr(tuned, side).parameters(), getattr(before, side).parameters(), strict=True)
        assert any(not torch.equal(here, there) for here, there in pairs)
