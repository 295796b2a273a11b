"""The callback of Lightning, in trainings by the real library."""

import subprocess
import sys
from pathlib import Path

import lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch.utils.data import DataLoader

from rungwise.core import UserError
from rungwise.evaluation import Result, evaluate
from rungwise.integrations.lightning import GradedRetrieval
from rungwise.integrations.torchmetrics import Graded

IMAGES, CAPTIONS = 7, 14
OWNERS = np.arange(CAPTIONS) % IMAGES
MEASURES = ("nDCG@3", "R@1", "MedR", "rsum")


def degrees():
    return np.random.default_rng(1).random((IMAGES, CAPTIONS)).astype(np.float32)


class Pairs(torch.utils.data.Dataset):
    """Vectors of a pair, and the positions of its two sides."""

    def __init__(self):
        drawn = torch.Generator().manual_seed(0)
        self.images, self.texts = torch.randn(IMAGES, 5, generator=drawn), torch.randn(CAPTIONS, 5, generator=drawn)

    def __len__(self):
        return CAPTIONS

    def __getitem__(self, at):
        return self.images[OWNERS[at]], self.texts[at], int(OWNERS[at]), at


class Retrieval(lightning.LightningModule):
    """One linear layer, and a step that makes the pairs alike; with ``spoilt`` the layer turns round in that epoch."""

    def __init__(self, spoilt=-1):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.spoilt = torch.nn.Linear(5, 5), spoilt

    def training_step(self, batch, number):
        images, texts, _, _ = batch
        return torch.nn.functional.mse_loss(self.layer(images), texts)

    def on_train_epoch_end(self):
        if self.current_epoch == self.spoilt:
            self.layer.weight.data.neg_()

    def on_validation_start(self):
        if self.current_epoch == self.spoilt:
            self.layer.weight.data.neg_()

    def validation_step(self, batch, number, dataloader_idx=0):
        images, texts, at, captions = batch
        return {"image_embeddings": self.layer(images), "text_embeddings": texts, "images": at, "captions": captions}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trained(folder, callback, model=None, loaders=1, others=(), resumed=None, **options):
    trainer = lightning.Trainer(
        accelerator="cpu",
        callbacks=[callback, *others],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    model = Retrieval() if model is None else model
    checked = [DataLoader(Pairs(), batch_size=4) for _ in range(loaders)]
    trainer.fit(model, DataLoader(Pairs(), batch_size=4), checked[0] if loaders == 1 else checked, ckpt_path=resumed)
    return trainer


def callback(folder, **options):
    metric = Graded(MEASURES, degrees(), image_of_caption=OWNERS, direction="both")
    return GradedRetrieval(metric, dirpath=folder / "kept", **options)


def evaluated(state):
    model = Retrieval()
    model.load_state_dict(state)
    with torch.no_grad():
        images = model.layer(Pairs().images)
    given = {"image_of_caption": OWNERS, "relevance": degrees(), "measures": MEASURES}
    return evaluate(image_embeddings=images, text_embeddings=Pairs().texts, **given)


@pytest.mark.slow
def test_it_logs_keeps_the_best_and_writes_results(tmp_path: Path):
    own = callback(tmp_path, monitor="rsum")
    trainer = trained(
        tmp_path, own, Retrieval(spoilt=2), max_epochs=3, others=[EarlyStopping("t2i/nDCG@3", mode="max")]
    )
    assert (
        set(own.result)
        >= set(trainer.callback_metrics)
        == set(Graded(MEASURES, degrees(), image_of_caption=OWNERS, direction="both").names)
    )
    files = sorted(file.name for file in (tmp_path / "kept").iterdir())
    results = {file: Result.from_json(tmp_path / "kept" / file) for file in files if file.endswith(".json")}
    assert list(results) == ["best.json", *(f"epoch={epoch}-step={4 * epoch + 4}.json" for epoch in range(3))]
    assert own.best_model_path in [str(tmp_path / "kept" / file) for file in files]
    kept = torch.load(own.best_model_path, weights_only=True)
    stem = Path(own.best_model_path).stem
    assert dict(results["best.json"]) == dict(results[f"{stem}.json"])
    assert dict(results["best.json"]) == pytest.approx(dict(evaluated(kept["state_dict"])))
    assert results["best.json"]["rsum"] == max(one["rsum"] for one in results.values())
    assert results["best.json"]["rsum"] == pytest.approx(float(own.best_model_score))
    assert results["epoch=2-step=12.json"]["rsum"] < results["best.json"]["rsum"]

    trainer.save_checkpoint(tmp_path / "end.ckpt")
    again = callback(tmp_path, monitor="rsum")
    before = (tmp_path / "kept" / "best.json").read_bytes()
    trained(tmp_path, again, Retrieval(spoilt=3), max_epochs=4, resumed=tmp_path / "end.ckpt")
    assert again.best_model_path == own.best_model_path
    assert (tmp_path / "kept" / "best.json").read_bytes() == before
    assert (tmp_path / "kept" / "epoch=3-step=16.json").is_file()


def test_the_sanity_check_and_a_trial_run_write_nothing(tmp_path: Path):
    own = callback(tmp_path)
    trained(tmp_path, own, max_epochs=1, limit_train_batches=0)
    assert own.result is None
    own = callback(tmp_path)
    with pytest.warns(UserWarning, match="never came to update"):
        trained(tmp_path, own, fast_dev_run=True)
    assert own.result is not None
    assert list(tmp_path.rglob("*.json")) == []


def test_one_of_several_loaders_is_measured(tmp_path: Path):
    own = callback(tmp_path, dataloader=1)
    trained(tmp_path, own, loaders=2, max_epochs=1)
    assert own.result.queries == {"i2t": IMAGES, "t2i": CAPTIONS}
    assert own.monitor == "i2t/nDCG@3"


def test_a_step_that_returns_no_vectors_is_refused_in_one_line(tmp_path: Path):
    class Silent(Retrieval):
        def validation_step(self, batch, number):
            return None

    with pytest.raises(UserError, match="^validation_step returned none of image_embeddings") as refused:
        trained(tmp_path, callback(tmp_path), Silent(), max_epochs=1)
    assert "\n" not in str(refused.value)


def test_a_number_that_is_not_measured_is_no_monitor():
    with pytest.raises(UserError, match=r"^monitor='i2t/R@5' is not measured; give one of t2i/R@1$"):
        GradedRetrieval(Graded("R@1", image_of_caption=[0]), monitor="i2t/R@5")


PROGRAM = """
import sys
from pathlib import Path
from tests.integrations.test_lightning import callback, trained

if __name__ == "__main__":
    own, folder = None, Path(sys.argv[1])
    own = callback(folder, monitor="rsum")
    trainer = trained(folder, own, max_epochs=2, devices=2, strategy="ddp")
    said = f"{own.result['rsum']} {own.result.queries['t2i']} {own.best_model_path}"
    (folder / f"process-{trainer.global_rank}").write_text(said)
"""


@pytest.mark.slow
def test_two_processes_measure_the_whole_and_one_writes(tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run([sys.executable, str(program), str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rsum, captions, best_model = (tmp_path / "process-0").read_text().split(" ", 2)
    assert (tmp_path / "process-1").read_text().split(" ", 2) == [rsum, captions, best_model]
    kept = tmp_path / "kept"
    last = Result.from_json(kept / "epoch=1-step=4.json")
    assert (last["rsum"], last.queries["t2i"]) == (float(rsum), int(captions)) == (float(rsum), CAPTIONS)
    best = Result.from_json(kept / "best.json")
    state = torch.load(best_model, weights_only=True)["state_dict"]
    assert dict(best) == pytest.approx(dict(evaluated(state)))
    assert len(list(kept.glob("*.json"))) == 3
