import shutil
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.cli.train._preset_choice import check_choice, choose_preset
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from tests.training.conftest import coloured  # noqa: F401 - a fixture


@pytest.fixture
def flickr8k(coloured: ImageCaptions, tmp_path: Path) -> Path:  # noqa: F811
    """Pictures that are called like Flickr8K's."""
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["image,caption"]
    for number, path in enumerate(coloured.paths):
        name = f"{1000000 + number}_{number:010x}.jpg"
        shutil.copyfile(str(path), folder / name)
        lines += [f"{name},{coloured.captions[one]}" for one in coloured.captions_of_image[number]]
    (folder / "captions.csv").write_text("\n".join(lines))
    return folder


def test_a_system_takes_the_preset_of_the_dataset(flickr8k: Path, tmp_path: Path) -> None:
    picked = choose_preset(["vsepp", str(flickr8k), "--out", "run"])
    assert picked is not None
    assert picked.name == "vsepp/flickr8k"
    assert picked.why == "photos is recognised as flickr8k: this is rungwise train vsepp/flickr8k"
    own = tmp_path / "own"
    own.mkdir()
    (own / "captions.csv").write_text("image,caption\nbeach.jpg,a beach\n")
    shutil.copyfile(next(flickr8k.glob("*.jpg")), own / "beach.jpg")
    other = choose_preset(["sam:alone", str(own)])
    assert other is not None
    assert (other.name, other.why.partition(":")[0]) == ("sam/own:alone", "own is none of the known datasets")


@pytest.mark.parametrize(
    "words", [["--data.path", "{data}"], ["--data.path={data}"], ["--seed=3", "{data}"], ["--resume", "{data}"]]
)
def test_data_are_found_beside_options(words: list[str], flickr8k: Path) -> None:
    picked = choose_preset(["vsepp", *(word.format(data=flickr8k) for word in words)])
    assert picked is not None
    assert picked.path == str(flickr8k)


@pytest.mark.parametrize(
    ("words", "key"), [([], "dot"), (["--data.key", "stem"], "stem"), (["--data.key=stem"], "stem")]
)
def test_the_data_are_read_by_the_key_that_is_asked_for(words: list[str], key: str, flickr8k: Path) -> None:
    picked = choose_preset(["vsepp", str(flickr8k), *words])
    assert picked is not None
    assert picked.key == key


@pytest.mark.parametrize(
    "words",
    [[], ["vsepp"], ["vsepp/coco", "{data}"], ["run.yaml", "{data}"], ["scenes", "{data}"], ["vsepp", "{data}", "-h"]],
)
def test_where_nothing_is_to_be_chosen_nothing_is_read(words: list[str], flickr8k: Path) -> None:
    assert choose_preset([word.format(data=flickr8k) for word in words]) is None


def test_data_that_could_not_choose_are_refused() -> None:
    check_choice("vsepp/coco", None, "photos")
    check_choice("scenes", None, "photos")
    with pytest.raises(UserError, match="name the data right after the preset, or give it whole, such as vsepp/own"):
        check_choice("vsepp", None, "photos")


def test_the_command_says_what_it_takes_and_trains_it(
    flickr8k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = ["--model.image.backbone", "test_resnet.r160_in1k", "--model.image.weights", "random"]
    tiny += ["--model.image.size", "24", "--model.dimension", "8", "--epochs", "1", "--learning-rates", "1e-3"]
    out = ["--out", str(tmp_path / "run"), "--cache", str(tmp_path / "cache"), "--warm-up-epochs", "0"]
    assert main(["train", "vsepp", str(flickr8k), *out, *tiny]) == 0
    assert "photos is recognised as flickr8k: this is rungwise train vsepp/flickr8k" in capsys.readouterr().out
    assert "preset: vsepp/flickr8k" in (tmp_path / "run" / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cmal2r", "{data}"], "cmal2r/own does not fit photos: it reads class labels, and the data have none"),
        (["vsep", "{data}"], "neither a configuration file nor a preset; do you mean vsepp"),
        (["vsepp:finetund", "{data}"], "has no variant 'finetund'; do you mean finetuned"),
    ],
)
def test_mistakes_have_one_line_before_anything_is_computed(
    words: list[str], message: str, flickr8k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", *(word.format(data=flickr8k) for word in words), "--out", str(out)]) == 2
    refused = capsys.readouterr().err
    assert message in refused
    assert len(refused.splitlines()) == 1
    assert not out.exists()
