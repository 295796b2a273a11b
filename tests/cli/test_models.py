import re
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.cli.models import read_dual_encoder, read_model
from rungwise.core.errors import UserError
from rungwise.encoders.features import FeatureConfig
from rungwise.encoders.text import GRUConfig
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


@pytest.mark.parametrize("command", ["index", "evaluate", "search", "serve"])
def test_every_command_that_loads_a_model_has_the_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
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
