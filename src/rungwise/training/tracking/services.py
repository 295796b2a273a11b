"""Services that show runs side by side: Weights & Biases and MLflow.

A service is spoken to by a thread of its own, so that one that is slow, far away or not there never holds a run up.
What it is told are the numbers of the run and its configuration, without places of this machine.
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

from rungwise.core.configuration import to_plain, without_any_place
from rungwise.core.disk.files import replacing
from rungwise.core.errors import UserError
from rungwise.core.untrusted_files import MissingFileError, read_text
from rungwise.training.config.run import TrainConfig
from rungwise.training.run_folder import IDS
from rungwise.training.tracking.reports import EpochReport, StepReport, Watcher, of_epoch, of_step

PATIENCE = 30.0
"""Seconds that the end of a run waits for a service."""

PROJECT = "rungwise"
"""Where runs are filed, unless the service's own variables of the environment say another place."""

_MOST_WAITING = 100_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class Service(ABC):
    """One run as a service keeps it; all calls come from one thread.

    Args:
        out: Folder of the run.

    Attributes:
        title: For a person.
        id_file: Name of the file in the run's folder that holds what the service calls this run.
    """

    title: ClassVar[str]
    id_file: ClassVar[str]

    def __init__(self, out: Path) -> None:
        self.out = out

    @abstractmethod
    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        """Open the run, or make it.

        Args:
            known: What the service called this run before; None for a new one.
            config: Of the run.

        Returns:
            What the service calls it, and where a person finds it.
        """

    @abstractmethod
    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Pass on finite numbers by their names."""

    @abstractmethod
    def finish(self) -> None:
        """The run is over, or stopped."""


class WeightsAndBiases(Service):
    """A run of Weights & Biases; needs the extra ``rungwise[wandb]``.

    ``WANDB_MODE``, ``WANDB_PROJECT``, ``WANDB_ENTITY`` and the other variables of W&B hold. Without a key the run is
    kept in the run's own folder.

    >>> WeightsAndBiases(Path("run")).id_file
    'wandb_id.txt'
    """

    title = "W&B"
    id_file = IDS["wandb"]

    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        """See :class:`Service`."""
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
        """See :class:`Service`."""
        self.run.log({**numbers, "total_step": step})

    def finish(self) -> None:
        """See :class:`Service`."""
        self.run.finish()


class MLflow(Service):
    """A run of MLflow; needs the extra ``rungwise[mlflow]``.

    ``MLFLOW_TRACKING_URI`` and ``MLFLOW_EXPERIMENT_NAME`` hold. Without the first the run is kept in ``mlflow/`` in the
    run's own folder.

    >>> MLflow(Path("run")).id_file
    'mlflow_id.txt'
    """

    title = "MLflow"
    id_file = IDS["mlflow"]

    def begin(self, known: str | None, config: TrainConfig) -> tuple[str, str]:
        """See :class:`Service`."""
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
        """See :class:`Service`; MLflow takes no ``@`` and few other signs, so that ``R@1`` becomes ``R_at_1``."""
        now = int(1000 * time.time())
        named = {re.sub(r"[^\w\-. :/]", "_", name.replace("@", "_at_")): value for name, value in numbers.items()}
        self.client.log_batch(self.run, [self.entities.Metric(name, one, now, step) for name, one in named.items()])

    def finish(self) -> None:
        """See :class:`Service`."""
        self.client.set_terminated(self.run)


def shown(config: TrainConfig) -> dict[str, Any]:
    """A run's configuration as others may see it.

    >>> shown(TrainConfig(start="/models/model"))["start"]
    'model'
    """
    found: dict[str, Any] = without_any_place(to_plain(config))
    return found


class ServiceWatcher(Watcher):
    """Tells a service what a run reports. Where that fails, the run goes on without it, and says so once.

    Args:
        service: To be told.
        config: Of the run.
        say: Takes a sentence for a person.
        patience: Seconds that the end of the run waits for what is not yet sent.
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
        """Pass on loss and speed."""
        self._send(of_step(report), report.total_step)

    def epoch(self, report: EpochReport) -> None:
        """Pass on the validation measures."""
        self._send(of_epoch(report), report.total_step)

    def close(self) -> None:
        """Wait until all is sent, for a while."""
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
    """What a service called this run before."""
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
