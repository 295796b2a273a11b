import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from pathlib import Path

import pytest
from torch import nn

from rungwise.core import UserError, dump_yaml
from rungwise.encoders import LinearHead, NoHead
from rungwise.encoders._heads import MLPHead, StackHead
from rungwise.evaluation.tables import matching
from rungwise.losses import ContrastiveMax, ContrastiveSum, Ladder, MaxOfHinges, MultiModalNCE, SumOfHinges
from rungwise.similarity import Inner, Order, ShiftedCosine
from rungwise.training.batches import Shuffled
from rungwise.training.config import (
    FitConfig,
    TrainConfig,
    config_of,
    datasets_of,
    load_config,
    load_preset,
    preset_names,
    presets,
    systems,
)
from rungwise.training.config._fine_tuning import WeightsThatFit
from rungwise.training.steps import Adam, Plain

REGIONS = {"sgr": "SGR", "cvse": "CVSE", "sam-sgr": "SGR+SAM", "sam-cvse": "CVSE+SAM"}
"""Systems of which the SAM paper prints rows on less data and on all."""


def test_every_preset_reads_with_its_stages_and_names_rows_that_were_printed() -> None:
    names = preset_names()
    assert len(names) == len(set(names)) > 200
    for preset in presets():
        config = preset.config
        assert config.preset == preset.name
        assert isinstance(config, FitConfig) or len(config.stage_configs()) == len(config.stages)
        assert preset.about.endswith(".")
        assert "assumes" not in preset.settings
        for reference in preset.reproduces:
            rows = matching(reference)
            assert {row.dataset for row in rows} == {preset.dataset}
            assert preset.dataset not in ("flickr8k", "own", "scenes")


def test_a_row_that_was_not_printed_is_refused() -> None:
    with pytest.raises(UserError, match="no row whose row is '1.99'"):
        matching(dict(load_preset("vsepp/coco:rc-rv").reproduces[0]) | {"row": "1.99"})


@pytest.mark.parametrize(
    ("name", "paper", "table", "methods"),
    [
        ("vsepp", "vsepp", "Table 1", {"VSE++"}),
        ("vsepp", "vsepp", "Table 3", {"VSE++"}),
        ("vse0", "vsepp", "Table 2", {"VSE0"}),
        ("cvsepp", "ladder_loss", "Table 1", {"CVSE++"}),
        ("cvsepp", "ladder_loss", "Table 2", {"CVSE++"}),
        ("cvsepp", "ladder_loss", "Table 3", {"CVSE++"}),
        ("cvsepp", "ladder_loss", "Table 4", {"CVSE++"}),
        ("vsepp", "ladder_loss", "Table 2", {"VSE++"}),
        ("convsepp", "convse", "Table II", {"ConVSE++"}),
        ("convse", "convse", "Table III", {"ConVSE"}),
        ("mvn", "convse", "Table III", {"MVN"}),
        ("cmal2r", "cmal2r", "Table 1", {"CMAL2R", "CMAL2R(bi.)"}),
        ("random", "ladder_loss", "Table 1", {"Random"}),
        ("random", "ladder_loss", "Table 2", {"Random"}),
        *((name, "sam", table, {method}) for name, method in REGIONS.items() for table in ("Table 2", "Table 3")),
        ("sam-cvse", "sam", "Table 4", {"CVSE+SAM"}),
        ("sam-cvse", "sam", "Table 5", {"CVSE+SAM"}),
    ],
)
def test_every_row_of_a_system_has_a_preset(name: str, paper: str, table: str, methods: set[str]) -> None:
    said = [one for preset in presets(name) for one in preset.reproduces]
    standing = {row for one in said if (one["paper"], one["table"]) == (paper, table) for row in matched(one)}
    rows = {
        line
        for line, cells in enumerate(published_rows())
        if (cells["paper"], cells["table"]) == (paper, table) and cells["method"] in methods
    }
    assert rows
    assert standing == rows


@lru_cache
def published_rows() -> list[dict[str, str]]:
    with (resources.files("rungwise.evaluation") / "published.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def matched(reference: Mapping[str, str]) -> set[int]:
    """Lines of the published numbers that a reference names, found without the package's own search."""
    facts = dict(reference)
    found = set()
    for number, cells in enumerate(published_rows()):
        setting = dict(part.split("=", 1) for part in cells["setting"].split(";") if "=" in part)
        if all((cells[key] if key in cells else setting.get(key)) == value for key, value in facts.items()):
            found.add(number)
    return found


PRESETS = [name for name in preset_names() if ":" not in name]
FIRST = {name.partition("/")[0]: name for name in reversed(PRESETS)}
"""The first preset of every system."""


@pytest.mark.parametrize(
    "name", [name if name in FIRST.values() else pytest.param(name, marks=pytest.mark.slow) for name in PRESETS]
)
def test_presets_read_and_survive_yaml(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    (tmp_path / "c.yaml").write_text(dump_yaml(config))
    assert load_config(str(tmp_path / "c.yaml")) == config


@pytest.mark.parametrize("name", ["vsepp/coco:vgg19-rc-rv-finetuned", "convsepp/coco:d-64", "sam/coco:share-3"])
def test_variants_survive_yaml(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    (tmp_path / "c.yaml").write_text(dump_yaml(config))
    assert load_config(str(tmp_path / "c.yaml")) == config


def test_presets_are_the_papers() -> None:
    vsepp, vse0, ladder, order0, orderpp = (
        load_config(name)
        for name in ("vsepp/coco", "vse0/coco", "cvsepp/coco:bert", "order0/coco:resnet152", "orderpp/coco:resnet152")
    )
    assert vsepp.loss == config_of(MaxOfHinges)(margin=0.2, reduction="sum", extra_positives="keep")
    assert (vsepp.epochs, vsepp.learning_rates, vsepp.batch_size, vsepp.clip_norm) == ((15, 15), (2e-4, 2e-5), 128, 2.0)
    assert (vsepp.model.dimension, vsepp.model.text.word_dimension, vsepp.model.text.min_count) == (1024, 300, 4)
    assert (vse0.model.similarity, vse0.loss) == (Inner(), config_of(SumOfHinges)(margin=0.2, extra_positives="keep"))
    for config in (vsepp, vse0, ladder, order0, orderpp):
        image = config.model.image
        assert (image.backbone, image.size, image.size / image.crop) == ("resnet152.tv_in1k", 224, 256)
        assert (image.resize, image.frozen, image.l2_normalise) == ("square", True, True)
        assert (config.sampler, config.step, config.weight_decay) == (Shuffled(), Plain(), 0.0)
    assert order0.model.similarity == Order(absolute=True)
    assert order0.loss == config_of(SumOfHinges)(margin=0.05, extra_positives="keep")
    assert order0.learning_rates == (1e-3, 1e-4)
    assert (orderpp.model.similarity, orderpp.loss) == (Order(), vsepp.loss)
    assert ladder.data.reference == "batch"
    assert ladder.loss == config_of(Ladder)(
        thresholds=(0.63,), margins=(0.2, 0.01), weights=(1.0, 0.25), extra_positives="keep"
    )
    assert (order0.model.image.crops, orderpp.model.image.crops) == ("10C", "10C")


def test_the_two_recipes_of_scenes_differ_in_what_they_learn_from_alone() -> None:
    degrees, triplet = load_config("scenes"), load_config("scenes_triplet")
    assert degrees.needs_relevance
    assert not triplet.needs_relevance
    same = {name: getattr(triplet, name) for name in ("loss", "warm_up_epochs", "learning_rates", "preset")}
    assert replace(degrees, **same) == triplet


def test_the_repository_shows_the_presets_at_its_root() -> None:
    shown, shipped = Path(__file__).parents[3] / "configs", Path(str(resources.files("rungwise"))) / "configs"
    assert shown.resolve() == shipped.resolve()
    assert load_config(str(shown / "vsepp" / "coco.yaml")) == replace(load_config("vsepp/coco"), preset="")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch: [1]", r"c.yaml: epoch: .*(not permitted|[Uu]nexpected)"),
        ("epochs: [1]", "epochs 1 is one phase, learning_rates 0.0002 2e-05 are two"),
        ("loss: {kind: ladder, margin: 3}", "c.yaml: loss.ladder.margin"),
        ("loss: {kind: snake}", "c.yaml: loss"),
        ("batch_size: many", "c.yaml: batch_size: .*'many'"),
        ("batch_size: 0", "batch_size: must be at least 1"),
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


def test_a_file_that_names_a_preset_changes_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("preset: vsepp\nloss: {margin: 0.5}\nbatch_size: 7\n")
    usual = load_config("vsepp", "flickr8k")
    assert isinstance(usual, TrainConfig)
    loss = replace(usual.loss, margin=0.5)
    assert load_config(str(mine), "flickr8k") == replace(usual, loss=loss, batch_size=7)
    kept = tmp_path / "kept.yaml"
    for preset in presets():
        kept.write_text(dump_yaml(preset.config))
        assert load_config(str(kept)) == preset.config
    mine.write_text("preset: nobody/knows\n")
    with pytest.raises(UserError, match="mine.yaml: preset: there is no preset 'nobody/knows'; presets are .*vsepp"):
        load_config(str(mine))
    mine.rename(tmp_path / "config.yaml")
    assert load_config(str(tmp_path / "config.yaml"), resumed=tmp_path).preset == "nobody/knows"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vsep", "vsep: neither a configuration file nor a preset; do you mean vsepp"),
        ("vsep/coco", "vsep/coco: neither a configuration file nor a preset; do you mean vsepp"),
        ("vsepp/coca", "no preset vsepp/coca; do you mean coco; vsepp has coco, flickr30k, flickr8k, scenes, own"),
        ("vsepp/coco:rcrv", "vsepp/coco has no variant 'rcrv'; do you mean .*rc-rv.*; it has rv, 10c"),
        ("scenes/scenes:big", "scenes/scenes has no variant 'big'; it has none"),
    ],
)
def test_what_is_spelt_alike_is_offered(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        load_config(name)
    assert "\n" not in str(caught.value)


def test_a_system_takes_the_preset_of_the_data_at_hand() -> None:
    assert load_config("vsepp", "flickr30k").preset == "vsepp/flickr30k"
    assert load_config("vsepp", "wikipedia").preset == load_config("vsepp").preset == "vsepp/own"
    assert load_config("scenes", "coco").preset == "scenes/scenes"
    assert load_config("sam:alone", "flickr8k").preset == "sam/flickr8k:alone"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variants: [rc]", "variants must map names to settings"),
        ("variants: {rc: {variants: {rv: {}}}}", "the variant rc has variants of its own"),
    ],
)
def test_variants_have_no_variants(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        load_config(str(tmp_path / "c.yaml"))


def test_small_data_warm_up_where_the_hardest_negative_alone_is_pushed() -> None:
    for preset in presets():
        config = preset.config
        if preset.dataset in ("flickr8k", "own", "scenes") and isinstance(config, TrainConfig):
            first = next((one for _, one in config.stage_configs()), config)
            hard = first.loss.kind in ("max_of_hinges", "ladder") or getattr(first.loss, "with_triplet", False)
            assert (first.warm_up_epochs > 0) == hard, preset.name


def test_presets_of_convse_stand_on_vsepp() -> None:
    vsepp = load_config("vsepp/flickr30k:rc-finetuned")
    losses = {
        "convse": config_of(ContrastiveSum)(temperature=0.1, reduction="mean", extra_positives="keep"),
        "convsepp": config_of(ContrastiveMax)(temperature=0.1, margin=0.2, reduction="mean", extra_positives="keep"),
        "mvn": config_of(MultiModalNCE)(temperature=0.1, reduction="mean", extra_positives="keep"),
    }
    mlp = MLPHead(hidden=(2048,))
    for name, loss in losses.items():
        config = load_config(f"{name}/flickr30k:from-vsepp")
        assert (config.loss, config.stages) == (loss, ())
        assert (config.epochs, config.learning_rates, config.batch_size) == ((30,), (2e-5,), 256)
        assert (config.tune, config.optimizer) == (WeightsThatFit(), Adam())
        assert (config.model.image_head, config.model.text_head) == (StackHead(of=(LinearHead(), mlp)), mlp)
        bare = replace(config.model, image_head=LinearHead(), text_head=NoHead())
        assert bare == vsepp.model
        (_, base), (_, tuned), (_, heads) = load_config(f"{name}/flickr30k").stage_configs()
        for ours, theirs in zip((base, tuned), (one for _, one in vsepp.stage_configs()), strict=True):
            assert replace(ours, preset=theirs.preset) == theirs
        assert replace(heads, preset=config.preset) == config


@pytest.mark.parametrize("system", [one for one in systems() if "flickr8k" in datasets_of(one)])
def test_every_system_of_flickr8k_takes_weights_with_the_padding_of_tensorflow(system: str) -> None:
    plain, same = load_config(f"{system}/flickr8k"), load_config(f"{system}/flickr8k:same-padding")
    image, half = same.model.image, (0.5, 0.5, 0.5)
    assert (image.backbone, image.options) == ("mobilenetv2_100", {"pad_type": "same"})
    assert (image.mean, image.std, image.crop, image.weights) == (half, half, 1.0, "hub")
    own = {name: getattr(image, name) for name in ("backbone", "options", "mean", "std", "crop")}
    assert (
        replace(plain, model=replace(plain.model, image=replace(plain.model.image, **own)), preset=same.preset) == same
    )
    assert all(stage.model.image == image for _, stage in same.stage_configs())
    for preset in presets(system):
        if preset.dataset == "flickr8k" and isinstance(preset.config, TrainConfig):  # the flags reach every stage
            typed = replace(preset.config, model=replace(preset.config.model, image=replace(plain.model.image, **own)))
            seen = [{name: getattr(stage.model.image, name) for name in own} for _, stage in typed.stage_configs()]
            assert all(one == own for one in seen), preset.name


def test_the_preset_of_cmal2r_is_two_layers_a_side_with_its_penalty() -> None:
    config = load_config("cmal2r")
    for head in (config.model.image_head, config.model.text_head):
        layers = head.build(4096, config.model.dimension)
        assert sum(isinstance(one, nn.Linear) for one in layers.modules()) == 2
    assert config.weight_decay > 0
    assert (config.loss.sharpness, config.loss.i2t_weight) == (0.5, 0.4)
    assert config.model.similarity == ShiftedCosine()
    assert config.sampler.kind == "label_lists"


def test_modules_that_are_null_are_none(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("modules:\nbatch_size: 8\n")
    assert load_config(str(tmp_path / "mine.yaml")).modules == ()
