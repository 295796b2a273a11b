"""A system in a comparison: results of one or several trainings, and whether they may stand beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import one_line, short_repr
from rungwise.evaluation.result import Result
from rungwise.metrics import Measure


class ResultQuestion(NamedTuple):
    """What a result answers; only results of one question are compared or averaged."""

    protocol: str
    split: str
    data_hash: str
    relevance: str
    right: str

    @classmethod
    def of(cls, result: Result) -> ResultQuestion:
        """The question of a result."""
        return cls(result.protocol, result.split, result.data_hash, result.relevance, result.right)

    @property
    def text(self) -> str:
        """The question in words, for a line of an error or a remark."""
        parts = [f"split {self.split}" if self.split else "no split", f"protocol {self.protocol}"]
        parts += [f"data {self.data_hash[:8]}"] if self.data_hash else []
        parts += [f"degrees {one_line(self.relevance, 60)}"] if self.relevance else []
        return ", ".join(parts)


@dataclass(frozen=True)
class System:
    """What is compared: results of trainings that differ in their seed alone, or a single result.

    Attributes:
        name: Name of the system.
        results: Results on the same queries, one for each training.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> system = System("mine", (evaluate(similarity=np.eye(2), image_of_caption=[0, 1]),))
    >>> system.mean("rsum"), system.deviation("rsum"), system.seeds
    (600.0, nan, (None,))
    """

    name: str
    results: tuple[Result, ...]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not self.results:
            raise UserError(f"{self.name}: has no results to compare; evaluate it first")

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """Seed of each training; None where it is not known."""
        return tuple(one.seed for one in self.results)

    def of_seed(self) -> dict[int, Result]:
        """Results by their seed; those of unknown seeds, and of a seed that occurs twice, are left out."""
        counts = Counter(self.seeds)
        return {one.seed: one for one in self.results if one.seed is not None and counts[one.seed] == 1}

    def paired_differences(self, baseline: System, name: str) -> list[float]:
        """Differences of a number from that of another system, one for each seed that both have."""
        mine, theirs = self.of_seed(), baseline.of_seed()
        return [mine[seed][name] - theirs[seed][name] for seed in theirs if seed in mine]

    def mean(self, name: str) -> float:
        """Mean of a number over the trainings."""
        return float(np.mean([one[name] for one in self.results]))

    def deviation(self, name: str) -> float:
        """Standard deviation of a number over the trainings (n - 1); NaN for one."""
        return float(np.std([one[name] for one in self.results], ddof=1)) if len(self.results) > 1 else float("nan")

    def of_query(self, name: str, measure: Measure) -> NDArray[np.float64]:
        """(queries,) one number for each query: the mean of its values over the trainings."""
        own = [measure.of_query(one.per_query(name)) for one in self.results]
        return np.asarray(np.mean(own, axis=0))


def refuse_other_questions(systems: Sequence[System]) -> None:
    """Refuse results that cannot be compared: of other data, queries or protocols, or without values per query.

    Raises:
        UserError: Naming the two that differ, and what differs.
    """
    first = systems[0].results[0]
    for system in systems:
        for result in system.results:
            if not result.has_queries:
                raise UserError(f"{system.name}: holds no values per query; evaluate again")
            _refuse_different(first, result, systems[0].name, system.name)


def alike(systems: Sequence[System], names: Sequence[str]) -> Iterator[str]:
    """One line for each two systems, or two seeds of one, that are the same model, or rank every query alike."""
    for system in systems:
        for one, other in combinations(system.results, 2):
            if said := _same(one, other, names):
                yield f"{system.name}: {_called(one)} and {_called(other)} {said}"
    for mine, theirs in combinations(systems, 2):
        paired = mine.of_seed().keys() & theirs.of_seed().keys()
        pairs = [(mine.of_seed()[seed], theirs.of_seed()[seed]) for seed in sorted(paired)]
        if not pairs and len(mine.results) == len(theirs.results) == 1:
            pairs = [(mine.results[0], theirs.results[0])]
        found = [(one, said) for one, other in pairs if (said := _same(one, other, names))]
        if not found:
            continue
        if len(pairs) == 1:
            yield f"{mine.name} and {theirs.name} {found[0][1]}"
        else:
            which = "for every seed" if len(found) == len(pairs) else ", ".join(_called(one) for one, _ in found)
            yield f"{mine.name} and {theirs.name}, {which}: {found[0][1]}"


def _same(one: Result, other: Result, names: Sequence[str]) -> str:
    """What is the same of two results, in words that follow both names; empty where they differ."""
    if one.model_hash and one.model_hash == other.model_hash:
        return f"are the same model, {one.model_hash[:12]}"
    measured = [name for name in names if "/" in name]
    if measured and all(np.array_equal(one.per_query(n), other.per_query(n), equal_nan=True) for n in measured):
        return "have equal values for every query: the same results, or models that rank alike"
    return ""


def _called(result: Result) -> str:
    return "a result without a seed" if result.seed is None else f"seed {result.seed}"


def _refuse_different(first: Result, second: Result, one: str, other: str) -> None:
    pairs = (
        ("protocol", first.protocol, second.protocol),
        ("data hash", first.data_hash[:16] or "none", second.data_hash[:16] or "none"),
        ("gallery", _sizes(first), _sizes(second)),
        ("right answers:", first.right, second.right),
    )
    for what, mine, theirs in pairs:
        if mine != theirs:
            of = f" ({second.data_name} and {first.data_name})" if second.data_name != first.data_name else ""
            raise UserError(
                f"{other} cannot be compared with {one}: {what} {theirs} against {mine}{of};"
                " evaluate both on the same data under one protocol"
            )
    if first.data_hash != second.data_hash:
        raise UserError(f"{other} cannot be compared with {one}: other data; evaluate both on the same data")
    for way in ("i2t", "t2i"):
        same = np.array_equal(first.image_of_query(way), second.image_of_query(way))
        # Where one names no queries, the hash says that the data are the same.
        if not first.data_hash or first.has_query_ids(way) == second.has_query_ids(way):
            same = same and first.query_ids(way) == second.query_ids(way)
        if not same:
            raise UserError(
                f"{other} cannot be compared with {one}: {way} has other queries or another order of them;"
                " evaluate both on the same data"
            )


def _sizes(result: Result) -> str:
    return " and ".join(f"{way} {'+'.join(map(str, sizes))}" for way, sizes in sorted(result.gallery.items()))
