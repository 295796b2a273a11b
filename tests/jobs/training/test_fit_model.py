"""``rungwise train`` of models that are fitted, from the words that are typed to a search."""

import csv
import shlex
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import yaml

from rungwise.cli import main
from rungwise.data import ImageCaptions
from rungwise.models import load
from tests.training.conftest import coloured  # noqa: F401 - a fixture

TINY = [
    *("--model.image.backbone", "test_resnet.r160_in1k", "--model.image.weights", "random", "--model.image.size", "24"),
    *("--model.text.min-count", "1", "--grid", "{dimension: [2, 3]}"),
]


@pytest.fixture
def pictures(coloured: ImageCaptions, tmp_path: Path) -> Path:  # noqa: F811
    """A folder of pictures and a table of captions and labels: the colour is the label."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["image", "caption", "label"])
        for caption, owner in zip(coloured.captions, coloured.image_of_caption, strict=True):
            table.writerow([coloured.image_ids[owner], caption, caption.split()[-1]])
    for path in coloured.paths:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """The Wikipedia set's layout with numbers that tell the class."""
    folder, draw = tmp_path / "wiki", np.random.default_rng(0)
    folder.mkdir()
    arrays = {}
    for end, split, items in (("tr", "train", 80), ("te", "test", 40)):
        own = np.arange(items) % 4
        arrays |= {f"{side}_{end}": np.eye(4)[own] + 0.3 * draw.random((items, 4)) for side in "IT"}
        lines = "".join(f"{split}t{k} {split}i{k} {label + 1}\n" for k, label in enumerate(own))
        (folder / f"{split}set_txt_img_cat.list").write_text(lines)
    scipy.io.savemat(folder / "raw_features.mat", arrays)
    return folder


@pytest.mark.parametrize("kind", ["cca", "gmlda"])
def test_pictures_are_fitted_indexed_and_found_by_words(
    kind: str, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, index = tmp_path / "run", tmp_path / "index"
    assert main(["train", kind, str(pictures), "--out", str(out), *TINY, "--cache", str(tmp_path / "c")]) == 0
    said = capsys.readouterr().out
    assert f"{kind}: 2 combinations of dimension" in said
    assert "chosen of 2: dimension" in said
    assert f"evaluate {out} {pictures} --protocol labels\n" in said.replace("\n    ", " ")
    assert load(out / "model").chosen_by_labels
    assert "rungwise index" in said
    assert main(["evaluate", str(out), str(pictures), "--protocol", "labels"]) == 0
    assert "kept in the run" in capsys.readouterr().out
    assert main(["index", str(pictures), "--model", str(out / "model"), "--out", str(index)]) == 0
    assert main(["search", str(index), "red", "--k", "1"]) == 0
    assert "red" in capsys.readouterr().out
    assert main(["verify", str(out)]) == 0


def test_features_take_the_preset_of_their_dataset(
    features: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", "mvda", str(features), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "this is rungwise train mvda/wikipedia" in said
    commands = [shlex.split(line) for line in said.partition("next:\n")[2].splitlines()]
    assert [words[1] for words in commands] == ["evaluate", "index", "search"]
    for words in commands:  # without words, there is nothing to calibrate by or to type
        assert main(words[1:]) == 0
    assert "1  1.000" in capsys.readouterr().out
    assert main(["table", "cmal2r:1", "--runs", str(out)]) == 0
    assert "mvda/wikipedia" in capsys.readouterr().out


def test_what_is_typed_is_not_tried_by_the_grid(features: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["--model.dimension", "2", "--model.roots", "--model.regularisation=0.5"]
    assert main(["train", "cca", str(features), "--out", str(out), *words]) == 0
    assert yaml.safe_load((out / "config.yaml").read_text())["grid"] == {}
    model = load(out / "model")
    assert (model.dimension, model.config.roots, model.config.regularisation) == (2, True, 0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resume"], "--resume changes nothing: cca is fitted at once"),
        (["--seeds", "0", "1"], "--seeds changes nothing: cca is fitted at once"),
        (["--epochs", "3"], "--epochs"),
        (["--grid", "dimension"], "is no grid; write such as '{dimension: [5, 10]}'"),
        (["--grid", "{dimensions: [3]}"], "dimensions"),
        (["--snapshot.measure", "CS@10"], "needs degrees of relevance"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], message: str, features: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "cca/wikipedia", str(features), "--out", str(tmp_path / "run"), *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_method_that_reads_labels_refuses_data_without(
    coloured: ImageCaptions,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / coloured.paths[0].name).write_bytes(coloured.paths[0].read_bytes())
    (folder / "captions.csv").write_text(f"image,caption\n{coloured.paths[0].name},a colour\n")
    assert main(["train", "scm", str(folder), "--out", str(tmp_path / "run")]) == 2
    assert "scm/own does not fit pictures: it reads class labels, and the data have none" in capsys.readouterr().err
