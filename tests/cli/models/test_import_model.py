"""From the files of the VSE++ program to a searchable model with numbers on its card."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.cli import main
from rungwise.core.disk import check_seal
from rungwise.models import load
from tests.models.vsepp_program import Images, Texts, checkpoint, options, save_vocabulary

CAPTIONS = ("a dog runs .", "two dog", "a dog 's dog", "two")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """What the program leaves: a checkpoint and a vocabulary; and the features that it read."""
    opt = options()
    torch.save(checkpoint(Images(opt), Texts(opt), opt), tmp_path / "model_best.pth.tar")
    save_vocabulary(tmp_path / "vocab.pkl")
    data = tmp_path / "coco_precomp"
    data.mkdir()
    np.save(data / "test_ims.npy", np.random.default_rng(0).random((4, 5), np.float32))
    (data / "test_caps.txt").write_text("\n".join(CAPTIONS) + "\n")
    return tmp_path


def test_an_imported_model_is_evaluated_with_its_numbers_on_the_card(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, model = [str(program / name) for name in ("model_best.pth.tar", "vocab.pkl")], str(program / "model")
    assert main(["import", *files, "--out", model]) == 0
    assert "reads rows of 5 features; 10 words; vectors of 8; similarity cosine" in " ".join(
        capsys.readouterr().out.split()
    )
    before = load(model, "cpu").fingerprint
    assert main(["evaluate", model, str(program / "coco_precomp"), "--card"]) == 0
    assert f"written: {model}/README.md" in "".join(capsys.readouterr().out.split("\n"))
    card = (program / "model" / "README.md").read_text(encoding="utf-8")
    assert "protocol full" in card
    assert "| R@1 |" in card
    assert "bootstrap intervals" in card
    assert "best_rsum: 312.5" in card
    check_seal(program / "model")
    assert load(model, "cpu").fingerprint == before


def test_a_file_that_is_none_is_one_line(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program / "model_best.pth.tar").write_bytes(b"PK\x03\x04 nothing")
    given = ["import", str(program / "model_best.pth.tar"), str(program / "vocab.pkl"), "--out", str(program / "model")]
    assert main(given) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (program / "model").exists()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (("someone/model", "DATA", "--card"), "--card writes into the folder of a model, which someone/model is not"),
        (("DATA", "--similarity", "s.npy", "--card"), "--card changes nothing without a model"),
    ],
)
def test_a_card_needs_the_folder_of_a_model(
    program: Path, given: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *(str(program / "coco_precomp") if one == "DATA" else one for one in given)]) == 2
    assert line in capsys.readouterr().err
