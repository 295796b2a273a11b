"""Measures as values: they print, parse back, hash, and know their unit, bounds and sense."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import cut, quoted, short_repr
from rungwise.core.text import first_sentence, near_names
from rungwise.metrics._blocks import CheckedDegrees
from rungwise.metrics._rankings import DIRECTIONS, Direction, Positives, Rankings
from rungwise.parts import Registry

PERCENT = "percent"
RANK = "rank"
CORRELATION = "correlation"
FRACTION = "fraction"
"""Unit of values from 0 to 1 that print as decimals: areas under curves, and errors as a share of a scale."""
DEGREE = "degree"
"""Unit of means of degrees of relevance, on the scale of their source."""


LONGEST_DEFINITION = 160
"""Largest number of characters of a definition, so that it takes a line or two of a page."""

_OURS = "rungwise"
_OWN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SUMS = ("rsum", "Nsum")


@dataclass(frozen=True)
class Measure(ABC):
    """One way of measuring a ranking; the primitive is one value per query.

    A subclass with a cutoff has a field ``k``. All its other fields are options that print in parentheses: whole
    numbers, real numbers such as thresholds, flags, and words whose field lists them in its metadata as ``words``.

    Attributes:
        name: Printed name of the family, as the field uses it. A class without one is no family itself.
        unit: Unit of the values: ``"percent"``, ``"rank"``, ``"correlation"``, ``"fraction"`` or ``"degree"``.
        bounds: Smallest and largest possible number.
        higher_is_better: Whether larger is better; False for ranks and errors.
        graded: Whether the measure reads degrees of relevance and the retrieved lists, and not only the positives'
            ranks.
        reads_ends: Whether the measure needs a method that says where relevance ends, and whole rows.
        takes_gaps: Whether the measure is defined where some pairs have no degree.
        parts: Number of values of one query; :meth:`per_query` returns rows where there are several.
        meaning: One sentence that says what the number is, for readers who know retrieval and not this program. K
            stands for the cutoff. Empty takes the first sentence of the docstring.

    >>> from rungwise.metrics import parse
    >>> measure = parse("NCS@10(non_gt)")
    >>> measure
    NCS(k=10, m=None, non_gt=True)
    >>> str(measure), measure.unit, measure.bounds, measure == parse("NCS@10(non_gt)")
    ('NCS@10(non_gt)', 'percent', (0.0, 100.0), True)
    """

    name: ClassVar[str]
    unit: ClassVar[str] = PERCENT
    bounds: ClassVar[tuple[float, float]] = (0.0, 100.0)
    higher_is_better: ClassVar[bool] = True
    graded: ClassVar[bool] = False
    reads_ends: ClassVar[bool] = False
    takes_gaps: ClassVar[bool] = False
    parts: ClassVar[int] = 1
    meaning: ClassVar[str] = ""

    def __init_subclass__(cls, **given: Any) -> None:
        """Refuse a name that :func:`rungwise.metrics.parse` would not read back as this class."""
        super().__init_subclass__(**given)
        if "name" in vars(cls) and not _is_readable(cls):
            raise UserError(
                f"the measure {cls.__qualname__} of the module {cls.__module__} may not be called"
                f" {quoted(str(cls.name))};"
                " a name begins with a letter of A to Z or a to z, goes on with such letters, digits and _, and is none"
                f" of the sums {' and '.join(_SUMS)}"
            )

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or isinstance(value, bool):
                continue
            if words := _words(field):
                if value not in words:
                    raise UserError(f"{self.name}: {field.name} must be {' or '.join(words)}, got {value!r}")
            elif _is_real(field):
                object.__setattr__(self, field.name, _real(self.name, field.name, value))
            elif value < 1:
                raise UserError(f"{self}: {field.name} must be at least 1, got {value}")

    def __str__(self) -> str:
        """Printed form, which :func:`rungwise.metrics.parse` reads back."""
        text, options = self.name, []
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or value is False or (_words(field) and value == field.default):
                continue
            if field.name == "k":
                text += f"@{value}"
            elif value is True:
                options.append(field.name)
            elif _words(field):
                options.append(f"{field.name}={value}")
            else:
                options.append(f"{field.name}={repr(value).removesuffix('.0')}")
        return f"{text}({','.join(options)})" if options else text

    @property
    def definition(self) -> str:
        """One sentence of at most 160 characters that says what the number is; empty where the class does not say it.

        >>> from rungwise.metrics import parse
        >>> parse("R@5").definition
        'Percentage of queries with at least one right candidate among the first K.'
        """
        said = type(self).__doc__ or ""
        if said.startswith(f"{type(self).__name__}("):  # what a dataclass writes where nobody wrote anything
            said = ""
        return cut(self.meaning or first_sentence(said), LONGEST_DEFINITION)

    @property
    def depth(self) -> int | None:
        """Length of the retrieved list that is read: 0 for ranks of positives only, None for the whole gallery."""
        return getattr(self, "k", None) if self.graded else 0

    @property
    def breadth(self) -> int:
        """Number of most relevant candidates of a caption query that are read."""
        return 0

    @property
    def reads_rows(self) -> bool:
        """Whether whole rows of scores are read, however short the list is."""
        return self.reads_ends

    def sets(
        self, relevance: CheckedDegrees, image_of_caption: NDArray[np.int64], images: int
    ) -> dict[Direction, Positives] | None:
        """Right candidates for this measure where a query's own row cannot tell; asked for once, before the pass."""
        return None

    @property
    def value_bounds(self) -> tuple[float, float]:
        """Smallest and largest possible value of one query, or of one part of it."""
        return self.bounds

    @abstractmethod
    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) values, or (queries, parts); NaN where the measure is not defined, such as without a positive."""

    def of_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(queries,) one number for each query, for lists of queries: its value, or a summary of its parts."""
        return values

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries whose value is set by a convention and not by the formula, by convention."""
        return {}

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """The reported number: the mean over queries that have a value, NaN when none has."""
        known = values[~np.isnan(values)]
        return float(known.mean()) if known.size else float("nan")

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """:meth:`aggregate` for many bootstrap draws at once, where each query counts as often as it was drawn.

        Args:
            values: (queries,) or (queries, parts) values.
            weights: (draws, queries) whole numbers from 0.

        Returns:
            (draws,) numbers; NaN where a draw has no query with a value.
        """
        known = ~np.isnan(values)
        if not known.all():
            values, weights = values[known], weights[:, known]
        counts = weights.sum(axis=1)
        nothing = np.full(len(weights), np.nan)
        return np.asarray(np.divide(weights @ values, counts, out=nothing, where=counts > 0))


def taken(measure: Measure, rankings: Rankings) -> NDArray[np.float64]:
    """Values of a measure for a block of queries.

    Raises:
        UserError: If what it gives is not one value, or one row of its parts, for each query.
    """
    values = measure.per_query(rankings)
    queries = len(rankings.positives.counts)
    wanted = (queries,) if measure.parts == 1 else (queries, measure.parts)
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # no numbers, or rows of different lengths
        found = None
    if values is None or found is None or found.shape != wanted:
        given = type(values).__name__ if values is None or found is None else f"an array of shape {found.shape}"
        rows = "numbers" if measure.parts == 1 else f"rows of {measure.parts} numbers"
        raise UserError(
            f"the measure {measure} ({type(measure).__module__}.{type(measure).__qualname__}): per_query gives {given}"
            f" for {queries} queries; return an array of {queries} {rows}, one for each query"
        )
    return found


@dataclass(frozen=True)
class Total:
    """A sum of other measures, each in both directions, such as rsum; ``option`` prints in parentheses.

    >>> from rungwise.metrics import parse
    >>> total = parse("rsum")
    >>> str(total), [str(term) for term in total.terms], total.bounds
    ('rsum', ['R@1', 'R@5', 'R@10'], (0.0, 600.0))
    """

    name: str
    terms: tuple[Measure, ...]
    option: str = ""
    unit: ClassVar[str] = PERCENT
    higher_is_better: ClassVar[bool] = True

    __repr__ = short_repr

    @property
    def definition(self) -> str:
        """One sentence that says what is added up.

        >>> from rungwise.metrics import parse
        >>> parse("rsum").definition
        'Sum of R@1, R@5 and R@10 over both directions, 600 at most.'
        """
        *names, last = map(str, self.terms)
        named = f"{', '.join(names)} and {last}" if names else last
        return f"Sum of {named} over both directions, {self.bounds[1]:g} at most."

    @property
    def graded(self) -> bool:
        """Whether a term needs degrees of relevance."""
        return any(term.graded for term in self.terms)

    @property
    def reads_ends(self) -> bool:
        """Whether a term needs a method that says where relevance ends."""
        return any(term.reads_ends for term in self.terms)

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible sum."""
        return 2 * sum(t.bounds[0] for t in self.terms), 2 * sum(t.bounds[1] for t in self.terms)

    def __str__(self) -> str:
        return f"{self.name}({self.option})" if self.option else self.name


def families(base: type[Measure] = Measure) -> tuple[type[Measure], ...]:
    """All families of measures below ``base`` that have a name, each followed by its own subfamilies."""
    found: list[type[Measure]] = []
    for family in base.__subclasses__():
        # A class whose name was refused stays below its base as long as anything holds it, such as its error.
        found += [family] * ("name" in vars(family) and _is_readable(family)) + list(families(family))
    return tuple(found)


def _is_readable(family: type[Measure]) -> bool:
    """Whether :func:`parse_as` reads the name of a family back; ours have names that it knows."""
    name = family.name
    own = isinstance(name, str) and _OWN_NAME.fullmatch(name) is not None and name not in _SUMS
    return own or family.__module__.partition(".")[0] == _OURS


MEASURES: Registry[Measure] = Registry("measures", "measure", families, lambda family: family.name)
"""Families of measures by name: ours, all others that are defined, and those that installed packages offer."""

# Nobody means numbers of more digits, and Python refuses to read very long ones.
_WHOLE = re.compile(r"[0-9]{1,18}")
_REAL = re.compile(r"[-+.0-9][-+.0-9eE]*")
_GRAMMAR = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]*(?:@R)?)(?:@(?P<k>[0-9]{1,18}))?(?:\((?P<options>[^()]*)\))?")


def parse_as(text: str, totals: tuple[Total, ...]) -> Measure | Total:
    """Parse a measure of any family or one of the given totals.

    Raises:
        UserError: If the name, the cutoff or an option is not known.
    """
    for total in totals:
        if text.replace(" ", "") == str(total):
            return total
    found = _GRAMMAR.fullmatch(text.replace(" ", ""))
    if found is None or not MEASURES.has(found["name"]):
        way, _, own = text.partition("/")
        if way in DIRECTIONS:
            raise UserError(f"there is no measure {text!r}: measures are taken in both directions; write {own!r}")
        known = MEASURES.known()
        offered = (name for name in MEASURES.names() if name not in known)
        near = _near(text, known.values(), totals)
        raise MEASURES.unknown(text, [*map(_pattern, known.values()), *map(str, totals), *offered], near)
    family = MEASURES.named(found["name"])
    allowed = {field.name: field for field in fields(family)}
    first_real = next((name for name, field in allowed.items() if _is_real(field)), None)
    options: dict[str, float | bool | str] = {}
    if found["k"]:
        options["k"] = int(found["k"])
    for option in filter(None, (found["options"] or "").split(",")):
        key, equals, value = option.partition("=")
        if not equals and first_real is not None and _REAL.fullmatch(option):
            key, equals, value = first_real, "=", option  # CutF1(0.5) is CutF1(t=0.5)
        if key in options:
            raise UserError(f"measure {text!r}: {key} is given twice; give it once")
        if equals and key in allowed and _is_real(allowed[key]):
            options[key] = _real(family.name, key, value)
        elif equals and key in allowed and _words(allowed[key]):
            options[key] = value
        elif equals and not _WHOLE.fullmatch(value):
            raise UserError(f"measure {text!r}: {key} must be a whole number, got {value!r}")
        else:
            options[key] = int(value) if equals else True
    needed = {name for name, field in allowed.items() if field.default is MISSING}
    right = needed <= set(options) <= set(allowed)
    if not right or any(isinstance(value, bool) != _is_flag(allowed[key]) for key, value in options.items()):
        raise UserError(f"measure {text!r} is not well formed; write {_pattern(family)}")
    return family(**options)


def _near(text: str, known: Iterable[type[Measure]], totals: Iterable[Total]) -> str:
    """The measure that is written nearly like an unknown one, whatever the case of its letters; empty without one."""
    own = text.partition("(")[0]
    k = digits[0] if (digits := _WHOLE.search(own)) else "K"
    written = list(map(str, totals))
    for family in known:
        needed = {field.name: field.default is MISSING for field in fields(family)}
        written += [f"{family.name}@{k}"] * ("k" in needed) + [family.name] * (not needed.get("k", False))
    of_lower = {one.lower(): one for one in reversed(written)}
    near = near_names(own.lower(), of_lower, 1, 0.8)
    return of_lower[near[0]] if near else ""


def _pattern(family: type[Measure]) -> str:
    own = {f.name: f for f in fields(family)}
    options = [
        name if _is_flag(f) else f"{name}={'|'.join(_words(f)) or '..'}" for name, f in own.items() if name != "k"
    ]
    text = family.name
    if "k" in own:
        text += "@K" if own["k"].default is MISSING else "[@K]"
    return f"{text}({','.join(options)})" if options else text


def _is_flag(option: Field[Any]) -> bool:
    return isinstance(option.default, bool)


def _words(option: Field[Any]) -> tuple[str, ...]:
    """The words of which an option takes one; empty for any other option."""
    return tuple(option.metadata.get("words", ()))


def _is_real(option: Field[Any]) -> bool:
    """Whether an option is a real number, such as a degree; in modules that postpone annotations the type is a text."""
    return str(option.type).removesuffix(" | None") in ("float", str(float))


def _real(measure: str, option: str, value: Any) -> float:
    """A finite real number from a number or its text; UserError otherwise."""
    try:
        number = math.nan if isinstance(value, str) and not _REAL.fullmatch(value) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{measure}: {option} must be a number, got {value!r}; write such as {measure}({option}=0.5)")
    return number
