"""What a study keeps: a record in the folder of each run, and one of the whole study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from rungwise.core import UserError, is_regular
from rungwise.core.formats import IN_FILE, CheckedJson, Number, read_as
from rungwise.core.output import short_repr, some_of
from rungwise.core.version import __version__
from rungwise.runs.study._machines import Machine
from rungwise.runs.study._run_keys import RunIdentity
from rungwise.training.engine import differing

RUN_RECORD = "study-run.json"
"""Record of a study in the folder of a run."""
STUDY_RECORD = "study.json"
"""Record of a study in its own folder."""

_MOST_CHANGES = 3


@dataclass(frozen=True)
class StudyRun(CheckedJson):
    """What a study keeps of a run, in the folder of the run.

    Attributes:
        key: Hash of all that the run depends on.
        settings: Settings that change numbers.
        data_hash: Hash of the collection with its splits.
        files: Hashes of files that settings name.
        numbers: Number of what trainings compute.
        version: Version of rungwise that began it.
        machines: The machines that worked at it, in their order; the same one stands once.
        finished: Whether it came to its end.
        answers: Files of results in the folder, by the hash of the question that they answer.
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-study-run/1"
    remedy: ClassVar[str] = "remove the folder of the run, and it is made again"

    key: str
    settings: Mapping[str, Any]
    data_hash: str
    files: Mapping[str, str]
    numbers: int
    version: str = __version__
    machines: tuple[Machine, ...] = ()
    finished: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)

    __repr__ = short_repr

    @classmethod
    def of(cls, identity: RunIdentity) -> StudyRun:
        """The record of a run that is to begin."""
        return cls(identity.key, identity.settings, identity.data_hash, identity.files, identity.numbers)

    @classmethod
    def of_plain(cls, record: Mapping[str, Any]) -> StudyRun:
        """The record in the file of a finished run.

        Raises:
            UserError: If it is none.
        """
        try:
            found = read_as(cls, dict(record))
            found._check_parts()
        except ValueError as error:
            raise UserError(f"a finished run: its record is damaged ({error}); {cls.remedy}") from None
        return found

    @property
    def identity(self) -> RunIdentity:
        """What the run depends on."""
        return RunIdentity(self.settings, self.data_hash, self.files, self.numbers)

    def on(self, machine: Machine) -> StudyRun:
        """The record with another machine that works at the run."""
        return self if machine in self.machines else replace(self, machines=(*self.machines, machine))

    @classmethod
    def read(cls, folder: Path) -> StudyRun | None:
        """The record in the folder of a run; None where there is none."""
        path = folder / RUN_RECORD
        return cls.from_json(path) if is_regular(path) else None

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the run."""
        self.to_json(folder / RUN_RECORD)

    def _check_parts(self) -> None:
        if self.identity.key != self.key:
            raise ValueError("its key is not that of its settings")


@dataclass(frozen=True)
class TriedSettings:
    """One trial of a search.

    Attributes:
        values: Values of the searched settings.
        value: The measure that chooses, on the validation split.
        key: Key of the trial's run.
        seconds: Seconds that its epochs took.
    """

    __pydantic_config__ = IN_FILE

    values: Mapping[str, Any]
    value: Number
    key: str
    seconds: float

    __repr__ = short_repr


@dataclass(frozen=True)
class ChosenTrial:
    """All trials of an arm, and the one that the validation split chose.

    Attributes:
        measure: Name of the measure that chose.
        budget: Number of trials that the study allows an arm.
        trials: The trials in their order.
        chosen: Number of the chosen one, from 1.
        split: The split that it was chosen on.
    """

    __pydantic_config__ = IN_FILE

    measure: str
    budget: int
    trials: tuple[TriedSettings, ...]
    chosen: int
    split: str

    __repr__ = short_repr

    @property
    def values(self) -> Mapping[str, Any]:
        """The chosen settings."""
        return self.trials[self.chosen - 1].values


@dataclass(frozen=True)
class Opening:
    """That the test split was opened, and for which systems.

    Attributes:
        date: Date, as YYYY-MM-DD, in UTC.
        seeds: Seeds of the systems.
        systems: Settings that change numbers by the names of the systems, without the seed.
    """

    __pydantic_config__ = IN_FILE

    date: str
    seeds: tuple[int, ...]
    systems: Mapping[str, Mapping[str, Any]]

    __repr__ = short_repr


@dataclass(frozen=True)
class StudyRecord(CheckedJson):
    """What a study keeps in its folder.

    Attributes:
        searches: Trials by the name of their arm.
        openings: Each time that the test split was opened for another choice.
        version: Version of rungwise that wrote it last.
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-study/1"
    remedy: ClassVar[str] = "move it elsewhere; when the test split was opened is then not known"

    searches: Mapping[str, ChosenTrial] = field(default_factory=dict)
    openings: tuple[Opening, ...] = ()
    version: str = __version__

    __repr__ = short_repr

    @classmethod
    def read(cls, folder: Path) -> StudyRecord:
        """The record in a folder; an empty one where there is none.

        Raises:
            UserError: If the file is none of a study, or damaged.
        """
        path = folder / STUDY_RECORD
        if not path.exists():
            return cls()
        try:
            return cls.from_json(path)
        except UserError as error:
            raise UserError(f"{error}; or name another folder for the study") from None

    def write(self, folder: Path) -> None:
        """Write the record into the folder of the study."""
        replace(self, version=__version__).to_json(folder / STUDY_RECORD)

    def opened(self, now: Opening) -> StudyRecord:
        """The record with an opening of the test split; the same choice again is no other opening."""
        last = self.openings[-1] if self.openings else None
        if last is not None and (last.seeds, last.systems) == (now.seeds, now.systems):
            return self
        return replace(self, openings=(*self.openings, now))

    def _check_parts(self) -> None:
        for name, one in self.searches.items():
            if not 1 <= one.chosen <= len(one.trials):
                raise ValueError(f"the chosen trial of {name} is none of its trials")


def opened_for_others(record: StudyRecord) -> tuple[str, ...]:
    """A line for each opening of the test split that a later one differs from: what was chosen after it saw the test.

    >>> first = Opening("2026-01-02", (0,), {"max": {"loss": {"margin": 0.2}}})
    >>> second = Opening("2026-01-03", (0,), {"max": {"loss": {"margin": 0.3}}})
    >>> opened_for_others(StudyRecord(openings=(first, second)))
    ('the test split was opened on 2026-01-02 for other systems: max: loss.margin: 0.2 then, 0.3 now',)
    """
    if not record.openings:
        return ()
    last = record.openings[-1]
    return tuple(
        f"the test split was opened on {one.date} for other systems: {'; '.join(_differences(one, last))}"
        for one in record.openings[:-1]
    )


def _differences(then: Opening, now: Opening) -> list[str]:
    lines = [f"{name} was taken out" for name in then.systems if name not in now.systems]
    lines += [f"{name} was added" for name in now.systems if name not in then.systems]
    changed: dict[str, list[str]] = {}
    for name, settings in then.systems.items():
        if name in now.systems and (found := differing(dict(settings), dict(now.systems[name]))):
            more = [f"{len(found) - _MOST_CHANGES} more"] if len(found) > _MOST_CHANGES else []
            changed.setdefault(", ".join([*found[:_MOST_CHANGES], *more]), []).append(name)
    lines += [f"{some_of(names)}: {change}" for change, names in changed.items()]
    if then.seeds != now.seeds:
        lines.append(f"seeds {' '.join(map(str, then.seeds))} then, {' '.join(map(str, now.seeds))} now")
    return lines or ["an earlier choice was taken back since"]
