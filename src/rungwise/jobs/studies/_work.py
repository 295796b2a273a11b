"""The work of a study, in its order: check all, trials, the choice on validation, the arms, the test split, tables."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, digest_of_json, is_regular, require_there, to_plain
from rungwise.data import ImageCaptions, dataset_of, read, why_untrained, with_share, with_splits
from rungwise.evaluation import Result, protocol_named
from rungwise.evaluation.tables import ResultTable
from rungwise.jobs._terminal import chosen_device, console, say, say_issues
from rungwise.jobs.evaluation import evaluate, place_of
from rungwise.jobs.sources import degrees
from rungwise.jobs.studies._outcome import StudiedRun, StudyOutcome
from rungwise.jobs.studies._study_files import TABLES, study_table, write_curves, write_table
from rungwise.jobs.training import fetch_weights
from rungwise.metrics import Measure, parse_all
from rungwise.parts import named_modules
from rungwise.relevance.config import names_source, source_config
from rungwise.runs import is_run_folder, keep_result
from rungwise.runs.study import (
    RUN_RECORD,
    STUDY_RECORD,
    ChosenTrial,
    Opening,
    PlannedRun,
    RunFailure,
    RunIdentity,
    RunTask,
    StudyArm,
    StudyConfig,
    StudyQuestion,
    StudyRecord,
    StudyRun,
    StudyRunState,
    StudySystem,
    StudyTrial,
    TriedSettings,
    best_trial,
    data_hash_of,
    identity_of_run,
    one_kind,
    opened_for_others,
    remaining_seconds,
    remove_run,
    tasks_in_processes,
    tasks_in_turn,
    tasks_on_ray,
    trained_data,
    trials_of,
)
from rungwise.scenes import own_degrees
from rungwise.training import MODEL
from rungwise.training.config import TrainConfig, accepted, with_origins
from rungwise.training.fit import check_fits
from rungwise.training.tracking import TerminalWatcher

if TYPE_CHECKING:
    from rungwise.jobs.studies._study_options import Study

TRIALS = ".trials"
"""Folder of the trials in that of the study; its name keeps them out of tables of the runs in the study's folder."""
_TEST = "test"
_WAITING = "waiting for the search"


class StudyWork:
    """One study: what is planned, and how it is done."""

    def __init__(self, study: StudyConfig, asked: Study, out: Path) -> None:
        self.study, self.asked, self.out = study, asked, out
        self.where = f"{asked.place}: " if asked.place else ""
        self._read: dict[tuple[str, str, str, bool], ImageCaptions] = {}
        self._degrees: dict[tuple[str, int, str], Any] = {}
        self._identities: dict[str, RunIdentity] = {}
        given = asked.data
        self.given = given if isinstance(given, ImageCaptions) else None
        self.path = "" if given is None else str((place_of(given) or "") if self.given is not None else given)
        self.failed: dict[str, str] = {}
        self.stopped = False
        self.record = StudyRecord.read(out)
        self._check()

    # What there is to do.

    def _check(self) -> None:
        """Build every configuration, and refuse what does not fit before anything is trained."""
        mistakes: dict[str, list[str]] = {}
        for arm in self.study.all_arms:
            try:
                for config in self._possible(arm):
                    self._check_run(config)
            except UserError as error:
                said = " ".join(str(error).split()).removeprefix(f"arm {arm.name}: ")
                mistakes.setdefault(said, []).append(arm.name)
        lines = [f"arm{'s' if names[1:] else ''} {', '.join(names)}: {said}" for said, names in mistakes.items()]
        for data in self._read.values() if self.given is None else [self.given]:
            lines += self._unanswerable(data)
        if lines:
            many = f"{len(lines)} mistakes: " if lines[1:] else ""
            raise UserError(f"{self.where}{many}{'; '.join(dict.fromkeys(lines))}")
        if (self.asked.jobs > 1 or self.asked.ray is not None) and self.given is not None and not self.path:
            option = "--jobs" if self.asked.jobs > 1 else "--ray"
            raise UserError(f"{option}: other processes cannot read a collection in memory; name its files as data")
        for data in self._read.values():
            if (place := place_of(data)) is not None and place.resolve() == self.out.resolve():
                raise UserError(f"--out {self.out}: holds the data; name another folder for the study")

    def _check_run(self, config: TrainConfig) -> None:
        """Refuse a run whose data or files do not fit its configuration."""
        data = self.data_of(config)
        check_fits(config, data)
        accepted(config)
        with_share(self.split_data(config), config.data.train, config.data.share, config.seed)
        if why := why_untrained(data, config.data.train, config.data.validation):
            raise UserError(f"{data.name}: {why}")
        self._identity(config)

    def _unanswerable(self, data: ImageCaptions) -> list[str]:
        """A line for each question of the evaluation that could not be answered after all the training."""
        split = with_splits(data)
        if self.study.test == "none" or _TEST not in split.splits:
            return []
        test, found = split.split(_TEST), []
        for number, question in enumerate(self.study.evaluation, 1):
            try:
                protocol_named(question.protocol).folds(test.image_of_caption, len(test))
                if question.relevance and names_source(question.relevance):
                    source_config(question.relevance)
                elif question.relevance and not Path(question.relevance).exists():
                    raise UserError(f"relevance: {question.relevance} is neither a source nor a folder; correct it")
                graded = [one for one in parse_all(question.measures) if isinstance(one, Measure) and one.graded]
                if graded and not question.relevance and own_degrees(place_of(data), test) is None:
                    raise UserError(f"{graded[0]} needs degrees of relevance; name a source or a folder as relevance")
                for place in question.positives:
                    require_there(Path(place))
            except UserError as error:
                found.append(f"evaluation, question {number}: {' '.join(str(error).split())}")
        return found

    def _possible(self, arm: StudyArm) -> Iterator[TrainConfig]:
        """All configurations that runs of an arm may get."""
        trials = trials_of(self.study, arm)
        for trial in trials:
            yield self._trial_config(arm, trial)
        for point in self.study.points():
            for values in [trial.values for trial in trials] or [{}]:
                yield self._config(arm, point, values)

    def _config(self, arm: StudyArm, *changes: Mapping[str, Any]) -> TrainConfig:
        config = self.study.config_of(arm, *changes, dataset=self._dataset())
        path = self.path or config.data.path
        if not path and self.given is None:
            raise UserError("no data: name a folder or a caption file as data in the file, or by --data")
        modules = tuple(dict.fromkeys((*config.modules, *named_modules())))
        return with_origins(replace(config, data=replace(config.data, path=path), modules=modules))

    def _trial_config(self, arm: StudyArm, trial: StudyTrial) -> TrainConfig:
        assert self.study.search is not None
        return replace(self._config(arm, self.study.search.fixed, trial.values), seed=self.study.search.seed)

    def _dataset(self) -> str:
        """Dataset by which a short name of a preset is completed."""
        if self.given is not None:
            return dataset_of(self.given)
        path = self.path or self.study.data
        return dataset_of(self._collection((path, "", "dot", False))) if path else ""

    def _collection(self, key: tuple[str, str, str, bool]) -> ImageCaptions:
        if key not in self._read:
            path, layout, member_key, join = key
            data = read(path, layout=layout or None, key=member_key, join_restval=join)  # type: ignore[arg-type]
            say_issues(data.issues)
            self._read[key] = data
        return self._read[key]

    def data_of(self, config: TrainConfig) -> ImageCaptions:
        """The collection of a configuration as it lies there."""
        of = config.data
        return self.given or self._collection((of.path, of.layout, of.key, of.join_restval))

    def split_data(self, config: TrainConfig) -> ImageCaptions:
        """The collection of a configuration, with the splits that its runs see."""
        return trained_data(self.data_of(config), config)

    def _identity(self, config: TrainConfig) -> RunIdentity:
        """What a run depends on; files that settings name are hashed once."""
        name = digest_of_json(to_plain(replace(config, seed=0)))
        if name not in self._identities:
            self._identities[name] = identity_of_run(config, data_hash_of(self.split_data(config)))
        found = self._identities[name]
        return replace(found, settings={**found.settings, "seed": config.seed})

    def trial_runs(self, arm: StudyArm) -> list[PlannedRun]:
        """The trials of an arm as runs."""
        found = []
        for trial in trials_of(self.study, arm):
            config = self._trial_config(arm, trial)
            folder = self.out / TRIALS / arm.name / f"trial-{trial.number}"
            found.append(PlannedRun(arm.name, config, folder, self._identity(config)))
        return found

    def system_runs(self, system: StudySystem, chosen: Mapping[str, Any]) -> list[PlannedRun]:
        """The runs of a system, one for each seed, with the settings that a search chose."""
        found = []
        for seed in self.study.seeds:
            config = replace(self._config(system.arm, system.point, chosen), seed=seed)
            folder = self.out / system.name / f"seed-{seed}"
            found.append(PlannedRun(system.name, config, folder, self._identity(config)))
        return found

    # What is done.

    def planned(self) -> StudyOutcome:
        """How far everything is; nothing is written."""
        trials = [run for arm in self.study.all_arms for run in self.trial_runs(arm)]
        runs, waiting = list(trials), []
        for system in self.study.systems():
            chosen = self._known_choice(system.arm)
            if chosen is None:
                waiting += [f"{system.name}/seed-{seed}" for seed in self.study.seeds]
            else:
                runs += self.system_runs(system, chosen)
        return self._outcome(runs, waiting)

    def refuse_others(self) -> None:
        """Refuse a folder with a run or files that are of no study."""
        if is_run_folder(self.out):
            raise UserError(f"{self.out}: holds a run; name another folder for the study")
        if not is_regular(self.out / STUDY_RECORD):
            for name in TABLES:
                if (self.out / name).exists():
                    raise UserError(
                        f"{self.out / name}: is of no study that stands here, and would be overwritten; name another"
                        " folder"
                    )

    def go(self) -> StudyOutcome:
        """Do all that is missing."""
        chosen_device(self.asked.device)
        trials = [run for arm in self.study.all_arms for run in self.trial_runs(arm)]
        known = [
            run
            for system in self.study.systems()
            if (chosen := self._known_choice(system.arm)) is not None
            for run in self.system_runs(system, chosen)
        ]
        for run in (*trials, *known):  # whatever stands in the way is said before anything is trained
            run.state(again=self.asked.again)
        for config in {digest_of_json(to_plain(run.config.model)): run.config for run in (*trials, *known)}.values():
            if self.data_of(config).features is None:
                fetch_weights(config)
        self.record.write(self.out)
        self._train(trials)
        if self.stopped:
            return self._outcome(trials, [])
        choices = {arm.name: self._choose(arm) for arm in self.study.all_arms}
        systems: dict[str, list[PlannedRun]] = {}
        for system in self.study.systems():
            values = choices[system.arm.name]
            if values is None:
                for seed in self.study.seeds:
                    self.failed[f"{system.name}/seed-{seed}"] = (
                        f"a trial of {system.arm.name} failed, so that none is chosen"
                    )
            else:
                systems[system.name] = self.system_runs(system, values)
        runs = [run for own in systems.values() for run in own]
        notes = self._same_systems(systems)
        for note in notes:
            say(note)
        self._train(runs)
        if self.stopped or self.failed:
            if self.failed and self.study.test != "none":
                notes.append("the test split stays closed until every run is finished")
            whole = {name: own for name, own in systems.items() if all(self._is_done(run) for run in own)}
            return self._measured([*trials, *runs], whole, notes, opens=False)
        return self._measured([*trials, *runs], systems, notes, opens=self.study.test != "none")

    def _train(self, runs: Sequence[PlannedRun]) -> None:
        """Train what is missing of some runs."""
        missing = []
        for run in runs:
            if run.state(again=self.asked.again).word != "done":
                if self.asked.again:
                    remove_run(run)
                missing.append(run)
        if not missing:
            return
        tasks = [
            RunTask(
                run.name, run.config, run.folder, run.identity, self.asked.cache, self.asked.device, named_modules()
            )
            for run in missing
        ]
        of = {task.name: run for task, run in zip(tasks, missing, strict=True)}
        with closing(self._tasks(tasks, of)) as ends:
            for task, failure in ends:
                self._ended(task, failure)

    def _tasks(self, tasks: Sequence[RunTask], of: Mapping[str, PlannedRun]) -> Any:
        if self.asked.ray is not None:
            return tasks_on_ray(tasks, self.asked.ray, 1)
        if self.asked.jobs > 1:
            return tasks_in_processes(tasks, self.asked.jobs, _say_of)
        return tasks_in_turn(
            tasks, lambda task: self.split_data(of[task.name].config), _say_of, TerminalWatcher(console)
        )

    def _ended(self, task: RunTask, failure: RunFailure | None) -> None:
        if failure is None:
            say(f"{task.name}: done")
        elif failure.stopped:
            self.stopped = True
            say(f"{task.name}: {failure.reason}")
        else:
            self.failed[task.name] = failure.reason
            say(f"{task.name}: failed: {failure.reason}")

    def _is_done(self, run: PlannedRun) -> bool:
        return run.state(again=self.asked.again).word == "done"

    # The choice, by the validation split alone.

    def _known_choice(self, arm: StudyArm) -> Mapping[str, Any] | None:
        """Settings that are chosen for an arm already; None where trials are missing."""
        runs = self.trial_runs(arm)
        if not runs:
            return {}
        kept = self.record.searches.get(arm.name)
        if kept is None or [one.key for one in kept.trials] != [run.identity.key for run in runs]:
            return None
        return kept.values if kept.measure == self._chooses().choice.name else None

    def _chooses(self) -> Any:
        assert self.study.search is not None
        return self.study.search

    def _choose(self, arm: StudyArm) -> Mapping[str, Any] | None:
        """The settings that the validation split chooses for an arm; None where a trial failed."""
        runs, trials = self.trial_runs(arm), trials_of(self.study, arm)
        if not runs:
            return {}
        if not all(self._is_done(run) for run in runs):
            return None
        search = self._chooses()
        results = [self._answer(run, search.question, run.config.data.validation) for run in runs]
        values = [search.choice.chosen.number(result.numbers) for result in results]
        best = best_trial(search, values)
        tried = tuple(
            TriedSettings(trial.values, value, run.identity.key)
            for trial, value, run in zip(trials, values, runs, strict=True)
        )
        found = ChosenTrial(
            search.choice.name, search.trials or len(trials), tried, best + 1, runs[best].config.data.validation
        )
        self.record = replace(self.record, searches={**self.record.searches, arm.name: found})
        self.record.write(self.out)
        settings = ", ".join(f"{name} {value}" for name, value in found.values.items())
        say(
            f"{arm.name}: trial {found.chosen} of {len(tried)} is chosen by {found.measure} on the {found.split} split:"
            f" {settings}"
        )
        return found.values

    def _winner(self, systems: Mapping[str, Sequence[PlannedRun]]) -> str:
        """The system with the best mean over seeds on the validation split."""
        search = self.study.search
        measure = str(self._chosen_measure().measure)
        question = StudyQuestion(measures=(measure,)) if search is None else search.question
        means = {}
        for name, runs in systems.items():
            results = [self._answer(run, question, run.config.data.validation) for run in runs]
            values = [self._chosen_measure().number(result.numbers) for result in results]
            means[name] = sum(values) / len(values)
        best: str = ""
        for name, value in means.items():
            if not best or self._chosen_measure().better(value, means[best]):
                best = name
        return best

    def _chosen_measure(self) -> Any:
        from rungwise.training.config import Choice

        search = self.study.search
        return Choice(self.study.primary).chosen if search is None else search.choice.chosen

    # What is measured.

    def _answer(self, run: PlannedRun, question: StudyQuestion, split: str) -> Result:
        """The answer of a run's model to a question; one that is kept is not asked again."""
        record = StudyRun.read(run.folder)
        if record is None:  # somebody took it away meanwhile
            raise UserError(f"{run.folder}: its {RUN_RECORD} is gone; give the command again")
        asked = digest_of_json([split, to_plain(question)])
        place = record.answers.get(asked)
        if place is not None and is_regular(run.folder / place):
            return Result.from_json(run.folder / place)
        data = self.split_data(run.config)
        result = evaluate(
            str(run.folder / MODEL),
            data,
            split=split,
            protocol=question.protocol,
            measures=question.measures,
            relevance=self._relevance(question, data, split),
            positives=question.positives,
            cache=self.asked.cache,
            device=self.asked.device,
            quiet=True,
        )
        path = keep_result(run.folder, result)
        answers = {**record.answers, asked: path.relative_to(run.folder).as_posix()}
        replace(record, answers=answers).write(run.folder)
        return result

    def _relevance(self, question: StudyQuestion, data: ImageCaptions, split: str) -> Any:
        if not question.relevance:
            return None
        if not names_source(question.relevance):
            return question.relevance
        key = (question.relevance, id(self.given or data.source), split)
        if key not in self._degrees:
            self._degrees[key] = degrees(source_config(question.relevance), data, split=split, quiet=True)
        return self._degrees[key]

    def _measured(
        self,
        runs: Sequence[PlannedRun],
        systems: Mapping[str, Sequence[PlannedRun]],
        notes: list[str],
        *,
        opens: bool,
    ) -> StudyOutcome:
        """Measure systems on the test split, or on validation where that stays closed, and write the tables."""
        winner = self._winner(systems) if self.study.test == "winner" and opens else ""
        asked = {winner: systems[winner]} if winner else dict(systems)
        without = [
            name for name, own in asked.items() if any(_TEST not in self.split_data(run.config).splits for run in own)
        ]
        if opens and without:
            notes.append("no test split in the data: nothing was tested")
        opens = opens and not without
        results = {name: [self._results(run, opens) for run in own] for name, own in self._opened(asked, opens).items()}
        compared = self._of_one_kind(asked, notes)
        notes += self._of_versions(asked)
        notes += opened_for_others(self.record)
        if len({one.data_hash for own in results.values() for run in own for one in run}) > 1:
            notes.append("systems were measured on different pictures or captions: their numbers do not compare")
        split = _TEST if opens else "validation"
        of_kind = {name: results[name] for name in compared}
        seeds = len(self.study.seeds)
        title = ", ".join(filter(None, (self.study.about, f"{split} split", f"{seeds} seed{'s' * (seeds > 1)}")))
        table = study_table(of_kind, title, notes)
        if table is not None:
            settings = [name for name, values in self.study.grid.items() if len(values) > 1]
            curves, missing = write_curves(self.out, asked, of_kind, settings)
            notes += [missing] if missing else []
            say(f"written: {', '.join(map(str, (*write_table(self.out, table), *curves)))}")
        return self._outcome(list(runs), [], table, split, winner, notes)

    def _results(self, run: PlannedRun, opens: bool) -> list[Result]:
        if opens:
            return [self._answer(run, one, _TEST) for one in self.study.evaluation]
        plain = StudyQuestion()
        return [self._answer(run, plain, run.config.data.validation)]

    def _opened(self, systems: Mapping[str, Sequence[PlannedRun]], opens: bool) -> Mapping[str, Sequence[PlannedRun]]:
        """The systems; that the test split is opened for them is written down before it is."""
        if opens:
            settings = {
                name: {key: value for key, value in own[0].identity.settings.items() if key != "seed"}
                for name, own in systems.items()
            }
            opening = Opening(time.strftime("%Y-%m-%d", time.gmtime()), self.study.seeds, settings)
            self.record = self.record.opened(opening)
            self.record.write(self.out)
        return systems

    def _of_one_kind(self, systems: Mapping[str, Sequence[PlannedRun]], notes: list[str]) -> list[str]:
        """The systems whose runs are on machines of one kind; the others are noted."""
        machines = {
            run.name: record.machines
            for own in systems.values()
            for run in own
            if (record := StudyRun.read(run.folder)) is not None
        }
        native, others = one_kind(machines)
        kept = [name for name, own in systems.items() if not any(run.name in others for run in own)]
        if others:
            left = [name for name in systems if name not in kept]
            notes.append(
                f"not compared: runs of machines {'without' if native else 'with'} bfloat16 beside those of machines"
                f" {'with' if native else 'without'}: {', '.join(f'{name} ({machines[name][-1]})' for name in others)};"
                f" left out: {', '.join(left)}"
            )
        return kept

    def _of_versions(self, systems: Mapping[str, Sequence[PlannedRun]]) -> list[str]:
        records = [StudyRun.read(run.folder) for own in systems.values() for run in own]
        versions = sorted({one.version for one in records if one is not None})
        return [f"runs were trained by several versions of rungwise: {', '.join(versions)}"] if versions[1:] else []

    def _same_systems(self, systems: Mapping[str, Sequence[PlannedRun]]) -> list[str]:
        """A line for each group of systems that are the same."""
        groups: dict[str, list[str]] = {}
        for name, own in systems.items():
            groups.setdefault(own[0].identity.system, []).append(name)
        return [
            f"{' and '.join(names)} have the same settings: they are one system"
            for names in groups.values()
            if names[1:]
        ]

    def _outcome(
        self,
        runs: Sequence[PlannedRun],
        waiting: Sequence[str],
        table: ResultTable | None = None,
        split: str = "",
        winner: str = "",
        notes: Sequence[str] = (),
    ) -> StudyOutcome:
        states: list[StudyRunState] = [run.state(again=self.asked.again) for run in runs]
        seconds, untimed = remaining_seconds(runs, states)
        shown = [
            StudiedRun(
                run.name, run.folder, "failed" if run.name in self.failed else state.word, state.epoch, run.epochs
            )
            for run, state in zip(runs, states, strict=True)
        ]
        shown += [StudiedRun(name, None, _WAITING, 0, 0) for name in waiting]
        known = {one.name for one in shown}
        shown += [StudiedRun(name, None, "failed", 0, 0) for name in self.failed if name not in known]
        return StudyOutcome(
            self.out,
            tuple(shown),
            table,
            split if table is not None else "",
            self.study.primary,
            dict(self.record.searches),
            winner,
            dict(self.failed),
            tuple(notes),
            self.stopped,
            seconds,
            untimed + len(waiting),
        )


def _say_of(name: str, line: str) -> None:
    say(f"{name}: {line}")
