import pytest

from rungwise.core import UserError
from rungwise.training.pair_models import PairTraining


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"batch_size": 0}, "batch_size: Input should be greater than or equal to 1"),
        ({"max_length": 0}, "max_length: Input should be greater than or equal to 8"),
        ({"max_length": 7}, "max_length: Input should be greater than or equal to 8"),
        ({"learning_rate": 0.0}, "learning_rate: Input should be greater than 0"),
        ({"learning_rate": float("nan")}, "learning_rate: Input should be a finite number"),
        ({"clip_norm": -1.0}, "clip_norm: Input should be greater than 0"),
        ({"warm_up": 1.0}, "warm_up: Input should be less than 1"),
        ({"weight_decay": -0.1}, "weight_decay: Input should be greater than or equal to 0"),
        ({"seed": -1}, "seed: Input should be greater than or equal to 0"),
        ({"loss": "hinge"}, "loss: Input should be 'bce' or 'mse'"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        PairTraining(**settings)


def test_without_warm_up_the_rate_falls_from_the_start():
    settings = PairTraining(learning_rate=2.0, warm_up=0.0)
    assert [settings.rate(place) for place in (0.0, 0.25, 1.0)] == [2.0, 1.5, 0.0]
