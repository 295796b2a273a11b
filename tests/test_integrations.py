"""The programs of docs/programs/loops.md, torchmetrics.md and lightning.md run exactly as they are printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.evaluation import Result
from rungwise.relevance.lexical import TfIdf
from tests.pages import DOCS

FOLDER = DOCS / "programs"
LOOP, DEGREES, LIKE_OPEN_CLIP, GATHERED = (
    "A plain loop of torch",
    "Degrees over several processes",
    "A loop like open_clip's",
    "Rectangular blocks with gathered negatives",
)
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def programs(page: str) -> dict[str, str]:
    """The program of each section that has one; of a page without sections before it, by the page's title."""
    text = (FOLDER / page).read_text(encoding="utf-8")
    found = {}
    for section in re.split(r"^##? ", text, flags=re.MULTILINE)[1:]:
        for number, program in enumerate(_BLOCK.findall(section)):
            assert number == 0, "give the second program a section of its own"
            found[section.partition("\n")[0]] = program
    return found


def run(page: str, title: str, **given: object) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "program", **given}
    exec(compile(programs(page)[title], f"{page}: {title}", "exec"), names)
    return names


def over_two_processes(program: str, folder: Path) -> list[str]:
    """What two processes of torchrun print."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "program.py"]
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


def test_every_program_of_the_loops_is_one_of_these() -> None:
    assert list(programs("loops.md")) == [LOOP, DEGREES, LIKE_OPEN_CLIP, GATHERED]


def test_a_plain_loop(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("loops.md", LOOP)
    assert "Ladder(thresholds=(0.63,), margins=(0.2, 0.01)" in (said := capsys.readouterr().out)
    assert "image to text: R@1" in said
    assert names["loss"](names["block"], names["degrees"]) < names["loss"](torch.zeros(32, 32), names["degrees"])


@pytest.mark.slow
def test_degrees_over_processes(tmp_path: Path) -> None:
    """Both processes have the loss of the whole batch, which falls."""
    begun, ended = (
        over_two_processes(programs("loops.md")[DEGREES].replace("range(30)", f"range({epochs})"), tmp_path)
        for epochs in (1, 30)
    )
    assert (len(begun), len(ended)) == (2, 2)
    assert len({*begun}) == len({*ended}) == 1
    assert float(ended[0]) < float(begun[0])


@pytest.mark.slow
def test_a_loop_like_that_of_open_clip() -> None:
    names = run("loops.md", LIKE_OPEN_CLIP)
    model, loss, at = names["model"].eval(), names["loss"], torch.arange(12)
    with torch.no_grad():
        images, texts, scale = model(names["pictures"], names["texts"])
        degrees = torch.from_numpy(TfIdf(names["captions"], range(12)).dense())
        assert loss(images, texts, at, at) == pytest.approx(
            loss.loss(scale * images @ texts.T, degrees).item(), rel=1e-5
        )
    assert model.logit_scale.item() != pytest.approx(np.log(1 / 0.07), abs=1e-6)
    assert len({name for name, one in model.named_parameters() if one.grad is None}) == 0


@pytest.mark.slow
def test_gathered_negatives(tmp_path: Path) -> None:
    start = "import sys; from torch.distributed import FileStore\nrank, world = int(sys.argv[1]), 2\n"
    start += "store = FileStore(sys.argv[2], world)\n"
    command = [sys.executable, "-c", start + programs("loops.md")[GATHERED] + "print(images.grad.shape)\n"]
    started = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    assert [one.communicate()[0] for one in started] == ["torch.Size([4, 8])\n"] * 2
    assert [one.returncode for one in started] == [0, 0]


def test_a_metric_of_torchmetrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn, owners = np.random.default_rng(0), np.arange(30) % 10
    for name, many in (("images", 10), ("captions", 30)):
        np.save(tmp_path / f"{name}.npy", drawn.normal(size=(many, 8)).astype(np.float32))
    np.save(tmp_path / "owners.npy", owners)
    TfIdf([f"a {place % 7} of {place % 5}" for place in range(30)], owners.tolist()).save(tmp_path / "DEGREES")
    monkeypatch.chdir(tmp_path)
    names = run("torchmetrics.md", "torchmetrics")
    assert {name: float(value) for name, value in names["both"].compute().items()} == {
        name: names["ours"][name] for name in names["both"].names
    }
    assert float(names["metric"].compute()) == names["ours"]["t2i/nDCG@10"]
    assert names["axes"].get_ylabel() == "nDCG@10"
    assert len(capsys.readouterr().out.splitlines()) == 6


@pytest.mark.slow
def test_a_callback_of_lightning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run("lightning.md", "Lightning")
    assert names["trainer"].global_step == 12
    assert names["trainer"].model.loss.temperature != 0.1
    best = Result.from_json(tmp_path / "kept" / "best.json")
    assert best["t2i/nDCG@10"] == pytest.approx(float(names["best"].best_model_score))
    assert sorted(one.name for one in (tmp_path / "kept").glob("epoch*.json")) == [
        f"epoch={epoch}-step={4 * epoch + 4}.json" for epoch in range(3)
    ]
