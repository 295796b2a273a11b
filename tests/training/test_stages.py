"""Runs of several stages. Also tests rungwise.training._run_folder."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.encoders import LinearHead
from rungwise.encoders._heads import MLPHead, StackHead
from rungwise.losses import Ladder
from rungwise.models import load
from rungwise.training import _stages as stages
from rungwise.training import run
from rungwise.training.config import DataConfig, TrainConfig, config_of, load_config
from rungwise.training.config._stage import Stage
from rungwise.training.engine import _loop as loop
from rungwise.training.engine import read_state
from rungwise.training.tracking import StageReport, StepReport
from tests.training.conftest import files
from tests.training.engine.test_loop import Diary
from tests.training.test_features import folder_of_features, small

CONVSE = {
    "tune": "weights",
    "loss": {"kind": "contrastive_sum", "temperature": 0.1, "reduction": "mean"},
    "model": {
        "image_head": {"kind": "stack", "of": [{"kind": "linear"}, {"kind": "mlp", "hidden": [8]}]},
        "text_head": {"kind": "mlp", "hidden": [8]},
    },
}


@pytest.fixture
def staged(config: TrainConfig) -> TrainConfig:
    """Base, fine-tuning of the image encoder, and heads on the frozen one: the protocol of ConVSE, one epoch each."""
    tune = {"learning_rates": [1e-3], "model": {"image": {"frozen": False, "crops": "RC", "batch_norm": "frozen"}}}
    three = (Stage("base"), Stage("fine_tune", tune), Stage("heads", CONVSE))
    return replace(config, epochs=(1,), learning_rates=(1e-2,), stages=three)


class Places(Diary):
    """Remembers which stages began."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[StageReport] = []

    def begin(self, report: StageReport) -> None:
        self.begun.append(report)


Finished = tuple[TrainConfig, Path, Path, Places]


@pytest.fixture(scope="module")
def finished(coloured: ImageCaptions, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of three stages, its cache, and what was said."""
    from tests.training import conftest

    config = staged.__wrapped__(conftest.small_config())
    folder, watcher = tmp_path_factory.mktemp("stages"), Places()
    assert run(config, coloured, folder / "run", cache=folder / "cache", watcher=watcher).finished
    return config, folder / "run", folder / "cache", watcher


def weights(run: Path) -> dict[str, torch.Tensor]:
    """Of the final model, and of every checkpoint."""
    found = [run / "model" / "model.safetensors", *sorted(run.glob("stages/*/checkpoint.safetensors"))]
    return {f"{path.parent.name}/{name}": one for path in found for name, one in load_file(path).items()}


def assert_same(one: Path, other: Path) -> None:
    here, there = weights(one), weights(other)
    assert here.keys() == there.keys()
    assert [name for name in here if not torch.equal(here[name], there[name])] == []
    kept = ("stage", "epoch", "learning_rate", "loss", "rsum")
    lines = [
        [[json.loads(line)[name] for name in kept] for line in (run / "history.jsonl").read_text().splitlines()]
        for run in (one, other)
    ]
    assert lines[0] == lines[1]


def test_stages_follow_each_other_and_leave_one_run(finished: Finished, coloured: ImageCaptions) -> None:
    config, out, cache, watcher = finished
    assert files(out) == {"config.yaml", "history.jsonl", "model", "stages"}
    assert [path.name for path in sorted((out / "stages").iterdir())] == ["1-base", "2-fine_tune", "3-heads"]
    assert load_config(str(out / "config.yaml")) == config
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert [line["stage"] for line in history] == ["base", "fine_tune", "heads"]
    assert watcher.said[0] == "3 stages, 3 epochs: base 1, fine_tune 1, heads 1"
    assert watcher.begun == [StageReport(1, name, at + 1, 3) for at, name in enumerate(("base", "fine_tune", "heads"))]
    one, last = load(out / "model"), load(out / "stages" / "3-heads" / "model")
    assert one.fingerprint == last.fingerprint
    assert one.on(coloured.split("val"), cache=cache).shape == (12, 24)


def test_what_a_stage_says_of_the_image_encoder_reaches_it(finished: Finished) -> None:
    _, out, _, _ = finished
    base, tuned, heads = (load_file(one / "model" / "model.safetensors") for one in sorted((out / "stages").iterdir()))
    backbone = [name for name in base if name.startswith("backbone.")]
    moved = [name for name in backbone if not torch.equal(base[name], tuned[name])]
    assert moved
    assert not any("running" in name for name in moved)  # batch_norm: frozen
    assert all(torch.equal(tuned[name], heads[name]) for name in backbone)
    models = [load(one / "model") for one in sorted((out / "stages").iterdir())]
    assert [one.config.image.crops for one in models] == [None, "RC", None]
    assert [one.backbone.preprocessing.crops for one in models] == ["1C", "RC", "1C"]
    assert [one.config.image.frozen for one in models] == [True, False, True]
    assert models[2].config.image_head == StackHead(of=(LinearHead(), MLPHead(hidden=(8,))))
    assert not torch.equal(tuned["image_projection.weight"], heads["image_projection.0.weight"])


def test_a_stage_is_a_run_like_any_other(finished: Finished, coloured: ImageCaptions, tmp_path: Path) -> None:
    config, out, cache, _ = finished
    alone = load_config(str(out / "stages" / "2-fine_tune" / "config.yaml"))
    assert alone.start == str(out / "stages" / "1-base" / "model")
    assert loop.train(alone, coloured, tmp_path / "alone", cache=cache).finished
    folders = tmp_path / "alone", out / "stages" / "2-fine_tune"
    here, there = (load_file(one / "checkpoint.safetensors") for one in folders)
    assert all(torch.equal(here[name], there[name]) for name in there)
    with pytest.raises(UserError, match=r"the configuration has stages; rungwise.training.run runs them"):
        loop.train(config, coloured, tmp_path / "run")


class Killed(BaseException):
    """In place of SIGKILL."""


def killed_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, turn: int, after: bool) -> Callable[[], int]:
    """Let a function raise at one of its calls, before or after it does its work; returns how often it was called."""
    real, calls = getattr(owner, name), iter(range(10_000))
    count = 0

    def failing(*rest: Any, **options: Any) -> Any:
        nonlocal count
        count = next(calls) + 1
        if count == turn and not after:
            raise Killed
        result = real(*rest, **options)
        if count == turn:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, failing)
    return lambda: count


@pytest.mark.parametrize(
    ("owner", "name", "turn", "after"),
    [
        pytest.param(loop, "prepare", 1, False, marks=pytest.mark.slow),  # nothing is written yet
        pytest.param(loop._Run, "_step", 2, False, marks=pytest.mark.slow),  # before the first checkpoint
        (loop._Run, "_step", 15, False),  # in the second stage, behind its checkpoint
        pytest.param(
            loop, "save_checkpoint", 3, True, marks=pytest.mark.slow
        ),  # the first stage is over, and nobody has said so
        pytest.param(loop, "prepare", 2, True, marks=pytest.mark.slow),  # between the first stage and the second
        pytest.param(
            stages._Whole, "begin", 3, False, marks=pytest.mark.slow
        ),  # the third stage has a folder and no checkpoint
        pytest.param(stages._Whole, "keep", 1, False, marks=pytest.mark.slow),  # all are over
        (stages._Whole, "keep", 1, True),  # and the final model stands there
    ],
)
def test_a_run_that_was_killed_ends_with_the_same_weights(
    owner: Any,
    name: str,
    turn: int,
    after: bool,
    finished: Finished,
    coloured: ImageCaptions,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, whole, cache, _ = finished
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        count = killed_at(patch, owner, name, turn, after)
        with pytest.raises(Killed):
            run(config, coloured, out, cache=cache)
        assert count() == turn
    run(config, coloured, out, cache=cache, resume=out.exists())
    assert_same(whole, out)


def test_finished_stages_are_not_run_again_and_the_folder_may_move(
    staged: TrainConfig,
    finished: Finished,
    coloured: ImageCaptions,
    tmp_path: Path,
) -> None:
    _, whole, cache, _ = finished

    class Impatient(Places):
        def step(self, report: StepReport) -> None:
            super().step(report)
            if self.begun[-1].name == "fine_tune":
                os.kill(os.getpid(), signal.SIGINT)

    stopped = run(staged, coloured, tmp_path / "before", cache=cache, watcher=Impatient())
    assert not stopped.finished
    assert not (tmp_path / "before" / "model").exists()
    (tmp_path / "before").rename(tmp_path / "after")
    watcher = Places()
    assert run(staged, coloured, tmp_path / "after", cache=cache, resume=True, watcher=watcher).finished
    assert [one.name for one in watcher.begun] == ["fine_tune", "heads"]
    assert watcher.said[1] == "stage 1 of 3, base, is finished"
    assert_same(whole, tmp_path / "after")


def test_a_finished_run_keeps_what_was_added_to_its_model(
    finished: Finished, coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, whole, cache, _ = finished
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    (out / "model" / "calibration.json").write_text("{}")
    assert run(config, coloured, out, cache=cache, resume=True).finished
    assert (out / "model" / "calibration.json").read_text() == "{}"
    (out / "model" / "model.safetensors").unlink()
    (out / "model" / "SHA256SUMS").unlink()
    assert run(config, coloured, out, cache=cache, resume=True).finished
    assert_same(whole, out)


def test_what_a_kill_left_in_a_finished_stage_goes(finished: Finished, coloured: ImageCaptions, tmp_path: Path) -> None:
    config, whole, cache, _ = finished
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    left = [out / "stages" / one / ".checkpoint.safetensors.0123456789abcdef.partial" for one in ("1-base", "3-heads")]
    for place in left:
        place.mkdir()
    assert run(config, coloured, out, cache=cache, resume=True).finished
    assert not [place for place in left if place.exists()]


def test_what_does_not_belong_together_is_one_line_and_changes_nothing(
    finished: Finished, coloured: ImageCaptions, tmp_path: Path
) -> None:
    config, whole, cache, _ = finished
    out = tmp_path / "run"
    shutil.copytree(whole, out)

    def refused(config: TrainConfig, message: str, resume: bool = True, data: ImageCaptions = coloured) -> None:
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        with pytest.raises(UserError, match=message) as error:
            run(config, data, out, cache=cache, resume=resume)
        assert "\n" not in str(error.value)
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before

    refused(config, r"run: holds a run already; go on with it \(resume\)", resume=False)
    refused(replace(config, stages=()), "holds a run already", resume=False)
    refused(replace(config, stages=()), "no checkpoint to resume from")
    base = "1-base/checkpoint.safetensors: stage base is finished, and was run with other settings: "
    refused(replace(config, seed=5), rf"{base}seed: 0 then, 5 now; a later stage has begun from it")
    refused(replace(config, epochs=(2,)), rf"{base}epochs: \[1\] then, \[2\] now")
    other = replace(coloured, captions=("changed", *coloured.captions[1:]))
    refused(config, f"{base}other data", data=other)
    smaller = Stage("heads", {**CONVSE, "batch_size": 4})
    changed = replace(config, stages=(*config.stages[:2], smaller))
    refused(changed, "3-heads/.*with other settings: batch_size: 8 then, 4 now")
    renamed = replace(config, stages=(config.stages[0], replace(config.stages[1], name="tuned")))
    refused(renamed, "stages/2-fine_tune: of no stage of this configuration")
    first, last = (out / "stages" / name / "checkpoint.safetensors" for name in ("1-base", "3-heads"))
    shutil.copy(first, last)
    refused(config, "3-heads/checkpoint.safetensors: the checkpoint of stage 1, base, in the place of stage 3, heads")
    first.unlink()
    refused(config, "1-base/checkpoint.safetensors: no checkpoint to resume from")


def test_the_last_stage_can_be_made_longer(finished: Finished, coloured: ImageCaptions, tmp_path: Path) -> None:
    config, whole, cache, _ = finished
    shutil.copytree(whole, tmp_path / "run")
    heads = Stage("heads", {**CONVSE, "epochs": [2]})
    longer = replace(config, stages=(*config.stages[:2], heads))
    result = run(longer, coloured, tmp_path / "run", cache=cache, resume=True)
    assert [(line["stage"], line["epoch"]) for line in result.history][2:] == [("heads", 1), ("heads", 2)]


def test_a_run_without_stages_is_not_resumed_with_some(
    config: TrainConfig, staged: TrainConfig, coloured: ImageCaptions, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="no checkpoint to resume from"):
        run(staged, coloured, tmp_path / "run", resume=True)
    assert not (tmp_path / "run").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.safetensors").touch()
    with pytest.raises(UserError, match="run: holds a run without stages"):
        run(staged, coloured, tmp_path / "run", resume=True)


def test_a_stage_that_does_not_fit_the_data_is_refused_before_the_first_one_runs(
    staged: TrainConfig, finished: Finished, coloured: ImageCaptions, tmp_path: Path
) -> None:
    last = Stage("heads", {**CONVSE, "data": {"validation": "dev"}})
    with pytest.raises(UserError, match="^stage heads: coloured: no picture is in split 'dev'"):
        run(replace(staged, stages=(*staged.stages[:2], last)), coloured, tmp_path / "deep" / "run")
    unfinished = tmp_path / "unfinished"
    shutil.copytree(finished[1], unfinished)
    shutil.rmtree(unfinished / "model")
    last = Stage("heads", {**CONVSE, "start": str(unfinished)})
    with pytest.raises(UserError, match=r"^stage heads: .*unfinished: the run is not finished; resume it"):
        run(replace(staged, stages=(*staged.stages[:2], last)), coloured, tmp_path / "deep" / "run")
    assert not (tmp_path / "deep").exists()


def test_a_later_stage_may_begin_from_elsewhere(
    config: TrainConfig, finished: Finished, coloured: ImageCaptions, tmp_path: Path
) -> None:
    _, whole, cache, _ = finished
    elsewhere = {"start": str(whole), "tune": {"kind": "whole", "image": False}}
    two = (Stage("base"), Stage("other", elsewhere), Stage("on", {"learning_rates": [0.0]}))
    config = replace(config, epochs=(1,), learning_rates=(1e-3,), stages=two)
    watcher = Diary()
    result = run(config, coloured, tmp_path / "run", cache=cache, watcher=watcher)
    assert result.finished
    assert load(result.model_folder).config.image_head == StackHead(of=(LinearHead(), MLPHead(hidden=(8,))))
    assert any(line.startswith(f"from {whole}: image encoder") for line in watcher.said)
    assert read_state(tmp_path / "run" / "stages" / "3-on" / "checkpoint.safetensors").start_hash


def test_a_finished_stage_whose_shares_became_thresholds_is_the_same_stage(tmp_path: Path) -> None:
    data = read(folder_of_features(tmp_path / "data", (7,)))
    config = replace(
        small(epochs=(1,), learning_rates=(2e-2,)),
        loss=config_of(Ladder)(shares=(0.2,)),
        data=DataConfig(relevance="tfidf"),
        stages=(Stage("base"), Stage("more", {"tune": "whole", "seed": 1})),
    )
    assert run(config, data, tmp_path / "run", cache=tmp_path / "cache").finished
    whole = weights(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    (tmp_path / "run" / "stages" / "2-more" / "checkpoint.safetensors").unlink()
    assert run(config, data, tmp_path / "run", cache=tmp_path / "cache", resume=True).finished
    assert all(torch.equal(one, whole[name]) for name, one in weights(tmp_path / "run").items())
    other = replace(config, loss=config_of(Ladder)(shares=(0.2,), margins=(0.3, 0.01)))
    with pytest.raises(UserError, match=r"stage base is finished, and was run with other settings: loss.margins"):
        run(other, data, tmp_path / "run", cache=tmp_path / "cache", resume=True)
