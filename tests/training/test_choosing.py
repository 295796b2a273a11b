"""Which epoch a run keeps, when it ends, and what degrees it makes on the way: from configuration to run folder."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError, load_yaml
from rungwise.data import ImageCaptions, read
from rungwise.losses import Ladder
from rungwise.relevance import CIDErD
from rungwise.training.config import BestEpoch, DataConfig, TrainConfig, config_of
from rungwise.training.engine import Validation, train
from rungwise.training.engine import _loop as loop
from tests.training.conftest import Said, dies_at
from tests.training.distributed.test_processes import finished, torchrun
from tests.training.test_features import folder_of_features, small


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> ImageCaptions:
    return read(folder_of_features(tmp_path_factory.mktemp("features") / "data", (7,)))


def scripted(patch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Let validation find these values, one after the other."""
    following: Iterator[float] = iter(values)
    usual = Validation.measure

    def measure(validation: Validation, *rest: object) -> dict[str, float]:
        return {**usual(validation, *rest), validation.config.name: next(following)}  # type: ignore[arg-type]

    patch.setattr(Validation, "measure", measure)


@pytest.mark.parametrize(
    ("measure", "values", "best", "done"),
    [
        ("MAP", [1.0, 3.0, 2.0, 3.0, 9.0], 2, 4),
        ("MedR", [9.0, 3.0, 5.0, 2.0, 2.0, 2.0], 4, 6),
        ("i2t/MRR", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 6, 6),
        ("MRR", [float("nan"), 2.0, float("nan"), 1.0, 5.0, 6.0], 2, 4),
    ],
)
def test_a_run_ends_when_its_patience_does(
    measure: str, values: list[float], best: int, done: int, data: ImageCaptions, tmp_path: Path
) -> None:
    config = replace(small(), snapshot=BestEpoch(measure=measure, patience=2))
    with pytest.MonkeyPatch.context() as patch:
        scripted(patch, values)
        result = train(config, data, tmp_path / "run")
    assert (result.best_epoch, len(result.history), result.finished) == (best, done, True)
    assert (result.measure, result.best_value) == (measure, values[best - 1])
    assert result.best_rsum == result.history[best - 1]["rsum"]
    # The model that was kept is the one of the best epoch.
    only = train(replace(config, epochs=(best,), learning_rates=(2e-2,), snapshot=BestEpoch()), data, tmp_path / "only")
    if best < 6:
        assert len(only.history) == best
        one, other = (load_file(tmp_path / run / "checkpoint.safetensors") for run in ("run", "only"))
        kept = load_file(tmp_path / "run" / "model" / "model.safetensors")
        last = {name.removeprefix("model/"): tensor for name, tensor in other.items() if name.startswith("model/")}
        assert all(torch.equal(kept[name], tensor) for name, tensor in last.items())
        assert any(not torch.equal(one[f"model/{name}"], tensor) for name, tensor in last.items())


@pytest.mark.parametrize("cut", [9, *(pytest.param(cut, marks=pytest.mark.slow) for cut in (5, 14))])
def test_patience_survives_a_cut_to_the_bit(
    cut: int, data: ImageCaptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(small(), checkpoint_steps=2, snapshot=BestEpoch(measure="MAP", patience=2))
    values = [1.0, 3.0, 2.0, 2.5, 9.0, 9.0]
    with monkeypatch.context() as patch:
        scripted(patch, values)
        train(config, data, tmp_path / "whole")
    with monkeypatch.context() as patch:
        dies_at(patch, cut)
        scripted(patch, values)
        with pytest.raises(SystemError):
            train(config, data, tmp_path / "cut")
    state, _ = loop.load_checkpoint(tmp_path / "cut" / "checkpoint.safetensors")
    with monkeypatch.context() as patch:
        scripted(patch, values[state.epoch :])
        train(config, data, tmp_path / "cut", resume=True)
    one, other = (load_file(tmp_path / run / "checkpoint.safetensors") for run in ("whole", "cut"))
    assert one.keys() == other.keys()
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    states = [loop.load_checkpoint(tmp_path / run / "checkpoint.safetensors")[0] for run in ("whole", "cut")]
    assert [(one.epoch, one.best_epoch, one.best_value) for one in states] == [(4, 2, 3.0)] * 2
    # A run that has ended so is not taken up again.
    monkeypatch.setattr(loop._Run, "_step", None)
    assert train(config, data, tmp_path / "whole", resume=True).finished


def graded(measure: str, **data: str) -> TrainConfig:
    return replace(small(), data=DataConfig(**data), snapshot=BestEpoch(measure=measure))  # type: ignore[arg-type]


def test_graded_measures_choose(data: ImageCaptions, tmp_path: Path) -> None:
    result = train(graded("t2i/nDCG@5", relevance="cider-d"), data, tmp_path / "run", cache=tmp_path / "cache")
    values = [one["t2i/nDCG@5"] for one in result.history]
    assert result.best_value == max(values) == values[result.best_epoch - 1]
    assert len(set(values)) > 1
    lines = (tmp_path / "run" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["t2i/nDCG@5"] for line in lines] == values
    assert {"i2t/nDCG@5", "rsum", "t2i/R@1"} < json.loads(lines[0]).keys()
    # Degrees that Python hands over are by positions in the whole collection.
    source = CIDErD(data.captions, data.image_of_caption)
    given = train(graded("t2i/nDCG@5"), data, tmp_path / "given", relevance=source.dense())
    assert given.history[0]["t2i/nDCG@5"] == pytest.approx(values[0], abs=20)
    assert given.history[0]["rsum"] == result.history[0]["rsum"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (graded("nDCG@5"), "snapshot.measure: nDCG@5 needs degrees of relevance for the validation split, and there"),
        (graded("CS@100", relevance="tfidf"), "CS@100 reads 100 candidates of a query, and in the validation split"),
        (graded("nDCG@5", relevance="cbow"), "cbow needs vectors: a file of word vectors"),
        (graded("nDCG@5", relevance="./nowhere"), "data.relevance: './nowhere' is neither a folder of saved degrees"),
        (
            replace(small(), loss=config_of(Ladder)(shares=(0.1,))),
            "the loss ladder needs relevance degrees as it is set, and there are none; name a source or a folder",
        ),
    ],
)
def test_what_cannot_be_had_is_one_line_before_training(
    config: TrainConfig, message: str, data: ImageCaptions, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        train(config, data, tmp_path / "run", cache=tmp_path / "cache")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


class Object:
    """Degrees of somebody's own."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def block(self, images: np.ndarray, captions: np.ndarray) -> np.ndarray:
        return self.matrix[np.ix_(images, captions)]

    def dense(self) -> np.ndarray:
        return self.matrix


def test_shares_work_from_python_whatever_the_degrees(data: ImageCaptions, tmp_path: Path) -> None:
    config = replace(small(epochs=(1,), learning_rates=(2e-2,)), loss=config_of(Ladder)(shares=(0.2,)))
    source = CIDErD(data.captions, data.image_of_caption)
    matrix = source.dense() + np.random.default_rng(0).random(source.shape, dtype=np.float32)
    cuts, weights = [], []
    for number, given in enumerate((matrix, Object(matrix))):
        said = Said()
        train(config, data, tmp_path / str(number), relevance=given, watcher=said)
        assert sum(line.startswith("thresholds for the shares: ") for line in said.lines) == 1
        cuts.append(load_yaml(TrainConfig, tmp_path / str(number) / "config.yaml").loss.build().thresholds)  # type: ignore[attr-defined]
        weights.append(load_file(tmp_path / str(number) / "checkpoint.safetensors"))
    assert cuts[0] == cuts[1]
    assert matrix.min() < cuts[0][0] < matrix.max()
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())


def test_a_second_run_finds_the_degrees_of_the_first(data: ImageCaptions, tmp_path: Path) -> None:
    config = small(epochs=(1,), learning_rates=(2e-2,), data=DataConfig(relevance="tfidf"))
    config = replace(config, loss=config_of(Ladder)(thresholds=(0.5,)))
    said = []
    for number, one in enumerate((config, replace(config, seed=1), replace(config, loss=config_of(Ladder)()))):
        watcher = Said()
        train(one, data, tmp_path / str(number), cache=tmp_path / "cache", watcher=watcher)
        said.append([line for line in watcher.lines if line.startswith("relevance: tfidf")])
    assert [len(lines) for lines in said] == [1, 1, 1]
    assert ", made in " in said[0][0]
    assert f"kept in {tmp_path / 'cache' / 'relevance'}" in said[0][0]
    assert all(", found in " in lines[0] for lines in said[1:])


@pytest.mark.slow
def test_patience_on_two_processes_is_that_of_one(tmp_path: Path) -> None:
    folder = str(folder_of_features(tmp_path / "data", (7,)))
    (tmp_path / "run.yaml").write_text(
        """
model: {image: {kind: features}, text: {word_dimension: 8, min_count: 1}, dimension: 16}
step: global_negatives
epochs: [12]
learning_rates: [2.0e-2]
batch_size: 16
snapshot: {measure: t2i/nDCG@5, relevance: cider-d, patience: 2}
"""
    )
    asked = ("train", str(tmp_path / "run.yaml"), folder, "--device", "cpu")
    running = torchrun(*asked, "--out", str(tmp_path / "two"))
    one = train(load_yaml(TrainConfig, tmp_path / "run.yaml"), read(folder), tmp_path / "one", cache=tmp_path / "cache")
    status, said, errors = finished(running)
    assert status == 0, errors
    assert said.count("relevance: cider-d of") == 1
    two, _ = loop.load_checkpoint(tmp_path / "two" / "checkpoint.safetensors")
    assert len(one.history) < 12, "patience ended it"
    assert (two.epoch, two.best_epoch) == (len(one.history), one.best_epoch)
    assert two.best_value == pytest.approx(one.best_value, abs=1e-3)
