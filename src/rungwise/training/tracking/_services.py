"""Services that show runs side by side: Weights & Biases and MLflow.

A thread of its own talks to a service, so that one that is slow, far away or missing never delays a run. The service
gets the numbers of the run and its configuration, without paths of this machine.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Queue
from typing import Any, ClassVar

from rungwise.core import MissingFileError, UserError, read_text, to_plain, without_any_place
from rungwise.core.disk import replacing
from rungwise.training._run_folder import IDS
from rungwise.training.config import TrainConfig
from rungwise.training.tracking._reports import EpochReport, StepReport, Watcher, of_epoch, of_step

PATIENCE = 30.0
"""Seconds that the end of a run waits for a service."""

PROJECT = "rungwise"
"""Project of the runs, unless the service's own environment variables name another."""

_MOST_WAITING = 100_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class Service(ABC):
    """A service's record of one run; all calls come from one thread.

    Attributes:
        title: Name of the service for messages.
        id_file: Name of the file in the run's folder that holds the service's id of this run.
    """

    title: ClassVar[str]
    id_file: ClassVar[str]

    def __init__(self, out: Path) -> None:
        self.out = out

    @abstractmethod
    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        """Open the run by the service's id of it, or create one if that is None.

        Returns:
            The service's id, and where a person finds the run.
        """

    @abstractmethod
    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Send finite numbers by name."""

    @abstractmethod
    def finish(self) -> None:
        """Close the run, which is over or stopped."""


class WeightsAndBiases(Service):
    """A run of Weights & Biases; needs the extra ``rungwise[wandb]``.

    ``WANDB_MODE``, ``WANDB_PROJECT``, ``WANDB_ENTITY`` and the other variables of W&B apply. Without a key the run is
    kept in the run's own folder.
    """

    title = "W&B"
    id_file = IDS["wandb"]

    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        """Open or create the run; without a key, offline."""
        import wandb

        library: Any = wandb
        identity = known or uuid.uuid4().hex[:12]
        library.setup(settings=library.Settings(silent=True))
        mode = os.environ.get("WANDB_MODE")
        if mode is None and not library.login(prompt=False, verify=False):
            mode = "offline"
        try:
            self.run = self._opened(library, identity, config, mode)
        except library.errors.CommError as error:
            self.run = self._opened(library, uuid.uuid4().hex[:12], config, "offline")  # W&B holds on to the first name
            return identity, f"not reached ({_first_line(error)}); {self._kept()}"
        self.run.define_metric("*", step_metric="total_step")
        return identity, self._kept() if self.run.offline else self.run.url or "running"

    def _kept(self) -> str:
        folder = Path(self.run.dir).parent
        return f"kept in {folder}; send it with: wandb sync {folder}"

    def _opened(self, library: Any, identity: str, config: TrainConfig, mode: str | None) -> Any:
        # What W&B would find out by itself are names, paths and arguments of this machine, and what is printed here.
        private = {
            "console": "off", "silent": True, "x_disable_meta": True, "x_disable_machine_info": True, "host": "",
            "disable_git": True, "disable_code": True, "save_code": False, "x_save_requirements": False,
            "init_timeout": PATIENCE / 2, "finish_timeout": PATIENCE / 2,
        }  # fmt: skip
        return library.init(
            project=os.environ.get("WANDB_PROJECT") or PROJECT,
            dir=str(self.out),
            id=identity,
            resume="allow",
            name=os.environ.get("WANDB_NAME") or self.out.name,
            config=shown(config),
            mode=mode,
            settings=library.Settings(**private),
        )

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Send numbers with the step."""
        self.run.log({**numbers, "total_step": step})

    def finish(self) -> None:
        """Finish the run."""
        self.run.finish()


class MLflow(Service):
    """A run of MLflow; needs the extra ``rungwise[mlflow]``.

    ``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME`` apply. Without the first the run is kept in ``mlflow/`` in
    the run's own folder.
    """

    title = "MLflow"
    id_file = IDS["mlflow"]

    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        """Open or create the run; without a tracking URI, in the run's own folder."""
        import mlflow

        library: Any = mlflow
        place: str
        if library.is_tracking_uri_set():
            place = library.get_tracking_uri()
        else:
            folder = (self.out / "mlflow").resolve()
            place = folder.as_uri()
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow wants to be asked for a folder
        self.client = library.MlflowClient(tracking_uri=place)
        self.entities = library.entities
        if known is not None:
            try:
                self.client.update_run(known, status="RUNNING")
            except library.exceptions.MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                known = None
        self.run = known or self._made(config)
        return self.run, f"run {self.run} in {place}"

    def _made(self, config: TrainConfig) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        found = self.client.get_experiment_by_name(name)
        experiment = found.experiment_id if found else self.client.create_experiment(name)
        run = str(self.client.create_run(experiment, run_name=self.out.name).info.run_id)
        said = [self.entities.Param(name, text[:6000]) for name, text in _flat(shown(config)).items() if text]
        for start in range(0, len(said), 100):  # as many as MLflow takes at once
            self.client.log_batch(run, params=said[start : start + 100])
        return run

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Send numbers; MLflow accepts no ``@`` and few other signs, so ``R@1`` becomes ``R_at_1``."""
        now = int(1000 * time.time())
        named = {re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_")): value for name, value in numbers.items()}
        self.client.log_batch(self.run, [self.entities.Metric(name, one, now, step) for name, one in named.items()])

    def finish(self) -> None:
        """Mark the run as terminated."""
        self.client.set_terminated(self.run)


def shown(config: TrainConfig) -> dict[str, Any]:
    """A run's configuration without paths of this machine."""
    found: dict[str, Any] = without_any_place(to_plain(config))
    return found


class ServiceWatcher(Watcher):
    """Sends a run's reports to a service. If that fails, the run goes on without it, and says so once.

    The end of the run waits ``patience`` seconds for unsent reports.
    """

    def __init__(
        self, service: Service, config: TrainConfig, say: Callable[[str], None], patience: float = PATIENCE
    ) -> None:
        self.service = service
        self.failed = False
        self._say = say
        self._patience = patience
        self._calls: Queue[Callable[[], object] | None] = Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, args=(config,), daemon=True, name=service.title)
        self._thread.start()

    def step(self, report: StepReport) -> None:
        """Send loss and speed."""
        self._send(of_step(report), report.total_step)

    def epoch(self, report: EpochReport) -> None:
        """Send the validation measures."""
        self._send(of_epoch(report), report.total_step)

    def close(self) -> None:
        """Wait for a while until all is sent."""
        if self._calls.full():
            self._fail("is too slow")
        else:
            self._calls.put(None)
        self._thread.join(0.0 if self.failed else self._patience)
        if self._thread.is_alive() and not self.failed:
            self._fail(f"has not answered for {self._patience:g} s")

    def _send(self, numbers: Mapping[str, float], step: int) -> None:
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        if self.failed:
            return
        if self._calls.full():
            self._fail("is too slow")
            return
        self._calls.put(lambda: self.service.log(finite, step))

    def _work(self, config: TrainConfig) -> None:
        service = self.service
        try:
            path = service.out / service.id_file
            known = _known(path)
            identity, where = service.begin(known, config)
            if identity != known:
                with replacing(path) as draft:
                    draft.write_text(f"{identity}\n", encoding="utf-8")
            self._say(f"{service.title}: {where}")
            while (call := self._calls.get()) is not None:
                if not self.failed:
                    call()
            service.finish()
        except Exception as error:  # of the service's library, of the network, of the disk
            self._fail(_first_line(error))

    def _fail(self, reason: str) -> None:
        if not self.failed:
            self.failed = True
            self._say(f"{self.service.title}: {reason}; the run goes on without it")


def _known(path: Path) -> str | None:
    """The service's id of this run; None for a new run."""
    try:
        said = read_text(path, "settings_bytes").strip()
    except MissingFileError:
        return None
    if not _ID.fullmatch(said):
        raise UserError(f"{path}: no name of a run; remove it")
    return said


def _flat(values: Mapping[str, Any], place: str = "") -> dict[str, str]:
    """Settings by names such as ``model.image.backbone``."""
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{place}{name}.")
        else:
            found[f"{place}{name}"] = "" if value is None else str(value)
    return found


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
