import pytest

from rungwise.core import UserError, dump_yaml, from_plain, parse_yaml
from rungwise.training.config import NewHeads, TrainConfig, WholeModel, merged
from rungwise.training.config._fine_tuning import WeightsThatFit
from rungwise.training.config._stage import Stage

TEXT = """
epochs: [2]
learning_rates: [0.1]
stages:
- {name: base}
- {name: fine_tune, epochs: [3], learning_rates: [0.01], model: {image: {frozen: false}}}
"""


def test_a_stage_says_what_differs_in_it():
    config = from_plain(TrainConfig, parse_yaml(TEXT, "run.yaml"), "run.yaml")
    assert config.stages[0] == Stage("base")
    (first, base), (second, tuned) = config.stage_configs()
    assert (first, second) == ("base", "fine_tune")
    assert (base.epochs, tuned.epochs) == ((2,), (3,))
    assert (base.model.image.frozen, tuned.model.image.frozen) == (True, False)
    assert tuned.model.text == base.model.text
    assert not tuned.stages


def test_stages_come_back_from_the_file_of_the_run():
    config = from_plain(TrainConfig, parse_yaml(TEXT, "run.yaml"), "run.yaml")
    assert from_plain(TrainConfig, parse_yaml(dump_yaml(config), "again.yaml"), "again.yaml") == config


def test_a_setting_that_a_stage_cannot_have_is_refused_with_its_name():
    with pytest.raises(UserError, match="stage heads: epocs"):
        TrainConfig(stages=(Stage("heads", {"epocs": [3]}),))
    with pytest.raises(UserError, match=r"^run.yaml: stage tuned: epochs 3 is one phase, learning_rates 0.0002"):
        from_plain(TrainConfig, {"stages": [{"name": "base"}, {"name": "tuned", "epochs": [3]}]}, "run.yaml")


def test_another_kind_takes_the_place_of_the_former_mapping():
    was = {"loss": {"kind": "ladder", "margins": [0.2, 0.01]}}
    assert merged(was, {"loss": {"kind": "max_of_hinges"}}) == {"loss": {"kind": "max_of_hinges"}}
    assert was == {"loss": {"kind": "ladder", "margins": [0.2, 0.01]}}


def of(*stages: Stage, **settings: object) -> list[TrainConfig]:
    return [config for _, config in TrainConfig(stages=stages, **settings).stage_configs()]  # type: ignore[arg-type]


def test_names_are_safe_and_one_of_a_kind():
    for name in ("", "../up", "a/b", ".hidden", "x" * 61, "two words"):
        with pytest.raises(UserError, match="names no folder; take up to 60 letters, digits"):
            Stage(name)
    with pytest.raises(UserError, match="^stages: 2 are named 'base'; give each a name of its own"):
        TrainConfig(stages=(Stage("base"), Stage("Base")))


@pytest.mark.parametrize(
    "settings",
    [
        {"data": {"path": "x"}},
        {"data": {"join_restval": True}},
        {"data": {"key": "stem"}},
        {"stages": []},
        {"preset": "vsepp"},
    ],
)
def test_what_a_run_has_once_is_not_of_a_stage(settings: dict[str, object]):
    with pytest.raises(UserError, match=r"^stage heads: [a-z._]+: all stages of a run have the same; set it for the"):
        Stage("heads", settings)


def test_a_later_stage_goes_on_with_the_model_that_the_configuration_describes():
    tuned = {"image": {"frozen": False, "crops": "RC"}}
    base, fine, heads, last = of(
        Stage("base"),
        Stage("fine", {"model": tuned}),
        Stage("heads", {"tune": "weights", "model": {"dimension": 8}}),
        Stage("last", {"tune": {"kind": "whole", "text": False}, "model": {"dimension": 8}}),
        preset="convse/coco",
    )
    assert (base.tune, fine.tune, heads.tune) == (WholeModel(), WholeModel(configured=True), WeightsThatFit())
    assert last.tune == WholeModel(text=False, configured=True)
    assert (fine.model.image.crops, heads.model.image.crops) == ("RC", None)
    assert {one.preset for one in (base, fine, heads, last)} == {""}


def test_a_stage_changes_no_model_that_it_goes_on_with_as_it_is():
    with pytest.raises(UserError, match=r"^stage b: model.dimension: tune: whole goes on .*; tune: weights makes it"):
        of(Stage("a"), Stage("b", {"model": {"dimension": 8}}))
    with pytest.raises(UserError, match=r"^stage b: model: tune: new_heads goes on with the model of the stage before"):
        of(Stage("a"), Stage("b", {"tune": "new_heads", "model": {"image": {"frozen": False}}}))
    with pytest.raises(UserError, match=r"^stage b: model: tune: whole goes on with the model of the stage before"):
        of(Stage("a"), Stage("b", {"model": {"image": {"frozen": False}}}), start="elsewhere")


def test_what_becomes_of_a_model_from_elsewhere_is_said_by_tune_alone():
    frozen = WholeModel(image=False)
    first, second, third = of(
        Stage("a"), Stage("b"), Stage("c", {"start": "there", "tune": "weights"}), start="elsewhere", tune=frozen
    )
    assert (first.start, second.start, third.start) == ("elsewhere", "", "there")
    assert (first.tune, second.tune, third.tune) == (frozen, frozen, WeightsThatFit())
    _, second = of(Stage("a"), Stage("b", {"tune": "whole"}), start="elsewhere", tune=WeightsThatFit())
    assert second.tune == WholeModel(configured=True)
    with pytest.raises(UserError, match=r"^stage b: tune: the run's new_heads would stand on the new heads of"):
        of(Stage("a"), Stage("b"), start="elsewhere", tune=NewHeads())


def test_lists_and_kinds_alone_replace_and_mappings_merge():
    was = {"loss": {"kind": "ladder", "margins": [0.2, 0.01]}, "rates": {"image": 0.1, "text": 1.0}}
    assert merged(was, {"rates": {"image": 0.5}})["rates"] == {"image": 0.5, "text": 1.0}
    assert merged(was, {"loss": {"margins": [0.3]}})["loss"] == {"kind": "ladder", "margins": [0.3]}
    assert merged(was, {"loss": "max_of_hinges"})["loss"] == "max_of_hinges"
    assert merged(was, {"loss": {"kind": "ladder"}})["loss"] == was["loss"]
