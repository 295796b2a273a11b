"""Options of a training beside its configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rungwise.core import UserError, is_regular
from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import short_repr
from rungwise.jobs._job import JobOptions
from rungwise.jobs._options import ADVANCED, Cache, Device, Integers, OnePath, given

if TYPE_CHECKING:
    from rungwise.training.config import AnyRunConfig

QUICK = "quick"
"""Preset that is taken where none is named."""


@dataclass
class Running(JobOptions):
    """How a run is run, which changes nothing that it computes.

    Attributes:
        out: Folder of the run: model/, checkpoint, history.
        resume: Go on with the run that stands in --out. Its --epochs may be longer than before.
        seeds: Several seeds, such as 0 1 2. A run for each stands in --out, and their mean and deviation are printed.
        lost_after: Under torchrun, seconds without a sign of life after which another process counts as lost, and the
            run ends.
    """

    out: OnePath = given(Path("run"), WRITTEN_FOLDER)
    resume: bool = False
    seeds: Integers = given(())
    device: Device = None
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)
    lost_after: float = field(default=120.0, metadata=ADVANCED)

    __repr__ = short_repr


def refuse_without_data(config: AnyRunConfig) -> None:
    """Refuse a configuration that names no data."""
    if not config.data.path:
        raise UserError("no data: name a folder or a caption file after the configuration, or set data.path in it")


def refuse_lost_data(path: str) -> None:
    """Refuse data of a run that are not where its configuration says: a relative path is seen from another folder."""
    if not os.path.lexists(path):
        raise UserError(f"the data of the run, {path}, are not there, seen from {Path.cwd()}; name where they are")


def is_data(given: str | os.PathLike[str]) -> bool:
    """Whether a word names data and not a configuration: a folder, or a file that is no YAML."""
    from rungwise.training.config import is_preset_name

    path = Path(given)
    if is_preset_name(os.fspath(given)):
        return False
    # Path.is_dir raises where the folder around may not be read, which is said when the configuration is opened.
    return os.path.isdir(path) or (is_regular(path) and path.suffix.lower() not in (".yaml", ".yml"))  # noqa: PTH112
