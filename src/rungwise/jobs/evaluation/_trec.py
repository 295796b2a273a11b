"""What an evaluation writes for other programs: runs, qrels and degrees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rungwise.core import UserError
from rungwise.evaluation import (
    DEPTH,
    EvaluationSettings,
    galleries,
    protocol_named,
    write_degrees,
    write_levels,
    write_qrels,
    write_run,
)
from rungwise.evaluation.inputs import DEGREE_ENDINGS, checked_degrees
from rungwise.jobs._terminal import say
from rungwise.jobs.evaluation._inputs import ScoredInputs
from rungwise.jobs.evaluation._options import Evaluate


def refuse_trec_options(asked: Evaluate) -> None:
    """Refuse early what could not be written."""
    if asked.depth is not None and asked.depth < 1:
        raise UserError(f"--depth must be at least 1, got {asked.depth}")
    if asked.levels is not None and asked.levels < 1:
        raise UserError(f"--levels must be at least 1, got {asked.levels}")
    if asked.write_run is not None and asked.write_run == asked.write_qrels:
        raise UserError(f"--write-run and --write-qrels are both {asked.write_run}; give each a name of its own")
    if asked.write_degrees is not None and asked.write_degrees.suffix.lower() not in DEGREE_ENDINGS:
        raise UserError(
            f"--write-degrees {asked.write_degrees}: --relevance knows such a table by its ending; end the name with"
            f" {DEGREE_ENDINGS[0]}"
        )


def write_trec_files(asked: Evaluate, scored: ScoredInputs, settings: EvaluationSettings) -> None:
    """Write the runs, qrels and degrees that the options name, and say of each what it holds."""
    if asked.write_run is None and asked.write_qrels is None and asked.write_degrees is None:
        return
    data, shape = scored.data, (len(scored.data), len(scored.data.captions))
    ids, owners = (data.image_ids, data.caption_ids), data.image_of_caption
    ranked = list(
        galleries(scored.similarity, owners, protocol_named(asked.protocol).folds(owners, shape[0]), settings)
    )
    if asked.write_run is not None:
        depth = DEPTH if asked.depth is None else asked.depth
        files = write_run(asked.write_run, ranked, ids, depth)
        say(f"written: {_named(files)} (at most {depth:,} candidates a query)")
    degrees = checked_degrees(scored.relevance, shape, gaps=True)
    if asked.write_qrels is not None and asked.levels is not None and degrees is not None:
        files, largest = write_levels(asked.write_qrels, ranked, ids, degrees, asked.levels)
        say(
            f"written: {_named(files)} (the whole number nearest to {asked.levels} x degree / {largest:g}, the largest"
            " degree; pairs with 0 are left out)"
        )
    elif asked.write_qrels is not None:
        files = write_qrels(asked.write_qrels, ranked, ids)
        beside = "" if degrees is None else "; --levels N writes the degrees instead"
        say(f"written: {_named(files)} (right answers as 1{beside})")
    degrees = checked_degrees(scored.relevance, shape)
    if asked.write_degrees is not None and degrees is not None:
        pairs = write_degrees(asked.write_degrees, degrees, shape, ids)
        say(f"written: {asked.write_degrees} ({pairs:,} pairs with a degree other than 0)")


def _named(files: Sequence[Path]) -> str:
    return " and ".join(map(str, files))
