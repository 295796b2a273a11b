"""Where relevance ends in the answers of an index: what judges its hits, and what an answer says of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rungwise.calibration import Calibration
from rungwise.calibration.judgement import BEYOND
from rungwise.core.errors import UserError
from rungwise.index.answers import End
from rungwise.index.background import Sample
from rungwise.index.calibrating import calibration_of, calibration_of_model, known_of
from rungwise.index.ends import Judge, Judged, advice, judged
from rungwise.index.index import Index
from rungwise.index.queries import Query
from rungwise.index.ranking import POOL, Candidates, Group
from rungwise.index.unknown_words import UnknownWord

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder

_FEWEST = 2
"""Pictures, below which nothing is judged."""


class Endings:
    """What judges the hits of one version of an index.

    The sample of pictures and the calibration are read when they are first needed, and kept.

    Args:
        index: That is searched.
        model: With which.
    """

    def __init__(self, index: Index, model: DualEncoder) -> None:
        self._index = index
        self._model = model

    def judged(self, query: Query, candidates: Candidates) -> tuple[Judged | None, tuple[str, ...]]:
        """The best hits of the whole index, and a line where a calibration is there and cannot be used.

        Among fewer than two pictures there is nothing to compare with, and nothing is judged.

        Args:
            query: What is searched for; one that has pictures is judged by the scores alone.
            candidates: What it may find.
        """
        if self._sample.total < _FEWEST:
            return None, ()
        judge, problem = self._of_texts if query.has_words_alone else self._plain
        known = known_of(query, candidates.vector[0], self._model)
        background = self._sample.background(candidates.vector, candidates.metric)
        return judged(candidates.without_filter(), POOL, judge, background, known), problem

    @cached_property
    def _sample(self) -> Sample:
        return Sample.of(self._index.picture_store)

    @cached_property
    def _plain(self) -> tuple[Judge, tuple[str, ...]]:
        return Calibration.unsupervised(), ()

    @property
    def _of_texts(self) -> tuple[Judge, tuple[str, ...]]:
        """What the index keeps may change while it is open."""
        try:
            return calibration_of(self._index) or self._of_model or self._plain[0], ()
        except UserError as error:
            return self._plain[0], (f"{error}; until then the scores alone say where relevance ends",)

    @cached_property
    def _of_model(self) -> Calibration | None:
        return calibration_of_model(self._index, self._model)


def end_of(
    ended: Judged,
    groups: Sequence[Group],
    answered: Sequence[Group],
    *,
    filtered: bool,
    unknown: Sequence[UnknownWord],
    by_words: int,
    has_words: bool,
) -> End:
    """What an answer says of the end.

    Args:
        ended: The best hits of the whole index.
        groups: The ranking as far as it is known: all that stand before the end are among them.
        answered: Those that the answer holds.
        filtered: Whether the search has a filter.
        unknown: Words that the model does not know.
        by_words: How many pictures full text brought.
        has_words: Whether the query has words.
    """
    shown = sum(group.rung < BEYOND for group in groups)
    tips: tuple[str, ...] = ()
    if not shown:
        without_filter = ended.cut if filtered else None
        tips = advice(relevant_without_filter=without_filter, unknown=unknown, by_words=by_words, has_words=has_words)
    return End(
        tuple(group.rung for group in answered),
        tuple(group.degree for group in answered),
        shown,
        ended.judgement.belief,
        ended.source,
        tips,
    )
