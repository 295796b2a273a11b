"""The work of ``rungwise calibrate``, after its command line was parsed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import FEWEST_QUERIES, Calibration
from rungwise.cli.calibrate._options import Calibrate
from rungwise.cli.calibrate._reach import say_out_of_reach
from rungwise.cli.calibrate._render import render_counts, render_learnt
from rungwise.cli.evaluate import ScoredInputs, read_part, scored_by
from rungwise.cli.frame import console, read_dual_encoder, read_model_of, say, say_issues
from rungwise.core import UserError
from rungwise.core.disk import require_writable_file, usable_cache
from rungwise.core.text import evenly_spread
from rungwise.data import ImageCaptions
from rungwise.encoders.pretrained import ModelSource
from rungwise.evaluation.inputs import checked_degrees, read_relevance, split_key
from rungwise.evaluation.statistics import cross_validated, has_enough
from rungwise.index import Index
from rungwise.index.layout import manifest
from rungwise.models.io import CALIBRATION, CONFIG
from rungwise.quality import CaptionQueries
from rungwise.relevance import Degrees
from rungwise.relevance.description.describe import relevant_from

_DEFAULT = "tfidf"
"""Default source of degrees: made at once from captions alone, 0 to 1, and 1 for a caption's own picture."""
_OF_LABELS = "labels"
"""Source of degrees for a model that was chosen by labels."""
_CHECKED = 600
"""Number of captions in the cross-validation."""
_MOST_PAIRS = 200_000_000
"""Largest number of pairs of captions and pictures: 1.6 GB with their degrees."""


def run(asked: Calibrate) -> int:
    """Learn, print and write; returns the exit status.

    Raises:
        UserError: If options contradict each other, what they name does not fit, or nothing can be learnt from it.
    """
    given = Path(asked.model)
    if manifest.is_index(given) and asked.index is None:
        asked = replace(asked, index=given)
    if asked.out is not None and asked.index is not None and asked.data is not None:
        raise UserError(f"--out {asked.out} and the index {asked.index}: it is kept in one place; give one of them")
    if asked.queries < FEWEST_QUERIES:
        raise UserError(f"--queries {asked.queries}: at least {FEWEST_QUERIES} are needed to learn anything")
    if asked.relevant_from is not None and not math.isfinite(asked.relevant_from):
        raise UserError(f"--relevant-from {asked.relevant_from}: give the least degree that counts as relevant")
    _require_place(asked)
    if asked.data is None:
        return _of_index(asked)
    usable_cache(asked.cache)
    index = None if asked.index is None else Index.open(asked.index)
    if index is None and asked.out is None:
        _refuse_without_folder(asked.model)
    data = read_part(asked.data, asked.split, key=asked.key, join_restval=asked.join_restval)
    _refuse_too_few(data)
    if index is not None and manifest.is_index(given):
        model = read_model_of(index, None, asked.device, altered=asked.altered_model)
    else:
        model = read_dual_encoder(asked.model, asked.device, altered=asked.altered_model)
    if index is not None:
        index.check(model)
    calibration = _learn_from(asked, scored_by(model, asked.model, data, asked))
    say(f"written: {_keep(asked, index, calibration)}")
    say_out_of_reach(asked, calibration)
    return 0


def _require_place(asked: Calibrate) -> None:
    """Refuse early a place that cannot keep the calibration; ``--out`` was already tried."""
    folder = asked.index or Path(asked.model)
    if asked.out is None and folder.is_dir():
        require_writable_file(folder / CALIBRATION)


def _of_index(asked: Calibrate) -> int:
    """Learn from people's grades on the page of an index, or else from its captions."""
    from rungwise.index.cutoff import refit

    if asked.index is None:
        raise UserError(f"{asked.model}: no index, and a model learns from captions; give MODEL DATA, or an INDEX")
    _refuse_idle(asked, ("split", "key", "join_restval", "cache", "precision", "least_cosine"), "DATA")
    index = Index.open(asked.index)
    grades = index.grades()
    say_issues(grades.issues)
    graded = len(grades.by_query())
    by_grades = graded >= FEWEST_QUERIES
    if by_grades:
        _refuse_idle(asked, ("relevance", "relevant_from", "queries"), "DATA, since people graded this index")
    elif not index.caption_store.count():
        raise UserError(
            f"{asked.index}: {graded} of {FEWEST_QUERIES} searches have graded hits, and there are no captions; grade"
            " hits of more searches on its page (rungwise serve), or give DATA with captions"
        )
    other = None if Path(asked.model) == asked.index else asked.model
    model = read_model_of(index, other, asked.device, altered=asked.altered_model)
    if by_grades:
        calibration = refit(index, model)
        say(f"learnt from {calibration.source}: right and close ones are relevant")
    else:
        index.check(model)
        say(f"{graded} of {FEWEST_QUERIES} searches have graded hits: learning from the captions of the index instead")
        own = CaptionQueries.of_index(index, model)
        hash_of_index = index.manifest.model_fingerprint
        scored = ScoredInputs(own.source, own.data, True, model_hash=hash_of_index, model=model)
        calibration = _learn_from(asked, scored)
    say(f"written: {_keep(asked, index, calibration)}")
    return 0


def _refuse_idle(asked: Calibrate, names: Sequence[str], without: str) -> None:
    """Refuse options that would change nothing, since they are a misunderstanding."""
    usual = {one.name: one.default for one in fields(Calibrate)}
    for name in names:
        if getattr(asked, name) != usual[name]:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} changes nothing without {without}; leave it out")


def _learn_from(asked: Calibrate, scored: ScoredInputs) -> Calibration:
    """Learn from captions as queries, and print what was learnt."""
    _refuse_too_few(scored.data)
    relevance, title = _relevance(asked, scored)
    scored.refuse_own_opinion(relevance)
    count = max(FEWEST_QUERIES, min(asked.queries, _MOST_PAIRS // max(1, len(scored.data))))
    captions = len(scored.data.captions)
    chosen = evenly_spread(captions, count)
    pictures = np.arange(len(scored.data))
    similarity = np.empty((len(chosen), len(pictures)), dtype=np.float32)
    for which, scores in scored.similarity.select(pictures, chosen).columns(256):
        similarity[which] = scores
    checked = checked_degrees(relevance, scored.similarity.shape, gaps=True)
    assert checked is not None
    degrees = np.ascontiguousarray(checked.block(pictures, chosen).T)
    start = _relevant_from(asked, relevance, degrees)
    queries = CaptionQueries.of(scored.model, scored.similarity, scored.data)
    known = None if queries is None else queries.known(chosen, likeness=True)
    unrelated, unrelated_known = (None, None) if queries is None else queries.unrelated(likeness=True)
    owners = scored.data.image_of_caption[chosen]
    console.print(render_counts((degrees >= start).sum(axis=1), len(pictures)))
    calibration = Calibration.fit(
        similarity,
        degrees,
        start,
        known=known,
        unrelated=unrelated,
        unrelated_known=unrelated_known,
        source=f"{title}, of {scored.data.name}",
        model_fingerprint=scored.model_hash,
    )
    some = evenly_spread(len(chosen), _CHECKED)
    if not has_enough(degrees[some], start, owners[some]):
        say("too few captions to say what it is worth on others")
        return calibration
    facts = None if known is None else [known[query] for query in some.tolist()]
    found = cross_validated(similarity[some], degrees[some], start, owners[some], facts, unrelated, unrelated_known)
    texts = [scored.data.captions[caption] for caption in chosen[some]]
    for part in render_learnt(found, calibration, texts):
        console.print(part)
    return calibration


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
    from rungwise.scenes import own_degrees

    data = scored.data
    if asked.relevance is not None and not names_source(asked.relevance):
        path, key = split_key(asked.relevance)
        found = read_relevance(path, (len(data), len(data.captions)), key, data=data)
        return found, found.title() if isinstance(found, Degrees) else path.name
    source = asked.relevance
    if source is None and scored.model is not None and scored.model.chosen_by_labels and any(data.labels):
        source = _OF_LABELS
        say(f"no --relevance given: taking {source}, by which the model was chosen")
    if source is None:
        own = own_degrees(asked.data, data)
        if own is not None:
            return own, own.title()
        source = _DEFAULT
        say(f"no --relevance given: taking {source}, by the words of the captions; bi-encoder knows their meaning")
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

    return keep_calibration(Path(asked.model), calibration)
