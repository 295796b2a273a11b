"""One number of a plan, with its formula and rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rungwise.core.output import short_repr
from rungwise.planning._rates import Rate, number

Unit = Literal["bytes", "hours", "ms", "a second", "machines"]
MEASURED_UP_TO = 1.5
"""Times the largest measured rows up to which a value counts as measured; beyond, it is extrapolated."""
_BYTES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_HOURS = (("years", 8766.0), ("days", 24.0), ("h", 1.0), ("min", 1 / 60), ("s", 1 / 3600))
_LONGEST = 100 * 8766.0
_MANY_MACHINES = 1e6
_MANY = 2
"""Number of a unit from which it is used: 1.5 days are shown as 36 hours."""


@dataclass(frozen=True)
class Quantity:
    """A number with its derivation.

    Attributes:
        name: Name of the quantity.
        value: Value in the unit; None where a rate behind it was not measured.
        unit: Unit of the value.
        formula: Formula; each ``{}`` stands for a rate, in their order.
        rates: Rates of the formula.
        rows: Rows in the largest part on one machine; beyond :data:`MEASURED_UP_TO` times those of a rate the
            value is extrapolated.
        dimension: Dimension of a vector; 0 where it does not matter.
        remark: A further remark.
    """

    name: str
    value: float | None
    unit: Unit
    formula: str
    rates: tuple[Rate, ...] = ()
    rows: int = 0
    dimension: int = 0
    remark: str = ""

    __repr__ = short_repr

    @property
    def known(self) -> float:
        """The value, which must have been measured."""
        assert self.value is not None
        return self.value

    @property
    def said(self) -> str:
        """Text of the value."""
        return "not measured" if self.value is None else said(self.value, self.unit)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Remarks on what was not measured as it is used here."""
        largest: dict[str, int] = {}  # of what was measured with several numbers of rows
        for rate in self.rates:
            if rate.rows and not rate.assumed:
                largest[rate.what] = max(rate.rows, largest.get(rate.what, 0))
        beyond = [rows for rows in largest.values() if self.rows > MEASURED_UP_TO * rows]
        others = {rate.dimension for rate in self.rates if rate.dimension and not rate.assumed} - {self.dimension}
        others = others if self.dimension else set()
        found = [f"extrapolated from {count_said(min(beyond))} rows"] if beyond else []
        found += [f"measured with D = {one}" for one in sorted(one for one in others if one)]
        found += [f"not measured, assumed: {rate.what}" for rate in self.rates if rate.assumed]
        return tuple([*found, self.remark] if self.remark else found)

    def explained(self, marks: Sequence[str]) -> str:
        """The formula with the values of its rates, each followed by its mark, such as ``"[1]"``."""
        return self.formula.format(
            *(f"{rate.said} {mark}".strip() for rate, mark in zip(self.rates, marks, strict=True))
        )

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "said": self.said,
            "formula": self.explained([""] * len(self.rates)),
            "rates": [
                {
                    "what": rate.what,
                    "value": rate.value,
                    "unit": rate.unit,
                    "rows": rate.rows,
                    "dimension": rate.dimension,
                    "machine": rate.machine,
                    "source": rate.source,
                    "measured": not rate.assumed,
                }
                for rate in self.rates
            ],
            "doubts": list(self.doubts),
        }


def said(value: float, unit: Unit) -> str:
    """Text of a value with its unit.

    >>> said(3.6e9, "bytes"), said(0.05, "hours"), said(30, "hours"), said(2600, "ms"), said(3, "machines")
    ('3.6 GB', '3 min', '30 h', '2.6 s', '3')
    """
    if unit == "bytes":
        return next((f"{_short(value / size)} {name}" for name, size in _BYTES if value >= size), f"{value:.0f} B")
    if unit == "hours":
        if value > _LONGEST:
            return "> 100 years"
        name, size = next(((name, size) for name, size in _HOURS if value >= _MANY * size), _HOURS[-1])
        return f"{_short(value / size)} {name}"
    if unit == "ms":
        return said(value / 3.6e6, "hours") if value >= 1000 else f"{_short(value)} ms"
    if unit == "machines":
        return f"{value:,.0f}" if value < _MANY_MACHINES else f"{_short(value / 1e6)} M"
    return f"{_short(value)}/s"


def count_said(count: int) -> str:
    """Text of a number of rows or pictures.

    >>> count_said(5_000_000_000), count_said(1_500_000), count_said(10_000), count_said(8_091)
    ('5 B', '1.5 M', '10 k', '8,091')
    """
    for name, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size and count % (size // 10) == 0:
            return f"{count / size:g} {name}"
    return f"{count:,}"


def _short(value: float) -> str:
    """Two digits of a small number, all of a large one; sums of estimates are no more exact."""
    return f"{value:,.0f}" if value >= 10 else number(float(f"{value:.2g}"))
