"""Both models' answers to a query, with what is exactly true of every hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import BEYOND
from rungwise.core import UserError
from rungwise.demo._places import NAMES, RELEVANT_FROM, TITLES, Name
from rungwise.demo._sides import DemoModel
from rungwise.metrics import JudgedQueries
from rungwise.scenes import Scene, SceneFile, SceneRelevance, Statement, facts_in, read_text

LONGEST = 500
"""Largest number of characters of a query."""

CURVE = 60
"""Number of ranks whose degrees are plotted."""

_MOST, _FOLDED = 24, 12
"""Number of hits shown before the end, and of hits shown after it."""
_KEPT = 256
"""Number of answers in the cache."""


@dataclass(frozen=True)
class ShownHit:
    """A picture at the place where a model ranks it.

    Attributes:
        id: Id of the picture.
        degree: Exact share of the query's facts that hold; None where the query was not understood.
        true: Number of facts that hold; None where the query was not understood.
        wrong: Facts that do not hold, in a few words each.
        expected: Degree that the calibration expects.
        band: Band of the calibration, such as "exactly"; empty after the end.
    """

    id: str
    degree: float | None
    true: int | None
    wrong: tuple[str, ...]
    expected: float
    band: str


@dataclass(frozen=True)
class ModelColumn:
    """Answer of one model.

    Attributes:
        name: Name of the model.
        title: Title of the model for people.
        shown: Number of pictures before the end of relevance; 0 for "nothing relevant".
        relevant_shown: Number of these that are relevant; 0 where the query was not understood.
        belief: Belief that any picture is relevant, 0..1.
        hits: The first pictures of the ranking, and some after the end.
        curve: Exact degrees of the first pictures, by rank; empty where the query was not understood.
        measures: nDCG@10 and CutF1 in percent, CS@100 in -1..1; none where the query was not understood.
        first_right: Rank of the first picture of which everything is true; None without one.
    """

    name: Name
    title: str
    shown: int
    relevant_shown: int
    belief: float
    hits: tuple[ShownHit, ...]
    curve: tuple[float, ...]
    measures: Mapping[str, float]
    first_right: int | None


@dataclass(frozen=True)
class ComparedAnswer:
    """Answers of both models to a query.

    Attributes:
        query: The query as asked.
        facts: Number of facts that it states; 0 where it was not understood.
        unknown: Words that were not understood.
        pictures: Number of pictures that are searched.
        right: Number of pictures of which everything is true.
        relevant: Number of pictures of which enough is true to be relevant.
        ideal: Curve of the best possible ranking.
        chance: Mean degree of all pictures, which a random ranking reaches at every rank.
        chance_measures: Measures of a random ranking.
        columns: Answers of the two models.
    """

    query: str
    facts: int
    unknown: tuple[str, ...]
    pictures: int
    right: int
    relevant: int
    ideal: tuple[float, ...]
    chance: float | None
    chance_measures: Mapping[str, float]
    columns: tuple[ModelColumn, ...]


class SideBySide:
    """Comparison of both models' answers with the truth."""

    def __init__(self, sides: Mapping[Name, DemoModel], scenes: SceneFile) -> None:
        self.sides = sides
        self.ids = next(iter(sides.values())).ids
        self._file = scenes
        self._lock = Lock()
        self._kept = lru_cache(_KEPT)(self._answer)

    @cached_property
    def scenes(self) -> list[Scene]:
        """Scene of each picture, in the order of the indexes."""
        return [self._file.scene_of(one) for one in self.ids]

    def degrees(self, statements: list[Statement]) -> NDArray[np.float32]:
        """(statements, pictures) exact degrees."""
        return np.ascontiguousarray(SceneRelevance(self.scenes, statements).dense().T)

    def answer(self, query: str) -> ComparedAnswer:
        """Answers of both models, and what is true of them.

        Raises:
            UserError: If the query is empty or too long.
        """
        words = " ".join(query.split())
        if not words:
            raise UserError("the query is empty; write a few words about a picture")
        if len(words) > LONGEST:
            raise UserError(f"the query has {len(words)} characters; give at most {LONGEST}")
        with self._lock:  # the models compute one query at a time in any case
            return self._kept(words)

    def _answer(self, query: str) -> ComparedAnswer:
        reading = read_text(query)
        statement = None if reading.unknown else reading.statement
        degrees = None if statement is None else self.degrees([statement])[0]
        columns = tuple(self._column(name, query, statement, degrees) for name in NAMES)
        if degrees is None:
            return ComparedAnswer(query, 0, reading.unknown, len(self.ids), 0, 0, (), None, {}, columns)
        from rungwise.demo._measurement import by_chance

        return ComparedAnswer(
            query=query,
            facts=statement.facts if statement else 0,
            unknown=(),
            pictures=len(self.ids),
            right=int((degrees == 1).sum()),
            relevant=int((degrees >= RELEVANT_FROM).sum()),
            ideal=_plain(-np.sort(-degrees)[:CURVE]),
            chance=round(float(degrees.mean()), 4),
            chance_measures=_shown({name: float(values[0]) for name, values in by_chance(degrees[None]).items()}),
            columns=columns,
        )

    def _column(
        self, name: Name, query: str, statement: Statement | None, degrees: NDArray[np.float32] | None
    ) -> ModelColumn:
        side = self.sides[name]
        found, known = side.scores([query])
        scores = found[0]
        order = np.argsort(-scores, kind="stable")
        judgement = side.judge(scores[order], known[0])
        shown = judgement.cut
        hits = []
        for rank, place in enumerate(order[: min(shown, _MOST) + _FOLDED].tolist()):
            facts = None if statement is None else facts_in(statement, self.scenes[place])
            rung = int(judgement.rungs[rank])
            hits.append(
                ShownHit(
                    id=self.ids[place],
                    degree=None if facts is None else round(facts.true / facts.stated, 4),
                    true=None if facts is None else facts.true,
                    wrong=() if facts is None else facts.wrong,
                    expected=round(float(judgement.degrees[rank]), 4),
                    band=side.calibration.names[rung - 1] if rung < BEYOND else "",
                )
            )
        right = None if degrees is None else np.flatnonzero(degrees[order] == 1)
        return ModelColumn(
            name=name,
            title=TITLES[name],
            shown=shown,
            relevant_shown=0 if degrees is None else int((degrees[order[:shown]] >= RELEVANT_FROM).sum()),
            belief=round(judgement.belief, 4),
            hits=tuple(hits),
            curve=() if degrees is None else _plain(degrees[order][:CURVE]),
            measures={} if degrees is None else _measures(scores, degrees, shown, judgement.belief),
            first_right=int(right[0]) + 1 if right is not None and len(right) else None,
        )


def _measures(scores: NDArray[np.float32], degrees: NDArray[np.float32], shown: int, belief: float) -> dict[str, float]:
    # These bring compiled kernels along, which nobody waits for before the page is open.
    from rungwise.demo._measurement import per_query

    values = per_query(scores[None], degrees[None], JudgedQueries(np.array([shown]), np.array([belief])))
    return _shown({name: float(own[0]) for name, own in values.items()})


def _shown(values: Mapping[str, float]) -> dict[str, float]:
    """The measures that are defined for a single query, rounded."""
    return {name: round(values[name], 4) for name in ("nDCG@10", "CS@100", "CutF1")}


def _plain(values: NDArray[np.float32]) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
