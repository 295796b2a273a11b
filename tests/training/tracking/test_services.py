"""Runs as Weights & Biases and MLflow keep them, by their own libraries where these are installed."""

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.models.joint import VSEConfig
from rungwise.training.config import DataConfig, TrainConfig
from rungwise.training.engine import train
from rungwise.training.tracking import EpochReport, StepReport, Watcher, check_logs
from rungwise.training.tracking._services import MLflow, Service, ServiceWatcher, WeightsAndBiases, shown

STEP = StepReport(10, 1, 10, 20, 0.5, 100.0, batch_loss=float("nan"), spread=float("nan"), gradient_norm=2.0)
EPOCH = EpochReport(20, 1, 3, {"rsum": 512.0, "i2t/R@1": 40.0}, best=True)
PLACES = TrainConfig(
    data=DataConfig(path="/home/somebody/photos", relevance="{kind: tfidf, path: /home/somebody/degrees}"),
    start="/home/somebody/model",
)


class Told(Service):
    """Remembers what it is told; fails when it is told to."""

    title, id_file = "Told", "told_id.txt"

    def __init__(self, out: Path, fails: str = "") -> None:
        super().__init__(out)
        self.fails, self.heard = fails, []
        self.go_on = threading.Event()

    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        if self.fails == "hangs":
            self.go_on.wait()
        if self.fails == "begin":
            raise ConnectionError("no route\nto host")
        self.heard.append(("begin", known))
        return known or "abc", "somewhere"

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        if self.fails == "log":
            raise RuntimeError("no")
        self.heard.append((dict(numbers), step))

    def finish(self) -> None:
        self.heard.append("finish")


def told(service: Service, say: list[str], patience: float = threading.TIMEOUT_MAX) -> ServiceWatcher:
    watcher = ServiceWatcher(service, TrainConfig(), say.append, patience)
    watcher.step(STEP)
    watcher.epoch(EPOCH)
    watcher.close()
    return watcher


def test_a_service_hears_finite_numbers_in_their_order_and_knows_the_run_again(tmp_path: Path) -> None:
    said: list[str] = []
    first, second = Told(tmp_path), Told(tmp_path)
    told(first, said)
    numbers = {"train/loss": 0.5, "train/gradient_norm": 2.0, "train/pairs_per_second": 100.0}
    of_epoch = {"epoch/rsum": 512.0, "epoch/i2t/R@1": 40.0}
    assert first.heard == [("begin", None), (numbers, 10), (of_epoch, 20), "finish"]
    assert (tmp_path / "told_id.txt").read_text() == "abc\n"
    told(second, said)
    assert second.heard[0] == ("begin", "abc")
    assert said == ["Told: somewhere"] * 2


@pytest.mark.parametrize(
    ("fails", "reason"), [("begin", "no route"), ("log", "no"), ("hangs", "has not answered for 0 s")]
)
def test_a_service_that_fails_is_left_alone_and_said_once(fails: str, reason: str, tmp_path: Path) -> None:
    said: list[str] = []
    service = Told(tmp_path, fails)
    watcher = told(service, said, 0.0 if fails == "hangs" else threading.TIMEOUT_MAX)
    assert "finish" not in service.heard
    service.go_on.set()
    watcher._thread.join()
    assert [one for one in said if "goes on" in one] == [f"Told: {reason}; the run goes on without it"]
    assert not [one for one in service.heard if isinstance(one[0], dict)], "no numbers"


def test_a_name_that_is_none_is_not_passed_on(tmp_path: Path) -> None:
    (tmp_path / "told_id.txt").write_text("../../else\n")
    said: list[str] = []
    told(Told(tmp_path), said)
    assert said == [f"Told: {tmp_path / 'told_id.txt'}: no name of a run; remove it; the run goes on without it"]


def test_what_is_sent_names_no_place_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "weights.safetensors").touch()
    config = replace(
        PLACES,
        model=replace(VSEConfig(), image=replace(VSEConfig().image, weights=str(tmp_path / "weights.safetensors"))),
    )
    sent = shown(config)
    assert sent["data"]["path"] == "photos"
    assert sent["data"]["relevance"] == "{kind: tfidf, path: degrees}"
    assert sent["start"] == "model"
    assert sent["model"]["image"]["weights"] == "weights.safetensors"
    assert sent["model"]["image"]["backbone"] == "resnet152"
    assert "somebody" not in json.dumps(sent)


def test_a_package_that_is_not_there_has_one_line_before_anything_is_computed(
    monkeypatch: pytest.MonkeyPatch, config: TrainConfig, coloured: ImageCaptions, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("wandb", "mlflow"):
        with pytest.raises(UserError, match=rf"logs: {name} needs {name}; run: pip install 'rungwise\[{name}\]', or"):
            check_logs(TrainConfig(logs=(name,)))
    with pytest.raises(UserError, match="logs: mlflow needs"):
        train(replace(config, logs=("mlflow",)), coloured, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def away(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """No settings of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("WANDB_", "MLFLOW_")):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("NETRC", str(home / "netrc"))


@pytest.mark.slow
def test_a_run_is_kept_by_mlflow_and_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    mlflow = pytest.importorskip("mlflow")
    away(monkeypatch, tmp_path)
    monkeypatch.setattr(ServiceWatcher.__init__, "__defaults__", (threading.TIMEOUT_MAX,))
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    out = tmp_path / "my run"
    config = replace(config, logs=("mlflow",), epochs=(1, 1))
    train(config, coloured, out, cache=cache)
    train(replace(config, epochs=(1, 2)), coloured, out, cache=cache, resume=True)
    client = mlflow.MlflowClient(tracking_uri=(out / "mlflow").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("rungwise").experiment_id])
    assert run.info.run_id == (out / "mlflow_id.txt").read_text().strip()
    assert run.info.status == "FINISHED"
    assert run.data.params["model.image.backbone"] == "test_resnet.r160_in1k"
    assert len(client.get_metric_history(run.info.run_id, "epoch/i2t/R_at_1")) == 3
    assert len(client.get_metric_history(run.info.run_id, "train/loss")) >= 3


@pytest.mark.slow
def test_a_run_without_a_key_is_kept_for_wandb_under_one_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    away(monkeypatch, tmp_path)
    said: list[str] = []
    for _ in range(2):
        watcher = ServiceWatcher(WeightsAndBiases(tmp_path), PLACES, said.append, threading.TIMEOUT_MAX)
        watcher.step(STEP)
        watcher.epoch(EPOCH)
        watcher.close()
        assert not watcher.failed, said
    name = (tmp_path / "wandb_id.txt").read_text().strip()
    kept = list((tmp_path / "wandb").glob(f"offline-run-*-{name}/run-{name}.wandb"))
    assert said[0].startswith("W&B: kept in ")
    assert "wandb sync" in said[0]
    assert kept
    everything = b"".join(path.read_bytes() for path in kept)
    assert b"epoch/i2t/R@1" in everything
    assert b"somebody" not in everything
    assert str(tmp_path).encode() not in everything


@pytest.mark.slow
def test_a_service_that_cannot_be_reached_does_not_end_a_run(
    monkeypatch: pytest.MonkeyPatch, config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    pytest.importorskip("mlflow")
    away(monkeypatch, tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    said: list[str] = []

    class Listener(Watcher):
        def say(self, message: str) -> None:
            said.append(message)

    config = replace(config, logs=("mlflow",), epochs=(1, 1))
    assert train(config, coloured, tmp_path / "run", cache=cache, watcher=[Listener(), Watcher()]).finished
    (line,) = [one for one in said if "MLflow" in one]
    assert line.endswith("; the run goes on without it")


def test_services_keep_to_their_files() -> None:
    assert {MLflow(Path()).id_file, WeightsAndBiases(Path()).id_file} == {"mlflow_id.txt", "wandb_id.txt"}
