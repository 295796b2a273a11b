"""Results of a run: evaluations of its model, kept in the folder of the run.

``RUN/results/`` holds a file for each question: protocol, split, data, degrees and measures. An evaluation of the same
question replaces the earlier one. A file names its model by hash; where the run has another model by now, the file is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rungwise.core import UserError, digest_of_json, is_regular
from rungwise.evaluation import Result
from rungwise.models.io import CONFIG as MODEL_CONFIG
from rungwise.training import CONFIG, MODEL

RESULTS = "results"
"""Folder of the results in the folder of a run."""


def is_run_folder(folder: Path) -> bool:
    """Whether a folder holds a run with a model, for ``rungwise evaluate`` and ``rungwise table``."""
    return is_regular(folder / CONFIG) and is_regular(folder / MODEL / MODEL_CONFIG)


def keep_result(run: Path, result: Result) -> Path:
    """Write a result of a run's model, with its split and model hash, into the folder of the run; returns the file.

    Its values per query are written too.

    Raises:
        UserError: If the result does not name its model, or cannot be written.
    """
    if not result.model_hash:
        raise UserError(f"{run}: a result without the hash of its model cannot be kept in a run; evaluate the run")
    path = run / RESULTS / f"{_word(result.protocol)}-{_word(result.split or 'all')}-{_question(result)}.json"
    result.to_json(path)
    return path


@dataclass(frozen=True)
class KeptResult:
    """A result in the folder of a run, and its file."""

    path: Path
    result: Result


def kept_results(run: Path) -> tuple[KeptResult, ...]:
    """The results of a run, by file name.

    Raises:
        UserError: If a file is damaged, or is the result of another model than the run has now.
    """
    found = tuple(KeptResult(path, Result.from_json(path)) for path in sorted((run / RESULTS).glob("*.json")))
    if found:
        _check_model(run, found)
    return found


def _check_model(run: Path, found: Sequence[KeptResult]) -> None:
    from rungwise.models import load  # brings torch along, which a run without results does not need

    fingerprint = load(run / MODEL, "cpu").fingerprint
    for one in found:
        if one.result.model_hash != fingerprint:
            raise UserError(
                f"{one.path}: is the result of another model ({one.result.model_hash[:12] or 'it does not say which'})"
                f" than {run / MODEL} ({fingerprint[:12]}); evaluate the run again, and remove this file"
            )


def _question(result: Result) -> str:
    """Eight digits that depend on data, degrees, right answers and measures."""
    asked = [result.data_hash, result.relevance, result.right, result.ends, sorted(result.numbers)]
    return digest_of_json(asked)[:8]


def _word(name: str) -> str:
    """A name in the form of a part of a file name."""
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[:60]
