"""Judgements that carry their own texts: two candidates with votes (Pascal-50S), one with ratings (VATEX-EVAL).

Both are tables (CSV, TSV), JSON lists of objects, or JSON lines:

* ``image``, ``first``, ``second``, ``votes_first``, ``votes_second``, and optionally ``category`` and ``references``;
* ``video`` (or ``image``), ``candidate``, ``scores`` and optionally ``references``.

A list is a list in JSON; in a table it is JSON in a cell, or columns such as ``reference_1`` and ``score_1``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rungwise.core import UserError
from rungwise.relevance.human._rows import RATING, JudgementRows, grade_of, ratings_of, text_of, texts_of
from rungwise.relevance.human._types import Preferences, RatedTexts, in_columns

_ITEMS = ("image", "video", "image_id", "video_id", "id")
_CANDIDATES = ("candidate", "cand", "caption")
_SCORES = ("scores", "ratings", "human_scores", "score", "rating", "grade")
_VOTES = ("votes_first", "votes_second")
_REFERENCES = "references"


def is_preferences(table: JudgementRows) -> bool:
    """Whether a table holds votes between two candidates."""
    return {"first", "second", *_VOTES} <= set(table.columns)


def is_rated_texts(table: JudgementRows) -> bool:
    """Whether a table holds candidates with ratings."""
    columns = set(table.columns)
    rated = columns & set(_SCORES) or any(RATING.fullmatch(name) for name in columns)
    return bool(columns & {"candidate", "cand"} and rated)


def preferences(table: JudgementRows) -> Preferences:
    r"""Pairs of candidates with votes; a UserError if a candidate is empty, or votes are no counts."""
    rows = []
    for where, cells in table.rows:
        texts = [text_of(cells, (name,), where) for name in ("first", "second")]
        if not all(texts):
            raise UserError(f"{where}: a candidate is empty; write both captions, or leave the row out")
        votes = [grade_of(cells.get(name), where) for name in _VOTES]
        if min(votes) < 0 or not sum(votes):
            raise UserError(f"{where}: {votes[0]:g} and {votes[1]:g} votes; write how many people chose each")
        category = text_of(cells, ("category",), where).upper()
        rows.append((where, text_of(cells, _ITEMS, where), *texts, votes, category, _references(cells, where)))
    if not rows:
        raise UserError(f"{table.path}: holds no judgement; give a file with some")
    places, items, first, second, counts, categories, references = zip(*rows, strict=True)
    return Preferences(items, first, second, np.array(counts), categories, references, places, str(table.path))


def rated_texts(table: JudgementRows) -> RatedTexts:
    r"""Candidates with ratings; a UserError if a candidate is empty, or a rating is no number."""
    rows = []
    for where, cells in table.rows:
        candidate = text_of(cells, _CANDIDATES, where)
        if not candidate:
            raise UserError(f"{where}: the candidate is empty; write its caption, or leave the row out")
        ratings = ratings_of(cells, _SCORES, where)
        rows.append((where, text_of(cells, _ITEMS, where), candidate, _references(cells, where), ratings))
    if not rows:
        raise UserError(f"{table.path}: holds no judgement; give a file with some")
    places, items, candidates, references, given = zip(*rows, strict=True)
    return RatedTexts(items, candidates, references, in_columns(given, places), places, str(table.path))


def _references(cells: Mapping[str, object], where: str) -> tuple[str, ...]:
    return texts_of({"references": cells["refs"]} if "refs" in cells else cells, _REFERENCES, where)
