"""The best model, kept small until the end where its frozen weights are large."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.models import JointEmbedding, load
from rungwise.training.config import TrainConfig
from rungwise.training.engine import _snapshots as snapshots
from rungwise.training.engine import train
from rungwise.training.steps import AdamW
from rungwise.training.steps._schedules import OneCycleSchedule
from tests.training.conftest import TrainedRun, dies_at, once


def files_of_model(folder: Path) -> dict[str, bytes]:
    """But the card and what depends on it, which say how fast training was."""
    names = ("model.safetensors", "tokenizer.json", "preprocessing.json")
    return {name: (folder / name).read_bytes() for name in names}


def test_a_model_that_is_written_late_is_the_one_that_is_written_at_once(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, save = [], JointEmbedding.save_pretrained

    def counted(model: JointEmbedding, folder: Path, *rest: Any) -> None:
        written.append(folder)
        save(model, folder, *rest)

    monkeypatch.setattr(JointEmbedding, "save_pretrained", counted)
    monkeypatch.setattr(snapshots, "LARGE", 0)
    late, at_once = train(trained_run.config, coloured, tmp_path / "late", cache=cache), trained_run.result
    assert written == [late.model_folder]
    assert (late.best_epoch, late.best_rsum) == (at_once.best_epoch, at_once.best_rsum)
    assert files_of_model(late.model_folder) == files_of_model(at_once.model_folder)
    assert load(late.model_folder).provenance["validation"]["epoch"] == late.best_epoch


@pytest.mark.parametrize("cut", [13, *(pytest.param(cut, marks=pytest.mark.slow) for cut in (5, 16))])
def test_a_killed_run_with_late_snapshots_ends_as_if_nothing_had_happened(
    cut: int, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a schedule and decoupled decay, which store nothing either."""
    config = replace(config, epochs=(2,), learning_rates=(1e-2,), optimizer=AdamW(), schedule=OneCycleSchedule())
    monkeypatch.setattr(snapshots, "LARGE", 0)
    train(config, coloured, tmp_path / "whole", cache=cache)
    with monkeypatch.context() as patch:
        dies_at(patch, cut)
        patch.setattr(snapshots.Snapshots, "finish", lambda *rest: None)  # a kill leaves no time for it
        with pytest.raises(SystemError):
            train(config, coloured, tmp_path / "cut", cache=cache)
    assert not (tmp_path / "cut" / "model").exists()
    assert train(config, coloured, tmp_path / "cut", cache=cache, resume=True).finished
    assert files_of_model(tmp_path / "whole" / "model") == files_of_model(tmp_path / "cut" / "model")
    one, other = (load_file(tmp_path / run / "checkpoint.safetensors") for run in ("whole", "cut"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_other_frozen_weights_are_refused(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config = once(trained_run.config)
    weights = load_file(trained_run.folder / "model" / "model.safetensors")
    network = {name.removeprefix("backbone.network."): one for name, one in weights.items() if "backbone" in name}
    save_file(network, tmp_path / "weights.safetensors")
    image = replace(config.model.image, weights=str(tmp_path / "weights.safetensors"))
    named = replace(config, model=replace(config.model, image=image))
    train(named, coloured, tmp_path / "named", cache=cache)
    first = next(name for name in network if network[name].ndim == 4)
    network[first] = network[first] + 1
    save_file(network, tmp_path / "weights.safetensors")
    with pytest.raises(UserError, match="started with other frozen weights"):
        train(named, coloured, tmp_path / "named", cache=cache, resume=True)
