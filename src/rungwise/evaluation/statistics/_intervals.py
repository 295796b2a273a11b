"""Bootstrap intervals over images, for every measure and for sums of measures.

The captions of one image are not independent, so images are drawn with replacement, and all queries of an image come as
often as it was drawn (a cluster bootstrap; Davison and Hinkley 1997, section 3.8). Where a protocol has several folds,
every fold is drawn by itself. Galleries stay as they are: the interval says how a number would vary over queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.metrics import DIRECTIONS, Direction, Measure, Total, parse

_CELLS = 1 << 21
"""Number of weights (draws x queries) held in memory at a time."""

Numbers = NDArray[np.float64]


class PerQuery(Protocol):
    """What is read of a result: its numbers, their values per query, and the queries' images."""

    @property
    def gallery(self) -> Mapping[str, tuple[int, ...]]:
        """Number of candidates in each fold, by direction."""
        ...

    def __getitem__(self, name: str) -> float:
        """Value of the number with this name; KeyError if it was not measured."""
        ...

    def per_query(self, name: str) -> NDArray[np.float64]:
        """(queries,) values of a measure, folds one after another; KeyError if there are none."""
        ...

    def image_of_query(self, direction: str) -> NDArray[np.int64]:
        """(queries,) position of the image that each query is, or was written for."""
        ...


class Interval(NamedTuple):
    """Lower and upper bound of a number at a confidence level, in the number's own unit."""

    low: float
    high: float


def median_place(values: Sequence[float]) -> int:
    """Position of the median of some numbers; of an even count, that of the lower of the two in the middle.

    >>> median_place([413.1, 412.2, 414.9]), median_place([3.0, 1.0, 2.0, 4.0])
    (0, 2)
    """
    return int(np.argsort(values, kind="stable")[(len(values) - 1) // 2])


def check_level(level: float) -> None:
    """Refuse a confidence level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise UserError(f"level must lie between 0 and 1, got {level}; 0.95 is usual")


def interval_of(draws: Numbers, level: float = 0.95) -> Interval:
    """Percentile interval of a number's draws; NaN where no draw has a value.

    >>> interval_of(np.arange(101.0), level=0.5)
    Interval(low=25.0, high=75.0)
    """
    check_level(level)
    known = draws[~np.isnan(draws)]
    if not known.size:
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def bootstrap(
    results: Sequence[PerQuery], names: Sequence[str], draws: int = 1000, seed: int = 0
) -> dict[str, Numbers]:
    """Numbers of results when images are drawn with replacement, the same ones for all results.

    Numbers are aggregated within folds, averaged over folds, then summed.

    Args:
        results: Results of the same queries.
        names: Names such as ``"t2i/R@1"`` or ``"rsum"``.
        draws: Number of draws.
        seed: Seed of the draws.

    Returns:
        Arrays (results, draws) by name.

    Raises:
        KeyError: If a number was not measured, or there are no values per query.
        UserError: If ``draws`` is not positive.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(4), image_of_caption=[0, 1, 2, 3])
    >>> bootstrap([result], ["rsum"], draws=3)["rsum"]
    array([[600., 600., 600.]])
    """
    if draws < 1:
        raise UserError(f"draws must be at least 1, got {draws}")
    made_of = {name: terms_of(results[0], name) for name in names}
    terms = dict.fromkeys(term for own in made_of.values() for term in own)
    generator = np.random.default_rng(seed)
    parts: dict[MeasureTerm, list[list[Numbers]]] = {term: [] for term in terms}
    means = [term for term in terms if type(term.measure).aggregate_draws is Measure.aggregate_draws]
    for fold in _folds(results[0]):
        step = max(1, _CELLS // max(len(images) for images in fold.image.values()))
        sums = _sums(results, means, fold)
        for own in parts.values():
            own.append([])
        for start in range(0, draws, step):
            weights = _weights(generator, min(step, draws - start), fold.images)
            if means:
                totals = (weights @ sums).reshape(len(weights), len(means), len(results), 2).transpose(1, 2, 0, 3)
                nothing = np.full(totals.shape[:-1], np.nan)
                averages = np.divide(totals[..., 0], totals[..., 1], out=nothing, where=totals[..., 1] > 0)
                for term, average in zip(means, averages, strict=True):
                    parts[term][-1].append(average)
            for term in terms.keys() - set(means):
                queries, images = fold.queries[term.direction], fold.image[term.direction]
                parts[term][-1].append(
                    np.stack(
                        [
                            term.measure.aggregate_draws(one.per_query(term.name)[queries], weights[:, images])
                            for one in results
                        ]
                    )
                )
    numbers = {term: np.mean([np.concatenate(fold, axis=1) for fold in own], axis=0) for term, own in parts.items()}
    return {name: np.sum([numbers[term] for term in own], axis=0) for name, own in made_of.items()}


def _sums(results: Sequence[PerQuery], terms: Sequence[MeasureTerm], fold: _Fold) -> Numbers:
    """(images, terms x results x 2) for measures that are means over queries: sum and number of an image's values.

    All queries of an image are drawn together, so that a draw adds up images; there are fewer of them than captions.
    """
    found = np.zeros((fold.images, len(terms), len(results), 2))
    for at, term in enumerate(terms):
        images = fold.image[term.direction]
        for place, one in enumerate(results):
            values = one.per_query(term.name)[fold.queries[term.direction]]
            known = ~np.isnan(values)
            for part, weights in enumerate((values[known], None)):
                found[:, at, place, part] = np.bincount(images[known], weights=weights, minlength=fold.images)
    return found.reshape(fold.images, -1)


def _weights(generator: np.random.Generator, draws: int, images: int) -> Numbers:
    """(draws, images) how often each image is drawn."""
    chosen = generator.integers(0, images, (draws, images)) + images * np.arange(draws)[:, None]
    return np.bincount(chosen.ravel(), minlength=draws * images).reshape(draws, images).astype(np.float64)


def is_known(name: str) -> bool:
    """Whether the measure of a number is known here: it may be of a module that nobody named.

    >>> is_known("i2t/R@1"), is_known("rsum"), is_known("i2t/Theirs@1")
    (True, True, False)
    """
    try:
        parse(name.partition("/")[2] or name)
    except UserError:
        return False
    return True


def known_first(names: Iterable[str]) -> list[str]:
    """Names of numbers, or of measures, in the given order; those of measures that are not known here stand last."""
    return sorted(names, key=lambda name: not is_known(name))


@dataclass(frozen=True)
class MeasureTerm:
    """A measure in one direction, as numbers are made of."""

    name: str
    direction: Direction
    measure: Measure

    @classmethod
    def of(cls, name: str) -> MeasureTerm:
        """Parse a name such as ``i2t/R@1``."""
        way, _, measure = name.partition("/")
        direction, parsed = next(d for d in DIRECTIONS if d == way), parse(measure)
        assert isinstance(parsed, Measure)
        return cls(name, direction, parsed)


@dataclass(frozen=True)
class _Fold:
    """Queries of a fold, and the image within the fold that each belongs to."""

    images: int
    queries: dict[Direction, slice]
    image: dict[Direction, NDArray[np.int64]]


def _folds(result: PerQuery) -> list[_Fold]:
    folds = []
    ends: dict[Direction, int] = {"i2t": 0, "t2i": 0}
    sizes = zip(result.gallery["t2i"], result.gallery["i2t"], strict=True)  # a fold's images, and its captions
    for counts in sizes:
        queries = {}
        for way, count in zip(DIRECTIONS, counts, strict=True):
            queries[way] = slice(ends[way], ends[way] + count)
            ends[way] += count
        together = np.concatenate([result.image_of_query(way)[queries[way]] for way in DIRECTIONS])
        images, local = np.unique(together, return_inverse=True)
        folds.append(_Fold(len(images), queries, {"i2t": local[: counts[0]], "t2i": local[counts[0] :]}))
    return folds


def terms_of(result: PerQuery, name: str) -> list[MeasureTerm]:
    """Measures in one direction of which a number is the sum: one, or those of a sum such as rsum.

    Raises:
        KeyError: If the number was not measured.
    """
    result[name]  # an unknown name raises, saying what there is
    if "/" in name:
        return [MeasureTerm.of(name)]
    total = parse(name)
    assert isinstance(total, Total)
    return [MeasureTerm.of(f"{way}/{measure}") for way in DIRECTIONS for measure in total.terms]
