"""Queries that a calibration learns from and is compared by: their scores, kinds, and what is relevant to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._calibration import Calibration
from rungwise.calibration._judgement import BEYOND, Known, QueryJudgement, Values
from rungwise.calibration._kind_comparison import NOTHING, CalibrationComparison, KindComparison, ShownFor
from rungwise.calibration.learning import FEWEST_QUERIES
from rungwise.calibration.unrelated import UNRELATED
from rungwise.core import UserError
from rungwise.core.output import short_repr

_FEWEST_OF_KIND = 5
_FOLDS, _FEW = 3, 300
"""Number of parts, and number of queries up to which each part is held out in turn."""
_SURE_BY_WORDS = 50
"""Largest number of pictures that a search shows because their texts hold all words of the query."""
_ALL = 1 - 1e-9


@dataclass(frozen=True)
class TrainingQueries:
    """Queries with the scores of all candidates and what is known of their relevance.

    Attributes:
        texts: (queries,) what was asked, for people.
        kinds: (queries,) name of the kind of each, such as ``"phrase"``.
        groups: (queries,) queries of one group are fitted or judged together, such as the captions of one picture.
        similarity: (queries, candidates) scores.
        relevance: (queries, candidates) degrees; NaN where nobody knows.
        overlooked: (queries, candidates) probability that a pair is relevant, whatever its degree says.
        known: (queries,) what a search knows of each query besides its scores.
        relevant_from: The smallest degree that counts as relevant.
        unrelated: (texts, candidates) scores of texts that fit nothing, for the fit; None without any.
        unrelated_known: (texts,) what is known of these.
    """

    texts: tuple[str, ...]
    kinds: tuple[str, ...]
    groups: NDArray[np.int64]
    similarity: NDArray[np.floating]
    relevance: NDArray[np.floating]
    overlooked: NDArray[np.floating]
    known: tuple[Known, ...]
    relevant_from: float
    unrelated: NDArray[np.floating] | None = None
    unrelated_known: tuple[Known, ...] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        count = len(self.texts)
        shapes = {len(self.kinds), len(self.groups), len(self.similarity), len(self.relevance), len(self.known)}
        if shapes != {count} or not self.similarity.shape == self.relevance.shape == self.overlooked.shape:
            raise UserError(
                "training queries: give one kind, group, row of scores, of degrees and of probabilities for each"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def only(self, queries: NDArray[np.int64]) -> TrainingQueries:
        """Some of the queries."""
        chosen = queries.tolist()
        return replace(
            self,
            texts=tuple(self.texts[query] for query in chosen),
            kinds=tuple(self.kinds[query] for query in chosen),
            groups=self.groups[queries],
            similarity=self.similarity[queries],
            relevance=self.relevance[queries],
            overlooked=self.overlooked[queries],
            known=tuple(self.known[query] for query in chosen),
        )

    def fit(
        self, *, source: str = "judged pairs", model_fingerprint: str = "", fewest: int = FEWEST_QUERIES
    ) -> Calibration:
        """A calibration learnt from all of these queries but the unrelated ones (:data:`NOTHING`).

        Raises:
            UserError: As :meth:`Calibration.fit` raises it.
        """
        taught = self.only(np.flatnonzero(np.array(self.kinds) != NOTHING))
        return Calibration.fit(
            taught.similarity,
            taught.relevance,
            self.relevant_from,
            known=taught.known,
            unrelated=self.unrelated,
            unrelated_known=self.unrelated_known,
            overlooked=taught.overlooked,
            fewest=fewest,
            source=source,
            model_fingerprint=model_fingerprint,
        )

    def standard(self) -> Calibration:
        """What judges without judgements, by the scores of ``UNRELATED``, which stand first among the unrelated."""
        return Calibration.unsupervised(None if self.unrelated is None else self.unrelated[: len(UNRELATED)])

    def without_texts(self) -> TrainingQueries:
        """The same queries in an index whose pictures have no texts."""
        return replace(self, known=tuple(one.of_query for one in self.known))

    def judged_by(self, calibration: Calibration) -> JudgedTraining:
        """What an index shows for each query if this calibration judges it."""
        shown = np.zeros(len(self), np.int64)
        by_name = np.zeros((len(self), BEYOND - 1), np.int64)
        right = np.zeros((len(self), BEYOND - 1))
        f1, beliefs = np.empty(len(self)), np.empty(len(self))
        for query, scores in enumerate(self.similarity):
            known = self.known[query]
            best, judged = calibration.judge_all(scores, known if calibration.learnt else None)
            rungs = _as_shown(best, judged, known, len(scores))
            f1[query] = self._f1(query, rungs < BEYOND)
            beliefs[query] = judged.belief
            shown[query] = np.count_nonzero(rungs < BEYOND)
            for rung in range(1, BEYOND):
                named = rungs == rung
                by_name[query, rung - 1] = np.count_nonzero(named)
                right[query, rung - 1] = np.count_nonzero(self.relevance[query][named] >= self.relevant_from)
        return JudgedTraining(f1, shown, by_name, right, beliefs)

    def _f1(self, query: int, shown: NDArray[np.bool_]) -> float:
        judged = ~np.isnan(self.relevance[query])
        true = np.where(self.relevance[query] >= self.relevant_from, 1.0, self.overlooked[query] * judged)
        both = np.count_nonzero(shown & judged) + float(true.sum())
        return 200 * float(true[shown].sum()) / both if both else 100.0


@dataclass(frozen=True)
class JudgedTraining:
    """What is shown for queries whose relevance is known.

    Attributes:
        f1: (queries,) CutF1 in percent; a pair that may be overlooked counts as its probability.
        shown: (queries,) number of hits shown.
        named: (queries, 3) number of shown hits by rung.
        right: (queries, 3) number of relevant ones among them.
        beliefs: (queries,) belief that anything is relevant.
    """

    f1: Values
    shown: NDArray[np.int64]
    named: NDArray[np.int64]
    right: Values
    beliefs: Values


def _as_shown(best: NDArray[np.int64], judged: QueryJudgement, known: Known, candidates: int) -> NDArray[np.int64]:
    """(candidates,) rungs as a search gives them, which also shows pictures whose texts hold all words."""
    rungs = np.full(candidates, BEYOND)
    rungs[best] = judged.rungs
    if known.stated is not None:
        with np.errstate(invalid="ignore"):
            certain = np.flatnonzero(known.stated >= _ALL)[:_SURE_BY_WORDS]
        rungs[certain] = np.minimum(rungs[certain], BEYOND - 1)
    return rungs


def compared(
    queries: TrainingQueries, old: Calibration, *, source: str, model_fingerprint: str
) -> tuple[Calibration, CalibrationComparison]:
    """Fit a calibration, and compare it with what judges now on queries that a fit did not see.

    A third of the queries of each kind is judged by a fit to the others, or of few queries each third in turn; the
    unrelated ones, to which nothing is fitted, are judged all. A kind of which there are too few for an interval counts
    to the most frequent one. The calibration that is given back was fitted to all, and keeps the comparison of each
    kind. Where harm cannot be excluded in an index without texts, it says that it needs them.

    Args:
        queries: The queries.
        old: What judges now.
        source: One line for people on how pairs were judged.
        model_fingerprint: Fingerprint of the model that gave the scores.

    Raises:
        UserError: As :meth:`Calibration.fit` raises it for all of the queries.
    """
    new = queries.fit(source=source, model_fingerprint=model_fingerprint)
    fold = np.where(np.array(queries.kinds) == NOTHING, 0, _folds(queries))
    parts = []
    for number in range(_FOLDS if len(queries) <= _FEW else 1):
        try:
            fitted = queries.only(np.flatnonzero(fold != number)).fit(fewest=FEWEST_QUERIES // 2)
        except UserError:  # a part may teach nothing where all of them do
            return new, CalibrationComparison(reason="the queries are too few, or too alike, to compare by them")
        parts.append((queries.only(np.flatnonzero(fold == number)), fitted))
    found = _of_parts(parts, old)
    has_texts = any(one.stated is not None or one.caption_scores is not None for one in queries.known)
    bare = _of_parts([(part.without_texts(), fitted) for part, fitted in parts], old) if has_texts else found
    return replace(new, kinds=found.kinds, needs_texts=has_texts and not bare.harmless), found


def _of_parts(parts: Sequence[tuple[TrainingQueries, Calibration]], old: Calibration) -> CalibrationComparison:
    """CalibrationComparison on held-out queries, each part with the fit to the others."""
    was = _joined([part.judged_by(old) for part, _ in parts])
    now = _joined([part.judged_by(fitted) for part, fitted in parts])
    kinds = _pooled([kind for part, _ in parts for kind in part.kinds])
    groups = np.concatenate([part.groups for part, _ in parts])
    found = []
    for kind in dict.fromkeys(kinds.tolist()):
        own = kinds == kind
        right = [_share(now.right[own, rung].sum(), now.named[own, rung].sum()) for rung in (0, 1)]
        found.append(KindComparison.of(kind, was.f1[own], now.f1[own], groups[own], *right))
    relevant = np.concatenate([(part.relevance >= part.relevant_from).sum(axis=1) for part, _ in parts])
    texts = [text for part, _ in parts for text in part.texts]
    shown = was.shown.tolist(), now.shown.tolist(), now.right.sum(axis=1).astype(int).tolist(), relevant.tolist()
    return CalibrationComparison(tuple(found), "", _named(was), _named(now), tuple(map(ShownFor, texts, *shown)))


def _pooled(kinds: Sequence[str]) -> NDArray[np.str_]:
    """(queries,) kinds; those of which there are too few for an interval count to the most frequent kind."""
    counts = Counter(kind for kind in kinds if kind != NOTHING)
    most = counts.most_common(1)
    return np.array([most[0][0] if 0 < counts[kind] < _FEWEST_OF_KIND else kind for kind in kinds])


def _folds(queries: TrainingQueries) -> NDArray[np.int64]:
    """(queries,) fold of each: of every kind about equally many in each, groups whole."""
    fold = np.empty(len(queries), np.int64)
    of_group: dict[int, int] = {}
    turn: dict[str, int] = {}
    for at in np.random.default_rng(0).permutation(len(queries)).tolist():
        kind, group = queries.kinds[at], int(queries.groups[at])
        if group not in of_group:
            of_group[group] = turn.get(kind, 0) % _FOLDS
            turn[kind] = turn.get(kind, 0) + 1
        fold[at] = of_group[group]
    return fold


def _joined(parts: Sequence[JudgedTraining]) -> JudgedTraining:
    return JudgedTraining(
        *(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(JudgedTraining))
    )


def _share(some: float, whole: float) -> float:
    return float(some) / float(whole) if whole else float("nan")


def _named(judged: JudgedTraining) -> tuple[float, float, float]:
    """Shares of the shown hits in each rung."""
    counts = judged.named.sum(axis=0)
    whole = max(1, int(counts.sum()))
    first, second, third = (float(count) / whole for count in counts)
    return first, second, third
