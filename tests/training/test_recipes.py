from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from rungwise.core.configuration import dump_yaml
from rungwise.core.errors import UserError
from rungwise.encoders.heads import LinearHead, MLPHead, NoHead, StackHead
from rungwise.losses import ContrastiveMax, ContrastiveSum, Ladder, MaxOfHinges, MultiModalNCE, SumOfHinges
from rungwise.similarity import Inner, Order, ShiftedCosine
from rungwise.training.loss_config import config_of
from rungwise.training.optimizers import Adam
from rungwise.training.recipes import load_config, preset_names
from rungwise.training.sampling import Shuffled
from rungwise.training.steps import Plain
from rungwise.training.tuning import Weights


@pytest.mark.parametrize("name", preset_names())
def test_presets_read_and_survive_yaml(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    (tmp_path / "c.yaml").write_text(dump_yaml(config))
    assert load_config(str(tmp_path / "c.yaml")) == config


def test_presets_are_the_papers() -> None:
    vsepp, vse0, ladder, order0, orderpp = (
        load_config(name) for name in ("vsepp", "vse0", "cvsepp", "order0", "orderpp")
    )
    assert vsepp.loss == config_of(MaxOfHinges)(margin=0.2, reduction="sum")
    assert (vsepp.epochs, vsepp.learning_rates, vsepp.batch_size, vsepp.clip_norm) == ((15, 15), (2e-4, 2e-5), 128, 2.0)
    assert (vsepp.model.dimension, vsepp.model.text.word_dimension, vsepp.model.text.min_count) == (1024, 300, 4)
    assert (vse0.model.similarity, vse0.loss) == (Inner(), config_of(SumOfHinges)(margin=0.2))
    for config in (vsepp, vse0, ladder, order0, orderpp):
        image = config.model.image
        assert (image.backbone, image.size, image.size / image.crop) == ("resnet152.tv_in1k", 224, 256)
        assert (image.resize, image.frozen, image.l2_normalise) == ("square", True, True)
        assert (config.sampler, config.step, config.weight_decay) == (Shuffled(), Plain(), 0.0)
    assert (order0.model.similarity, order0.loss) == (Order(absolute=True), config_of(SumOfHinges)(margin=0.05))
    assert order0.learning_rates == (1e-3, 1e-4)
    assert (orderpp.model.similarity, orderpp.loss) == (Order(), vsepp.loss)
    assert ladder.data.reference == "batch"
    assert ladder.loss == config_of(Ladder)(thresholds=(0.63,), margins=(0.2, 0.01), weights=(1.0, 0.25))


def test_the_two_recipes_of_scenes_differ_in_what_they_learn_from_alone() -> None:
    degrees, triplet = load_config("scenes"), load_config("scenes_triplet")
    assert degrees.needs_relevance
    assert not triplet.needs_relevance
    same = {"loss": triplet.loss, "warm_up_epochs": triplet.warm_up_epochs, "learning_rates": triplet.learning_rates}
    assert replace(degrees, **same) == triplet


def test_every_config_in_the_repository_reads() -> None:
    folder = Path(__file__).parents[2] / "configs"
    files = sorted(folder.glob("*.yaml"))
    assert files
    for path in files:
        load_config(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: [1]", r"c.yaml: epoch: .*(not permitted|[Uu]nexpected)"),
        ("epochs: [1]", "epochs has 1 phases, learning_rates 2"),
        ("loss: {kind: ladder, margin: 3}", "c.yaml: loss.ladder.margin"),
        ("loss: {kind: snake}", "c.yaml: loss"),
        ("batch_size: many", "c.yaml: batch_size: .*'many'"),
        ("batch_size: 0", "must be positive"),
        ("a: [", "c.yaml, line 1: not valid YAML"),
        ("- 1", "expected a mapping"),
    ],
)
def test_mistakes_have_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        load_config(str(tmp_path / "c.yaml"))
    assert "\n" not in str(caught.value)


def test_neither_file_nor_preset() -> None:
    with pytest.raises(UserError, match="absent.yaml: neither a configuration file nor a preset; presets are .*vsepp"):
        load_config("absent.yaml")


def test_presets_of_convse_stand_on_vsepp() -> None:
    vsepp = load_config("vsepp")
    losses = {
        "convse": config_of(ContrastiveSum)(temperature=0.1, reduction="mean"),
        "convsepp": config_of(ContrastiveMax)(temperature=0.1, margin=0.2, reduction="mean"),
        "mvn": config_of(MultiModalNCE)(temperature=0.1, reduction="mean"),
    }
    mlp = MLPHead(hidden=(2048,))
    for name, loss in losses.items():
        config = load_config(name)
        assert config.loss == loss
        assert (config.epochs, config.learning_rates, config.batch_size) == ((30,), (2e-5,), 256)
        assert (config.tune, config.optimizer) == (Weights(), Adam())
        assert (config.model.image_head, config.model.text_head) == (StackHead(of=(LinearHead(), mlp)), mlp)
        bare = replace(config.model, image_head=LinearHead(), text_head=NoHead())
        assert bare == vsepp.model


def test_the_preset_of_cmal2r_is_two_layers_a_side_with_its_penalty() -> None:
    config = load_config("cmal2r")
    for head in (config.model.image_head, config.model.text_head):
        layers = head.build(4096, config.model.dimension)
        assert sum(isinstance(one, nn.Linear) for one in layers.modules()) == 2
    assert config.weight_decay > 0
    assert (config.loss.sharpness, config.loss.i2t_weight) == (0.5, 0.4)
    assert config.model.similarity == ShiftedCosine()
    assert config.sampler.kind == "label_lists"
