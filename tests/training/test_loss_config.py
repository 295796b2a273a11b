from typing import get_args

import pytest

from rungwise.core.configuration import from_plain, to_plain
from rungwise.core.errors import UserError
from rungwise.losses import MaxOfHinges
from rungwise.losses.base import BlockLoss
from rungwise.training.config import TrainConfig
from rungwise.training.loss_config import (
    AdaptiveListwiseConfig,
    BlockLossConfig,
    ContrastiveSumConfig,
    LadderConfig,
    LossConfig,
    MaxOfHingesConfig,
    SemanticAdaptiveMarginConfig,
    SumOfHingesConfig,
)

KINDS = get_args(get_args(LossConfig)[0])


def test_losses_are_built_as_they_say() -> None:
    config = LadderConfig(thresholds=(0.5, 0.2), margins=(0.3, 0.02, 0.01), weights=(1, 0.5, 0.1), mask_above=0.9)
    ladder = config.build()
    assert (tuple(ladder.thresholds), tuple(ladder.margins)) == ((0.5, 0.2), (0.3, 0.02, 0.01))
    assert (ladder.sampling, ladder.mask_above) == ("hard_contrastive", 0.9)
    assert LadderConfig(sampling="sum").build().sampling == "sum"
    authors = LadderConfig(levels="cumulative", pair_in_top_level=True).build()
    assert (authors.levels, authors.pair_in_top_level) == ("cumulative", True)
    hinge = MaxOfHingesConfig(margin=0.3, negative_set=5, reduction="mean", extra_positives="keep").build()
    assert (hinge.margin, hinge.negative_set, hinge.reduction, hinge.extra_positives) == (0.3, 5, "mean", "keep")
    assert SumOfHingesConfig(margin=0.1).build().margin == 0.1
    listwise = AdaptiveListwiseConfig(sharpness=0.2, i2t_weight=1.0, sampled=7, margins=(0.5, 0.1)).build()
    assert (listwise.sharpness, listwise.i2t_weight, listwise.sampled, listwise.margins) == (0.2, 1.0, 7, (0.5, 0.1))
    adaptive = SemanticAdaptiveMarginConfig(temperature=3, negatives="random", with_triplet=True, margin=0.1).build()
    assert (adaptive.temperature, adaptive.negatives) == (3, "random")
    assert (adaptive.with_triplet, adaptive.margin) == (True, 0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_yaml_and_back_with_the_defaults_of_the_loss_itself(kind: type[BlockLossConfig]) -> None:
    config = TrainConfig(loss=kind(reduction="mean"))
    assert from_plain(TrainConfig, to_plain(config), "config.yaml") == config
    built = config.loss.build()
    assert isinstance(built, BlockLoss)
    assert type(config.loss).__name__ == type(built).__name__ + "Config"
    assert built.reduction == "mean"
    # A ladder has no thresholds of its own.
    named = ("thresholds", "margins") if kind is LadderConfig else ()
    bare = type(built)(reduction="mean", **{name: getattr(config.loss, name) for name in named})
    for name, value in vars(bare).items():
        if isinstance(value, int | float | str | tuple) and name != "training":
            assert getattr(built, name) == value


def test_every_loss_of_a_block_can_be_named() -> None:
    assert {kind.__name__ for kind in KINDS} == {
        f"{name}Config"
        for name in (
            *("SumOfHinges", "MaxOfHinges", "Ladder", "SemanticAdaptiveMargin", "AdaptiveListwise", "ContrastiveSum"),
            *("ContrastiveMax", "MultiModalNCE", "Sigmoid", "SoftContrastive", "SmoothNDCG"),
        )
    }


def test_unknown_loss_and_misspelt_option_are_one_line() -> None:
    for loss, message in (
        ({"kind": "hinge"}, "config.yaml: loss: .*'hinge'"),
        ({"kind": "ladder", "treshold": 1}, "config.yaml: loss.ladder.treshold: "),
    ):
        with pytest.raises(UserError, match=message) as caught:
            from_plain(TrainConfig, {"loss": loss}, "config.yaml")
        assert "\n" not in str(caught.value)


def test_a_negative_set_must_fit_the_batch() -> None:
    TrainConfig(loss=MaxOfHingesConfig(negative_set=15), batch_size=16)
    with pytest.raises(UserError, match="negative_set is 16, but in a batch of 16 a query has 15 negatives") as caught:
        TrainConfig(loss=MaxOfHingesConfig(negative_set=16), batch_size=16)
    assert "\n" not in str(caught.value)


def test_shares_are_no_thresholds() -> None:
    with pytest.raises(UserError, match="must be turned into thresholds"):
        LadderConfig(shares=(0.01,)).build()


def test_what_needs_relevance() -> None:
    assert not TrainConfig().needs_relevance
    assert TrainConfig(loss=LadderConfig()).needs_relevance
    assert TrainConfig(loss=MaxOfHingesConfig(mask_above=1.0)).needs_relevance
    assert AdaptiveListwiseConfig().needs_relevance
    assert not AdaptiveListwiseConfig(irrelevant="other_item").needs_relevance


def test_a_warm_up_shares_the_margin_where_there_is_one() -> None:
    assert LadderConfig(margins=(0.3, 0.01)).warm_up_margin == 0.3
    assert MaxOfHingesConfig(margin=0.1).warm_up_margin == 0.1
    assert ContrastiveSumConfig().warm_up_margin == 0.2
    assert isinstance(MaxOfHingesConfig().build(), MaxOfHinges)
