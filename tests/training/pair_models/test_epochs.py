import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.training.pair_models import Correlations, PairTraining, TrainingObserver
from rungwise.training.pair_models._epochs import best_of, on_threads, run_epochs, seeded

torch = pytest.importorskip("torch")


def line(rates=None):
    """A network of one weight that starts at 0 and is drawn to 1, and what each step saw."""
    network = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        network.weight.zero_()
    seen = []

    def loss_of(batch, turned):
        seen.append((batch.tolist(), turned.tolist()))
        return ((network.weight - 1) ** 2).sum()

    return network, loss_of, seen


def test_every_pair_comes_once_an_epoch_and_turns_at_random():
    network, loss_of, seen = line()
    settings = PairTraining(epochs=2, batch_size=4)
    epochs = run_epochs(
        network, np.arange(10), loss_of, lambda: Correlations(0.5, 0.5, 3), settings, TrainingObserver()
    )
    assert [one.number for one in epochs] == [1, 2]
    for epoch in (seen[:3], seen[3:]):
        assert sorted(place for batch, _ in epoch for place in batch) == list(range(10))
    ways = [
        {place: turn for batch, turned in part for place, turn in zip(batch, turned, strict=True)}
        for part in (seen[:3], seen[3:])
    ]
    assert ways[0] != ways[1]
    assert 0 < sum(ways[0].values()) < 10


@pytest.mark.parametrize("marks", [[0.1, 0.9, 0.5], [0.3, 0.3, 0.3], [float("nan"), 0.2, 0.1]])
def test_the_best_epoch_is_kept_the_earliest_of_equals(marks):
    network, loss_of, _ = line()
    weights, given = [], iter(marks)

    def judge():
        assert not network.training
        weights.append(float(network.weight.detach()))
        mark = next(given)
        return Correlations(mark, mark, 3)

    epochs = run_epochs(
        network, np.ones(5), loss_of, judge, PairTraining(epochs=3, learning_rate=0.1), TrainingObserver()
    )
    best = int(np.nanargmax(marks))
    assert best_of(epochs).number == best + 1
    assert float(network.weight.detach()) == weights[best]
    assert len(set(weights)) == 3


def test_a_step_is_that_of_adamw_at_the_rate_of_its_place():
    network, loss_of, _ = line()
    settings = PairTraining(epochs=1, batch_size=1, learning_rate=0.5, warm_up=0.5, weight_decay=0.1)
    run_epochs(network, np.ones(4), loss_of, lambda: Correlations(1, 1, 3), settings, TrainingObserver())
    weight = torch.nn.Parameter(torch.zeros(1, 1))
    plain = torch.optim.AdamW([weight], weight_decay=0.1)
    for place in (0.125, 0.375, 0.625, 0.875):
        plain.param_groups[0]["lr"] = 0.5 * (place / 0.5 if place < 0.5 else (1 - place) / 0.5)
        plain.zero_grad()
        ((weight - 1) ** 2).sum().backward()
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        plain.step()
    assert float(network.weight.detach()) == pytest.approx(float(weight.detach()), abs=1e-6)


def test_a_loss_that_is_none_ends_it_in_one_line():
    network, _, _ = line()
    with pytest.raises(UserError, match="the loss is nan at epoch 1, step 1"):
        run_epochs(
            network,
            np.ones(2),
            lambda *_: network.weight.sum() * float("nan"),
            lambda: Correlations(1, 1, 3),
            PairTraining(),
            TrainingObserver(),
        )


def test_draws_and_threads_are_as_before_afterwards():
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    with seeded(7, "cpu"), on_threads(1):
        first = torch.rand(3)
        assert torch.get_num_threads() == 1
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads
    with seeded(7, "cpu"):
        assert torch.equal(first, torch.rand(3))
