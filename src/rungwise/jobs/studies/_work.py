"""The work of a study, in its order: check all, trials, the choice on validation, the arms, the test split, tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, digest_of_json, is_regular, to_plain
from rungwise.evaluation.tables import ResultTable
from rungwise.jobs._terminal import chosen_device, console, say
from rungwise.jobs.studies._all_runs import TEST, AllRuns
from rungwise.jobs.studies._outcome import StudiedRun, StudyOutcome
from rungwise.jobs.studies._study_answers import StudyAnswers
from rungwise.jobs.studies._study_files import TABLES, study_table, write_curves, write_table
from rungwise.jobs.training import fetch_weights
from rungwise.parts import named_modules
from rungwise.runs import is_run_folder
from rungwise.runs.study import (
    STUDY_RECORD,
    ChosenTrial,
    JudgedClaim,
    Opening,
    PlannedRun,
    RunFailure,
    RunTask,
    StudyArm,
    StudyConfig,
    StudyRecord,
    StudyRunState,
    TriedSettings,
    best_trial,
    judged_claims,
    keep_as_file,
    one_kind,
    opened_for_others,
    remaining_seconds,
    remove_run,
    tasks_in_processes,
    tasks_in_turn,
    tasks_on_ray,
    trials_of,
)
from rungwise.training.tracking import TerminalWatcher

if TYPE_CHECKING:
    from rungwise.jobs.studies._study_options import Study

_WAITING = "waiting for the search"


class StudyWork:
    """One study: what is planned, and how it is done."""

    def __init__(self, study: StudyConfig, asked: Study, out: Path) -> None:
        self.study, self.asked, self.out = study, asked, out
        self.failed: dict[str, str] = {}
        self.stopped = False
        self.record = StudyRecord.read(out)
        self._runs = AllRuns(study, asked, out)
        self._answers = StudyAnswers(study, self._runs, asked.cache, asked.device)

    def planned(self) -> StudyOutcome:
        """How far everything is; nothing is written."""
        trials = self._trials()
        waiting: list[str] = []
        systems: dict[str, list[PlannedRun]] = {}
        for system in self.study.systems():
            chosen = self._known_choice(system.arm)
            if chosen is None:
                waiting += [f"{system.name}/seed-{seed}" for seed in self.study.seeds]
            else:
                systems[system.name] = self._runs.system_runs(system, chosen)
        runs = [*trials, *(run for own in systems.values() for run in own)]
        return self._outcome(runs, waiting, notes=[*self._runs.remarks(), *self._same_systems(systems)])

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
        trials = self._trials()
        known = [
            run
            for system in self.study.systems()
            if (chosen := self._known_choice(system.arm)) is not None
            for run in self._runs.system_runs(system, chosen)
        ]
        for run in (*trials, *known):  # whatever stands in the way is said before anything is trained
            run.state(again=self.asked.again)
        for config in {digest_of_json(to_plain(run.config.model)): run.config for run in (*trials, *known)}.values():
            if self._runs.data_of(config).features is None:
                fetch_weights(config)
        self.record.write(self.out)
        self._train(trials, self._keep_trial)
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
                systems[system.name] = self._runs.system_runs(system, values)
        runs = [run for own in systems.values() for run in own]
        notes = self._same_systems(systems)
        for note in notes:
            say(note)
        at_once = self._measures_at_once(systems)
        opens = self.study.opens_test
        if at_once and opens:
            self._write_down_opening(systems)
        self._train(runs, self._keep_measured if at_once else None)
        whole = {name: own for name, own in systems.items() if all(self._is_done(run) for run in own)}
        if self.stopped or self.failed:
            if self.failed and opens and not at_once:
                notes.append("the test split stays closed until every run is finished")
            return self._measured([*trials, *runs], whole, notes, opens=opens and at_once)
        return self._measured([*trials, *runs], systems, notes, opens=opens)

    def _trials(self) -> list[PlannedRun]:
        """The trials of all arms; where results alone are kept, those of arms whose choice is not written down yet."""
        return [
            run for arm in self.study.all_arms if self._kept_choice(arm) is None for run in self._runs.trial_runs(arm)
        ]

    def _measures_at_once(self, systems: Mapping[str, Sequence[PlannedRun]]) -> bool:
        """Whether each run is measured as it ends, because its model is not kept and no winner is to be chosen."""
        if self.study.keep != "results" or self.study.test == "winner":
            return False
        return not self.study.opens_test or not self._without_test(systems)

    def _without_test(self, systems: Mapping[str, Sequence[PlannedRun]]) -> list[str]:
        """The systems whose data have no test split."""
        return [
            name
            for name, own in systems.items()
            if any(TEST not in self._runs.split_data(run.config).splits for run in own)
        ]

    def _keep_trial(self, run: PlannedRun) -> None:
        if self.study.keep == "results":
            self._answers.of(run, self._chooses().question, run.config.data.validation)
            keep_as_file(run)

    def _keep_measured(self, run: PlannedRun) -> None:
        self._answers.of_evaluation(run, opens=self.study.opens_test)
        keep_as_file(run)

    def _train(self, runs: Sequence[PlannedRun], ended: Callable[[PlannedRun], None] | None = None) -> None:
        """Train what is missing of some runs; ``ended`` is called with each one that is done and has its model."""
        missing = []
        for run in runs:
            if run.state(again=self.asked.again).word != "done":
                if self.asked.again:
                    remove_run(run)
                missing.append(run)
            elif ended is not None and run.folder.is_dir():
                ended(run)
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
                if failure is None and ended is not None:
                    ended(of[task.name])

    def _tasks(self, tasks: Sequence[RunTask], of: Mapping[str, PlannedRun]) -> Any:
        if self.asked.ray is not None:
            return tasks_on_ray(tasks, self.asked.ray, 1)
        if self.asked.jobs > 1:
            return tasks_in_processes(tasks, self.asked.jobs, _say_of)
        return tasks_in_turn(
            tasks, lambda task: self._runs.split_data(of[task.name].config), _say_of, TerminalWatcher(console)
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
        runs = self._runs.trial_runs(arm)
        if not runs:
            return {}
        kept = self.record.searches.get(arm.name)
        if kept is None or [one.key for one in kept.trials] != [run.identity.key for run in runs]:
            return None
        return kept.values if kept.measure == self._chooses().choice.name else None

    def _kept_choice(self, arm: StudyArm) -> Mapping[str, Any] | None:
        """The choice that needs no trials any more, since it is written down and results alone are kept."""
        return None if self.study.keep == "runs" or self.asked.again else self._known_choice(arm)

    def _chooses(self) -> Any:
        assert self.study.search is not None
        return self.study.search

    def _choose(self, arm: StudyArm) -> Mapping[str, Any] | None:
        """The settings that the validation split chooses for an arm; None where a trial failed."""
        runs, trials = self._runs.trial_runs(arm), trials_of(self.study, arm)
        if not runs:
            return {}
        if (kept := self._kept_choice(arm)) is not None:
            return kept
        if not all(self._is_done(run) for run in runs):
            return None
        search = self._chooses()
        results = [self._answers.of(run, search.question, run.config.data.validation) for run in runs]
        values = [search.choice.chosen.number(result.numbers) for result in results]
        best = best_trial(search, values)
        tried = tuple(
            TriedSettings(trial.values, value, run.identity.key, run.state(again=self.asked.again).seconds)
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

    # What is measured.

    def _measured(
        self,
        runs: Sequence[PlannedRun],
        systems: Mapping[str, Sequence[PlannedRun]],
        notes: list[str],
        *,
        opens: bool,
    ) -> StudyOutcome:
        """Measure systems on the test split, or on validation where that stays closed, and write the tables."""
        winner = self._answers.winner(systems) if self.study.test == "winner" and opens else ""
        asked = {winner: systems[winner]} if winner else dict(systems)
        without = self._without_test(asked)
        if opens and without:
            notes.append("no test split in the data: nothing was tested")
        opens = opens and not without
        if opens and not (self.stopped or self.failed):  # else it was written down before the runs, for all systems
            self._write_down_opening(asked)
        results = {name: [self._answers.of_evaluation(run, opens) for run in own] for name, own in asked.items()}
        if self.study.keep == "results" and not (self.stopped or self.failed):
            for run in (run for own in systems.values() for run in own if run.folder.is_dir()):
                keep_as_file(run)
        compared = self._of_one_kind(asked, notes)
        notes += self._of_versions(asked)
        notes += opened_for_others(self.record)
        if len({one.data_hash for own in results.values() for run in own for one in run}) > 1:
            notes.append("systems were measured on different pictures or captions: their numbers do not compare")
        split = TEST if opens else "validation"
        of_kind = {name: results[name] for name in compared}
        seeds = len(self.study.seeds)
        title = ", ".join(filter(None, (self.study.about, f"{split} split", f"{seeds} seed{'s' * (seeds > 1)}")))
        table = study_table(of_kind, title, notes)
        if table is not None:
            settings = [name for name, values in self.study.grid.items() if len(values) > 1]
            curves, missing = write_curves(self.out, asked, of_kind, settings)
            notes += [missing] if missing else []
            say(f"written: {', '.join(map(str, (*write_table(self.out, table), *curves)))}")
        claims = judged_claims(self.study.claims, of_kind) if opens else ()
        return self._outcome(list(runs), [], table, split, winner, notes, claims)

    def _write_down_opening(self, systems: Mapping[str, Sequence[PlannedRun]]) -> None:
        """Write down for which systems the test split is opened, before it is."""
        settings = {
            name: {key: value for key, value in own[0].identity.settings.items() if key != "seed"}
            for name, own in systems.items()
        }
        opening = Opening(time.strftime("%Y-%m-%d", time.gmtime()), self.study.seeds, settings)
        self.record = self.record.opened(opening)
        self.record.write(self.out)

    def _of_one_kind(self, systems: Mapping[str, Sequence[PlannedRun]], notes: list[str]) -> list[str]:
        """The systems whose runs are on machines of one kind; the others are noted."""
        machines = {
            run.name: record.machines for own in systems.values() for run in own if (record := run.record()) is not None
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
        records = [run.record() for own in systems.values() for run in own]
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
        claims: tuple[JudgedClaim, ...] = (),
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
            claims,
        )


def _say_of(name: str, line: str) -> None:
    say(f"{name}: {line}")
