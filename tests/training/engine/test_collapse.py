from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rungwise.data import ImageCaptions
from rungwise.losses import MaxOfHinges
from rungwise.similarity import cosine
from rungwise.training.config import TrainConfig
from rungwise.training.engine import RunState, Trained, load_checkpoint, save_checkpoint, spread, train
from rungwise.training.engine import _collapse as collapse
from rungwise.training.engine._collapse import CollapseMemory, CollapseWatch
from rungwise.training.steps import Adam
from tests.training.conftest import Said


def told_by(losses, spreads, **options):
    told = []
    watch = CollapseWatch(0.4, told.append, **options)
    for number, (loss, width) in enumerate(zip(losses, spreads, strict=True)):
        watch.observe(10 * number, loss, width)
    return told


def contraction(rate: float, bound: float):
    """(losses, spreads) of embeddings of a batch of 32 that contract to ``bound`` around one point."""
    torch.manual_seed(0)
    centre, images, texts = torch.randn(16), torch.randn(32, 16), torch.randn(32, 16)
    losses, spreads = [], []
    for step in range(100):
        width = max(rate**step, bound)
        i, t = centre + width * images, centre + width * texts
        losses.append(float(MaxOfHinges(reduction="mean")(cosine(i, t))))
        spreads.append(float(spread(i, t)))
    return losses, spreads


def test_fires_once_on_embeddings_that_collapse() -> None:
    losses, spreads = contraction(0.8, 1e-4)
    told = told_by(losses, spreads)
    assert len(told) == 1
    for remedy in ("sum of hinges", "larger batch", "reduction mean"):
        assert remedy in told[0]


def test_silent_where_the_loss_is_flat_but_images_stay_apart() -> None:
    losses, spreads = [0.402] * 1000, [0.01] * 1000
    assert told_by(losses, spreads) == []


def test_silent_on_narrow_embeddings_whose_loss_is_elsewhere() -> None:
    assert told_by([0.39] * 1000, [1e-6] * 1000) == []


@pytest.mark.parametrize(
    ("loss", "width", "tells"),
    [(0.4036, 0.0009, 1), (0.3964, 0.0009, 1), (0.4044, 0.0, 0), (0.3956, 0.0, 0), (0.4, 0.0011, 0)],
)
def test_bounds_are_1_percent_of_the_loss_and_a_spread_of_a_thousandth(loss, width, tells) -> None:
    assert len(told_by([loss] * 100, [width] * 100)) == tells


def test_silent_on_a_dip_that_does_not_last() -> None:
    ten_dips = ([0.4] * 45 + [0.3]) * 10
    assert told_by(ten_dips, [1e-6] * len(ten_dips)) == []
    assert told_by([0.4] * 45 + [float("nan")] + [0.4] * 10, [1e-6] * 56), "a batch not looked at breaks nothing"


def test_spread_is_zero_for_one_direction_and_large_for_many() -> None:
    one = torch.randn(1, 64)
    assert spread(one * torch.rand(9, 1), one.expand(5, 64)) < 1e-6
    assert spread(one.expand(5, 64), torch.randn(500, 64)) > 0.9


def test_a_resumed_run_remembers(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A margin that nothing can satisfy within few steps, and bounds that every step meets.
    monkeypatch.setattr(collapse.CollapseWatch.__init__, "__kwdefaults__", {"least_spread": 9.0, "steps": 9})
    config = replace(config, loss=replace(config.loss, margin=1e4), learning_rates=(1e-9, 1e-9))
    whole, cut = Said(), Said()
    train(config, coloured, tmp_path / "whole", cache=cache, watcher=whole)
    train(config, coloured, tmp_path / "cut", cache=cache, watcher=(first := Stopping(8)))
    train(config, coloured, tmp_path / "cut", cache=cache, watcher=cut, resume=True)
    assert [sum("collapsed" in line for line in one.lines) for one in (whole, first, cut)] == [1, 0, 1]


class Stopping(Said):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.at = step

    def step(self, report) -> None:
        import os
        import signal

        if report.total_step >= self.at:
            os.kill(os.getpid(), signal.SIGINT)


def test_memory_is_kept_in_the_checkpoint(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    trained = Trained(model, torch.nn.Identity(), optimizer, Adam())
    save_checkpoint(tmp_path / "c", trained, RunState(collapse=CollapseMemory(70, True)))
    assert load_checkpoint(tmp_path / "c")[0].collapse == CollapseMemory(70, True)
