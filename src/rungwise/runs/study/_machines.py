"""The machine that a run was computed on: what decides its last bits beside the settings."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from rungwise.core.compute import choose_device
from rungwise.core.formats import IN_FILE
from rungwise.encoders import native_bfloat16, trained_in
from rungwise.training.config import TrainConfig

_PROCESSOR = Path("/proc/cpuinfo")
_LONGEST_NAME = 120


@dataclass(frozen=True)
class Machine:
    """A machine, and how it computes a run.

    Attributes:
        device: Kind of the device: cpu or cuda.
        name: Model of the processor or GPU.
        bfloat16: Whether the device computes bfloat16 natively.
        precision: Precision of the encoders in training, with auto resolved; of stages with several, all of them.
        threads: Threads of torch.
        torch: Version of torch.
    """

    __pydantic_config__ = IN_FILE

    device: str
    name: str
    bfloat16: bool
    precision: str
    threads: int
    torch: str

    def __str__(self) -> str:
        how = "with" if self.bfloat16 else "without"
        return f"{self.device}, {self.name or 'unnamed'}, {how} bfloat16, in {self.precision}"


def machine_of(config: TrainConfig, device: str | None = None) -> Machine:
    """This machine, as it computes a run of a configuration."""
    place = torch.device(choose_device(device))
    native = native_bfloat16(place)
    stages = [one for _, one in config.stage_configs()] or [config]
    resolved = dict.fromkeys(trained_in(one.precision, place) for one in stages)
    return Machine(
        place.type,
        _name_of(place)[:_LONGEST_NAME],
        native,
        ", ".join(resolved),
        torch.get_num_threads(),
        torch.__version__,
    )


def _name_of(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # on systems without this file
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def one_kind(machines: Mapping[str, Sequence[Machine]]) -> tuple[bool, tuple[str, ...]]:
    """Whether the compared runs are on machines with bfloat16, and which runs are not of this kind.

    Runs on machines with and without it are not compared with each other. The kind of the most runs stays; with as many
    of both that with bfloat16 does. A run that went on on a machine of the other kind is of neither.

    Args:
        machines: The machines of each run by its name, in the order in which they worked at it.
    """
    kinds = {name: {one.bfloat16 for one in own} for name, own in machines.items()}
    count = Counter(next(iter(kind)) for kind in kinds.values() if len(kind) == 1)
    native = count[True] >= count[False]
    return native, tuple(name for name, kind in kinds.items() if kind and kind != {native})
