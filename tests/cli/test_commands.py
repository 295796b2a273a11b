"""The commands as a user meets them: what they print, what they leave behind, and how they refuse.

Also tests rungwise.cli, rungwise.cli.index._command, rungwise.cli.examine._inspect, rungwise.cli.search._command,
rungwise.cli.serve._command, rungwise.jobs._terminal and rungwise.cli.train._command.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file

from rungwise.cli import COMMANDS, main
from rungwise.core.disk import replacing
from rungwise.models import JointEmbedding
from rungwise.scenes import SceneConfig, generate

TINY = """
model:
  image: {backbone: test_resnet, weights: random, size: 32, frozen: true, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}
  text: {word_dimension: 8, min_count: 1}
  dimension: 16
loss: {kind: ladder, thresholds: [0.6]}
epochs: [1]
learning_rates: [1.0e-3]
batch_size: 32
"""


@dataclass
class World:
    folder: Path
    scenes: Path
    run: Path
    index: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Scenes, a model trained on them for one epoch, and an index of their test pictures."""
    folder = tmp_path_factory.mktemp("world")
    world = World(folder, folder / "scenes", folder / "run", folder / "index")
    generate(world.scenes, SceneConfig(pictures=60, side=32, val_share=0.2, test_share=0.2))
    (folder / "tiny.yaml").write_text(TINY)
    assert main(["train", str(folder / "tiny.yaml"), str(world.scenes), "--out", str(world.run)]) == 0
    pictures = str(world.scenes)
    assert main(["index", pictures, "--model", str(world.run / "model"), "--out", str(world.index)]) == 0
    return world


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in COMMANDS)
    assert max(map(len, overview.splitlines())) <= 80
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("rungwise 0.")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main([command, "--help"])
    except SystemExit as end:  # how the parser ends, but for a list of subcommands
        code = end.code
    assert code == 0
    assert f"rungwise {command}" in capsys.readouterr().out


def test_inspect(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(world.scenes), "--contact-sheet", str(world.folder / "sheet.png")]) == 0
    printed = capsys.readouterr().out
    assert "60" in printed
    assert "300" in printed
    assert Image.open(world.folder / "sheet.png").size[0] > 100


def test_train_leaves_a_run_that_can_be_resumed(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = load_file(world.run / "checkpoint.safetensors")
    config = str(world.run / "config.yaml")
    assert main(["train", config, "--out", str(world.run)]) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert main(["train", config, "--out", str(world.run), "--resume"]) == 0
    assert "best epoch 1" in capsys.readouterr().out
    after = load_file(world.run / "checkpoint.safetensors")
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_settings_can_be_overridden(world: World) -> None:
    out = world.folder / "other"
    arguments = ["train", str(world.folder / "tiny.yaml"), str(world.scenes), "--out", str(out)]
    of_loss = ["--loss.margins", "0.3", "0.02", "--loss.pairs", "2"]
    assert main([*arguments, "--model.dimension", "12", "--epochs", "1", *of_loss]) == 0
    text = (out / "config.yaml").read_text()
    assert "dimension: 12" in text
    assert "pairs: 2" in text
    assert load_file(out / "model" / "model.safetensors")["image_projection.bias"].shape == (12,)


def test_the_ladder_takes_saved_degrees_and_shares(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    degrees = world.folder / "degrees"
    assert main(["relevance", "tfidf", str(world.scenes), "--out", str(degrees)]) == 0
    out = world.folder / "graded"
    arguments = ["train", str(world.folder / "tiny.yaml"), str(world.scenes), "--out", str(out)]
    assert main([*arguments, "--data.relevance", str(degrees), "--loss.shares", "0.1"]) == 0
    assert "thresholds for the shares: 0." in capsys.readouterr().out
    generate(world.folder / "fewer", SceneConfig(pictures=30, side=32, val_share=0.2, test_share=0.2))
    other = ["train", str(world.folder / "tiny.yaml"), str(world.folder / "fewer"), "--out", str(world.folder / "no")]
    assert main([*other, "--data.relevance", str(degrees)]) == 2
    assert "degrees of 60 images and 300 captions, but" in capsys.readouterr().err
    again = SceneConfig(pictures=60, side=32, seed=7, val_share=0.2, test_share=0.2)
    generate(world.folder / "as many", again)
    other[2] = str(world.folder / "as many")
    assert main([*other, "--data.relevance", str(degrees)]) == 2
    assert "or other ones (hash" in capsys.readouterr().err


def test_evaluate_prints_and_writes(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    out = world.folder / "result.json"
    arguments = ["evaluate", str(world.run / "model"), str(world.scenes), "--out", str(out)]
    assert main([*arguments, "--measures", "R@1", "R@5", "R@10", "rsum", "nDCG@10"]) == 0
    assert "R@10" in capsys.readouterr().out
    written = json.loads(out.read_text())
    assert (written["protocol"], written["seed"]) == ("full", 0)
    assert "i2t/nDCG@10" in json.dumps(written)


def test_search_by_text_and_by_picture(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(world.index), "a red circle", "--k", "3"]) == 0
    assert len([line for line in capsys.readouterr().out.splitlines() if ".png" in line]) == 3
    picture = sorted((world.scenes / "pictures").iterdir())[7]
    assert main(["search", str(world.index), "--image", str(picture), "--k", "2"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert picture.name in next(line for line in printed if ".png" in line)
    assert any(line.rstrip().endswith("caption") for line in printed)


def test_a_command_computes_the_fingerprint_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    original = JointEmbedding.fingerprint.fget
    counted = property(lambda model: computed.append(model) or original(model))
    monkeypatch.setattr(JointEmbedding, "fingerprint", counted)
    picture = str(next((world.scenes / "pictures").iterdir()))
    again = ["index", str(world.scenes), "--model", str(world.run / "model"), "--out", str(world.folder / "again")]
    for arguments, times in (
        (["search", str(world.index), "a red circle"], 1),
        (["search", str(world.index), "--image", picture, "--device", "cpu"], 1),
        (again, 1),
        (again, 0),  # known by its files
        ([*again, "--device", "cpu"], 1),
    ):
        computed.clear()
        assert main(arguments) == 0
        assert len(computed) == times


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "{index}", "a", "--device", "abacus"], "device 'abacus' is unknown"),
        (["inspect", "{folder}/nowhere"], "no such file or folder"),
        (["search", "{index}"], "give a text, --image FILE or --like ID"),
        (["search", "{folder}/nowhere", "a"], "no index here"),
        (["search", "{index}", "a", "--k", "0"], "at least 1"),
        (["search", "{index}", "--image", "{folder}/absent.jpg"], "absent.jpg"),
        (["search", "{index}", "a", "--model", "{folder}/other model"], "no such folder"),
        (["index", "{coloured}", "--out", "{index}"], "has not one of the"),
        (["train", "vsepp"], "no data: name a folder"),
        (["train", "cvsepp/scenes", "{coloured}", "--out", "{folder}/x"], "needs relevance degrees"),
        (["evaluate", "{run}/model", "{scenes}", "--split", "dev"], "no picture is in split 'dev'"),
        (["evaluate", "{run}/model", "{scenes}", "--measures", "R@x"], "R@x"),
        (["evaluate", "{run}/model", "{scenes}", "--protocol", "coco-1k-5fold"], "does not fit"),
        (["frobnicate"], "no command 'frobnicate'; there are demo, "),
        (["serach"], "no command 'serach'; did you mean search? there are demo, "),
    ],
)
def test_mistakes_have_one_line_and_no_traceback(
    arguments: list[str], message: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    coloured = world.folder / "coloured"
    coloured.mkdir(exist_ok=True)
    for number in range(40):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(coloured / f"{number}.png")
    with replacing(coloured / "captions.csv") as draft:
        draft.write_text("image,caption\n" + "".join(f"{number}.png,a picture\n" for number in range(40)))
    names = {**vars(world), "coloured": coloured}
    assert main([argument.format(**names) for argument in arguments]) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert len(complaint.strip().splitlines()) == 1


def test_another_models_index_is_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    out = world.folder / "seed 1"
    config = [str(world.folder / "tiny.yaml"), str(world.scenes)]
    assert main(["train", *config, "--out", str(out), "--seed", "1"]) == 0
    assert main(["search", str(world.index), "a", "--model", str(out / "model")]) == 2
    assert "built by model" in capsys.readouterr().err


def test_without_a_network_the_hub_is_one_line(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("huggingface_hub.constants.HF_HUB_OFFLINE",):
        monkeypatch.setattr(name, True)
    assert main(["train", "vsepp/coco", str(world.scenes), "--out", str(world.folder / "hub")]) == 2
    complaint = capsys.readouterr().err
    assert "weights of resnet152.tv_in1k cannot be fetched" in complaint
    assert len(complaint.strip().splitlines()) == 1
