import re
from pathlib import Path

import pytest
from PIL import Image

from rungwise.cli import main
from rungwise.core import UserError
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.jobs import read_dual_encoder, read_model
from rungwise.models import JointEmbedding, VSEConfig


@pytest.fixture
def altered(tmp_path: Path) -> Path:
    text = GRUConfig(word_dimension=5, min_count=1)
    model = JointEmbedding.create(VSEConfig(image=FeatureConfig(width=3), text=text, dimension=4), ["a dog"])
    model.save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    file.write_text(file.read_text() + " ")
    return tmp_path / "model"


@pytest.mark.parametrize("read", [read_model, read_dual_encoder])
def test_the_command_line_speaks_of_its_option(read, altered):  # type: ignore[no-untyped-def]
    with pytest.raises(UserError, match="or take it as it is with --altered-model$") as caught:
        read(str(altered), "cpu", altered=False)
    assert "altered=True" not in str(caught.value)
    assert read(str(altered), "cpu", altered=True).dimension == 4


@pytest.mark.parametrize(("asked", "folders"), [("bfloat16", {"-bfloat16"}), ("float32", {""}), ("auto", {""})])
def test_an_index_in_either_precision_is_searched_by_its_model(
    asked: str, folders: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two pictures are too few for a probe."""
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache"))
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32)
    text = GRUConfig(word_dimension=5, min_count=1)
    JointEmbedding.create(VSEConfig(image=image, text=text, dimension=4), ["a dog"]).save_pretrained(tmp_path / "model")
    (tmp_path / "photos").mkdir()
    for colour in ("red", "blue"):
        Image.new("RGB", (40, 30), colour).save(tmp_path / "photos" / f"{colour}.png")
    photos, model, index = (str(tmp_path / name) for name in ("photos", "model", "index"))
    assert main(["index", photos, "--model", model, "--out", index, "--precision", asked]) == 0
    assert main(["search", index, "a dog"]) == 0
    assert {one.name.removesuffix("-2")[32:] for one in (tmp_path / "cache" / "features").iterdir()} == folders
    capsys.readouterr()
    assert main(["index", photos, "--model", model, "--out", f"{index}2", "--least-cosine", "2"]) == 2
    assert "least_cosine: must be at most 1" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["index", "evaluate"])
def test_commands_that_encode_pictures_take_a_precision(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help-all"])
    assert "--precision" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["index", "evaluate", "search", "serve"])
def test_every_command_that_loads_a_model_has_the_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help-all"])
    assert "--altered-model" in capsys.readouterr().out


def test_an_altered_model_ends_a_command_with_its_line(
    altered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pictures").mkdir()
    asked = ["index", str(tmp_path / "pictures"), "--model", str(altered), "--out", str(tmp_path / "out")]
    assert main(asked) == 2
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "altered or damaged since it was saved" in said
    assert "--altered-model" in said
    assert not (tmp_path / "out").exists()
    assert main([*asked, "--altered-model"]) == 2
    assert "altered or damaged" not in capsys.readouterr().err
