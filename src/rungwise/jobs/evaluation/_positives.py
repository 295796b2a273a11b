"""What counts as right in an evaluation: human judgements, the published files of positives, or both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rungwise.core import UserError, user_path
from rungwise.evaluation import (
    HumanPositives,
    positives_from_json,
    positives_from_labels,
    protocol_named,
    read_human_positives,
)
from rungwise.evaluation.judgements import RightAnswers
from rungwise.jobs._terminal import say_issues
from rungwise.jobs.evaluation._inputs import ScoredInputs
from rungwise.jobs.evaluation._options import Evaluate

_TWO = "IMAGE_TO_CAPTION.json CAPTION_TO_IMAGE.json"


def _files(asked: Evaluate) -> tuple[Path, ...]:
    """The files of --positives; none where Python gave the positives themselves."""
    return asked.positives if isinstance(asked.positives, tuple) else ()


def refuse_beside_people(asked: Evaluate, people: Sequence[Path]) -> None:
    """Refuse early the options that do not go with human judgements."""
    if not people:
        return
    if asked.data is None:
        raise UserError("--positives names ids; give DATA, whose ids they are")
    for option, given, why in (
        ("--paper", bool(asked.paper), "printed rows count the annotation alone"),
        ("--card", asked.card, "cards of models are compared, and count the annotation alone"),
    ):
        if given:
            raise UserError(f"{option} and --positives with judgements: {why}; leave one of them out")


def read_people(asked: Evaluate, people: Sequence[Path], scored: ScoredInputs) -> HumanPositives | None:
    """Human positives; None where --positives names no judgements."""
    if isinstance(asked.positives, HumanPositives):
        return asked.positives
    if not people:
        return None
    found = read_human_positives(people, scored.data, asked.right_from)
    say_issues(found.issues)
    return found


def read_positives(asked: Evaluate, people: Sequence[Path], scored: ScoredInputs) -> RightAnswers | None:
    """Right candidates from labels or published files; None where the captions written for a picture are right."""
    if not isinstance(asked.positives, tuple | HumanPositives):
        return asked.positives
    files = [path for path in map(user_path, _files(asked)) if path not in people]
    if files:
        if len(files) != 2:
            raise UserError(f"--positives takes two files: {_TWO}; or judgements that rungwise grade wrote")
        if not scored.has_texts:
            raise UserError("--positives names ids; give DATA, whose ids they are")
        positives, issues = positives_from_json(files[0], files[1], scored.data)
        say_issues(issues)
        return positives
    if asked.protocol == "labels":
        if not scored.data.labels:
            raise UserError(f"{scored.data.name}: has no class labels; give data with a column 'label' or 'labels'")
        return positives_from_labels(scored.data.labels, scored.data.image_of_caption)
    rule = protocol_named(asked.protocol)
    if rule.takes_positives:
        raise UserError(f"protocol {rule.name} needs {rule.right}; give --positives {_TWO}")
    return None
