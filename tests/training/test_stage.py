import pytest

from rungwise.core.configuration import dump_yaml, from_plain, parse_yaml
from rungwise.core.errors import UserError
from rungwise.training.config import TrainConfig
from rungwise.training.stage import Stage, merged

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
    with pytest.raises(UserError, match=r"^run.yaml: stage tuned: epochs has 1 phases, learning_rates 2; give a rate"):
        from_plain(TrainConfig, {"stages": [{"name": "base"}, {"name": "tuned", "epochs": [3]}]}, "run.yaml")


def test_another_kind_takes_the_place_of_the_former_mapping():
    was = {"loss": {"kind": "ladder", "margins": [0.2, 0.01]}}
    assert merged(was, {"loss": {"kind": "max_of_hinges"}}) == {"loss": {"kind": "max_of_hinges"}}
    assert was == {"loss": {"kind": "ladder", "margins": [0.2, 0.01]}}
