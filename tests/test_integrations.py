"""The programs of docs/programs/loops.md run exactly as they are printed."""

import re
from pathlib import Path

import pytest
import torch

from tests.pages import DOCS

PAGE = DOCS / "programs" / "loops.md"
PROGRAMS = dict(
    re.findall(r"^## (.+?)\n.*?^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
LOOP, TRAINER, LIGHTNING, GATHERED = PROGRAMS


def run(title: str, **given: object) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "program", **given}
    exec(compile(PROGRAMS[title], f"{PAGE.name}: {title}", "exec"), names)
    return names


def test_every_program_of_the_page_is_one_of_these() -> None:
    assert PAGE.read_text(encoding="utf-8").count("```python") == len(PROGRAMS) == 4
    assert LOOP == "A plain loop of torch"
    assert all(len([line for line in text.splitlines() if line.strip()]) <= 15 for text in PROGRAMS.values())


def test_a_plain_loop(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(LOOP)
    assert "Ladder(thresholds=(0.63,), margins=(0.2, 0.01)" in (said := capsys.readouterr().out)
    assert "image to text: R@1" in said
    assert names["loss"](names["block"], names["degrees"]) < names["loss"](torch.zeros(32, 32), names["degrees"])


@pytest.mark.slow
def test_the_trainer_of_sentence_transformers(tmp_path: Path) -> None:
    run(TRAINER, encoder=tiny_encoder(), folder=str(tmp_path))


def tiny_encoder() -> object:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, WordEmbeddings
    from sentence_transformers.models.tokenizer import WhitespaceTokenizer

    words = ["red", "blue", "circle", "square", "disc", "box", "a"]
    table = WordEmbeddings(WhitespaceTokenizer(words), torch.randn(len(words), 8).numpy(), update_embeddings=True)
    return SentenceTransformer(modules=[table, Pooling(8)], device="cpu")


@pytest.mark.slow
def test_lightning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lightning

    ended, fit = [], lightning.Trainer.fit
    monkeypatch.setattr(lightning.Trainer, "fit", lambda self, *given: (fit(self, *given), ended.append(self)))
    monkeypatch.chdir(tmp_path)
    run(LIGHTNING)
    assert [trainer.global_step for trainer in ended] == [8]
    assert ended[0].model.loss.temperature != 1.0


@pytest.mark.slow
def test_gathered_negatives(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = "import sys; from torch.distributed import FileStore\nrank, world = int(sys.argv[1]), 2\n"
    program += "store = FileStore(sys.argv[2], world)\n" + PROGRAMS[GATHERED] + "print(images.grad.shape)\n"
    command = [sys.executable, "-c", program]
    started = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    assert [one.communicate()[0] for one in started] == ["torch.Size([4, 8])\n"] * 2
    assert [one.returncode for one in started] == [0, 0]
