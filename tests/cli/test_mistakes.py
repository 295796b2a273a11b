"""Mistakes in training, and the one line that each of them gets on the command line and from Python.

What is not here: a full disk and a Ctrl-C in tests/training/engine/test_loop.py and tests/hostile, services that do not
answer in tests/training/tracking/test_services.py, memory in tests/training/engine/test_out_of_memory.py.
"""

import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.training import run
from rungwise.training.config import TrainConfig, load_config
from rungwise.training.engine import train
from rungwise.training.tracking import StepReport, Watcher
from tests.training.test_features import folder_of_features

TINY = """
model: {image: {kind: features}, text: {word_dimension: 8, min_count: 1}, dimension: 16}
epochs: [1]
learning_rates: [1.0e-2]
batch_size: 16
logs: []
"""


class Desk:
    """A folder with data, a configuration and a run of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder_of_features(folder / "data", (7,))
        self.config = self.write("tiny.yaml", TINY)
        assert main(["train", str(self.config), str(self.data), "--out", str(self.run), "--device", "cpu"]) == 0

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def write(self, name: str, text: str) -> Path:
        (self.folder / name).write_text(text)
        return self.folder / name

    def words(self, text: str) -> list[str]:
        return [word.format(desk=self.folder, data=self.data, tiny=self.config, run=self.run) for word in text.split()]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    found = Desk(tmp_path_factory.mktemp("mistakes"))
    found.write("newer.yaml", TINY + "curriculum: {kind: easy_first}\n")
    found.write("newer_loss.yaml", TINY + "loss: {kind: hyperbolic}\n")
    found.write("ladder.yaml", TINY + "loss: {kind: ladder}\n")
    found.write("misspelt.yaml", TINY.replace("batch_size", "batchsize"))
    found.write("no_yaml.yaml", "epochs: [1\n")
    return found


MISTAKES = {
    "wrong path of the data": ("{tiny} {desk}/photos", "{desk}/photos: no such file or folder; correct the path"),
    "a preset misspelt": ("vsep {data}", "vsep: neither a configuration file nor a preset"),
    "no such configuration": ("{desk}/tinny.yaml {data}", "tinny.yaml: no such configuration file"),
    "a file that is no YAML": ("{desk}/no_yaml.yaml {data}", "no_yaml.yaml, line 2: not valid YAML; "),
    "a setting misspelt": (
        "{desk}/misspelt.yaml {data}",
        "misspelt.yaml: batchsize: unexpected, there is no such setting; did you mean batch_size?",
    ),
    "a configuration of a newer version": (
        "{desk}/newer.yaml {data}",
        "newer.yaml: curriculum: unexpected, there is no such setting; a file of a newer version needs a newer rungwise"
        " (this is 0.2.0)",
    ),
    "a loss that there is not": (
        "{desk}/newer_loss.yaml {data}",
        "newer_loss.yaml: loss: there is no loss 'hyperbolic'",
    ),
    "an option misspelt": ("{tiny} {data} --batchsize 8", "there is no option --batchsize; did you mean --batch-size?"),
    "a precision that there is not": ("{tiny} {data} --precision float8", "--precision: 'float8' is none of 'float32'"),
    "a preset that does not fit the data": ("vsepp/coco:rc {data}", "vsepp/coco:rc does not fit data: "),
    "no data": ("{tiny}", "no data: name a folder or a caption file after the configuration"),
    "an unknown split to train on": (
        "{tiny} {data} --data.train trian",
        "data: no picture is in split 'trian'; it has train, val, test",
    ),
    "an unknown split to validate on": (
        "{tiny} {data} --data.validation vali",
        "data: no picture is in split 'vali', which validates; did you mean val? It has train, val, test; set"
        " data.validation",
    ),
    "a seed list with a double": (
        "{tiny} {data} --seeds 0 1 0",
        "--seeds: 0 stands twice in 0 1 0; give each seed once",
    ),
    "a folder that holds a run": ("{tiny} {data} --out {run}", "holds a run already; go on with it"),
    "nothing to resume": ("{tiny} {data} --resume", "no checkpoint to resume from; start the run without resume"),
    "a run resumed with other settings": (
        "{tiny} {data} --out {run} --resume --loss.margin 0.3",
        "the run was started with other settings: loss.margin: 0.2 then, 0.3 now; resume with the same",
    ),
    "an unknown backbone": (
        "vsepp/own {desk}/pictures --model.image.backbone mobilnetv2_100 --model.image.weights random",
        "timm knows no backbone 'mobilnetv2_100'; close to it: mobilenetv2_100, ",
    ),
    "the hub out of reach": (
        "vsepp/own {desk}/pictures --model.image.backbone mobilenetv2_100",
        "weights of mobilenetv2_100 cannot be fetched (no network in tests); on a connected machine run: hf download"
        " timm/mobilenetv2_100.ra_in1k --include model.safetensors --local-dir mobilenetv2_100.ra_in1k; then copy"
        " mobilenetv2_100.ra_in1k/model.safetensors here and name that file by --model.image.weights FILE",
    ),
    "weights that are not there": (
        "vsepp/own {desk}/pictures --model.image.weights {desk}/absent.safetensors",
        "absent.safetensors: no such weights file",
    ),
    "a model to begin from that is not there": (
        "{tiny} {data} --start {desk}/absent/model",
        "absent/model: no such folder; correct the path",
    ),
    "a device that is not there": ("{tiny} {data} --device tpu", "device 'tpu' is unknown; give cpu, or cuda"),
    "a GPU that is not there": ("{tiny} {data} --device cuda:7", "device 'cuda:7' is not on this machine; give cpu"),
    "degrees that nobody gives": (
        "{desk}/ladder.yaml {data}",
        "the loss ladder needs relevance degrees as it is set, and there are none; name a source",
    ),
    "a source of degrees that there is not": (
        "{desk}/ladder.yaml {data} --data.relevance tfidff",
        "'tfidff' is neither a folder of saved degrees nor a source; sources are ",
    ),
    "a measure that there is not": (
        "{tiny} {data} --snapshot.measure nDGC@10",
        "snapshot.measure: there is no measure 'nDGC@10'; did you mean nDCG@10? there are R@K, ",
    ),
    "a place that is a file": ("{tiny} {data} --out {tiny}", "a file stands where a folder is needed"),
}


@pytest.fixture(scope="module")
def _pictures(desk: Desk) -> None:
    """Pictures of one colour, as small as can be."""
    from PIL import Image

    folder = desk.folder / "pictures"
    folder.mkdir()
    lines = ["image,caption,split"]
    for number in range(6):
        Image.new("RGB", (24, 24), (40 * number, 0, 0)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,a red of {number},{'val' if number > 3 else 'train'}")
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.usefixtures("_pictures")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line_and_leaves_nothing(
    mistake: str, desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed, line = MISTAKES[mistake]
    words = desk.words(typed)
    out = [] if "--out" in words else ["--out", str(tmp_path / "run")]
    before = sorted(path.name for path in desk.run.iterdir())
    assert main(["train", *words, *out]) == 2
    said = capsys.readouterr().err.strip()
    assert line.format(desk=desk.folder, data=desk.data) in said
    assert said.startswith("rungwise train: ")
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "run").exists()
    assert sorted(path.name for path in desk.run.iterdir()) == before


def of_python(desk: Desk) -> tuple[TrainConfig, ImageCaptions]:
    return load_config(str(desk.config)), read(desk.data)


def without_validation_captions(config: TrainConfig, data: ImageCaptions, out: Path) -> object:
    kept = np.array([data.splits[image] != "val" for image in data.image_of_caption])
    few = replace(
        data,
        captions=tuple(one for one, keep in zip(data.captions, kept, strict=True) if keep),
        image_of_caption=data.image_of_caption[kept],
        caption_ids=(),
    )
    return train(config, few, out)


def on_a_gpu_that_is_not_there(config: TrainConfig, data: ImageCaptions, out: Path) -> object:
    return train(config, data, out, device="cuda:7")


def with_stages_in_the_wrong_function(config: TrainConfig, data: ImageCaptions, out: Path) -> object:
    from rungwise.training.config._stage import Stage

    return train(replace(config, stages=(Stage("base"),)), data, out)


def with_a_rate_that_is_too_high(config: TrainConfig, data: ImageCaptions, out: Path) -> object:
    # Vectors are brought to length 1, so that only infinite weights end a loss.
    return train(replace(config, learning_rates=(1e38,), epochs=(3,)), data, out, device="cpu")


def with_two_seeds_alike(config: TrainConfig, data: ImageCaptions, out: Path) -> object:
    from rungwise.runs import train_seeds

    return train_seeds(config, data, out, (0, 1, 0))


@pytest.mark.parametrize(
    ("do", "line"),
    [
        (without_validation_captions, "data: the validation pictures have no captions; training needs some in both"),
        (on_a_gpu_that_is_not_there, "device 'cuda:7' is not on this machine; give cpu, or leave the device out"),
        (with_stages_in_the_wrong_function, "the configuration has stages; rungwise.training.run runs them"),
        (with_a_rate_that_is_too_high, "lower the learning rate or use precision float32"),
        (with_two_seeds_alike, "seeds: 0 stands twice in 0 1 0; give each seed once"),
    ],
)
def test_a_mistake_from_python_gets_one_line(
    do: Callable[[TrainConfig, ImageCaptions, Path], object], line: str, desk: Desk, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        do(*of_python(desk), tmp_path / "run")
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_batch_that_is_larger_than_the_data_is_remarked_on(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(desk.config), str(desk.data), "--out", str(tmp_path / "run"), "--batch-size", "5000"]
    assert main(["train", *words, "--device", "cpu"]) == 0
    assert "batch_size is 5000, and there are 63 training pairs: every step takes them all" in capsys.readouterr().out


def test_a_checkpoint_of_another_vocabulary_is_refused(desk: Desk, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("red 1 2 3 4 5 6 7 8\n")
    config, data = of_python(desk)
    text = replace(config.model.text, word_vectors=str(vectors), vocabulary="both")
    config = replace(config, model=replace(config.model, text=text))
    out = tmp_path / "run"
    assert train(config, data, out, device="cpu").finished
    vectors.write_text("red 1 2 3 4 5 6 7 8\nzebra 1 2 3 4 5 6 7 8\n")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(
        UserError, match=r"the run was started with another text_encoder.json; resume with .* such as word vectors"
    ) as caught:
        train(replace(config, epochs=(2,)), data, out, resume=True, device="cpu")
    assert "\n" not in str(caught.value)
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_checkpoint_of_another_stage_is_refused(desk: Desk, tmp_path: Path) -> None:
    config = tmp_path / "two.yaml"
    config.write_text(
        TINY.replace("kind: features", "kind: features, width: 7")
        + "stages: [{name: base}, {name: fine_tune, learning_rates: [1.0e-3]}]\n"
    )
    out = tmp_path / "two"
    staged, data = load_config(str(config)), read(desk.data)
    assert run(staged, data, out, device="cpu").finished
    one, two = (out / "stages" / name / "checkpoint.safetensors" for name in ("1-base", "2-fine_tune"))
    shutil.copy(one, two)
    with pytest.raises(UserError, match=r"the checkpoint of stage 1, base, in the place of stage 2, fine_tune; put"):
        run(staged, data, out, resume=True, device="cpu")


def test_ctrl_c_says_how_to_go_on(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rungwise.training.tracking import TerminalWatcher

    def interrupted(self: Watcher, report: StepReport) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TerminalWatcher, "step", interrupted)
    out = tmp_path / "run"
    words = ["train", str(desk.config), str(desk.data), "--out", str(out), "--device", "cpu", "--epochs", "9"]
    assert main(words) == 130
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == f"stopped; go on with: rungwise train {out / 'config.yaml'} --out {out} --resume"
