"""Gradients to weights. Also tests rungwise.training.steps._weight_average."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.losses import MaxOfHinges
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.engine import load_checkpoint, train
from rungwise.training.steps import Adam, AdamW, OptimizerStep, Scaling, WeightAverage
from rungwise.training.steps._optimizer_step import LEAST_SCALE
from rungwise.training.steps._optimizers import SGD
from rungwise.training.tracking import Watcher

NAN, INFINITE = float("nan"), float("inf")


def updates_of(*weights: torch.nn.Parameter, optimizer=None, **options) -> OptimizerStep:
    group = [{"params": list(weights), "factor": 0.5}]
    return OptimizerStep(
        torch.optim.SGD(group, lr=1.0, fused=True) if optimizer is None else optimizer.build(group, 1.0),
        [(f"layer.{number}", weight) for number, weight in enumerate(weights)],
        clip_norm=1.0,
        **options,
    )


def test_a_step_cuts_the_norm_and_says_what_it_was():
    weight = torch.nn.Parameter(torch.zeros(2))
    updates = updates_of(weight)
    updates.begin(0.2)
    weight.grad = torch.tensor([3.0, 4.0])
    assert float(updates.finish(torch.tensor(1.0), 1, 1)) == pytest.approx(5.0)
    assert weight.detach() == pytest.approx([-0.06, -0.08], rel=1e-4)
    updates.begin(0.2)
    assert weight.grad is None


def test_the_norm_and_the_cut_are_those_of_torch():
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(size)) for size in ((7, 3), (5,), (2, 2, 2))]
    gradients = [torch.randn_like(weight) for weight in weights]
    updates = updates_of(*weights)
    updates.begin(0.0)
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient.clone()
    norm = updates.finish(torch.tensor(1.0), 1, 1)
    others = [torch.nn.Parameter(weight.detach().clone()) for weight in weights]
    for other, gradient in zip(others, gradients, strict=True):
        other.grad = gradient.clone()
    assert norm == torch.nn.utils.clip_grad_norm_(others, 1.0)
    for weight, other in zip(weights, others, strict=True):
        assert torch.equal(weight.grad, other.grad)


@pytest.mark.parametrize("optimizer", [Adam(), AdamW(), SGD()], ids=lambda one: one.kind)
@pytest.mark.parametrize("value", [NAN, INFINITE])
def test_a_gradient_that_is_not_finite_ends_the_run_before_the_weights_are_spoilt(optimizer, value: float) -> None:
    one, other, idle = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    updates = updates_of(one, other, idle, optimizer=optimizer)
    updates.begin(0.1)
    one.grad, other.grad = torch.ones(2), torch.ones(2)
    updates.finish(torch.tensor(1.0), 3, 6)
    before = one.detach().clone()
    updates.begin(0.1)
    one.grad, other.grad = torch.ones(2), torch.tensor([1.0, value])
    message = "the gradient of layer.1 is not finite at epoch 3, step 7; lower the learning rate or use precision f"
    with pytest.raises(UserError, match=message):
        updates.finish(torch.tensor(1.0), 3, 7)
    assert torch.equal(one.detach(), before)
    for loss, what in ((1.0, "the gradient of layer.0 is not finite, nor 1 others,"), (NAN, "the loss is nan")):
        updates = updates_of(one, other, idle, optimizer=optimizer)
        updates.begin(0.1)
        one.grad, other.grad = torch.full((2,), value), torch.full((2,), value)
        with pytest.raises(UserError, match=f"{what} at epoch 3, step 7"):
            updates.finish(torch.tensor(loss), 3, 7)


@pytest.mark.parametrize("optimizer", [Adam(), AdamW(), SGD()], ids=lambda one: one.kind)
def test_until_the_host_asks_a_failed_step_and_those_after_it_change_nothing(optimizer, monkeypatch) -> None:
    """As on a GPU, which is asked every few steps."""
    weight = torch.nn.Parameter(torch.ones(2))
    updates = updates_of(weight, optimizer=optimizer)
    with monkeypatch.context() as patched:
        patched.setattr(updates, "check", lambda: None)
        for step, gradient in enumerate((1.0, 2.0, INFINITE, NAN, 1.0), start=1):
            updates.begin(0.1)
            weight.grad = torch.full((2,), gradient)
            updates.finish(torch.tensor(1.0), 2, step)
            if step == 2:
                before = weight.detach().clone()
    assert torch.equal(weight.detach(), before)
    with pytest.raises(UserError, match=r"the gradient of layer.0 is not finite at epoch 2, step 3"):
        updates.check()


def test_a_gradient_that_float16_cannot_hold_is_left_out_and_counted() -> None:
    weight, said = torch.nn.Parameter(torch.ones(2)), []
    updates = updates_of(weight, optimizer=SGD(momentum=0.9), scales=True)
    for gradient in (INFINITE, 1.0, INFINITE, 1.0):  # the very first, too: the scale has to be found
        updates.begin(0.1)
        scaled = updates.scaled(weight.sum() * 0.5)
        scaled.backward()
        assert weight.grad[0] == scaled.detach() / weight.detach().sum()
        if gradient == INFINITE:
            weight.grad.fill_(gradient)
        before = weight.detach().clone()
        norm = updates.finish(torch.tensor(1.0), 1, 1)
        assert torch.equal(weight.detach(), before) == (gradient == INFINITE)
        if gradient != INFINITE:
            assert float(norm) == pytest.approx(0.5 * 2**0.5), "of the gradients themselves"
    after = updates.settled(Scaling(), said.append)
    assert after == Scaling(2.0**14, 1, 2)
    assert said == ["float16: 2 steps were left out, whose gradients did not fit; the scale is now 16384"]
    again = updates_of(torch.nn.Parameter(torch.ones(2)), scales=True)
    again.restore(after)
    assert again.settled(after, said.append) == after
    assert len(said) == 1


def test_a_gradient_that_no_scale_helps_ends_the_run() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    updates = updates_of(weight, scales=True)

    def step(number: int) -> None:
        updates.begin(0.1)
        updates.scaled(weight.sum()).backward()
        weight.grad.fill_(NAN)
        updates.finish(torch.tensor(1.0), 1, number)

    for number in range(1, 16 + 14 + 2):  # from a scale of 2^16 to one below 2^-14
        assert updates.settled(Scaling(), lambda line: None).scale >= LEAST_SCALE
        step(number)
    with pytest.raises(UserError, match="the gradient of layer.0 is not finite at epoch 1, step 31; use precision bfl"):
        updates.settled(Scaling(), lambda line: None)
    updates = updates_of(weight, scales=True)
    updates.begin(0.1)
    updates.scaled(weight.sum()).backward()
    with pytest.raises(UserError, match="the loss is nan at epoch 1, step 1"):
        updates.finish(torch.tensor(NAN), 1, 1)


def test_the_average_is_the_recurrence_and_the_weights_come_back_to_the_bit() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
    model[2].requires_grad_(False)
    average = WeightAverage(model, 0.5)
    assert set(average.tensors) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    expected = model[0].weight.detach().clone()
    for step in range(1, 12):
        with torch.no_grad():
            for weight in model.parameters():
                weight += torch.randn_like(weight)
        average.follow()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model[0].weight.detach()
    assert decay == 0.5
    torch.testing.assert_close(average.tensors["0.weight"], expected)
    model[1].running_mean.fill_(7.0)
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with average.in_place():
        assert torch.equal(model[0].weight, average.tensors["0.weight"])
        assert torch.equal(model[2].weight, own["2.weight"])
        assert model[1].running_mean[0] == 7.0, "a buffer is the model's own"
    assert all(torch.equal(tensor, own[name]) for name, tensor in model.state_dict().items())


class Heard(Watcher):
    """Collects what is said, and stops the run after some steps."""

    def __init__(self, stop_after: int = 10**9) -> None:
        self.lines, self.norms, self.stop_after = [], [], stop_after

    def say(self, message: str) -> None:
        self.lines.append(message)

    def step(self, report) -> None:
        self.norms.append(report.gradient_norm)
        if report.total_step >= self.stop_after:
            raise KeyboardInterrupt


def checkpoint_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "checkpoint.safetensors")


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": SGD(nesterov=True), "ema": 0.9},
        pytest.param({"optimizer": SGD(momentum=0.0, weight_decay=0.01)}, marks=pytest.mark.slow),
        {"precision": "float16", "ema": 0.5},
        pytest.param({"precision": "float16", "optimizer": SGD()}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_run_that_was_cut_off_goes_on_to_the_bit(
    changes, config: TrainConfig, coloured, cache: Path, tmp_path: Path
) -> None:
    config = replace(config, **changes)
    whole, heard = train(config, coloured, tmp_path / "whole", cache=cache), Heard(stop_after=12)
    with pytest.raises(KeyboardInterrupt):
        train(config, coloured, tmp_path / "cut", cache=cache, watcher=heard)
    state, _ = load_checkpoint(tmp_path / "cut" / "checkpoint.safetensors")
    assert 0 < state.total_steps <= 12
    train(config, coloured, tmp_path / "cut", cache=cache, resume=True)
    one, other = checkpoint_of(tmp_path / "whole"), checkpoint_of(tmp_path / "cut")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    ends = [load_checkpoint(tmp_path / name / "checkpoint.safetensors")[0] for name in ("whole", "cut")]
    assert ends[0].scaling == ends[1].scaling
    assert (ends[0].scaling.scale > 0) == (config.precision == "float16")
    assert any(name.startswith("average/") for name in one) == (config.ema > 0)
    assert whole.finished


def test_the_average_is_what_is_validated_and_kept(config: TrainConfig, coloured, cache: Path, tmp_path: Path) -> None:
    config = replace(config, ema=0.5)
    train(config, coloured, tmp_path / "run", cache=cache)
    state, tensors = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    model = load_file(tmp_path / "run" / "model" / "model.safetensors")
    averages = {name.removeprefix("average/"): one for name, one in tensors.items() if name.startswith("average/")}
    assert state.best_epoch == 2, "so that the average of the end is the one that was kept"
    for name, average in averages.items():
        assert average.dtype == torch.float32
        assert torch.equal(model[name], average)
    assert any(not torch.equal(model[name], tensors[f"model/{name}"]) for name in averages)


def test_float16_trains_on_a_cpu_and_says_what_it_left_out(
    config: TrainConfig, coloured, cache: Path, tmp_path: Path
) -> None:
    heard = Heard()
    config = replace(config, loss=config_of(MaxOfHinges)(reduction="sum"))
    float32 = train(config, coloured, tmp_path / "float32", cache=cache)
    half = train(replace(config, precision="float16"), coloured, tmp_path / "half", cache=cache, watcher=heard)
    scaling = load_checkpoint(tmp_path / "half" / "checkpoint.safetensors")[0].scaling
    assert any("left out, whose gradients did not fit" in line for line in heard.lines) == (scaling.skipped > 0)
    assert half.history[-1]["loss"] == pytest.approx(float32.history[-1]["loss"], rel=0.1)
    assert half.history[-1]["loss"] < half.history[0]["loss"]


def test_the_gradients_norm_is_reported(config: TrainConfig, coloured, cache: Path, tmp_path: Path) -> None:
    heard = Heard()
    train(replace(config, epochs=(1,), learning_rates=(1e-3,)), coloured, tmp_path / "run", watcher=heard,
          cache=cache)  # fmt: skip
    assert heard.norms
    assert all(0 < norm < INFINITE for norm in heard.norms)


def test_a_run_whose_loss_becomes_nan_keeps_its_last_checkpoint(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    normal = MaxOfHinges.per_query

    def per_query(self, side):
        steps.append(side)
        return normal(self, side) * (NAN if len(steps) > 2 * 7 else 1.0)  # both directions

    monkeypatch.setattr(MaxOfHinges, "per_query", per_query)
    with pytest.raises(UserError, match="the loss is nan at epoch 1, step 8; lower the learning rate"):
        train(config, coloured, tmp_path / "run", cache=cache)
    state, tensors = load_checkpoint(tmp_path / "run" / "checkpoint.safetensors")
    assert state.step == 6
    assert all(tensor.isfinite().all() for tensor in tensors.values())
