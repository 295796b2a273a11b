"""How the rate moves within a run."""

import pytest
import torch

from rungwise.core import UserError
from rungwise.training.config import TrainConfig
from rungwise.training.steps import PhaseSchedule
from rungwise.training.steps._schedules import CosineSchedule, OneCycleSchedule, Schedule

PLACES = [step / 40 for step in range(41)]


def test_one_cycle_is_the_one_of_torch() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=41, pct_start=0.3, div_factor=25, final_div_factor=1e9, cycle_momentum=False
    )
    for place in PLACES:
        # Torch's peak lies at step 0.3 * 41 - 1 = 11.3 of 40; ours at 0.3 of the run.
        step = place * 40
        ours = step / 11.3 * 0.3 if step <= 11.3 else 0.3 + (step - 11.3) / (40 - 11.3) * 0.7
        assert OneCycleSchedule().factor(min(ours, 1.0), 1) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-6)
        optimizer.step()
        if place < 1:
            theirs.step()


@pytest.mark.parametrize(
    "schedule",
    [OneCycleSchedule(), OneCycleSchedule(rise=0.0), CosineSchedule(), CosineSchedule(warm_up=0.0, floor=0.2)],
)
def test_a_rate_rises_to_its_phase_and_then_falls(schedule: Schedule) -> None:
    factors = [schedule.factor(place, 1) for place in PLACES]
    peak = factors.index(max(factors))
    assert factors[peak] <= 1
    assert factors[peak] > 0.95
    assert factors[: peak + 1] == sorted(factors[: peak + 1])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)
    assert factors[-1] == pytest.approx(getattr(schedule, "floor", 0.0))
    assert schedule.of_the_whole_run


def test_phases_leave_their_rates_alone() -> None:
    assert {PhaseSchedule().factor(place, 1) for place in PLACES} == {1.0}
    assert not PhaseSchedule().of_the_whole_run


def test_a_warm_up_rises_from_nothing_and_a_longer_run_has_the_same_rates() -> None:
    warm = PhaseSchedule(warm_up=2.5)
    for done in (0.0, 0.3, 1.7, 2.5, 2.6, 9.0):
        assert warm.factor(done, 10) == warm.factor(done, 17) == min(done / 2.5, 1.0)
    assert not warm.of_the_whole_run
    config = TrainConfig(schedule=warm, epochs=(2, 2), learning_rates=(1.0, 0.1))
    assert [config.learning_rate(epoch, 0.5) for epoch in range(4)] == pytest.approx([0.2, 0.6, 0.1, 0.1])


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (PhaseSchedule, {"warm_up": -1.0}, "warm_up: must be at least 0"),
        (OneCycleSchedule, {"rise": 1.0}, "rise: must be below 1"),
        (OneCycleSchedule, {"start": -0.1}, "start: must be at least 0"),
        (CosineSchedule, {"warm_up": float("nan")}, "warm_up: must be below 1"),
        (CosineSchedule, {"floor": 2.0}, "floor: must be at most 1"),
    ],
)
def test_mistakes_have_one_line(kind: type, options: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        kind(**options)
