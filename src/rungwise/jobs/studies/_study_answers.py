"""What the models of a study answer, and which system is the best on validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rungwise.core import UserError, digest_of_json, is_regular, to_plain
from rungwise.data import ImageCaptions
from rungwise.evaluation import Result
from rungwise.jobs.evaluation import evaluate
from rungwise.jobs.sources import degrees
from rungwise.jobs.studies._all_runs import TEST, AllRuns
from rungwise.relevance.config import names_source, source_config
from rungwise.runs import keep_result
from rungwise.runs.study import RUN_RECORD, PlannedRun, StudyConfig, StudyQuestion, StudyRun
from rungwise.training import MODEL
from rungwise.training.config import Choice


class StudyAnswers:
    """Answers of the models, each asked for once and kept in the folder of its run.

    Args:
        study: The study.
        runs: Its runs, with their data.
        cache: Folder of the cache.
        device: Device that evaluates; None takes the best.
    """

    def __init__(self, study: StudyConfig, runs: AllRuns, cache: Path | None, device: str | None) -> None:
        self._study, self._runs, self._cache, self._device = study, runs, cache, device
        self._degrees: dict[tuple[str, int, str], Any] = {}

    def of(self, run: PlannedRun, question: StudyQuestion, split: str) -> Result:
        """The answer of a run's model to a question; one that is kept is not asked again.

        Raises:
            UserError: If results alone are kept of the run, and this one is not among them.
        """
        asked = digest_of_json([split, to_plain(question)])
        if (finished := run.finished()) is not None:
            if asked not in finished.measured:
                raise UserError(
                    f"{run.file}: has no answer to {_in_words(question, split)}, and its model was not kept; remove the"
                    " file, and the study makes the run again"
                )
            return finished.measured[asked]
        record = StudyRun.read(run.folder)
        if record is None:  # somebody took it away meanwhile
            raise UserError(f"{run.folder}: its {RUN_RECORD} is gone; give the command again")
        place = record.answers.get(asked)
        if place is not None and is_regular(run.folder / place):
            return Result.from_json(run.folder / place)
        data = self._runs.split_data(run.config)
        result = evaluate(
            str(run.folder / MODEL),
            data,
            split=split,
            protocol=question.protocol,
            measures=question.measures,
            relevance=self._relevance(question, data, split),
            positives=question.positives,
            cache=self._cache,
            device=self._device,
            quiet=True,
        )
        assert isinstance(result, Result)  # a benchmark is no data of a run
        path = keep_result(run.folder, result)
        answers = {**record.answers, asked: path.relative_to(run.folder).as_posix()}
        replace(record, answers=answers).write(run.folder)
        return result

    def of_evaluation(self, run: PlannedRun, opens: bool) -> list[Result]:
        """The answers to what the study asks; as long as the test split stays closed, the usual ones on validation."""
        if opens or not self._study.opens_test:
            split = TEST if opens else run.config.data.validation
            return [self.of(run, one, split) for one in self._study.evaluation]
        return [self.of(run, StudyQuestion(), run.config.data.validation)]

    def winner(self, systems: Mapping[str, Sequence[PlannedRun]]) -> str:
        """The system with the best mean over seeds on the validation split."""
        search = self._study.search
        choice = Choice(self._study.primary) if search is None else search.choice
        measure = choice.chosen
        question = StudyQuestion(measures=(str(measure.measure),)) if search is None else search.question
        best, most = "", 0.0
        for name, runs in systems.items():
            values = [measure.number(self.of(run, question, run.config.data.validation).numbers) for run in runs]
            mean = sum(values) / len(values)
            if not best or measure.better(mean, most):
                best, most = name, mean
        return best

    def _relevance(self, question: StudyQuestion, data: ImageCaptions, split: str) -> Any:
        if not question.relevance:
            return None
        if not names_source(question.relevance):
            return question.relevance
        key = (question.relevance, id(self._runs.given or data.source), split)
        if key not in self._degrees:
            self._degrees[key] = degrees(source_config(question.relevance), data, split=split, quiet=True)
        return self._degrees[key]


def _in_words(question: StudyQuestion, split: str) -> str:
    asked = ", ".join(question.measures) or "the usual measures"
    by = f" by {question.relevance}" if question.relevance else ""
    return f"{asked}{by} of the {split} split"
