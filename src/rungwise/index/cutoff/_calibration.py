"""The calibration of an index: the one that judges its hits, and a new one fitted to people's grades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import (
    CAPTIONED,
    FEWEST_QUERIES,
    UNRELATED,
    Calibration,
    CalibrationComparison,
    Known,
    TrainingQueries,
    compared,
)
from rungwise.core import UserError
from rungwise.index._index import Index
from rungwise.index.cutoff._hit_texts import HitTexts, known_of
from rungwise.index.layout import DEGREES
from rungwise.index.query import Query, Rarity, Term, Words, combined, parse_query
from rungwise.index.stores import Row

if TYPE_CHECKING:
    from rungwise.models import DualEncoder

_MOST_PICTURES = 20_000
"""Pictures above which a fit takes a fixed sample, beside its queries' best hits and graded pictures."""
_MOST_QUERIES = 1_000
"""Number of queries with grades that a fit takes, the newest first."""
_BEST = 200
"""Number of hits of each query that a fit takes beside the sample."""
_RELEVANT = DEGREES["close"]
"""The least degree that counts as relevant."""
_ROWS_AT_ONCE = 4096


def calibration_of(index: Index) -> Calibration | None:
    """The calibration that an index keeps, None if it keeps none; refuses a damaged one, and one of another model."""
    if index.calibration is not None:
        index.check_calibration(index.calibration)
    return index.calibration


def calibration_of_model(index: Index, model: DualEncoder) -> Calibration | None:
    """The calibration beside the model of an index, None if there is none; refuses as :func:`calibration_of`."""
    if model.calibration_file is None:
        return None
    found = Calibration.load(model.calibration_file)
    index.check_calibration(found)
    return found


def refit(
    index: Index, model: DualEncoder, rarity: Rarity, old: Calibration
) -> tuple[Calibration, CalibrationComparison]:
    """Fit a calibration to people's grades in an index, and compare it with what judges now.

    Right counts 1, close 0.5, wrong 0. Queries are encoded anew and compared with all pictures, or with a part of many.
    Grades of pictures that are gone do not count. :meth:`Index.keep_calibration` keeps the result.

    Raises:
        UserError: If too few queries have grades, all grades are alike, or another model built the index.
    """
    index.check(model)
    graded = _graded(index)
    if len(graded) < FEWEST_QUERIES:
        raise UserError(
            f"{index.folder}: {len(graded)} searches have graded hits, and {FEWEST_QUERIES} are needed to learn where"
            f" relevance ends; grade hits of {FEWEST_QUERIES - len(graded)} more"
        )
    queries = [parse_query(text, pictures=False) for text in graded]
    vectors = _vectors_of(queries, model)
    ids, rows = _candidates(index, vectors, {one for grades in graded.values() for one in grades})
    place = {one: at for at, one in enumerate(ids)}
    degrees = np.full((len(graded), len(ids)), np.nan)
    for at, grades in enumerate(graded.values()):
        for one, degree in grades.items():
            degrees[at, place[one]] = degree
    texts = HitTexts(index, lambda: rarity)

    def seen(asked: Sequence[Query], of: NDArray[np.float32]) -> tuple[NDArray[np.float32], tuple[Known, ...]]:
        scores = index.similarity.array(rows, of).T
        return scores, tuple(
            _of_best(texts, index, model, query, vector, row, ids)
            for query, vector, row in zip(asked, of, scores, strict=True)
        )

    scores, known = seen(queries, vectors)
    unrelated, unrelated_known = seen(
        [Query((Term(Words(text)),)) for text in UNRELATED], np.asarray(model.encode_text(UNRELATED), np.float32)
    )
    taught = TrainingQueries(
        tuple(graded),
        ("graded",) * len(graded),
        np.arange(len(graded)),
        scores,
        degrees,
        np.zeros(degrees.shape),
        known,
        _RELEVANT,
        unrelated,
        unrelated_known,
    )
    source = f"{sum(map(len, graded.values()))} grades of people for {len(graded)} queries"
    return compared(taught, old, source=source, model_fingerprint=index.manifest.model_fingerprint)


def _of_best(
    texts: HitTexts,
    index: Index,
    model: DualEncoder,
    query: Query,
    vector: NDArray[np.float32],
    scores: NDArray[np.float32],
    ids: list[str],
) -> Known:
    """What is known of a query and of the texts of its best hits, as in a search; NaN for the other candidates."""
    known = known_of(query, vector, model) or Known()
    best = [ids[at] for at in np.argsort(-scores, kind="stable")[:CAPTIONED].tolist()]
    return texts.of(known, " ".join(query.wanted_texts), vector, index.picture_store.get(best), ids)


def _graded(index: Index) -> dict[str, dict[str, float]]:
    """Degrees by query and picture, of the newest queries and of pictures that are in the index."""
    by_query = index.grades().by_query()
    names = sorted({one for grades in by_query.values() for one in grades})
    there = {one for start in range(0, len(names), _ROWS_AT_ONCE) for one in _rows(index, names, start)}
    found = {
        text: {one: grade.degree for one, grade in grades.items() if one in there} for text, grades in by_query.items()
    }
    return dict([(text, degrees) for text, degrees in found.items() if degrees][-_MOST_QUERIES:])


def _vectors_of(queries: Sequence[Query], model: DualEncoder) -> NDArray[np.float32]:
    """(queries, D) vectors; all texts are encoded together."""
    texts = tuple(dict.fromkeys(text for query in queries for text in query.texts))
    vector = dict(zip(texts, np.asarray(model.encode_text(texts), np.float32), strict=True))
    parts = [
        ([vector[term.what.text][None] for term in query.terms if isinstance(term.what, Words)], query)
        for query in queries
    ]
    return np.concatenate([combined(rows, [term.weight for term in query.terms]) for rows, query in parts])


def _candidates(index: Index, queries: NDArray[np.float32], graded: set[str]) -> tuple[list[str], NDArray[np.float32]]:
    """Ids and (candidates, D) vectors of the pictures that a fit looks at."""
    store = index.picture_store
    names = store.drawn(_MOST_PICTURES)
    if store.count() > len(names):
        best = store.search(queries, _BEST).ids
        names = list(dict.fromkeys([*names, *sorted(graded), *(one for ids in best for one in ids)]))
    rows = {
        one: row for start in range(0, len(names), _ROWS_AT_ONCE) for one, row in _rows(index, names, start).items()
    }
    return list(rows), np.stack([row.vector for row in rows.values()])


def _rows(index: Index, names: Sequence[str], start: int) -> dict[str, Row]:
    return index.picture_store.get(names[start : start + _ROWS_AT_ONCE])
