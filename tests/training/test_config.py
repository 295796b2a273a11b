import pytest

from rungwise.errors import UserError
from rungwise.training.config import LadderConfig, MaxOfHingesConfig, SumOfHingesConfig, TrainConfig


def test_losses_are_built_as_they_say() -> None:
    config = LadderConfig(thresholds=(0.5, 0.2), margins=(0.3, 0.02, 0.01), weights=(1, 0.5, 0.1), mask_above=0.9)
    ladder = config.build()
    assert (tuple(ladder.thresholds), tuple(ladder.margins)) == ((0.5, 0.2), (0.3, 0.02, 0.01))
    assert (ladder.sampling, ladder.mask_above) == ("hard_contrastive", 0.9)
    hinge = MaxOfHingesConfig(margin=0.3, reduction="mean", extra_positives="keep").build()
    assert (hinge.margin, hinge.reduction, hinge.extra_positives) == (0.3, "mean", "keep")
    assert SumOfHingesConfig(margin=0.1).build().margin == 0.1


def test_shares_are_no_thresholds() -> None:
    with pytest.raises(UserError, match="must be turned into thresholds"):
        LadderConfig(shares=(0.01,)).build()


def test_what_needs_relevance() -> None:
    assert not TrainConfig().needs_relevance
    assert TrainConfig(loss=LadderConfig()).needs_relevance
    assert TrainConfig(loss=MaxOfHingesConfig(mask_above=1.0)).needs_relevance
