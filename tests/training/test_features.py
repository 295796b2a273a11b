"""Collections of features in place of pictures, from training to search, in memory and from the command line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.evaluation import evaluate
from rungwise.index import Index, Searcher
from rungwise.losses import SumOfHinges
from rungwise.models import VSEConfig, load
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.engine import train
from tests.training.conftest import TrainedRun

NAMES = ("red", "green", "blue", "white")
SHAPES = {"vectors": (7,), "regions": (5, 7)}


def rows_of(shape: tuple[int, ...], images: int = 48) -> np.ndarray:
    """(images, *shape) float16: a direction for each of four names, and noise."""
    draw = np.random.default_rng(1)
    meanings = draw.normal(size=(4, shape[-1]))
    spread = (1,) * (len(shape) - 1)
    rows = meanings[np.arange(images) % 4].reshape(images, *spread, shape[-1])
    return (rows + 0.1 * draw.normal(size=(images, *shape))).astype(np.float16)


def folder_of_features(folder: Path, shape: tuple[int, ...]) -> Path:
    """As docs/guide/data/data.md has it: rows in another order than the captions name the images."""
    folder.mkdir()
    rows, order = rows_of(shape), np.random.default_rng(2).permutation(48)
    np.save(folder / "features.npy", rows[order])
    (folder / "ids.txt").write_text("".join(f"{image}.jpg\n" for image in order))
    lines = ["image,caption,split"]
    for image in range(48):
        split = "test" if image >= 40 else "val" if image >= 32 else "train"
        phrases = ("a {} picture", "something that is all {}", "{}")[: 1 + image % 3]
        lines += [f"{image}.jpg,{phrase.format(NAMES[image % 4])},{split}" for phrase in phrases]
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")
    return folder


def small(**changes: object) -> TrainConfig:
    text = GRUConfig(word_dimension=8, min_count=1)
    config = TrainConfig(
        model=VSEConfig(image=FeatureConfig(), text=text, dimension=16),
        loss=config_of(SumOfHinges)(),
        epochs=(5, 1),
        learning_rates=(2e-2, 2e-3),
        batch_size=16,
    )
    return replace(config, **changes)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_trained_saved_loaded_evaluated_indexed(shape: tuple[int, ...], tmp_path: Path) -> None:
    data = read(folder_of_features(tmp_path / "data", shape))
    assert isinstance(data.features.parts[0], np.memmap)
    assert data.features.dtype == np.float16
    result = train(small(), data, tmp_path / "run", cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    model = load(result.model_folder)
    assert model.config.image == FeatureConfig(width=7)
    assert not (result.model_folder / "preprocessing.json").exists()
    again = load(result.model_folder)
    assert again.fingerprint == model.fingerprint
    test = data.split("test")
    # Rows in memory, in float32, and their mean over regions give the same vectors as the file does.
    in_memory = test.features[:].astype(np.float32)
    expected = model.encode_image(FeatureRows(in_memory)).vectors
    np.testing.assert_allclose(model.encode_image(test.features).vectors, expected, atol=1e-6)
    means = in_memory if in_memory.ndim == 2 else in_memory.mean(axis=1)
    np.testing.assert_allclose(model.encode_image(FeatureRows(means)).vectors, expected, atol=1e-5)
    scores = model.on(test)
    hits = scores.block(np.arange(len(test)), np.arange(len(test.captions))).argmax(axis=0)
    owners = test.image_of_caption
    assert np.mean(hits % 4 == owners % 4) > 0.9
    assert evaluate(**scores.for_evaluation(), image_of_caption=owners)["rsum"] > 0
    validation = model.on(data.split("val"))
    measured = evaluate(**validation.for_evaluation(), image_of_caption=validation.data.image_of_caption)
    assert measured["rsum"] == pytest.approx(result.best_rsum, abs=1e-6)
    index = Index.build(data, model, tmp_path / "index")
    found = Searcher(index, model).search_text("a blue picture", 5)
    assert {int(hit.id.removesuffix(".jpg")) % 4 for hit in found} == {2}


def test_what_the_model_was_not_trained_on_is_one_line(tmp_path: Path, coloured: ImageCaptions) -> None:
    data = read(folder_of_features(tmp_path / "data", (7,)))
    result = train(small(epochs=(1,), learning_rates=(2e-2,)), data, tmp_path / "run")
    model = load(result.model_folder)
    for pictures in (list(coloured.paths), [coloured.paths[0].read_bytes()]):
        with pytest.raises(UserError, match="was trained on rows of features and reads no pictures"):
            model.encode_image(pictures)
    with pytest.raises(UserError, match="features of length 6, but the model reads features of length 7"):
        model.encode_image(FeatureRows(np.zeros((2, 6), np.float32)))
    bad = data.features[:]
    bad[3, 1] = np.nan
    with pytest.raises(UserError, match="row 3 .*not finite"):
        model.encode_image(FeatureRows(bad))
    with pytest.raises(UserError, match="row 3 .*not finite"):
        train(small(), replace(data, features=FeatureRows(bad)), tmp_path / "bad")


def test_a_configuration_and_data_that_do_not_go_together_are_one_line(
    tmp_path: Path, coloured: ImageCaptions, trained_run: TrainedRun
) -> None:
    data = read(folder_of_features(tmp_path / "data", (7,)))
    with pytest.raises(UserError, match="the data have picture files and no rows of features"):
        train(small(), coloured, tmp_path / "run")
    with pytest.raises(UserError, match="features of length 7, but the model reads features of length 9"):
        train(small(model=VSEConfig(image=FeatureConfig(width=9))), data, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match="the data are rows of features, but the model reads pictures"):
        load(trained_run.result.model_folder).on(data)


def test_rows_stand_in_for_the_backbone_of_a_configuration(tmp_path: Path, config: TrainConfig) -> None:
    data = read(folder_of_features(tmp_path / "data", (7,)))
    # Its weights cannot be had, and nobody asks for them.
    image = replace(config.model.image, weights="no such file", l2_normalise=False)
    asked = replace(config, model=replace(config.model, image=image), epochs=(1, 1))
    model = load(train(asked, data, tmp_path / "run").model_folder)
    assert model.config.image == FeatureConfig(width=7, l2_normalise=False)
    longer = replace(asked, epochs=(1, 2))
    assert train(longer, data, tmp_path / "run", resume=True).finished


CONFIGURATION = """
model: {image: {kind: features}, text: {word_dimension: 8, min_count: 1}, dimension: 16}
loss: sum_of_hinges
epochs: [5, 1]
learning_rates: [2.0e-2, 2.0e-3]
batch_size: 16
"""


@pytest.mark.parametrize(
    "shape", [SHAPES["vectors"], pytest.param(SHAPES["regions"], marks=pytest.mark.slow)], ids=SHAPES
)
def test_the_command_line_from_training_to_search(
    shape: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(folder_of_features(tmp_path / "data", shape))
    (tmp_path / "run.yaml").write_text(CONFIGURATION)
    run, index = str(tmp_path / "run"), str(tmp_path / "index")
    assert main(["train", str(tmp_path / "run.yaml"), data, "--out", run, "--device", "cpu"]) == 0
    assert main(["train", f"{run}/config.yaml", "--out", run, "--resume", "--device", "cpu"]) == 0
    model = f"{run}/model"
    assert main(["evaluate", model, data, "--out", str(tmp_path / "result.json"), "--device", "cpu"]) == 0
    assert json.loads((tmp_path / "result.json").read_text())
    assert main(["index", data, "--model", model, "--out", index, "--device", "cpu"]) == 0
    capsys.readouterr()
    assert main(["search", index, "a green picture", "--k", "4", "--no-fold", "--device", "cpu"]) == 0
    hits = [word for word in capsys.readouterr().out.split() if word.endswith(".jpg")]
    assert len(hits) == 4
    assert {int(name.removesuffix(".jpg")) % 4 for name in hits} == {1}
    assert main(["train", str(tmp_path / "run.yaml"), data, "--out", run]) == 2
    refused = capsys.readouterr().err.strip()
    assert refused.count("\n") == 0
    assert "holds a run already" in refused


def test_pictures_in_a_search_of_features_are_one_line(
    tmp_path: Path, coloured: ImageCaptions, capsys: pytest.CaptureFixture[str]
) -> None:
    data = read(folder_of_features(tmp_path / "data", (7,)))
    result = train(small(epochs=(1,), learning_rates=(2e-2,)), data, tmp_path / "run")
    Index.build(data, load(result.model_folder), tmp_path / "index", model_location=str(result.model_folder))
    capsys.readouterr()
    picture = str(coloured.paths[0])
    assert main(["search", str(tmp_path / "index"), "--image", picture, "--device", "cpu"]) == 2
    refused = capsys.readouterr().err.strip()
    assert "reads no pictures" in refused
    assert refused.count("\n") == 0
    assert main(["evaluate", str(result.model_folder), str(coloured.paths[0].parent), "--device", "cpu"]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0
