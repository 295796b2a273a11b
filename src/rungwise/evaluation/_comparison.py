"""Comparison of two results on the same queries: differences, their intervals and tests of significance."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.formats import IN_FILE, CheckedJson, Number
from rungwise.core.output import InTables, TextTable, frame_of, in_few_lines, one_line
from rungwise.evaluation._result import Result
from rungwise.evaluation.statistics import Interval, MeasureTerm, Numbers, bootstrap, interval_of, is_known, redrawn
from rungwise.metrics import CORRELATION, DEGREE, FRACTION, Measure, Total, parse

if TYPE_CHECKING:
    import pandas
    from rich.table import Table

_LABELS = ("A", "B")
"""Names of the two results in a table."""
_HEAD = ("measure", *_LABELS, "B - A", "interval", "p (Holm)", "B is")
_FEW = 8
"""Number of numbers that a comparison prints in a session."""


@dataclass(frozen=True)
class Difference:
    """One number as both results have it, with the difference between them.

    Attributes:
        name: Name of the number, such as ``t2i/R@1`` or ``rsum``.
        unit: ``"percent"``, ``"rank"``, ``"correlation"``, ``"fraction"`` or ``"degree"``.
        first: Value in the first result.
        second: Value in the second result.
        difference: Value in the second result minus the one in the first.
        interval: Paired bootstrap interval of the difference, over images.
        p: P-value of the two-sided paired randomisation test: how often exchanging the two results, image by image,
            gives a difference at least so large.
        p_holm: P-value after Holm's correction for all numbers compared.
        improved: Whether the second result is better; None where the two are equal.
    """

    __pydantic_config__ = IN_FILE

    name: str
    unit: str
    first: Number
    second: Number
    difference: Number
    interval: Interval
    p: Number
    p_holm: Number
    improved: bool | None


@dataclass(frozen=True)
class Change:
    """The values of one query that fares differently under the two results."""

    __pydantic_config__ = IN_FILE

    direction: str
    query: str
    first: Number
    second: Number


@dataclass(frozen=True)
class Comparison(InTables, CheckedJson):
    """Differences between two results, as :func:`compare` finds them.

    Attributes:
        protocol: Protocol of both results.
        level: Confidence level of the intervals.
        draws: Number of draws of the bootstrap, and of the randomisation test.
        seed: Seed of the draws.
        differences: Differences of all compared numbers, in the order of the first result.
        only_in_one: Names of numbers that one of the results lacks or has as NaN; they are not compared.
        by: The measure whose values per query decide ``better`` and ``worse``.
        better: Per direction, the queries that fare better under the second result, the most changed first.
        worse: Per direction, the queries that fare worse, the most changed first.
        unchecked: What could not be checked to be the same for both, one line each.
        ends: The two results' methods of where relevance ends, where a measure reads them and they differ; else None.
        unknown: Names of numbers that both have and whose measures are not known here; they are not compared.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> one, other = (evaluate(similarity=s, image_of_caption=[0, 1]) for s in (np.eye(2)[::-1], np.eye(2)))
    >>> found = compare(one, other)
    >>> found["rsum"].difference, [change.query for change in found.better["t2i"]]
    (200.0, ['0', '1'])
    >>> Comparison.from_json(found.to_json()) == found
    True
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-comparison/1"
    remedy: ClassVar[str] = "compare again"

    protocol: str
    level: float
    draws: int
    seed: int
    differences: tuple[Difference, ...]
    only_in_one: tuple[str, ...]
    by: str
    better: dict[str, tuple[Change, ...]]
    worse: dict[str, tuple[Change, ...]]
    unchecked: tuple[str, ...] = ()
    ends: tuple[str, str] | None = None
    unknown: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Difference:
        """Difference of the number with this name; KeyError if it was not compared."""
        for one in self.differences:
            if one.name == name:
                return one
        raise KeyError(f"{name!r} was not compared; there are {', '.join(one.name for one in self.differences)}")

    def to_frame(self) -> pandas.DataFrame:
        """A row for each number, by its name: both values, their difference, its interval, p-values, what improved.

        Raises:
            UserError: If pandas is not installed.
        """
        return frame_of(self._columns(), "name")

    def to_csv(self) -> str:
        r"""The numbers of :meth:`to_frame` as comma-separated values, a line for each; what has no value is empty.

        >>> from rungwise.evaluation._evaluate import evaluate
        >>> one, other = (evaluate(similarity=np.array([[0.9, score], [0.1, 0.3]]), image_of_caption=[0, 1],
        ...     measures=["R@1"]) for score in (0.5, 0.2))
        >>> compare(one, other).to_csv().splitlines()[0]
        'name,unit,first,second,difference,low,high,p,p_holm,improved'
        """
        file = io.StringIO(newline="")
        table = csv.writer(file, lineterminator="\n")
        columns = self._columns()
        table.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            table.writerow("" if isinstance(one, float) and math.isnan(one) else one for one in row)
        return file.getvalue()

    def _columns(self) -> dict[str, list[Any]]:
        rows = self.differences
        return {
            "name": [one.name for one in rows],
            "unit": [one.unit for one in rows],
            "first": [one.first for one in rows],
            "second": [one.second for one in rows],
            "difference": [one.difference for one in rows],
            "low": [one.interval.low for one in rows],
            "high": [one.interval.high for one in rows],
            "p": [one.p for one in rows],
            "p_holm": [one.p_holm for one in rows],
            "improved": [one.improved for one in rows],
        }

    def __repr__(self) -> str:
        facts = [
            (one.name, f"{' -> '.join(row[1:3])}, {row[3]} [{row[4]}], p {row[5].strip()} {row[6]}".rstrip())
            for one, row in zip(self.differences[:_FEW], _cells(self), strict=False)
        ]
        more = len(self.differences) - len(facts)
        facts.append(("further numbers", str(more) if more else ""))
        for word, lists in (("better", self.better), ("worse", self.worse)):
            counts = ", ".join(f"{way} {len(changes)}" for way, changes in lists.items())
            facts.append((f"queries that fare {word} by {one_line(self.by, 40)}", counts))
        return in_few_lines(f"Comparison: {one_line(self._title(), 90)}", facts)

    def _title(self) -> str:
        first, second = _LABELS
        return f"{second} - {first}, protocol {self.protocol}, {len(self.differences)} numbers"

    def _tables(self) -> list[TextTable]:
        return [TextTable(_HEAD, _cells(self), frozenset({"measure"}))]

    def _below(self) -> list[str]:
        changed = [
            f"{way}: queries by {self.by}: {len(self.better[way])} better in {_LABELS[1]}, {len(self.worse[way])} worse"
            for way in self.better
        ]
        return [f"protocol {self.protocol}", *_said_below(self), *changed, *self.left_out()]

    def left_out(self) -> list[str]:
        """Lines that name the numbers that were not compared, with the reason."""
        reasons = {
            "only in one of them, not compared": self.only_in_one,
            "of a measure that is not known here, not compared; name its module (--module)": self.unknown,
        }
        return [f"{reason}: {', '.join(names)}" for reason, names in reasons.items() if names]

    def _check_parts(self) -> None:
        for one in self.differences:
            for what, value in (("p", one.p), ("p_holm", one.p_holm)):
                if not 0 <= value <= 1:
                    raise ValueError(f"{one.name}: {what} is {value}")
        if self.better.keys() != self.worse.keys():
            raise ValueError("better and worse are of other directions")


def compare(
    first: Result,
    second: Result,
    names: Iterable[str] | None = None,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
    by: str | None = None,
    labels: tuple[str, str] = ("first", "second"),
) -> Comparison:
    """Paired comparison of two results on the same queries.

    Both tests go by images, since the captions of one image are not independent: the bootstrap draws the same images
    for both results, and the randomisation test exchanges the two results' values of all queries of an image.

    Args:
        first: The result to compare with; it needs values per query.
        second: The result that is compared; it needs values per query.
        names: Names of the numbers to compare; None takes all that both have. Holm's correction is for this many
            numbers.
        level: Confidence level of the intervals.
        draws: Number of draws of each test; no p-value is smaller than 1 / (draws + 1).
        seed: Seed of the draws.
        by: The measure, without a direction, that decides which queries fare better. None takes MRR where it is there,
            else the first measure.
        labels: Names of the two results in error messages.

    Raises:
        UserError: If protocols, data, galleries, right answers or the degrees of graded measures differ, values per
            query are missing, the two have no number of a known measure in common, or a name is not in both.
    """
    _refuse_different(first, second, labels)
    both = [name for name, number in first.numbers.items() if not np.isnan(number + second.numbers.get(name, np.nan))]
    common = [name for name in both if is_known(name)]
    if not both:
        raise UserError(
            f"{labels[0]} and {labels[1]} have no number in common: one has {', '.join(first.numbers)}, the other"
            f" {', '.join(second.numbers)}; evaluate both with the same measures"
        )
    asked = common if names is None else list(names)
    for name in asked:
        if name not in both:
            ways = [one for one in both if one.partition("/")[2] == name]
            meant = f"; write {' or '.join(ways)}" if ways else f"; in both are {', '.join(both)}"
            raise UserError(f"{name}: has no value in both results{meant}")
    if foreign := [name for name in (both if names is None and not common else asked) if name not in common]:
        raise UserError(
            f"{labels[0]} and {labels[1]} cannot be compared by {', '.join(foreign)}: not known here; name the module"
            " of the measure (--module), or import it in Python"
        )
    graded = [name for name in asked if _measure_of(name).graded]
    if graded and first.relevance != second.relevance:
        mine, theirs = (one.relevance or "unknown" for one in (first, second))
        raise UserError(
            f"{labels[1]} cannot be compared with {labels[0]} by {graded[0]}: degrees are {theirs} against {mine};"
            " evaluate both with the same relevance, or compare other measures"
        )
    drawn = bootstrap([first, second], asked, draws, seed)
    exchanged = _exchanged(first, second, asked, draws, seed)
    p = {}
    for name in asked:
        observed, chance = abs(second[name] - first[name]), np.abs(exchanged[name][1] - exchanged[name][0])
        slack = 1e-9 * max(1.0, abs(first[name]))  # sums in another order differ in their last bits
        p[name] = float((1 + (chance >= observed - slack).sum()) / (1 + draws))
    corrected = dict(zip(asked, holm([p[name] for name in asked]), strict=True))
    differences = []
    for name in asked:
        difference = second[name] - first[name]
        higher = _measure_of(name).higher_is_better
        differences.append(
            Difference(
                name=name,
                unit=first.units[name],
                first=first[name],
                second=second[name],
                difference=difference,
                interval=interval_of(drawn[name][1] - drawn[name][0], level),
                p=p[name],
                p_holm=corrected[name],
                improved=None if difference == 0 else bool((difference > 0) == higher),
            )
        )
    chosen = by or _measure_of_lists(common)
    better, worse = _changes(first, second, chosen)
    only = tuple(name for name in {**first.numbers, **second.numbers} if name not in both)
    unchecked = []
    if not first.data_hash:
        unchecked.append("neither result names its data, so that only sizes could be compared")
    if graded and first.relevance.startswith("given") and ", hash " not in first.relevance:
        unchecked.append(f"the degrees of both were {first.relevance}, which may be two")
    methods = (first.ends, second.ends)
    return Comparison(
        first.protocol,
        level,
        draws,
        seed,
        tuple(differences),
        only,
        chosen,
        better,
        worse,
        tuple(unchecked),
        methods if any(_measure_of(name).reads_ends for name in asked) and methods[0] != methods[1] else None,
        unknown=tuple(name for name in both if name not in common),
    )


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the given order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    scaled = np.array(p, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled)) if len(order) else scaled
    return [float(value) for value in corrected]


def render_comparison(comparison: Comparison) -> Table:
    """Table of the numbers side by side, at most 80 columns wide."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(f"protocol {comparison.protocol}", style="table.title"),  # a name may look like markup
        caption="; ".join(_said_below(comparison)),
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("measure", overflow="fold")
    for head in _HEAD[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    for name, *cells in _cells(comparison):
        table.add_row(Text(name), *cells)
    return table


def _cells(comparison: Comparison) -> list[list[str]]:
    rows = []
    for one in comparison.differences:
        places = 3 if one.unit in (CORRELATION, DEGREE, FRACTION) else 1
        first, second, low, high = (f"{value:.{places}f}" for value in (one.first, one.second, *one.interval))
        rows.append(
            [
                one.name,
                first,
                second,
                f"{one.difference:+.{places}f}",
                f"{low}..{high}",
                f"{one.p_holm:.4f}" + ("*" if one.p_holm < 0.05 else " "),
                {None: "", True: "better", False: "worse"}[one.improved],
            ]
        )
    return rows


def _said_below(comparison: Comparison) -> list[str]:
    first, second = _LABELS
    said = [
        f"{100 * comparison.level:g} % interval of {second} - {first}: paired bootstrap over images",
        f"p: paired randomisation by image, Holm's correction; {comparison.draws} draws each; * p < 0.05",
        *comparison.unchecked,
    ]
    if comparison.ends is not None:
        methods = zip(_LABELS, comparison.ends, strict=True)
        said.append("relevance ends " + ", ".join(f"in {label} by {one or 'nothing'}" for label, one in methods))
    return said


def _measure_of(name: str) -> Measure | Total:
    return parse(name.partition("/")[2] or name)


def _refuse_different(first: Result, second: Result, labels: tuple[str, str]) -> None:
    one, other = labels
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
    for label, result in zip(labels, (first, second), strict=True):
        if not result.has_queries:
            raise UserError(f"{label}: holds no values per query; evaluate again")
    for way in ("i2t", "t2i"):
        same_images = np.array_equal(first.image_of_query(way), second.image_of_query(way))
        if not same_images or first.query_ids(way) != second.query_ids(way):
            raise UserError(
                f"{other} cannot be compared with {one}: {way} has other queries or another order of them;"
                " evaluate both on the same data"
            )


def _sizes(result: Result) -> str:
    return " and ".join(f"{way} {'+'.join(map(str, sizes))}" for way, sizes in sorted(result.gallery.items()))


def _exchanged(first: Result, second: Result, names: Sequence[str], draws: int, seed: int) -> dict[str, Numbers]:
    """Name to (2, draws): both numbers when each image's values are exchanged with probability one half."""

    def draw(generator: np.random.Generator, count: int, images: int) -> Numbers:
        return generator.integers(0, 2, (count, images)).astype(np.float64)

    def aggregated(term: MeasureTerm, queries: slice, swapped: Numbers) -> Numbers:
        own = [term.measure.exchangeable(one.per_query(term.name)[queries]) for one in (first, second)]
        values = np.concatenate(own)
        kept = 1 - swapped
        return np.stack(
            [
                term.measure.aggregate_draws(values, np.concatenate(weights, axis=1))
                for weights in ((kept, swapped), (swapped, kept))
            ]
        )

    return redrawn(first, names, draw, aggregated, draws, seed)


def _measure_of_lists(names: Sequence[str]) -> str:
    measures = [name.partition("/")[2] for name in names if "/" in name]
    return "MRR" if "MRR" in measures else measures[0]


def _changes(
    first: Result, second: Result, measure: str
) -> tuple[dict[str, tuple[Change, ...]], dict[str, tuple[Change, ...]]]:
    better: dict[str, tuple[Change, ...]] = {}
    worse: dict[str, tuple[Change, ...]] = {}
    shared = [name.partition("/") for name in first.numbers if name in second.numbers]
    known = dict.fromkeys(own for _, way, own in shared if way)
    if measure not in known:
        raise UserError(
            f"by={measure!r} is not a measure of both results; in both are {', '.join(known)}",
            parameters={f"by={measure!r}": "by"},
        )
    parsed = parse(measure)
    assert isinstance(parsed, Measure)
    sense = 1 if parsed.higher_is_better else -1
    for way in ("i2t", "t2i"):
        name = f"{way}/{measure}"
        if name not in first.numbers or name not in second.numbers:
            continue
        a, b = (parsed.of_query(one.per_query(name)) for one in (first, second))
        ids = first.query_ids(way)
        gain: NDArray[np.float64] = np.nan_to_num(sense * (b - a))
        order = np.argsort(-np.abs(gain), kind="stable")
        changes = [(gain[at], Change(way, ids[at], float(a[at]), float(b[at]))) for at in order if gain[at]]
        better[way] = tuple(change for size, change in changes if size > 0)
        worse[way] = tuple(change for size, change in changes if size < 0)
    return better, worse
