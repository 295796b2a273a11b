"""Where relevance ends in the answers of an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import BEYOND, CAPTIONED, UNJUDGED_RUNGS, UNRELATED, Calibration, Known, QueryJudgement
from rungwise.core import UserError
from rungwise.index._answers import End
from rungwise.index._index import Index
from rungwise.index._ranking import POOL, JudgedRanking, PictureCandidates, RankedGroup
from rungwise.index.cutoff._calibration import calibration_of, calibration_of_model
from rungwise.index.cutoff._hit_texts import HitTexts, known_of
from rungwise.index.cutoff._judge import Judge, advice, judged
from rungwise.index.cutoff._null_sample import NullSample
from rungwise.index.cutoff._picture_standard import PictureStandard
from rungwise.index.cutoff._unrelated_pictures import unrelated_pictures
from rungwise.index.query import Query, Rarity, UnknownWord
from rungwise.index.stores import words_of

if TYPE_CHECKING:
    from rungwise.models import DualEncoder

_FEWEST = 2
"""Least number of pictures in which hits are judged."""


_JUDGED_HELD = 256
"""Number of queries whose judgement is held."""


@dataclass
class _Looked:
    """Data read of one state of an index, by its revision and number of pictures.

    Attributes:
        exact: Whether the store compares every picture, so that deep searches cost no more than shallow ones.
        standard: Judges texts where there is no calibration; None until it is needed.
        of_pictures: Judges pictures; None until it is needed.
        judged: Searches that were judged, each with what judged it.
    """

    state: tuple[int, int]
    sample: NullSample
    texts: HitTexts
    exact: bool
    standard: tuple[Calibration | None] | None = None
    of_pictures: tuple[PictureStandard | None] | None = None
    judged: dict[object, tuple[Judge, JudgedRanking]] = field(default_factory=dict)


class Cutoff:
    """Judges the hits of one version of an index, as a model finds them.

    The sample of pictures and the calibration are read when they are first needed, and kept.
    """

    def __init__(self, index: Index, model: DualEncoder, rarity: Callable[[], Rarity]) -> None:
        self._index = index
        self._model = model
        self._rarity = rarity
        self._looked: _Looked | None = None
        self._unrelated: NDArray[np.float32] | None = None
        self._patterns: NDArray[np.float32] | None = None

    def judged(self, query: Query, candidates: PictureCandidates) -> tuple[JudgedRanking | None, tuple[str, ...]]:
        """Judge the best hits of the whole index; gives also a line for people where a calibration cannot be used.

        Texts without a calibration are compared with texts that fit nothing, and pictures alone with pictures of
        nothing (:mod:`rungwise.index.cutoff._picture_standard`). Words and pictures together, a picture that is wanted
        less, and pictures where the model reads none are judged by the scores alone: hits that stand out of the bulk
        are told from the others, and where none stands out, nothing is judged (None). Nor is it among fewer than two
        pictures. Pages of an answer, and other filters of it, are not judged anew.
        """
        looked = self._now()
        if looked.sample.total < _FEWEST:
            return None, ()
        judge, problem = self._judge_of(query, looked)
        whole = candidates.without_filter()
        by, found = looked.judged.get(whole.identity, (None, None))
        if found is None or by is not judge:
            found = self._judged(query, whole, judge, looked)
            if len(looked.judged) >= _JUDGED_HELD:
                looked.judged.clear()
            looked.judged[whole.identity] = judge, found
        return (None if judge is self._plain and not found.cut else found), problem

    def _judge_of(self, query: Query, looked: _Looked) -> tuple[Judge, tuple[str, ...]]:
        if query.has_words_alone:
            calibration, problem = self._of_texts(looked)
            return calibration or self._plain, problem
        if query.has_words or any(term.weight < 0 for term in query.terms):
            return self._plain, ()
        if looked.of_pictures is None:
            looked.of_pictures = (self._standard_of_pictures(looked.sample),)
        return looked.of_pictures[0] or self._plain, ()

    def _judged(self, query: Query, whole: PictureCandidates, judge: Judge, looked: _Looked) -> JudgedRanking:
        background = looked.sample.background(whole.vector, whole.metric)
        words = " ".join(query.wanted_texts)
        by_words: tuple[str, ...] = ()
        # A standard knows nothing beside the scores.
        learnt = isinstance(judge, Calibration) and bool(judge.learnt)
        if learnt and words_of(words):
            by_words = tuple(whole.found_by_words(words))

        def known(ids: Sequence[str]) -> Known | None:
            of_query = known_of(query, whole.vector[0], self._model) if learnt else None
            later = set(ids[CAPTIONED:])
            read = [*ids[:CAPTIONED], *(one for one in by_words if one in later)]
            return of_query and looked.texts.of(of_query, words, whole.vector[0], whole.rows(read), ids)

        return judged(whole, POOL, judge, background, known, deeper=looked.exact, by_words=by_words)

    def _now(self) -> _Looked:
        """Data read of the index in its present state."""
        state = self._index.manifest.revision, len(self._index)
        if self._looked is None or self._looked.state != state:
            store = self._index.picture_store
            texts = HitTexts(self._index, self._rarity)
            self._looked = _Looked(state, NullSample.of(store), texts, store.about().exact)
        return self._looked

    def of_list(self, vector: NDArray[np.float32], scores: NDArray[np.float32]) -> QueryJudgement:
        """Judge a list that another search gave to a text, by the text's (D,) vector and the hits' falling scores."""
        looked = self._now()
        judge = self._of_texts(looked)[0] or self._plain
        return judge.judge_hits(np.asarray(scores, np.float64), looked.sample.background(vector[None]), None)

    @property
    def of_texts(self) -> Calibration:
        """What judges texts now; one that cannot be used is passed over."""
        return self._of_texts(self._now())[0] or Calibration.unsupervised()

    @cached_property
    def _plain(self) -> Judge:
        return Calibration.unsupervised()

    def on(self, index: Index, rarity: Callable[[], Rarity]) -> Cutoff:
        """Cutoff with the same model on another index that it built, or on another version of this one."""
        other = Cutoff(index, self._model, rarity)
        other._unrelated, other._patterns = self._unrelated, self._patterns
        return other

    def _of_texts(self, looked: _Looked) -> tuple[Calibration | None, tuple[str, ...]]:
        """The calibration of the index, which may change while it is open, else that of the model, else a standard.

        One that needs texts is passed over where the pictures have none.
        """
        problem: tuple[str, ...] = ()
        try:
            found = calibration_of(self._index) or self._of_model
        except UserError as error:
            found, problem = None, (f"{error}; until then hits are judged without it",)
        if found is not None and (looked.texts.are_there or not found.needs_texts):
            return found, ()
        if looked.standard is None:
            looked.standard = (self._standard(looked.sample),)
        return looked.standard[0], problem

    def _standard(self, sample: NullSample) -> Calibration | None:
        """Calibration by scores of texts that fit nothing; None where the model reads no texts or tells none apart."""
        try:
            if self._unrelated is None:
                self._unrelated = np.asarray(self._model.encode_text(UNRELATED), np.float32)
            return Calibration.unsupervised(sample.scores(self._unrelated))
        except UserError:
            return None

    def _standard_of_pictures(self, sample: NullSample) -> PictureStandard | None:
        """Judge of pictures by pictures of nothing; None where the model reads no pictures."""
        if not self._model.reads_pictures:
            return None
        try:
            if self._patterns is None:
                self._patterns = np.asarray(self._model.encode_image(unrelated_pictures()).vectors, np.float32)
            return PictureStandard.of(self._index.picture_store, self._patterns, sample.vectors)
        except UserError:
            return None

    @cached_property
    def _of_model(self) -> Calibration | None:
        return calibration_of_model(self._index, self._model)


def end_of(
    ended: JudgedRanking,
    groups: Sequence[RankedGroup],
    answered: Sequence[RankedGroup],
    *,
    filtered: bool,
    unknown: Sequence[UnknownWord],
    by_words: int,
    has_words: bool,
    has_certain: bool,
) -> End:
    """The end of relevance as an answer gives it.

    Args:
        ended: Judgement of the best hits of the whole index.
        groups: The ranking as far as it is known: all groups before the end are among them.
        answered: The groups that the answer holds.
        filtered: Whether the search has a filter.
        unknown: Words that the model does not know.
        by_words: Number of pictures that full text brought.
        has_words: Whether the query has words.
        has_certain: Whether a picture stands before the end because its captions and columns have all words.
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
        ended.names,
        _remark(ended, groups, of_pictures=not has_words, has_certain=has_certain),
    )


def _remark(ended: JudgedRanking, groups: Sequence[RankedGroup], *, of_pictures: bool, has_certain: bool) -> str:
    """The line that says that no picture is like a given one, or none a best match; empty where one is."""
    best = min((group.rung for group in groups), default=BEYOND)
    if best == BEYOND:
        return "nothing is much like it here" if of_pictures else ""
    # Names that were learnt say it themselves, and so does a caption that has all words.
    poor = best > 1 and ended.names == UNJUDGED_RUNGS and not has_certain
    return "no picture stands out clearly; these come nearest" if poor else ""
