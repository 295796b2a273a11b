"""Which parameters learn how fast, and what shrinks."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.losses import ContrastiveSum
from rungwise.models import ParameterPlace
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.engine import train
from rungwise.training.steps import Adam, AdamW, LearningRates
from rungwise.training.steps._optimizers import SGD
from tests.training.conftest import trainable


def test_a_layer_learns_at_its_side_s_rate_times_the_decay_of_those_above_it() -> None:
    rates = LearningRates(image=0.1, text=0.2, heads=2.0, layer_decay=0.5)
    assert rates.factor(ParameterPlace("image", 0)) == pytest.approx(0.1)
    assert rates.factor(ParameterPlace("text", 3)) == pytest.approx(0.2 * 0.125)
    assert rates.factor(ParameterPlace()) == 2.0


def weights_after(config: TrainConfig, data: ImageCaptions, folder: Path) -> dict[str, torch.Tensor]:
    train(config, data, folder, cache=folder.parent / "cache")
    return load_file(folder / "checkpoint.safetensors")


def test_a_part_with_rate_0_does_not_move(config: TrainConfig, coloured: ImageCaptions, tmp_path: Path) -> None:
    config = replace(trainable(config), epochs=(1,), learning_rates=(1e-3,))
    moved = weights_after(config, coloured, tmp_path / "moved")
    still = weights_after(replace(config, rates=LearningRates(image=0.0)), coloured, tmp_path / "still")
    first = weights_after(replace(config, learning_rates=(0.0,)), coloured, tmp_path / "first")
    conv = next(name for name in first if name.startswith("model/backbone") and first[name].ndim == 4)
    assert torch.equal(still[conv], first[conv])
    assert not torch.equal(moved[conv], first[conv])
    head = "model/image_projection.weight"
    assert not torch.equal(still[head], first[head])


def test_decoupled_decay_shrinks_matrices_alone() -> None:
    matrix, bias = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2))
    groups = [
        {"params": [matrix], "factor": 1.0, "weight_decay": 0.1},
        {"params": [bias], "factor": 1.0, "weight_decay": 0.0},
    ]
    optimizer = AdamW(weight_decay=0.1).build(groups, 0.5)
    matrix.grad, bias.grad = torch.zeros(2, 2), torch.zeros(2)
    optimizer.step()
    torch.testing.assert_close(matrix.detach(), torch.full((2, 2), 1 - 0.5 * 0.1))
    assert torch.equal(bias.detach(), torch.ones(2))
    assert (Adam().decay, AdamW().decay) == (0.0, 0.01)


def test_a_learned_temperature_is_not_decayed(config: TrainConfig, coloured: ImageCaptions, tmp_path: Path) -> None:
    config = replace(config, loss=config_of(ContrastiveSum)(learnable=True), epochs=(1,), learning_rates=(1e-2,))
    name = "loss/temperature.raw"
    without = weights_after(replace(config, optimizer=AdamW(weight_decay=0.0)), coloured, tmp_path / "without")[name]
    large = weights_after(
        replace(config, optimizer=AdamW(weight_decay=50.0), rates=LearningRates(image=0.0, text=0.0)),
        coloured,
        tmp_path / "large",
    )[name]
    first = ContrastiveSum(learnable=True).temperature.state_dict()["raw"]
    assert not torch.equal(without, first)
    assert float((large - first).abs()) < 0.3 * float(first.abs())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image": -1.0}, "rates.image: must be at least 0"),
        ({"heads": float("nan")}, "heads: must be a finite number"),
        ({"layer_decay": 0.0}, "layer_decay: must be above 0"),
    ],
)
def test_mistakes_have_one_line(options: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        LearningRates(**options)


def test_one_kind_of_decay_at_a_time(config: TrainConfig) -> None:
    with pytest.raises(UserError, match="weight_decay is a term of the loss and goes with optimizer adam"):
        replace(config, weight_decay=0.1, optimizer=AdamW())
    with pytest.raises(UserError, match="weight_decay: must be at least 0"):
        AdamW(weight_decay=-1.0)


@pytest.mark.parametrize("config", [Adam(), AdamW(), SGD(), SGD(nesterov=True), SGD(momentum=0.0)], ids=repr)
def test_an_optimizer_keeps_what_it_says(config: Adam | AdamW | SGD) -> None:
    weight = torch.nn.Parameter(torch.zeros(3, 2))
    optimizer = config.build([{"params": [weight], "factor": 1.0, "weight_decay": 0.0}], 0.1)
    weight.grad = torch.ones(3, 2)
    optimizer.step()
    kept = {name: tuple(tensor.shape) for name, tensor in optimizer.state[weight].items()}
    assert kept == config.keeps((3, 2))


@pytest.mark.parametrize("options", [{}, {"nesterov": True}, {"momentum": 0.0, "weight_decay": 0.1}], ids=str)
def test_sgd_is_the_recurrence(options: dict[str, float]) -> None:
    config, torch_seed = SGD(**options), torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(3, 2, generator=torch_seed))
    optimizer = config.build([{"params": [weight], "factor": 1.0, "weight_decay": config.decay}], 0.1)
    expected, kept = weight.detach().clone(), torch.zeros(3, 2)
    for _ in range(4):
        gradient = torch.randn(3, 2, generator=torch_seed)
        weight.grad = gradient.clone()
        optimizer.step()
        gradient = gradient + config.weight_decay * expected
        kept = config.momentum * kept + gradient
        expected = expected - 0.1 * (gradient + config.momentum * kept if config.nesterov else kept)
    torch.testing.assert_close(weight.detach(), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"momentum": 1.0}, "momentum: must be below 1"),
        ({"momentum": 0.0, "nesterov": True}, "optimizer.nesterov looks ahead"),
        ({"weight_decay": float("nan")}, "weight_decay: must be a finite number"),
    ],
)
def test_mistakes_of_sgd_have_one_line(options: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SGD(**options)
