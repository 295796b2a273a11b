import pytest

from rungwise.cli.train._kinds import with_kinds
from rungwise.core import UserError
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import BagOfWordsConfig, GRUConfig
from rungwise.training.config import TrainConfig, load_config


@pytest.mark.parametrize(
    "typed",
    [["--model.text.kind", "bag_of_words"], ["--model.text.kind=bag_of_words", "--epochs", "2"]],
)
def test_a_part_of_another_kind_begins_with_its_defaults_and_the_rest_stays(typed: list[str]) -> None:
    before = load_config("quick/own")
    after = with_kinds(before, typed)
    assert after.model.text == BagOfWordsConfig()
    assert (after.model.image, after.model.text_head) == (before.model.image, before.model.text_head)
    assert (after.loss, after.optimizer, after.preset) == (before.loss, before.optimizer, before.preset)


def test_several_parts_are_of_other_kinds() -> None:
    typed = ["--model.text.kind", "bag_of_words", "--model.image.kind", "features", "--batch-size", "3"]
    model = with_kinds(TrainConfig(), typed).model
    assert (model.text, model.image) == (BagOfWordsConfig(), FeatureConfig())


@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["--model.text.kind", "gru"],
        ["--nothing.kind", "gru"],
        ["--batch-size.kind", "3"],
    ],
)
def test_a_part_of_its_own_kind_keeps_its_settings(typed: list[str]) -> None:
    before = load_config("vsepp/flickr30k")
    assert isinstance(before.model.text, GRUConfig)
    assert with_kinds(before, typed) is before


@pytest.mark.parametrize("typed", [["--model.text.kind", "bag"], ["--model.text.kind"], ["--model.text.kind="]])
def test_a_kind_that_is_none_is_one_line(typed: list[str]) -> None:
    with pytest.raises(UserError, match="^--model.text.kind: .*there are gru, transformer, bag_of_words") as said:
        with_kinds(TrainConfig(), typed)
    assert "\n" not in str(said.value)
