"""All runs of a study: their data and configurations, built and checked before anything is trained."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, digest_of_json, require_there, to_plain
from rungwise.data import ImageCaptions, dataset_of, read, why_untrained, with_share, with_splits
from rungwise.evaluation import protocol_named
from rungwise.jobs._terminal import say_issues
from rungwise.jobs.evaluation import place_of
from rungwise.metrics import Measure, parse_all
from rungwise.parts import named_modules
from rungwise.relevance.config import names_source, source_config
from rungwise.runs.study import (
    PlannedRun,
    RunIdentity,
    StudyArm,
    StudyConfig,
    StudySystem,
    StudyTrial,
    data_hash_of,
    identity_of_run,
    trained_data,
    trials_of,
)
from rungwise.scenes import own_degrees
from rungwise.training.config import TrainConfig, accepted, with_origins
from rungwise.training.fit import check_fits

if TYPE_CHECKING:
    from rungwise.jobs.studies._study_options import Study

TRIALS = ".trials"
"""Folder of the trials in that of the study; its name keeps them out of tables of the runs in the study's folder."""
TEST = "test"
"""Name of the split that is opened last."""


class AllRuns:
    """The runs that a study may make, by its arms and seeds.

    Args:
        study: The study.
        asked: Options of the command.
        out: Folder of the study.

    Raises:
        UserError: If data, a configuration or a question of the evaluation does not fit, with all mistakes in one line.
    """

    def __init__(self, study: StudyConfig, asked: Study, out: Path) -> None:
        self._study, self._out = study, out
        self._read: dict[tuple[str, str, str, bool], ImageCaptions] = {}
        self._identities: dict[str, RunIdentity] = {}
        self._without_effect: dict[str, list[str]] = {}
        self.given = asked.data if isinstance(asked.data, ImageCaptions) else None
        self._path = "" if asked.data is None else str(asked.data if self.given is None else place_of(self.given) or "")
        self._check(asked)

    def data_of(self, config: TrainConfig) -> ImageCaptions:
        """The collection of a configuration as it lies there."""
        of = config.data
        return self.given or self._collection((of.path, of.layout, of.key, of.join_restval))

    def split_data(self, config: TrainConfig) -> ImageCaptions:
        """The collection of a configuration, with the splits that its runs see."""
        return trained_data(self.data_of(config), config)

    def trial_runs(self, arm: StudyArm) -> list[PlannedRun]:
        """The trials of an arm as runs."""
        found = []
        for trial in trials_of(self._study, arm):
            config = self._trial_config(arm, trial)
            folder = self._out / TRIALS / arm.name / f"trial-{trial.number}"
            found.append(PlannedRun(arm.name, config, folder, self._identity(config)))
        return found

    def system_runs(self, system: StudySystem, chosen: Mapping[str, Any]) -> list[PlannedRun]:
        """The runs of a system, one for each seed, with the settings that a search chose."""
        found = []
        for seed in self._study.seeds:
            config = replace(self._config(system.arm, system.point, chosen), seed=seed)
            folder = self._out / system.name / f"seed-{seed}"
            found.append(PlannedRun(system.name, config, folder, self._identity(config)))
        return found

    def remarks(self) -> list[str]:
        """A line for each setting that cannot act, with the arms that have it."""
        return list(_of_arms(self._without_effect))

    def _check(self, asked: Study) -> None:
        """Build every configuration, and refuse what does not fit before anything is trained."""
        mistakes: dict[str, list[str]] = {}
        opens = self._study.opens_test
        judged = {TEST} if opens else set()
        for arm in self._study.all_arms:
            try:
                for config in self._possible(arm):
                    judged |= set() if opens else {config.data.validation}
                    for line in self._check_run(config):
                        if arm.name not in (names := self._without_effect.setdefault(line, [])):
                            names.append(arm.name)
            except UserError as error:
                said = " ".join(str(error).split()).removeprefix(f"arm {arm.name}: ")
                mistakes.setdefault(said, []).append(arm.name)
        lines = list(_of_arms(mistakes))
        for data in self._read.values() if self.given is None else [self.given]:
            lines += self._unanswerable(data, judged)
        if lines:
            where = f"{asked.place}: " if asked.place else ""
            many = f"{len(lines)} mistakes: " if lines[1:] else ""
            raise UserError(f"{where}{many}{'; '.join(dict.fromkeys(lines))}")
        if (asked.jobs > 1 or asked.ray is not None) and self.given is not None and not self._path:
            option = "--jobs" if asked.jobs > 1 else "--ray"
            raise UserError(f"{option}: other processes cannot read a collection in memory; name its files as data")
        for data in self._read.values():
            if (place := place_of(data)) is not None and place.resolve() == self._out.resolve():
                raise UserError(f"--out {self._out}: holds the data; name another folder for the study")

    def _check_run(self, config: TrainConfig) -> list[str]:
        """Refuse a run whose data or files do not fit its configuration; lines on settings that cannot act."""
        data = self.data_of(config)
        check_fits(config, data)
        without_effect = accepted(config)
        with_share(self.split_data(config), config.data.train, config.data.share, config.seed)
        if why := why_untrained(data, config.data.train, config.data.validation):
            raise UserError(f"{data.name}: {why}")
        self._identity(config)
        return without_effect

    def _unanswerable(self, data: ImageCaptions, judged: Collection[str]) -> list[str]:
        """A line for each question that a split which will be judged could not answer after all the training."""
        whole, place = with_splits(data), place_of(data)
        return [
            line for name in sorted({*judged} & {*whole.splits}) for line in self._unanswered(whole.split(name), place)
        ]

    def _unanswered(self, part: ImageCaptions, place: Path | None) -> Iterator[str]:
        for number, question in enumerate(self._study.evaluation, 1):
            try:
                protocol_named(question.protocol).folds(part.image_of_caption, len(part))
                if question.relevance and names_source(question.relevance):
                    source_config(question.relevance)
                elif question.relevance and not Path(question.relevance).exists():
                    raise UserError(f"relevance: {question.relevance} is neither a source nor a folder; correct it")
                graded = [one for one in parse_all(question.measures) if isinstance(one, Measure) and one.graded]
                if graded and not question.relevance and own_degrees(place, part) is None:
                    raise UserError(f"{graded[0]} needs degrees of relevance; name a source or a folder as relevance")
                for path in question.positives:
                    require_there(Path(path))
            except UserError as error:
                yield f"evaluation, question {number}: {' '.join(str(error).split())}"

    def _possible(self, arm: StudyArm) -> Iterator[TrainConfig]:
        """All configurations that runs of an arm may get."""
        trials = trials_of(self._study, arm)
        for trial in trials:
            yield self._trial_config(arm, trial)
        for point in self._study.points():
            for values in [trial.values for trial in trials] or [{}]:
                yield self._config(arm, point, values)

    def _config(self, arm: StudyArm, *changes: Mapping[str, Any]) -> TrainConfig:
        config = self._study.config_of(arm, *changes, dataset=self._dataset())
        path = self._path or config.data.path
        if not path and self.given is None:
            raise UserError("no data: name a folder or a caption file as data in the file, or by --data")
        modules = tuple(dict.fromkeys((*config.modules, *named_modules())))
        return with_origins(replace(config, data=replace(config.data, path=path), modules=modules))

    def _trial_config(self, arm: StudyArm, trial: StudyTrial) -> TrainConfig:
        assert self._study.search is not None
        return replace(self._config(arm, self._study.search.fixed, trial.values), seed=self._study.search.seed)

    def _dataset(self) -> str:
        """Dataset by which a short name of a preset is completed."""
        if self.given is not None:
            return dataset_of(self.given)
        path = self._path or self._study.data
        return dataset_of(self._collection((path, "", "dot", False))) if path else ""

    def _collection(self, key: tuple[str, str, str, bool]) -> ImageCaptions:
        if key not in self._read:
            path, layout, member_key, join = key
            data = read(path, layout=layout or None, key=member_key, join_restval=join)  # type: ignore[arg-type]
            say_issues(data.issues)
            self._read[key] = data
        return self._read[key]

    def _identity(self, config: TrainConfig) -> RunIdentity:
        """What a run depends on; files that settings name are hashed once."""
        name = digest_of_json(to_plain(replace(config, seed=0)))
        if name not in self._identities:
            self._identities[name] = identity_of_run(config, data_hash_of(self.split_data(config)))
        found = self._identities[name]
        return replace(found, settings={**found.settings, "seed": config.seed})


def _of_arms(lines: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Lines, each behind the names of its arms."""
    for line, names in lines.items():
        yield f"arm{'s' if names[1:] else ''} {', '.join(names)}: {line}"
