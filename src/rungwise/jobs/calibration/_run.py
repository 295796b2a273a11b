"""Learning where relevance ends: from captions, columns or grades; kept only where nothing loses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import (
    FEWEST_QUERIES,
    NOTHING,
    Calibration,
    CalibrationComparison,
    TrainingQueries,
    compared,
)
from rungwise.core import UserError, is_regular
from rungwise.core.disk import require_writable_file, usable_cache
from rungwise.core.output import printable, short_repr
from rungwise.core.text import evenly_spread, refuse_idle
from rungwise.data import ImageCaptions
from rungwise.encoders.pretrained import ModelSource
from rungwise.evaluation.inputs import checked_degrees, read_relevance, similarity_source, split_key
from rungwise.index import Index, Searcher
from rungwise.index.layout import manifest
from rungwise.jobs._job import function_of
from rungwise.jobs._models import model_of, read_dual_encoder, read_model_of
from rungwise.jobs._terminal import console, flag, say, say_issues
from rungwise.jobs.calibration._options import Calibrate, of_grades
from rungwise.jobs.calibration._reach import say_out_of_reach
from rungwise.jobs.calibration._render import render_comparison, render_kept, render_queries, unlearnable, verdict
from rungwise.jobs.evaluation import ScoredInputs, read_part, scored_by
from rungwise.models.io import CALIBRATION, CONFIG
from rungwise.quality.typed_queries import (
    GivenQuery,
    TextedPictures,
    caption_queries,
    read_queries,
    training_queries,
)
from rungwise.relevance import Degrees
from rungwise.relevance.description.describe import relevant_from

_OF_LABELS = "labels"
"""Source of degrees for a model that was chosen by labels."""
_MOST_ASKED = 500
"""Largest number of queries that people asked of a server, the most asked first."""
_MOST_PAIRS = 100_000_000
"""Largest number of pairs of queries and pictures: 1.6 GB with all that is known of them."""


@dataclass(frozen=True)
class LearntCalibration:
    """What came of a calibration.

    Attributes:
        calibration: What was learnt, or is kept; None where nothing could be learnt.
        comparison: How it did beside what judged before, on queries that it did not see; None where none was made.
        place: File that it was written to; None where nothing was written.
        why_not: Why nothing was written; empty where something was.
    """

    calibration: Calibration | None
    comparison: CalibrationComparison | None = None
    place: Path | None = None
    why_not: str = ""

    __repr__ = short_repr


def calibrated(asked: Calibrate) -> LearntCalibration:
    """Learn, compare, print and write.

    Raises:
        UserError: If options contradict each other, what they name does not fit, or nothing can be learnt from it.
    """
    if not isinstance(asked.model, str):
        raise UserError("a calibration is kept with a model or an index; give its folder or name")
    asked = replace(asked, model=model_of(asked.model))
    name = str(asked.model)
    given = Path(name)
    if manifest.is_index(given) and asked.index is None:
        asked = replace(asked, index=given)
    if asked.show:
        return _show(asked)
    if asked.out is not None and asked.index is not None and asked.data is not None:
        raise UserError(f"--out {asked.out} and the index {asked.index}: it is kept in one place; give one of them")
    if asked.queries < FEWEST_QUERIES:
        raise UserError(f"--queries must be at least {FEWEST_QUERIES} to learn anything, got {asked.queries}")
    if asked.relevant_from is not None and not math.isfinite(asked.relevant_from):
        raise UserError(f"--relevant-from {asked.relevant_from}: give the least degree that counts as relevant")
    if asked.query_file is not None and asked.relevance is not None:
        raise UserError("--query-file and --relevance: degrees are of captions, not of your queries; give one of them")
    _require_place(asked)
    if asked.data is None:
        return _of_index(asked)
    usable_cache(asked.cache)
    index = None if asked.index is None else Index.open(asked.index)
    if index is None and asked.out is None:
        _refuse_without_folder(name)
    own = () if asked.query_file is None else read_queries(asked.query_file)
    data = read_part(asked.data, asked.split, layout=asked.layout, key=asked.key, join_restval=asked.join_restval)
    _refuse_too_few(data)
    if index is not None and manifest.is_index(given):
        model = read_model_of(index, None, asked.device, altered=asked.altered_model)
    else:
        model = read_dual_encoder(asked.model, asked.device, altered=asked.altered_model)
    if index is not None:
        index.check(model)
    scored = scored_by(model, name, data, asked)
    collection = TextedPictures.of_scores(scored.model, scored.similarity, data)
    if collection is None:
        raise UserError(
            f"{asked.model}: its scores are not of vectors; a calibration is of a model that an index can use"
        )
    kept = None if index is None else index.calibration
    old = kept or (None if model.calibration_file is None else Calibration.load(model.calibration_file))
    queries, source = _taught(asked, scored, collection, own)
    return _decide(asked, index, queries, old, source, scored.model_hash)


def _show(asked: Calibrate) -> LearntCalibration:
    """Print what the calibration that is kept says of itself."""
    if asked.data is not None:
        raise UserError(f"--show prints what is kept and learns nothing from {asked.data}; leave one of them out")
    file = (asked.index or Path(str(asked.model))) / CALIBRATION
    if not is_regular(file):
        raise UserError(
            f"{file}: no calibration is kept there; name the folder of a model or of an index with one, or learn one:"
            f" leave --show out{'' if asked.index else ', and give DATA'}"
        )
    kept = Calibration.load(file)
    for part in render_kept(kept):
        console.print(part)
    return LearntCalibration(kept, place=file)


def _require_place(asked: Calibrate) -> None:
    """Refuse early a place that cannot keep the calibration; ``--out`` was already tried."""
    folder = asked.index or Path(str(asked.model))
    if asked.out is None and folder.is_dir():
        require_writable_file(folder / CALIBRATION)


def _of_index(asked: Calibrate) -> LearntCalibration:
    """Learn from people's grades on the page of an index, or else from its captions and columns."""
    if asked.index is None:
        raise UserError(f"{asked.model}: no index, and a model learns from captions; give MODEL DATA, or an INDEX")
    own = () if asked.query_file is None else read_queries(asked.query_file)
    index = Index.open(asked.index)
    grades = index.grades()
    say_issues(grades.issues)
    graded = len(grades.by_query())
    by_grades = graded >= FEWEST_QUERIES
    if by_grades:
        refuse_idle(asked, of_grades(), option=flag)
    other = None if Path(str(asked.model)) == asked.index else asked.model
    model = read_model_of(index, other, asked.device, altered=asked.altered_model)
    searcher = Searcher(index, model)
    old = searcher.judging
    if by_grades:
        calibration, found = searcher.calibration_of_grades()
        say(f"learnt from {calibration.source}: right and close ones are relevant")
        return _keep_or_not(asked, index, calibration, found, old)
    collection = TextedPictures.of_index(index, model)
    asked_of_server = index.asked_queries()
    own += tuple(GivenQuery(text, kind="asked") for text in islice(asked_of_server, _MOST_ASKED))
    if asked_of_server:
        learnt = min(len(asked_of_server), _MOST_ASKED)
        say(f"{learnt:,} queries that people asked of the server are among those learnt from")
    queries, source = _taught(asked, None, collection, own)
    return _decide(asked, index, queries, old if old.learnt else None, source, index.manifest.model_fingerprint)


def _taught(
    asked: Calibrate, scored: ScoredInputs | None, collection: TextedPictures, own: tuple[GivenQuery, ...]
) -> tuple[TrainingQueries, str]:
    """Queries to learn from, and one line for people on them: typed ones, or captions with degrees that were named."""
    count = max(FEWEST_QUERIES, min(asked.queries, _MOST_PAIRS // max(1, len(collection.ids))))
    labels = (
        scored is not None and scored.model is not None and scored.model.chosen_by_labels and any(scored.data.labels)
    )
    if asked.relevance is None and not labels:
        if not collection.model.reads_words:
            raise UserError(
                f"{asked.model}: reads no words, so that no queries can be made; give degrees with --relevance"
            )
        queries, how = training_queries(collection, count, own)
        say(f"queries as people type them, of {collection.name}; its texts are read as {how}")
        _say_left_out(own, queries, collection)
        return queries, f"queries as people type them, of {collection.name}"
    if scored is None:
        scored = _scored(collection)
    relevance, title = _relevance(asked, scored)
    scored.refuse_own_opinion(relevance)
    chosen = evenly_spread(len(collection.captions), count)
    checked = checked_degrees(relevance, scored.similarity.shape, gaps=True)
    assert checked is not None
    degrees = np.ascontiguousarray(checked.block(np.arange(len(collection.ids)), chosen).T)
    start = _relevant_from(asked, relevance, degrees)
    return caption_queries(collection, chosen, degrees, start), f"{title}, of {collection.name}"


def _say_left_out(own: tuple[GivenQuery, ...], queries: TrainingQueries, collection: TextedPictures) -> None:
    """Say which queries of a person's own teach nothing, and which of their ids are unknown."""
    there, kinds = set(collection.ids), {query.kind for query in own}
    learnt = {text for text, kind in zip(queries.texts, queries.kinds, strict=True) if kind in kinds}
    unknown = [one for query in own for one in query.relevant or () if one not in there]
    if unknown:
        say(
            f"passed over: relevant ids of your queries that are no picture here: {len(unknown):,}, such as"
            f" {printable(unknown[0])!r}"
        )
    left = [query.text for query in own if query.text not in learnt]
    if left:
        say(
            f"left out: queries to which no picture is known to be relevant: {len(left):,}, such as"
            f" {printable(left[0])!r}"
        )


def _scored(collection: TextedPictures) -> ScoredInputs:
    """The captions of an index as scored inputs, for sources of degrees."""
    if len(collection.captions) < FEWEST_QUERIES:
        raise UserError(f"{collection.name}: {len(collection.captions)} captions, and {FEWEST_QUERIES} are needed")
    data = ImageCaptions(collection.ids, collection.captions, collection.owners, name=collection.name)
    similarity = similarity_source(
        image_embeddings=collection.images,
        text_embeddings=collection.caption_vectors,
        image_of_caption=collection.owners,
        similarity_function=collection.model.similarity.array,
    )
    return ScoredInputs(similarity, data, True, model=collection.model)


def _decide(
    asked: Calibrate,
    index: Index | None,
    queries: TrainingQueries,
    old: Calibration | None,
    source: str,
    fingerprint: str,
) -> LearntCalibration:
    """Fit, compare with what judges now, and keep the better."""
    console.print(render_queries(queries))
    made = sum(kind != NOTHING for kind in queries.kinds)
    if made < FEWEST_QUERIES:
        raise UserError(
            f"{asked.data or asked.model}: its captions and columns make {made} queries, and {FEWEST_QUERIES} are"
            " needed to learn anything; give more pictures with captions, or --query-file with queries of your own"
        )
    say("learning, and comparing with what judges now on queries held out: about a minute for 2,000 queries")
    try:
        old = old or queries.standard()
        calibration, found = compared(queries, old, source=f"learnt from {source}", model_fingerprint=fingerprint)
    except UserError as error:
        # Captions may be such that nothing can be learnt, as one for all pictures; what judges now is none the worse.
        # The remedy of the error is about degrees that a person named.
        why = unlearnable(queries) if asked.relevance is None else str(error)
        if asked.out is not None:
            raise UserError(f"{asked.data or asked.model}: {why}") from error
        _say_unchanged(old, why)
        return LearntCalibration(None, why_not=why)
    return _keep_or_not(asked, index, calibration, found, old)


def _keep_or_not(
    asked: Calibrate, index: Index | None, calibration: Calibration, found: CalibrationComparison, old: Calibration
) -> LearntCalibration:
    for part in render_comparison(found, old.names):
        console.print(part)
    if line := verdict(found):
        if asked.out is None:
            _say_unchanged(old, line)
            return LearntCalibration(calibration, found, why_not=line)
        say(f"{asked.out}: written all the same, as asked: {line}")
    place = _keep(asked, index, calibration)
    say(f"written: {place}")
    say_out_of_reach(asked, calibration)
    return LearntCalibration(calibration, found, place)


def _say_unchanged(old: Calibration | None, why: str) -> None:
    kept = old is not None and old.learnt
    stays = "the calibration that is kept stays" if kept else "searches go on without a calibration"
    say(f"nothing is written, {stays}: {why}")


def _refuse_without_folder(name: str) -> None:
    if ModelSource.parse(name) is not None:
        raise UserError(
            f"{name}: a published model has no folder of ours to keep this in; give --index INDEX, or --out FILE"
        )
    if not (Path(name) / CONFIG).is_file():
        raise UserError(
            f"{name}: no folder of a model on this machine to keep this in; correct it, or give --index or --out"
        )


def _refuse_too_few(data: ImageCaptions) -> None:
    if len(data) < 2:
        raise UserError(
            f"{data.name}: {len(data)} picture, and relevance ends among two or more; take another --split, or more"
            " data"
        )
    if len(data.captions) < FEWEST_QUERIES:
        raise UserError(
            f"{data.name}: {len(data.captions)} captions, and {FEWEST_QUERIES} are needed to learn anything; take"
            " another --split, or more data"
        )


def _relevance(asked: Calibrate, scored: ScoredInputs) -> tuple[Any, str]:
    from rungwise.relevance.config import Building, degrees_of, names_source

    data = scored.data
    if asked.relevance is not None and not names_source(asked.relevance):
        path, key = split_key(asked.relevance)
        found = read_relevance(path, (len(data), len(data.captions)), key, data=data)
        return found, found.title() if isinstance(found, Degrees) else path.name
    source = asked.relevance
    if source is None:
        source = _OF_LABELS
        say(f"no --relevance given: taking {source}, by which the model was chosen")
    building = Building(say=say, option=lambda name: f"--{name.replace('_', '-')}")
    built = degrees_of(source, data, building=building, where="--relevance")
    return built, built.title()


def _relevant_from(asked: Calibrate, relevance: Any, degrees: NDArray[Any]) -> float:
    """The smallest degree that counts as relevant: given, by the source, or by a share of the pairs."""
    known = degrees[~np.isnan(degrees)]
    if not known.size:
        raise UserError("--relevance: no pair of these captions and pictures has a degree; give those of this --split")
    least, most = float(known.min()), float(known.max())
    if asked.relevant_from is not None:
        start, why = asked.relevant_from, "as asked"
    else:
        start, why = relevant_from(relevance, known)
        why = f"{why}; --relevant-from says otherwise"
    if not least < start <= most:
        raise UserError(
            f"--relevant-from {start:g}: degrees of --relevance are {least:g} to {most:g}; give one that some pairs"
            " reach and some do not"
        )
    say(f"relevant from a degree of {start:.4g}: {why}")
    return start


def _keep(asked: Calibrate, index: Index | None, calibration: Calibration) -> Path:
    if asked.out is not None:
        calibration.save(asked.out)
        return asked.out
    if index is not None and asked.index is not None:
        index.keep_calibration(calibration)
        return asked.index / manifest.CALIBRATION
    from rungwise.models.io import keep_calibration

    return keep_calibration(Path(str(asked.model)), calibration)


calibrate = function_of(
    "calibrate",
    Calibrate,
    calibrated,
    """
    Returns:
        What was learnt, how it did beside what judged before, and where it was written, if it was.

    Raises:
        UserError: If options contradict each other, what they name does not fit, or nothing can be learnt from it.

    >>> rungwise.calibrate("photos.index").why_not  # doctest: +SKIP
    """,
)
