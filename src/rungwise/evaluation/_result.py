"""Result of an evaluation, with everything that is needed to compare it with another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import Check, UserError, checked, read_json, user_path
from rungwise.core.disk import replacing
from rungwise.evaluation._result_file import OfQueries, check, checksum, read_as, values_of
from rungwise.evaluation.judgements import JudgementRecord
from rungwise.evaluation.statistics import IN_FILE, ByClass, Interval, Number, as_json, bootstrap, interval_of
from rungwise.metrics import Measure, Total, parse_all

FORMAT = "rungwise-result/1"
"""Name of the format, written into every file."""


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
class Result:
    """Numbers by canonical name, such as ``i2t/R@1``, ``t2i/CS@100`` or ``rsum``.

    Attributes:
        numbers: Values by name; NaN where no query had a value.
        units: Units by name: ``"percent"``, ``"rank"``, ``"correlation"`` or ``"fraction"``.
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
    """

    __pydantic_config__ = IN_FILE

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

    def image_of_query(self, direction: str) -> NDArray[np.int64]:
        """(queries,) position of the image that each query is, or was written for, ordered as :meth:`per_query`.

        Raises:
            KeyError: If the result's file has no values per query.
        """
        if direction not in self._image_of_query:
            raise KeyError(f"it is not known here whose the queries {direction} are; write results with per_query=True")
        return self._image_of_query[direction]

    def query_ids(self, direction: str) -> tuple[str, ...]:
        """(queries,) ids in the order of :meth:`per_query`; positions as texts where no ids were given."""
        return self._query_ids.get(direction) or tuple(str(place) for place in range(self.queries[direction]))

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
        """Bootstrap intervals of several numbers, by default all, from the same draws; fails as :meth:`interval`."""
        found = bootstrap([self], list(self.numbers) if names is None else list(names), draws, seed)
        return {name: interval_of(values[0], level) for name, values in found.items()}

    def of_measures(self, measures: Iterable[str | Measure | Total]) -> Result:
        """The result with only these measures, among those that were taken."""
        asked = parse_all(measures)
        kept = {str(term) for one in asked for term in (one, *(one.terms if isinstance(one, Total) else ()))}

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

    def plain(self) -> dict[str, Any]:
        """Everything but the values per query, as plain values for JSON."""
        left_out = {name for name in ("reranking", "judgements", "by_class") if getattr(self, name) is None}
        return {name: value for name, value in as_json(self).items() if name not in left_out}

    def to_json(self, path: str | Path, per_query: bool = False) -> None:
        """Write the result as JSON, or no file at all.

        Args:
            path: The file; an existing one is replaced.
            per_query: Also write the values per query, the queries' images and their ids, which intervals and
                comparisons need (25,000 captions take about 0.3 MB a measure).
        """
        content: dict[str, Any] = {"format": FORMAT} | self.plain()
        values, images = (self._per_query, self._image_of_query) if per_query else ({}, {})
        content["query_ids"] = {way: list(ids) for way, ids in self._query_ids.items()} if per_query else {}
        content["checksum"] = checksum(content, values, images)
        content["per_query"] = {name: as_json(own.tolist()) for name, own in values.items()}
        content["image_of_query"] = {way: own.tolist() for way, own in images.items()}
        with replacing(Path(path)) as draft:
            draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, path: str | Path) -> Result:
        """Read what :meth:`to_json` wrote.

        The numbers are computed again from the values per query, where the file has them.

        Raises:
            UserError: If the file is missing, is no result, its parts do not fit together, or it was altered after it
                was written.
        """
        read = read_json(user_path(path))
        if not isinstance(read, dict) or read.get("format") != FORMAT:
            raise UserError(f"{path}: is not a {FORMAT} file; give a file that to_json wrote")
        checked_by = read.pop("checksum", None)
        covered = {name: part for name, part in read.items() if name not in ("per_query", "image_of_query")}
        try:
            of_queries = read_as(
                OfQueries, {name: read.pop(name, {}) for name in ("per_query", "image_of_query", "query_ids")}
            )
            result = read_as(cls, {name: part for name, part in read.items() if name != "format"})
            values = {name: values_of(name, own) for name, own in of_queries.per_query.items()}
            check(result, of_queries, values)
            images = {way: np.array(own, dtype=np.int64) for way, own in of_queries.image_of_query.items()}
        except ValueError as error:
            raise UserError(f"{path}: the result is damaged ({error}); evaluate again") from error
        if checked_by != checksum(covered, values, images):
            raise UserError(f"{path}: the result was altered after it was written; evaluate again")
        ids = {way: tuple(own) for way, own in of_queries.query_ids.items()}
        return replace(result, _per_query=values, _image_of_query=images, _query_ids=ids)


def verify(path: Path) -> Iterator[Check]:
    """Check a file of a result: that it is unaltered, and that its numbers follow from its values per query."""
    yield checked(path.name, lambda: f"{len(Result.from_json(path).numbers)} numbers, as they were written")
