import pytest

from rungwise.core import UserError
from rungwise.training.pair_models import PairTraining


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch_size": 0}, "batch_size: must be at least 1"),
        ({"max_length": 0}, "max_length: must be at least 8"),
        ({"max_length": 7}, "max_length: must be at least 8"),
        ({"learning_rate": 0.0}, "learning_rate: must be above 0"),
        ({"learning_rate": float("nan")}, "learning_rate: must be a finite number"),
        ({"clip_norm": -1.0}, "clip_norm: must be above 0"),
        ({"warm_up": 1.0}, "warm_up: must be below 1"),
        ({"weight_decay": -0.1}, "weight_decay: must be at least 0"),
        ({"seed": -1}, "seed: must be at least 0"),
        ({"loss": "hinge"}, "loss: must be 'bce' or 'mse'"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        PairTraining(**settings)


def test_without_warm_up_the_rate_falls_from_the_start():
    settings = PairTraining(learning_rate=2.0, warm_up=0.0)
    assert [settings.rate(place) for place in (0.0, 0.25, 1.0)] == [2.0, 1.5, 0.0]
