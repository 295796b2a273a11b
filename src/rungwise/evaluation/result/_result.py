"""Result of an evaluation, with everything that is needed to compare it with another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import Check, checked
from rungwise.core.formats import IN_FILE, AlteredError, JsonForm, Number, as_json, read_as
from rungwise.core.output import InTables, TextTable, frame_of, in_few_lines, one_line, some_of
from rungwise.evaluation._protocols import WRITTEN_FOR
from rungwise.evaluation.judgements import JudgementRecord
from rungwise.evaluation.result._result_file import OfQueries, check, checksum, measure_named, terms_of_total, values_of
from rungwise.evaluation.statistics import (
    WAYS,
    WORDS,
    ByClass,
    Interval,
    Intervals,
    bootstrap,
    cells_of,
    class_tables,
    interval_of_number,
    is_known,
    known_first,
    number_text,
)
from rungwise.metrics import Measure, Total, parse_all

if TYPE_CHECKING:
    import pandas

FORMAT = "rungwise-result/1"
"""Name of the format, written into every file."""

_OF_QUERIES = ("per_query", "image_of_query", "query_ids")
"""Parts of a file with an entry for each query; the checksum takes the first two as arrays."""


@dataclass(frozen=True)
class Reranking:
    """Record of a second stage that reordered the first candidates (:mod:`rungwise.evaluation.inputs._shortlists`).

    Attributes:
        model_hash: Hash of the second model; empty where it is not known.
        top: Largest number of candidates that it ordered for a query.
        pairs: Number of different pairs that it scored, over all galleries.

    >>> Reranking("", 50, 312_345).note()
    'reranked: another model (312,345 pairs scored) orders the first 50 of each query; all others stand behind them'
    """

    __pydantic_config__ = IN_FILE

    model_hash: str
    top: Annotated[int, Field(ge=1)]
    pairs: Annotated[int, Field(ge=0)]

    def note(self) -> str:
        """One line for the notes of a table."""
        who = f"model {self.model_hash[:12]}" if self.model_hash else "another model"
        return (
            f"reranked: {who} ({self.pairs:,} pairs scored) orders the first {self.top} of each query; all others stand"
            " behind them"
        )


@dataclass(frozen=True)
class Result(InTables, JsonForm):
    """Numbers by canonical name, such as ``i2t/R@1``, ``t2i/CS@100`` or ``rsum``.

    Attributes:
        numbers: Values by name; NaN where no query had a value.
        units: Units by name: ``"percent"``, ``"rank"``, ``"correlation"``, ``"fraction"`` or ``"degree"``.
        protocol: Name of the protocol.
        right: Description of what counted as right.
        relevance: Name of the degrees that graded measures read; empty where none was asked for.
        reference: Captions of an image with which these degrees compare a caption: ``"max"``, the closest one;
            ``"mean"``, all; ``"paired"``, the one that comes with the image. Empty where degrees do not come from
            captions compared with captions, or do not say it.
        ends: Name of the method that says where relevance ends; empty where no measure reads that.
        gallery: Per direction, the number of candidates in each fold.
        queries: Per direction, the number of queries over all folds.
        captions_per_image: ``min``, ``mean`` and ``max`` over the images of the protocol.
        remarks: Per name, number of queries that were left out or counted 0, by reason.
        data_name: Name of the data.
        data_hash: Hash of the evaluated collection.
        dataset: Name of the published dataset, such as ``"coco"``; empty for others.
        split: Split of the collection; empty where it is not known.
        model_hash: Hash of the model.
        seed: Seed of the training run, if given.
        version: Version of rungwise that measured.
        warnings: Warnings about what was evaluated, one line each.
        reranking: Record of the second model; None where one model ranked alone.
        judgements: Human judgements that count beside the annotation; None without any.
        by_class: Numbers class by class, where they were asked for.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.array([[0.9, 0.1], [0.2, 0.3]]), image_of_caption=[0, 1])
    >>> result["i2t/R@1"], result["rsum"], result.gallery["t2i"]
    (100.0, 600.0, (2,))
    >>> Result.from_json(result.to_json()) == result
    True
    >>> "i2t/R@1" in result, list(result)[:2], dict(result) == result.numbers
    (True, ['i2t/R@1', 't2i/R@1'], True)
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = FORMAT
    remedy: ClassVar[str] = "evaluate again"

    numbers: Mapping[str, Number]
    units: Mapping[str, str]
    protocol: str
    gallery: Mapping[str, tuple[int, ...]]
    queries: Mapping[str, int]
    captions_per_image: Mapping[str, float]
    remarks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    right: str = ""
    relevance: str = ""
    reference: Literal["", "max", "mean", "paired"] = ""
    ends: str = ""
    data_name: str = ""
    data_hash: str = ""
    dataset: str = ""
    split: str = ""
    model_hash: str = ""
    seed: int | None = None
    version: str = ""
    warnings: tuple[str, ...] = ()
    reranking: Reranking | None = None
    judgements: JudgementRecord | None = None
    by_class: ByClass | None = None
    _per_query: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)
    _image_of_query: Mapping[str, NDArray[np.int64]] = field(default_factory=dict, repr=False, compare=False)
    _query_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> float:
        """Value of the number with this name; KeyError lists what was measured."""
        if name not in self.numbers:
            raise KeyError(f"{name!r} was not measured; there are {', '.join(self.numbers)}")
        return self.numbers[name]

    def __eq__(self, other: object) -> bool:
        """Whether everything but the values per query is equal; NaN equals NaN."""
        return self.plain() == other.plain() if isinstance(other, Result) else NotImplemented

    def __contains__(self, name: object) -> bool:
        """Whether the number with this name was measured."""
        return name in self.numbers

    def __iter__(self) -> Iterator[str]:
        """Names of the numbers, so that ``dict(result)`` gives the numbers by name."""
        return iter(self.numbers)

    def keys(self) -> KeysView[str]:
        """Names of the numbers."""
        return self.numbers.keys()

    def per_query(self, name: str) -> NDArray[np.float64]:
        """(queries,) values of a measure in the order of the data; NaN where a query has none.

        A few measures, such as ``ECE``, have a row of numbers for each query: (queries, parts). Under a protocol of
        several folds the folds follow one another.

        Raises:
            KeyError: If the measure was not taken, is a sum such as rsum, or the result's file has no values per query.
        """
        if name not in self._per_query:
            raise KeyError(f"{name!r} has no values per query here; there are {', '.join(self._per_query) or 'none'}")
        return self._per_query[name]

    @property
    def has_queries(self) -> bool:
        """Whether the result holds values per query, which intervals and comparisons need."""
        return bool(self._per_query and self._image_of_query)

    def has_values(self, name: str) -> bool:
        """Whether the result holds the values per query that a number is made of.

        >>> from rungwise.evaluation._evaluate import evaluate
        >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["rsum"])
        >>> result.has_values("rsum"), result.has_values("i2t/R@1"), result.has_values("i2t/MedR")
        (True, True, False)
        """
        measure = measure_named(name)
        terms = terms_of_total(measure) if isinstance(measure, Total) else [name]
        return all(one in self._per_query for one in terms)

    def image_of_query(self, direction: str) -> NDArray[np.int64]:
        """(queries,) position of the image that each query is, or was written for, ordered as :meth:`per_query`.

        Raises:
            KeyError: If the result's file has no values per query.
        """
        if direction not in self._image_of_query:
            raise KeyError(f"it is not known here whose the queries {direction} are; evaluate again")
        return self._image_of_query[direction]

    def query_ids(self, direction: str) -> tuple[str, ...]:
        """(queries,) ids in the order of :meth:`per_query`; positions as texts where no ids were given."""
        return self._query_ids.get(direction) or tuple(str(place) for place in range(self.queries[direction]))

    def has_query_ids(self, direction: str) -> bool:
        """Whether the result names the queries of a direction; what a study keeps of a run leaves their ids out."""
        return bool(self._query_ids.get(direction))

    def interval(self, name: str, level: float = 0.95, draws: int = 1000, seed: int = 0) -> Interval:
        """Bootstrap interval of a number, with images drawn anew (:mod:`rungwise.evaluation.statistics._intervals`).

        Raises:
            KeyError: If the number was not measured, or there are no values per query.
            UserError: If the level is not between 0 and 1, or ``draws`` is not positive.
        """
        return self.intervals([name], level, draws, seed)[name]

    def intervals(
        self, names: Iterable[str] | None = None, level: float = 0.95, draws: int = 1000, seed: int = 0
    ) -> dict[str, Interval]:
        """Bootstrap intervals of several numbers from the same draws; fails as :meth:`interval`.

        Where every query has the smallest or the largest value, such as R@1 of 0 or of 100, the interval is Wilson's.
        By default these are all numbers that have values per query, of measures that are known here.
        """
        own = (name for name in self.numbers if is_known(name) and self.has_values(name))
        asked = own if names is None else names
        found = bootstrap([self], list(asked), draws, seed)
        return {name: interval_of_number(self, name, values[0], level) for name, values in found.items()}

    def of_measures(self, measures: Iterable[str | Measure | Total]) -> Result:
        """The result with only these measures, among those that were taken.

        A measure that is not known here is asked for by its exact name in the result.

        Raises:
            UserError: If a name is neither that of a known measure nor in the result.
        """
        taken = {name.rpartition("/")[2] for name in self.numbers}
        given = [measures] if isinstance(measures, str) else list(measures)
        foreign = {one for one in given if isinstance(one, str) and one in taken and not is_known(one)}
        asked = parse_all(one for one in given if one not in foreign)
        kept = {str(term) for one in asked for term in (one, *(one.terms if isinstance(one, Total) else ()))} | foreign

        def those(values: Mapping[str, Any]) -> dict[str, Any]:
            return {name: value for name, value in values.items() if name.rpartition("/")[2] in kept}

        before = self.judgements
        return replace(
            self,
            numbers=those(self.numbers),
            units=those(self.units),
            remarks=those(self.remarks),
            judgements=None if before is None else replace(before, before=those(before.before)),
            _per_query=those(self._per_query),
        )

    def joined(self, other: Result) -> Result:
        """The result with the measures of another result of the same rankings; of those in both, the other's."""
        return replace(
            self,
            numbers={**self.numbers, **other.numbers},
            units={**self.units, **other.units},
            remarks={**self.remarks, **other.remarks},
            relevance=other.relevance or self.relevance,
            reference=other.reference or self.reference,
            ends=other.ends or self.ends,
            _per_query={**self._per_query, **other._per_query},
        )

    def title(self) -> str:
        """One line for the head of a table: the data and the protocol."""
        title = self.named(f"protocol {self.protocol}")
        return f"{self.data_name}, {title}" if self.data_name else title

    def named(self, ours: str) -> str:
        """Name of a row with these numbers, which also says that a second model orders the best candidates."""
        return ours if self.reranking is None else f"{ours}, the first {self.reranking.top} reranked"

    def notes(self) -> list[str]:
        """Notes below a table: gallery, what was right, reranking, source of degrees, and values set by convention.

        >>> from rungwise.evaluation._evaluate import evaluate
        >>> evaluate(similarity=np.eye(2), image_of_caption=[0, 0], measures=["R@1"]).notes()
        ['2 images x 2 captions (0 to 2 an image)', 'i2t: 1 of 2 queries no positive, left out (R@1)']
        """
        folds = len(self.gallery["i2t"])
        lines = [self._sizes() + (f", mean of {folds} folds" if folds > 1 else "")]
        if self.right and self.right != WRITTEN_FOR:
            lines.append(f"right: {self.right}")
        if self.reranking is not None:
            lines.append(self.reranking.note())
        if self.relevance:
            lines.append(f"degrees: {self.degrees()}")
        if self.ends:
            lines.append(f"relevance ends by: {self.ends}")
        alike: dict[tuple[str, int, str], list[str]] = {}
        for name, counts in self.remarks.items():
            way, _, measure = name.partition("/")
            for reason, count in counts.items():
                alike.setdefault((way, count, reason), []).append(measure)
        for (way, count, reason), measures in alike.items():
            lines.append(f"{way}: {count} of {self.queries[way]} queries {reason} ({', '.join(measures)})")
        return [*lines, *(f"warning: {warning}" for warning in self.warnings)]

    def degrees(self) -> str:
        """Name of the degrees of relevance, with the captions of an image that they compare a caption with."""
        return f"{self.relevance}, reference {self.reference}" if self.reference else self.relevance

    def in_tables(self, intervals: Intervals | None = None) -> list[TextTable]:
        """The numbers as they print, then those by class, a table for each direction.

        Args:
            intervals: Bounds to print beside the numbers.
        """
        head, rows = cells_of(self.numbers, self.units, intervals)
        return [TextTable(head, rows, WORDS), *class_tables(self.by_class, self.numbers, self.units)]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each number, by its name: direction, measure, value, unit, and bounds of the 95 % interval.

        Bounds are NaN where there are no values per query, or the measure is not known here.

        Raises:
            UserError: If pandas is not installed.
        """
        names = known_first(self.numbers)
        parts = [name.rpartition("/")[::2] for name in names]
        bounds = self._bounds() or {}
        nothing = (math.nan, math.nan)
        return frame_of(
            {
                "name": names,
                "direction": [way for way, _ in parts],
                "measure": [measure for _, measure in parts],
                "value": [self.numbers[name] for name in names],
                "unit": [self.units[name] for name in names],
                "low": [bounds.get(name, nothing)[0] for name in names],
                "high": [bounds.get(name, nothing)[1] for name in names],
            },
            "name",
        )

    def plain(self) -> dict[str, Any]:
        """Everything but the values per query, as plain values for JSON."""
        left_out = {name for name in ("reranking", "judgements", "by_class") if getattr(self, name) is None}
        return {name: value for name, value in as_json(self).items() if name not in left_out}

    def __repr__(self) -> str:
        about = [f"split {self.split}"] if self.split else []
        about += [] if self.seed is None else [f"seed {self.seed}"]
        about += [f"model {self.model_hash[:12]}"] if self.model_hash else []
        facts = [(name, self._numbers_of(way)) for way, name in WAYS.items()]
        facts += [
            ("both directions", self._numbers_of("")),
            ("of", one_line(", ".join(about), 100)),
            ("degrees", one_line(self.degrees(), 100)),
            ("relevance ends by", one_line(self.ends, 80)),
            ("second model", f"orders the first {self.reranking.top}" if self.reranking else ""),
            ("warnings", some_of(self.warnings) if self.warnings else ""),
            ("values for each query", "kept; interval(name) gives the 95 % interval" if self.has_queries else "none"),
        ]
        return in_few_lines(f"Result: {one_line(self.title(), 70)}, {self._sizes()}", facts)

    def _numbers_of(self, way: str) -> str:
        found = [
            f"{measure} {number_text(self.numbers[name], self.units[name])}"
            for name, (own, measure) in ((name, name.rpartition("/")[::2]) for name in known_first(self.numbers))
            if own == way
        ]
        return some_of(found, 92) if found else ""

    def _sizes(self) -> str:
        least, most = self.captions_per_image["min"], self.captions_per_image["max"]
        per_image = f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
        return f"{self.gallery['t2i'][0]} images x {self.gallery['i2t'][0]} captions ({per_image} an image)"

    def _bounds(self) -> dict[str, Interval] | None:
        return self.intervals() if self.has_queries else None

    def _title(self) -> str:
        return self.title()

    def _tables(self) -> list[TextTable]:
        return self.in_tables(self._bounds())

    def _below(self) -> list[str]:
        said = ["in brackets: 95 % bootstrap intervals over images"] if self.has_queries else []
        return [f"protocol {self.protocol}", *self.notes(), *(self.by_class.notes() if self.by_class else ()), *said]

    def _content(self) -> dict[str, Any]:
        # What the checksum covers has the format's name in it.
        content: dict[str, Any] = self.plain()
        content["query_ids"] = {way: list(ids) for way, ids in self._query_ids.items()}
        content["checksum"] = checksum({"format": FORMAT} | content, self._per_query, self._image_of_query)
        content["per_query"] = {name: as_json(own.tolist()) for name, own in self._per_query.items()}
        content["image_of_query"] = {way: own.tolist() for way, own in self._image_of_query.items()}
        return content

    @classmethod
    def _of_content(cls, content: dict[str, Any]) -> Result:
        """The result of a file, whose numbers are computed again from the values per query where it has them."""
        checked_by = content.pop("checksum", None)
        covered = {"format": FORMAT} | {name: part for name, part in content.items() if name not in _OF_QUERIES[:2]}
        lists = {name: content.pop(name, {}) for name in _OF_QUERIES}
        of_queries = read_as(OfQueries, lists)
        result = read_as(cls, content)
        values = {name: values_of(name, own) for name, own in of_queries.per_query.items()}
        check(result, of_queries, values)
        images = {way: np.array(own, dtype=np.int64) for way, own in of_queries.image_of_query.items()}
        if checked_by != checksum(covered, values, images):
            raise AlteredError
        ids = {way: tuple(own) for way, own in of_queries.query_ids.items()}
        return replace(result, _per_query=values, _image_of_query=images, _query_ids=ids)


def verify(path: Path) -> Iterator[Check]:
    """Check a file of a result: that it is unaltered, and that its numbers follow from its values per query."""
    yield checked(path.name, lambda: f"{len(Result.from_json(path).numbers)} numbers, as they were written")
