"""Runs from their first epoch to their last. Also tests rungwise.training.engine._preparation."""

import errno
import json
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import safe_open
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.core.disk import _files as files_module
from rungwise.core.disk import folders as folders_module
from rungwise.data import ImageCaptions, with_share
from rungwise.encoders._preprocessing import Crops
from rungwise.encoders.texts import GRUConfig
from rungwise.evaluation import evaluate
from rungwise.losses import AdaptiveListwise, ContrastiveSum, Ladder, SumOfHinges
from rungwise.models import load
from rungwise.relevance import Degrees
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine, Similarity
from rungwise.training.batches import BatchDegrees
from rungwise.training.config import DataConfig, LossConfig, TrainConfig, config_of, load_config
from rungwise.training.engine import _loop as loop
from rungwise.training.engine import train
from rungwise.training.engine._run_degrees import OfPart
from rungwise.training.steps._stopwatch import SPENT
from rungwise.training.tracking import EpochReport, StepReport, Watcher
from tests.training.conftest import TrainedRun, dies_at, files, once, trainable
from tests.training.every_loss import NAMED


class Diary(Watcher):
    def __init__(self) -> None:
        self.steps: list[StepReport] = []
        self.epochs: list[EpochReport] = []
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def step(self, report: StepReport) -> None:
        self.steps.append(report)

    def epoch(self, report: EpochReport) -> None:
        self.epochs.append(report)


class Colours:
    """Relevance 1 where picture and caption were made from the same colour."""

    def __init__(self, data: ImageCaptions) -> None:
        self.colour = np.array([position % 4 for position in range(len(data))])
        self.owner = data.image_of_caption
        self.asked = 0

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        self.asked += 1
        rows, columns = self.colour[np.asarray(images)], self.colour[self.owner[np.asarray(captions)]]
        return (rows[:, None] == columns[None, :]).astype(np.float32)

    def dense(self) -> NDArray[np.float32]:
        return self.block(np.arange(len(self.colour)), np.arange(len(self.owner)))


def test_a_run_learns_and_leaves_what_it_says(config: TrainConfig, coloured: ImageCaptions, tmp_path: Path) -> None:
    diary = Diary()
    config = replace(config, loss=config_of(SumOfHinges)(), epochs=(6, 2), learning_rates=(1e-2, 1e-3))
    result = train(config, coloured, tmp_path / "run", cache=tmp_path / "cache", watcher=diary)
    assert result.finished
    assert result.best_rsum == max(one["rsum"] for one in result.history)
    assert result.history[-1]["loss"] < 0.7 * result.history[0]["loss"]
    assert [one["learning_rate"] for one in result.history] == [1e-2] * 6 + [1e-3] * 2
    assert {"config.yaml", "model", "checkpoint.safetensors", "history.jsonl", "steps.jsonl", "tensorboard"} == files(
        tmp_path / "run"
    )
    assert len((tmp_path / "run" / "history.jsonl").read_text().splitlines()) == 8
    assert diary.steps[-1].step == diary.steps[-1].steps
    assert any("36 computed" in line for line in diary.said)
    # Pictures of one colour cannot be told apart, but colours can: the first hit should have the right one.
    model = load(result.model_folder)
    vectors = model.encode_image(list(coloured.paths), cache=tmp_path / "cache").vectors
    hits = model.similarity.array(vectors, model.encode_text(["a red picture", "a blue picture"])).argmax(axis=0)
    assert [hit % 4 for hit in hits] == [0, 2]


@pytest.mark.parametrize(
    ("precision", "frozen", "crops"),
    [
        ("float32", True, None),
        ("bfloat16", False, "RC"),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                ("float32", False, None),
                ("bfloat16", True, None),
                ("bfloat16", False, None),
                ("float32", True, "RC"),
                ("float32", False, "RC"),
            )
        ),
    ],
)
def test_resumed_run_ends_with_the_same_weights(
    precision: str,
    frozen: bool,
    crops: Crops | None,
    config: TrainConfig,
    coloured: ImageCaptions,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = replace(config if frozen else trainable(config), precision=precision)  # type: ignore[arg-type]
    config = replace(config, model=replace(config.model, image=replace(config.model.image, crops=crops)))
    train(config, coloured, tmp_path / "whole", cache=cache)
    # The run is cut off after 13 steps, that is inside its second epoch and behind the last checkpoint.
    with monkeypatch.context() as patch:
        dies_at(patch, 13)
        with pytest.raises(SystemError):
            train(config, coloured, tmp_path / "cut", cache=cache)
    result = train(config, coloured, tmp_path / "cut", cache=cache, resume=True)
    assert result.finished
    for name in ("checkpoint.safetensors", "model/model.safetensors"):
        one, other = load_file(tmp_path / "whole" / name), load_file(tmp_path / "cut" / name)
        assert one.keys() == other.keys()
        for key in one:
            assert torch.equal(one[key], other[key]), key
    assert _numbers(tmp_path / "whole") == _numbers(tmp_path / "cut")


def test_auto_is_bfloat16_where_the_device_has_it(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weights(folder: Path) -> dict[str, torch.Tensor]:
        return load_file(folder / "model" / "model.safetensors")

    for precision in ("float32", "bfloat16"):
        monkeypatch.setattr(
            "rungwise.encoders._precision.native_bfloat16", lambda _, native=precision == "bfloat16": native
        )
        diary, out = Diary(), tmp_path / f"auto {precision}"
        train(replace(trained_run.config, precision="auto"), coloured, out, cache=cache, watcher=diary)
        assert any("training in float32" in line for line in diary.said) == (precision == "float32")
        if precision == "bfloat16":
            train(replace(trained_run.config, precision=precision), coloured, tmp_path / precision, cache=cache)
        alike = trained_run.folder if precision == "float32" else tmp_path / precision
        assert all(torch.equal(one, weights(alike)[name]) for name, one in weights(out).items())
    assert any(not torch.equal(one, weights(trained_run.folder)[name]) for name, one in weights(out).items())


def _numbers(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in SPENT} for line in lines]


def test_ctrl_c_stops_cleanly_and_can_be_resumed(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    class Impatient(Diary):
        def step(self, report: StepReport) -> None:
            super().step(report)
            if report.total_step >= 6:
                os.kill(os.getpid(), signal.SIGINT)

    config, before = trained_run.config, signal.getsignal(signal.SIGINT)
    stopped = train(config, coloured, tmp_path / "run", cache=cache, watcher=Impatient())
    assert not stopped.finished
    assert train(config, coloured, tmp_path / "run", cache=cache, resume=True).finished
    one, other = (load_file(folder / "checkpoint.safetensors") for folder in (tmp_path / "run", trained_run.folder))
    assert all(torch.equal(one[key], other[key]) for key in other)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_epoch_that_the_checkpoint_does_not_know_is_not_in_the_history(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(Diary):
        def step(self, report: StepReport) -> None:
            signal.raise_signal(signal.SIGINT)

    out = tmp_path / "run"
    train(trained_run.config, coloured, out, cache=cache, watcher=Impatient())
    lines = (trained_run.folder / "history.jsonl").read_text().splitlines(keepends=True)
    (out / "history.jsonl").write_text(lines[0])  # as if it had been killed before the checkpoint of its first epoch
    dies_at(monkeypatch, 0)
    with pytest.raises(SystemError):
        train(trained_run.config, coloured, out, cache=cache, resume=True)
    assert (out / "history.jsonl").read_text() == ""


def test_degrees_that_are_no_numbers_end_a_run(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config = replace(once(config), loss=config_of(Ladder)(thresholds=(0.5,)))
    known = Colours(coloured).dense()
    known[known == 0] = np.inf
    with pytest.raises(UserError, match="gives degrees that are NaN or infinite; mend it"):
        train(config, coloured, tmp_path / "run", relevance=known, cache=cache)


class Unknown(Degrees):
    """A source that says that it knows all pairs, and does not."""

    source_name = "unknown"

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        return np.full((len(np.asarray(images)), len(np.asarray(captions))), np.nan, np.float32)

    def options(self) -> Mapping[str, Any]:
        return {}


def test_a_source_that_says_nan_of_what_it_knows_is_named(coloured: ImageCaptions, tmp_path: Path) -> None:
    source = Unknown((len(coloured), len(coloured.captions)))
    for ask in (OfPart(source, coloured, coloured).block, BatchDegrees(source).block):
        with pytest.raises(UserError, match="the source unknown gives degrees that are NaN or infinite; mend it"):
            ask([0, 1], [0, 1])
    with pytest.raises(UserError, match="the source unknown gives degrees"):
        source.save(tmp_path / "degrees")
    assert not (tmp_path / "degrees").exists()


def test_the_frozen_backbone_is_not_in_the_checkpoint(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    train(once(trainable(trained_run.config)), coloured, tmp_path / "free", cache=cache)
    names = []
    for folder in (trained_run.folder, tmp_path / "free"):
        with safe_open(folder / "checkpoint.safetensors", framework="pt") as file:
            names.append({name for name in file.keys() if "backbone" in name})  # noqa: SIM118
    assert not names[0]
    assert any("running_mean" in name for name in names[1])


def test_the_ladder_asks_its_source(config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path) -> None:
    config = replace(once(config), loss=config_of(Ladder)(thresholds=(0.5,)))
    with pytest.raises(UserError, match="the loss ladder needs relevance degrees"):
        train(config, coloured, tmp_path / "run", cache=cache)
    source = Colours(coloured)
    result = train(config, coloured, tmp_path / "run", relevance=source, cache=cache)
    assert source.asked == 1 + -(-72 // 8), "a sample, to see whether the thresholds can act, and each step"
    assert result.finished


@pytest.mark.parametrize("loss", NAMED, ids=lambda loss: loss.kind)
def test_every_loss_trains_with_the_similarity_its_paper_names(
    loss: LossConfig, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    similarity = {"cosine": Cosine(), "shifted_cosine": ShiftedCosine()}[loss.build().paper_similarity]
    config = replace(config, model=replace(config.model, similarity=similarity))
    config = replace(config, loss=loss, epochs=(3,), learning_rates=(5e-3,), logs=())
    if loss.needs_relevance:
        with pytest.raises(UserError, match=f"the loss {loss.kind} needs relevance degrees"):
            train(config, coloured, tmp_path / "run", cache=cache)
    result = train(config, coloured, tmp_path / "run", relevance=Colours(coloured), cache=cache)
    assert result.finished
    first, last = (result.history[epoch]["loss"] for epoch in (0, -1))
    assert last < first


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (config_of(ContrastiveSum)(temperature=0), r"loss.contrastive_sum: temperature must be above 0, got 0$"),
        (config_of(Ladder)(thresholds=(0.8, 0.6)), r"loss.ladder: 2 thresholds make 3 rungs, .* got 2 margins and 2 w"),
        (config_of(Ladder)(shares=(0.01,)), "^no threshold puts 1.00% of the candidates above it"),
    ],
)
def test_a_loss_that_cannot_be_built_is_one_line(
    loss: LossConfig, message: str, config: TrainConfig, coloured: ImageCaptions, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        train(replace(config, loss=loss), coloured, tmp_path / "run", relevance=Colours(coloured))
    assert not (tmp_path / "run").exists()


def test_warm_up_epochs_use_the_sum_of_hinges(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    plain = replace(config, loss=config_of(SumOfHinges)())
    warmed = replace(config, warm_up_epochs=1)
    cold = replace(warmed, warm_up_epochs=0)
    losses = [
        train(one, coloured, tmp_path / str(number), cache=cache).history[0]["loss"]
        for number, one in enumerate((plain, warmed, cold))
    ]
    assert losses[0] == losses[1] > losses[2]
    rows = [json.loads(line) for line in (tmp_path / "1" / "history.jsonl").read_text().splitlines()]
    assert [row["loss_in_force"] for row in rows] == ["sum_of_hinges", "max_of_hinges"]


def test_a_setting_without_effect_is_said_before_the_first_step_and_one_that_wastes_the_run_refused(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    diary = Diary()
    idle = replace(config, snapshot=replace(config.snapshot, patience=9), checkpoint_steps=5000, ema=0.999)
    train(idle, coloured, tmp_path / "run", cache=cache, watcher=diary)
    found = [line.partition(" ")[0] for line in diary.said if " never " in line]
    assert found == ["snapshot.patience", "checkpoint_steps", "ema"]
    assert [report.loss_in_force for report in diary.epochs] == ["max_of_hinges", "max_of_hinges"]
    with pytest.raises(UserError, match=r"^warm_up_epochs 2 covers the whole run of 2 epochs"):
        train(replace(config, warm_up_epochs=2), coloured, tmp_path / "other", cache=cache)
    assert not (tmp_path / "other").exists()


def test_a_run_is_not_resumed_with_so_few_epochs_that_its_loss_never_works(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed = replace(config, warm_up_epochs=2, epochs=(2, 2))
    with monkeypatch.context() as patch:
        dies_at(patch, 13)
        with pytest.raises(SystemError):
            train(warmed, coloured, tmp_path / "run", cache=cache)
    with pytest.raises(UserError, match=r"^warm_up_epochs 2 covers the whole run of 2 epochs"):
        train(replace(warmed, epochs=(1, 1)), coloured, tmp_path / "run", cache=cache, resume=True)


def test_unreadable_pictures_are_listed_and_left_out(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    data = replace(coloured, paths=(broken, *coloured.paths[1:]))
    result = train(once(config), data, tmp_path / "run", cache=cache)
    assert result.finished
    assert (tmp_path / "run" / "skipped.txt").read_text().startswith(f"unreadable picture\t{broken}\t")


def test_mistakes_have_one_line(trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path) -> None:
    config, out = trained_run.config, trained_run.copied(tmp_path / "run")
    with pytest.raises(UserError, match="no checkpoint to resume from"):
        train(config, coloured, tmp_path / "elsewhere", cache=cache, resume=True)
    with pytest.raises(UserError, match="holds a run already; go on with it"):
        train(config, coloured, out, cache=cache)
    other = replace(coloured, captions=("changed", *coloured.captions[1:]))
    with pytest.raises(UserError, match="started with other data"):
        train(config, other, out, cache=cache, resume=True)
    with pytest.raises(UserError, match="no picture is in split 'dev'; it has train, val"):
        train(
            replace(config, data=replace(config.data, validation="dev")), coloured, tmp_path / "elsewhere", cache=cache
        )
    with pytest.raises(UserError, match="the loss is"):
        train(replace(config, learning_rates=(1e38, 1.0)), coloured, tmp_path / "nan", cache=cache)


def test_a_refused_resume_changes_nothing_and_names_the_settings(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config, out = trained_run.config, trained_run.copied(tmp_path / "run")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    loss = replace(config.loss, margin=0.3)
    with pytest.raises(UserError, match=r"loss.margin: 0.2 then, 0.3 now; seed: 0 then, 5 now; resume with the same"):
        train(replace(config, loss=loss, seed=5), coloured, out, cache=cache, resume=True)
    with pytest.raises(UserError, match=r"epochs: \[1, 1\] then, \[2, 1\] now, which changes epochs that are done"):
        train(replace(config, epochs=(2, 1)), coloured, out, cache=cache, resume=True)
    with pytest.raises(UserError, match=r"epochs: \[1, 1\] then, \[1\] now, fewer than are done"):
        train(once(config, 1e-2), coloured, out, cache=cache, resume=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert train(config, coloured, out, cache=cache, resume=True).finished


def test_a_finished_run_is_made_longer(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    longer, out = replace(trained_run.config, epochs=(1, 2)), trained_run.copied(tmp_path / "run")
    again = train(longer, coloured, out, cache=cache, resume=True)
    whole = train(longer, coloured, tmp_path / "whole", cache=cache)
    assert [one["epoch"] for one in again.history] == [1, 2, 3]
    assert again.best_rsum == whole.best_rsum
    one, other = (load_file(tmp_path / name / "checkpoint.safetensors") for name in ("run", "whole"))
    assert all(torch.equal(one[key], other[key]) for key in other)
    assert load_config(str(out / "config.yaml")) == longer


def test_nothing_is_written_for_a_run_that_is_refused(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    without = replace(coloured, splits=("train",) * len(coloured))
    with pytest.raises(UserError, match="no picture is in split 'val'"):
        train(config, without, tmp_path / "run", cache=cache)
    assert not (tmp_path / "run").exists()
    stranger = tmp_path / "site" / "config.yaml"
    stranger.parent.mkdir()
    stranger.write_text("title: my site\n")
    with pytest.raises(UserError, match="is no run's configuration, and would be overwritten"):
        train(config, coloured, stranger.parent, cache=cache)
    assert stranger.read_text() == "title: my site\n"


def test_weight_decay_shrinks_the_matrices(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config = replace(config, epochs=(1,), learning_rates=(1e-2,))
    norms = []
    for decay in (0.0, 1.0):
        out = tmp_path / str(decay)
        train(replace(config, weight_decay=decay), coloured, out, cache=cache)
        norms.append(load_file(out / "checkpoint.safetensors")["model/image_projection.weight"].norm())
    assert norms[1] < 0.9 * norms[0]


@pytest.mark.parametrize("similarity", [Cosine(), Inner(), Order(), Order(root=True, absolute=True), ShiftedCosine()])
def test_every_similarity_trains_and_is_what_validation_measures(
    similarity: Similarity, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    config = replace(
        config,
        model=replace(config.model, similarity=similarity),
        loss=config_of(SumOfHinges)(),
        epochs=(3, 1),
        logs=(),
    )
    result = train(config, coloured, tmp_path / "run", cache=cache)
    assert result.history[-1]["loss"] < 0.9 * result.history[0]["loss"]
    model = load(result.model_folder)
    assert model.similarity == similarity
    scores = model.on(coloured.split("val"), cache=cache)
    rsum = evaluate(**scores.for_evaluation(), image_of_caption=scores.data.image_of_caption)["rsum"]
    assert rsum == pytest.approx(result.best_rsum, abs=0.5)


def test_the_listwise_loss_gets_the_similarity_that_its_paper_names(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.Tensor] = []
    real = AdaptiveListwise.forward

    def spy(loss: AdaptiveListwise, similarity: torch.Tensor, *rest: object, **options: object) -> object:
        seen.append(similarity.detach())
        return real(loss, similarity, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(AdaptiveListwise, "forward", spy)
    loss, diary = config_of(AdaptiveListwise)(irrelevant="other_item"), Diary()
    model, config = replace(config.model, similarity=ShiftedCosine()), replace(once(config), loss=loss)
    train(replace(config, model=model), coloured, tmp_path / "run", cache=cache, watcher=diary)
    everything = torch.cat([block.flatten() for block in seen])
    assert everything.min() >= 0
    assert everything.max() <= 1 + 1e-6
    assert not any("is published with" in line for line in diary.said)
    train(config, coloured, tmp_path / "other", cache=cache, watcher=diary)
    assert any("is published with the similarity shifted_cosine" in line for line in diary.said)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_second_training_in_one_folder_is_refused(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    refused: list[str] = []

    class Second(Diary):
        def step(self, report: StepReport) -> None:
            super().step(report)
            for resume in (False, True):
                try:
                    train(config, coloured, tmp_path / "run", cache=cache, resume=resume)
                except UserError as error:
                    refused.append(str(error))

    config = once(config)
    assert train(config, coloured, tmp_path / "run", cache=cache, watcher=Second()).finished
    assert refused
    assert all("a training run writes here now" in one and "\n" not in one for one in refused)


def test_two_trainings_that_begin_at_once_do_not_mix(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, real, out = once(config), loop.prepare, tmp_path / "run"

    def slow(*arguments: object, **options: object) -> object:
        """While the first is still reading, the second begins and ends."""
        monkeypatch.setattr(loop, "prepare", real)
        assert train(replace(config, seed=1), coloured, out, cache=cache).finished
        return real(*arguments, **options)

    monkeypatch.setattr(loop, "prepare", slow)
    with pytest.raises(UserError, match="holds a run already"):
        train(config, coloured, out, cache=cache)
    assert load_config(str(out / "config.yaml")).seed == 1


@pytest.mark.parametrize("name", ["history.jsonl", "skipped.txt", "model"])
def test_files_of_no_run_are_not_overwritten(
    name: str, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("years of work")
    with pytest.raises(UserError, match=f"{name}: is of no run that stands here, and would be overwritten"):
        train(config, coloured, tmp_path / "mine", cache=cache)
    assert {file: data for file, data in snapshot(tmp_path / "mine").items() if file != "lock"} == {
        name: b"years of work"
    }


@pytest.mark.parametrize(("name", "at"), [("checkpoint.safetensors", 4), ("model", 7), ("history.jsonl", 1)])
def test_a_disk_that_fills_up_is_one_line_and_leaves_a_run_that_goes_on(
    name: str,
    at: int,
    trained_run: TrainedRun,
    coloured: ImageCaptions,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, out = trained_run.config, tmp_path / "run"
    real, times = files_module.sync_file, iter(range(1000))

    def full(path: Path, *rest: object) -> None:
        if name in path.parts and next(times) >= at:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(files_module, "sync_file", full)
        patch.setattr(folders_module, "sync_file", full)
        with pytest.raises(UserError, match="the disk is full") as caught:
            train(config, coloured, out, cache=cache)
    assert "\n" not in str(caught.value)
    assert not [path.name for path in out.rglob("*") if path.name.endswith(".partial")]
    if (out / "model").exists():
        load(out / "model")
    resume = (out / "checkpoint.safetensors").exists()
    assert train(config, coloured, out, cache=cache, resume=resume).finished
    one, other = (load_file(folder / "checkpoint.safetensors") for folder in (trained_run.folder, out))
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert _numbers(trained_run.folder) == _numbers(out)


def test_history_and_checkpoint_belong_together_after_a_run_was_cut_off(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, out = loop._Run._save, tmp_path / "run"

    def killed(run: loop._Run) -> None:
        if run.state.epoch == 2 and run.state.step == 0:  # after model and history, before the checkpoint
            raise SystemError("killed")
        real(run)

    with monkeypatch.context() as patch:
        patch.setattr(loop._Run, "_save", killed)
        with pytest.raises(SystemError):
            train(config, coloured, out, cache=cache)
    assert len(_numbers(out)) == 2

    class Looks(Diary):
        def work(self, title: str, done: int, total: int) -> None:
            seen.append(len(_numbers(out)))

        def say(self, message: str) -> None:
            seen.append(len(_numbers(out)))

        def step(self, report: StepReport) -> None:
            seen.append(len(_numbers(out)))

    seen: list[int] = []
    train(config, coloured, out, cache=cache, resume=True, watcher=Looks())
    assert (seen[0], min(seen)) == (2, 1), "from the first step on, history is that of the checkpoint"
    assert [one["epoch"] for one in _numbers(out)] == [1, 2]


def test_events_that_cannot_be_written_do_not_end_a_run(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tensorboard").write_text("in the way")
    diary = Diary()
    result = train(once(config), coloured, tmp_path / "run", cache=cache, watcher=diary)
    assert result.finished
    assert [line for line in diary.said if "no more TensorBoard events" in line]


def test_a_name_in_no_known_encoding_is_listed(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    data = replace(coloured, paths=(tmp_path / "caf\udce9.jpg", *coloured.paths[1:]))
    assert train(once(config), data, tmp_path / "run", cache=cache).finished
    assert "caf\\udce9.jpg" in (tmp_path / "run" / "skipped.txt").read_text()


def test_what_a_killed_run_left_unfinished_is_removed(
    trained_run: TrainedRun, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    out = trained_run.copied(tmp_path / "run")
    names = ("checkpoint.safetensors", "history.jsonl", "model", "skipped.txt")
    left = [out / f".{name}.0123456789abcdef.partial" for name in names]
    for folder in left:
        folder.mkdir()
    train(trained_run.config, coloured, out, cache=cache, resume=True)
    assert not [folder for folder in left if folder.exists()]


def test_training_says_what_its_text_encoder_knows_and_what_it_cuts(
    coloured: ImageCaptions, config: TrainConfig, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "glove.txt").write_text("red 1 0\npicture 0 1\n")
    text = GRUConfig(min_count=1, word_vectors=str(tmp_path / "glove.txt"), context_length=4)
    config = replace(once(config), model=replace(config.model, text=text))
    diary = Diary()
    result = train(config, coloured, tmp_path / "run", cache=cache, watcher=diary)
    assert "glove.txt: vectors for 2 of 10 words (20.0 %)" in diary.said
    assert "train: 60 of 72 captions are longer than the model reads; it reads their beginning" in diary.said
    model = load(result.model_folder)
    assert model.config.text.word_dimension == 2
    assert "found: 2" in (result.model_folder / "README.md").read_text()


def test_vectors_of_a_frozen_text_encoder_are_computed_once_with_their_progress(
    coloured: ImageCaptions, config: TrainConfig, tmp_path: Path
) -> None:
    text = replace(config.model.text, frozen=True)
    config = replace(once(config), model=replace(config.model, text=text))

    class Counting(Diary):
        def work(self, title: str, done: int, total: int) -> None:
            counted[title] = counted.get(title, 0) + done
            assert counted[title] <= total

    for run, computed in (("one", r"12 computed in .* s"), ("two", "0 computed")):
        diary, counted = Counting(), dict[str, int]()
        train(config, coloured, tmp_path / run, cache=tmp_path / "cache", watcher=diary)
        said = next(line for line in diary.said if line.startswith("train: 72 captions"))
        assert re.fullmatch(rf"train: 72 captions, {computed}", said)
        assert counted["train captions"] == 72
        assert counted["validation captions"] == 24


def test_a_share_is_all_that_a_run_sees_of_the_training_pictures(
    config: TrainConfig, coloured: ImageCaptions, tmp_path: Path
) -> None:
    owners = coloured.image_of_caption.tolist()
    named = ["".join(chr(97 + digit) for digit in divmod(number, 26)) for number in range(48)]
    words = tuple(f"{text} zz{named[owner]}" for text, owner in zip(coloured.captions, owners, strict=True))
    data, diary = replace(coloured, captions=words), Diary()
    loss = config_of(Ladder)(shares=(0.2,))
    config = replace(once(config), loss=loss, data=replace(config.data, share=0.25, relevance="tfidf"), seed=3)
    result = train(config, data, tmp_path / "run", cache=tmp_path / "cache", watcher=diary)
    assert "train: 9 of 36 pictures (share 0.25, seed 3)" in diary.said
    assert any(line.startswith("train: 9 images, 0 at hand, 9 computed") for line in diary.said)
    known = set(load(result.model_folder).known_words)
    seen = [number for number in range(36) if f"zz{named[number]}" in known]
    shared = with_share(data, ("train",), 0.25, 3)
    assert seen == [number for number in range(36) if shared.splits[number] == "train"]
    other = replace(config, data=replace(config.data, share=0.5))
    with pytest.raises(UserError, match="data.share: 0.25 then, 0.5 now"):
        train(other, data, tmp_path / "run", cache=tmp_path / "cache", resume=True)
    with pytest.raises(UserError, match="a share of 0.01 of 36 training pictures leaves none"):
        train(replace(config, data=replace(config.data, share=0.01)), data, tmp_path / "none")


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan")])
def test_a_share_lies_above_nothing_and_up_to_all(share: float) -> None:
    with pytest.raises(UserError, match="share: must be"):
        DataConfig(share=share)
