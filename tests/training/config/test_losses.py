import inspect
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from rungwise import losses
from rungwise.core import UserError, from_plain, load_yaml, to_plain
from rungwise.data import ImageCaptions
from rungwise.losses import (
    AdaptiveListwise,
    BlockLoss,
    BlockSide,
    ContrastiveMax,
    ContrastiveSum,
    Ladder,
    Loss,
    MaxOfHinges,
    Reads,
    SemanticAdaptiveMargin,
    SumOfHinges,
    Weighted,
    warm_up,
)
from rungwise.training.config import LossConfig, TrainConfig, config_of, with_thresholds
from rungwise.training.config._losses import LOSSES
from rungwise.training.engine import train
from tests.training.every_loss import NAMED, PLAIN


def test_losses_are_built_as_they_say() -> None:
    ladder = config_of(Ladder)(
        thresholds=(0.5, 0.2), margins=(0.3, 0.02, 0.01), weights=(1, 0.5, 0.1), mask_above=0.9
    ).build()
    assert (tuple(ladder.thresholds), tuple(ladder.margins)) == ((0.5, 0.2), (0.3, 0.02, 0.01))
    assert (ladder.sampling, ladder.mask_above) == ("hard_contrastive", 0.9)
    assert config_of(Ladder)(sampling="sum").build().sampling == "sum"
    assert config_of(Ladder)(pairs=3).build().pairs == 3
    authors = config_of(Ladder)(levels="cumulative", pair_in_top_level=True).build()
    assert (authors.levels, authors.pair_in_top_level) == ("cumulative", True)
    hinge = config_of(MaxOfHinges)(margin=0.3, negative_set=5, reduction="mean", extra_positives="keep").build()
    assert (hinge.margin, hinge.negative_set, hinge.reduction, hinge.extra_positives) == (0.3, 5, "mean", "keep")
    assert config_of(SumOfHinges)(margin=0.1).build().margin == 0.1
    listwise = config_of(AdaptiveListwise)(sharpness=0.2, i2t_weight=1.0, sampled=7, margins=(0.5, 0.1)).build()
    assert (listwise.sharpness, listwise.i2t_weight, listwise.sampled, listwise.margins) == (0.2, 1.0, 7, (0.5, 0.1))
    adaptive = config_of(SemanticAdaptiveMargin)(
        temperature=3, negatives="random", with_triplet=True, margin=0.1
    ).build()
    assert (adaptive.temperature, adaptive.negatives) == (3, "random")
    assert (adaptive.with_triplet, adaptive.margin) == (True, 0.1)
    ratio = config_of(ContrastiveMax)(margin=0.0, hinge=False).build()
    assert (ratio.margin, ratio.hinge) == (0.0, False)
    learned = config_of(ContrastiveSum)(temperature=0.2, learnable=True).build()
    assert len(list(learned.parameters())) == 1
    torch.testing.assert_close(learned.temperature().detach(), torch.tensor(0.2))


@pytest.mark.parametrize("name", PLAIN)
def test_yaml_and_back_with_the_defaults_of_the_loss_itself(name: str) -> None:
    loss = getattr(losses, name)
    config = TrainConfig(loss=config_of(loss)(reduction="mean"))
    assert from_plain(TrainConfig, to_plain(config), "config.yaml") == config
    built, bare = config.loss.build(), loss(reduction="mean")
    assert type(built) is loss
    for option, value in vars(bare).items():
        if isinstance(value, int | float | str | tuple) and option != "training":
            assert getattr(built, option) == value


def test_kinds_are_the_names_that_configurations_have_always_used() -> None:
    named = {config.kind for config in NAMED}
    assert named == {
        *("sum_of_hinges", "max_of_hinges", "ladder", "semantic_adaptive_margin", "adaptive_listwise"),
        *("contrastive_sum", "contrastive_max", "multi_modal_nce", "sigmoid", "soft_contrastive", "smooth_ndcg"),
        "weighted",
    }
    assert named <= set(LOSSES.names())
    assert not {"loss", "block_loss"} & set(LOSSES.names())


@pytest.mark.parametrize("config", NAMED, ids=lambda config: config.kind)
def test_every_option_is_explained_once_and_read_from_the_constructor(config: LossConfig) -> None:
    of_constructor = set(inspect.signature(config.loss_class).parameters) - {"generator"}
    shares = {"shares"} if config.kind == "ladder" else set()
    names = {one.name for one in fields(config)}
    assert names == of_constructor | shares | {"kind"}
    lines = (type(config).__doc__ or "").split("Attributes:\n")[1].splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [one.name for one in fields(config)]
    assert not [line for line in lines if "see there" in line or "`" in line or len(line.split(": ", 1)[1]) < 4]


def test_unknown_loss_and_misspelt_option_are_one_line() -> None:
    for loss, message in (
        ({"kind": "hinge"}, "config.yaml: loss: .*'hinge'.* ladder, .* weighted"),
        ({"margin": 0.2}, "config.yaml: loss: name the loss by its kind: .*ladder"),
        (3, "config.yaml: loss: name the loss by its kind: .*ladder"),
        ("hinge", "config.yaml: loss: .*'hinge'.* ladder, .* weighted"),
        ({"kind": "ladder", "treshold": 1}, "config.yaml: loss.ladder.treshold: "),
        ({"kind": "ladder", "reduction": "none"}, "config.yaml: loss.ladder.reduction: "),
        (
            {"kind": "weighted", "losses": [{"kind": "sigmoid", "bias": "b"}], "weights": [1]},
            "loss.weighted.losses.0.sigmoid.bias: ",
        ),
        ({"kind": "weighted"}, "loss.weighted.losses: "),
    ):
        with pytest.raises(UserError, match=message) as caught:
            from_plain(TrainConfig, {"loss": loss}, "config.yaml")
        assert "\n" not in str(caught.value)


def test_half_a_character_in_the_name_of_a_loss_is_one_line() -> None:
    with pytest.raises(UserError, match=r"run.yaml: loss: .*ud800") as caught:
        from_plain(TrainConfig, {"loss": {"kind": "\ud800"}}, "run.yaml")
    assert str(caught.value).encode()
    with pytest.raises(UserError, match=r"run.yaml: loss.ladder.*ud800"):
        from_plain(TrainConfig, {"loss": {"kind": "ladder", "\ud800": 1}}, "run.yaml")


def test_a_name_alone_takes_the_defaults() -> None:
    loss = {"kind": "weighted", "losses": ["sum_of_hinges", {"kind": "ladder"}], "weights": [1, 2]}
    config = from_plain(TrainConfig, {"loss": loss}, "config.yaml").loss
    assert config.losses == (config_of(SumOfHinges)(), config_of(Ladder)())
    assert from_plain(TrainConfig, {"loss": "ladder"}, "config.yaml").loss == config_of(Ladder)()


def test_options_that_do_not_fit_are_refused_before_a_run_begins() -> None:
    wrong = config_of(MaxOfHinges)(negative_set=0)
    for loss in (wrong, config_of(Weighted)(losses=(config_of(Ladder)(), wrong), weights=(1.0, 1.0))):
        with pytest.raises(UserError, match="loss.max_of_hinges: negative_set must be at least 1, got 0") as caught:
            TrainConfig(loss=loss)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"kind": "ladder", "pairs": 2, "sampling": "sum"}, "loss.ladder: pairs 2 belongs to sampling"),
        ({"kind": "ladder", "pairs": 2, "masking": "product"}, "loss.ladder: pairs 2 belongs to masking"),
        ({"kind": "contrastive_max", "hinge": False}, "loss.contrastive_max: margin 0.2 with hinge False"),
    ],
)
def test_options_that_cancel_each_other_are_refused_in_one_line(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        from_plain(TrainConfig, {"loss": options}, "config.yaml")
    assert "\n" not in str(caught.value)


def test_shares_are_no_thresholds() -> None:
    shared = config_of(Ladder)(shares=(0.01,))
    both = config_of(Weighted)(losses=(shared, config_of(MaxOfHinges)()), weights=(1.0, 0.5))
    for config in (shared, both):
        assert config.needs_relevance
        with pytest.raises(UserError, match="loss.shares become thresholds when training begins") as caught:
            config.build()
        assert "\n" not in str(caught.value)
        turned = with_thresholds(config, lambda shares: tuple(50 * share for share in shares))
        assert turned.needs_relevance
        ladder = turned.build() if config is shared else turned.build().members[0]
        assert ladder.thresholds == (0.5,)
        assert with_thresholds(turned, lambda shares: ()) is turned


def test_what_needs_relevance() -> None:
    assert not TrainConfig().needs_relevance
    assert TrainConfig(loss=config_of(Ladder)()).needs_relevance
    assert TrainConfig(loss=config_of(MaxOfHinges)(mask_above=1.0)).needs_relevance
    assert config_of(AdaptiveListwise)().needs_relevance
    assert not config_of(AdaptiveListwise)(irrelevant="other_item").needs_relevance
    members = (config_of(MaxOfHinges)(), config_of(Ladder)())
    assert config_of(Weighted)(losses=members, weights=(1.0, 1.0)).needs_relevance


def test_a_warm_up_shares_the_margin_where_there_is_one() -> None:
    def margin(loss: type[Loss], **options: object) -> float:
        return warm_up(config_of(loss)(**options).build()).margin

    assert margin(Ladder, margins=(0.3, 0.01)) == 0.3
    assert margin(MaxOfHinges, margin=0.1) == 0.1
    assert margin(ContrastiveMax, margin=0.1) == 0.1
    assert margin(ContrastiveMax, margin=0.0, hinge=False) == 0.2
    assert margin(ContrastiveSum) == 0.2


class Cubed(BlockLoss):
    """Hinges to the third power.

    Args:
        reach: margin, in units
            of similarity.
        generator: nothing that YAML can say.
    """

    def __init__(self, reach: float = 0.5, generator: torch.Generator | None = None, **shared: str) -> None:
        super().__init__(**shared)
        self.reach = reach

    @property
    def reads(self) -> Reads:
        return super().reads | Reads(relevance=True)

    def per_query(self, side: BlockSide) -> torch.Tensor:
        gap = (self.reach * (1 - side.graded()) + side.similarity).relu() ** 3
        return side.sum_per_query(side.rows(gap).sum(dim=1) - side.of_pairs(side.similarity))


class Irrelevant:
    """Degrees of 0."""

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        return np.zeros((len(np.asarray(images)), len(np.asarray(captions))), np.float32)

    def dense(self) -> NDArray[np.float32]:
        raise NotImplementedError


class Softened(Loss):
    """A loss around a loss.

    Args:
        inner: The one inside.
        others: More of them.
        scales: Numbers.
    """

    def __init__(self, inner: Loss, others: tuple[Loss, ...] = (), scales: list[float] = [1.0, 2.0]) -> None:  # noqa: B006
        super().__init__()
        self.inner, self.others, self.scales, self.reduction = inner, others, scales, inner.reduction

    @property
    def reads(self) -> Reads:
        return self.inner.reads

    def value(self, batch):
        return self.inner.value(batch).sqrt()


def test_a_loss_of_ones_own_trains_from_yaml(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text("loss: {kind: cubed, reach: 0.25}")
    own = load_yaml(TrainConfig, tmp_path / "own.yaml").loss
    result = train(replace(config, loss=own), coloured, tmp_path / "run", relevance=Irrelevant(), cache=cache)
    losses = [epoch["loss"] for epoch in result.history]
    assert losses[-1] < losses[0]
    assert "kind: cubed\n  reach: 0.25\n" in (tmp_path / "run" / "config.yaml").read_text()


def test_two_losses_of_one_name_are_told_apart_by_renaming_one() -> None:
    def another(module: str) -> type[Loss]:
        return type("Stretched", (Softened,), {"__module__": module})

    defined_first, defined_anew = another("notebook"), another("notebook")
    assert defined_first is not defined_anew
    assert LOSSES.named("stretched") is defined_anew
    elsewhere = another("library")
    assert elsewhere.__module__ == "library"
    with pytest.raises(
        UserError, match="'stretched' is the name of more than one loss: library.Stretched, notebook.Stretched"
    ):
        from_plain(TrainConfig, {"loss": "stretched"}, "config.yaml")


def test_a_loss_of_ones_own_is_named_without_telling_anybody() -> None:
    config = from_plain(TrainConfig, {"loss": {"kind": "cubed", "reach": 0.25}}, "config.yaml")
    assert config.needs_relevance
    assert "reach: margin, in units of similarity.\n" in (type(config.loss).__doc__ or "")
    assert [one.name for one in fields(config.loss)] == ["kind", "reach"]
    built = config.loss.build()
    assert (type(built), built.reach) == (Cubed, 0.25)
    around = TrainConfig(loss=config_of(Softened)(inner=config.loss, others=(config.loss,)))
    plain = to_plain(around)
    member = {"kind": "cubed", "reach": 0.25}
    assert plain["loss"] == {"kind": "softened", "inner": member, "others": [member], "scales": [1.0, 2.0]}
    assert from_plain(TrainConfig, plain, "config.yaml") == around
    built = around.loss.build()
    assert (type(built.inner), type(built.others[0]), built.scales) == (Cubed, Cubed, (1.0, 2.0))
