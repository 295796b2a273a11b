"""Options of a study."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from rungwise.core.disk.folders import WRITTEN_FOLDER
from rungwise.core.output import short_repr
from rungwise.core.text import IdleCase, idle_where
from rungwise.jobs._job import JobOptions
from rungwise.jobs._options import ADVANCED, AnyPath, Cache, DataOrNone, Device, Given, PathOrNone, given
from rungwise.jobs._python_values import refused

if TYPE_CHECKING:
    from rungwise.runs.study import StudyConfig

    StudyGiven = Given[StudyConfig | Mapping[str, Any] | AnyPath, Any]
else:
    StudyGiven = str


@dataclass
class Study(JobOptions):
    """Train the runs of a file, each once; choose on validation; measure on the test split at the end.

    What is done stays done, what was cut off goes on, and what is missing is trained.

    Attributes:
        file: YAML file with arms, a grid, seeds, a search and what is measured.
        out: Folder of the study. Default: what the file says, else its name without the ending.
        data: Folder or caption file. Overrides what the file says.
        jobs: Runs to train at a time, in processes that share the cores.
        ray: Train the runs in processes of Ray: on this machine, or with HOST:PORT on those of a cluster, which see the
            same files.
        dry_run: Print the runs and their state, and how long the rest takes; nothing is trained.
        again: Train runs anew whose settings in the file have changed; the former ones are removed.
    """

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        idle_where(
            "jobs ray",
            lambda asked: asked.dry_run,
            "with {dry_run}, which trains nothing",
            "leave one of them out",
        ),
    )

    file: Annotated[tyro.conf.Positional[StudyGiven], tyro.conf.arg(metavar="FILE")] = given(MISSING)
    out: PathOrNone = given(None, WRITTEN_FOLDER)
    data: DataOrNone = given(None)
    jobs: int = 1
    ray: Annotated[str | None, tyro.conf.arg(metavar="[ADDRESS]")] = None
    dry_run: bool = False
    again: bool = False
    device: Device = None
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)

    __repr__ = short_repr

    @property
    def place(self) -> str:
        """What errors name: the file, or nothing for a value."""
        return str(self.file) if isinstance(self.file, str) else ""

    def read(self) -> StudyConfig:
        """The study that is given.

        Raises:
            UserError: If it is none.
        """
        from rungwise.runs.study import StudyConfig, load_study, study_of

        if isinstance(self.file, StudyConfig):
            return self.file
        if isinstance(self.file, Mapping):
            return study_of(dict(self.file))
        if not isinstance(self.file, str | os.PathLike):
            raise refused("file", self.file, "the YAML file of a study, or its content as a mapping")
        return load_study(Path(self.file))

    def folder_of(self, study: StudyConfig) -> Path:
        """The folder of the study."""
        if self.out is not None:
            return self.out
        if study.out:
            return Path(study.out)
        return Path(Path(self.place).stem) if self.place else Path("study")
