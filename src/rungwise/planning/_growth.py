"""What grows with a collection: a value between those that were measured with several numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.planning._rates import Rate, Rates, sizes_of


@dataclass(frozen=True)
class Growth:
    """A value at a number of rows.

    Attributes:
        value: The value, in the unit of the rates.
        formula: How it follows from the rates, each of which stands as ``{}``.
        rates: The rates, by their rows.
    """

    value: float
    formula: str
    rates: tuple[Rate, ...]


def growth(rates: Rates, name: str, rows: float) -> Growth:
    """The value of a rate at a number of rows: measured there, or on the line through the two nearest measurements.

    Below the smallest and beyond the largest measurement the nearest line goes on, below it not further than in
    proportion to the rows. One measurement alone stands for fewer rows too, and grows in proportion.

    >>> from rungwise.planning._rates import sized_name, sized_rate
    >>> rates = {sized_name("words", n): sized_rate("words", n, ms) for n, ms in ((1000, 2.0), (3000, 4.0))}
    >>> [growth(rates, "words", rows).value for rows in (500, 1000, 2000, 9000)]
    [1.5, 2.0, 3.0, 10.0]
    """
    points = sizes_of(rates, name)
    exactly = [point for point in points if point.rows == rows]
    if exactly:
        return Growth(exactly[0].value, "{}", (exactly[0],))
    if len(points) == 1:
        (only,) = points
        return Growth(only.value * max(1.0, rows / _rows(only)), f"{{}} x rows / {_rows(only):,} (at least 1)", (only,))
    after = next((number for number, point in enumerate(points) if _rows(point) > rows), len(points) - 1)
    one, other = points[max(1, after) - 1 : max(1, after) + 1]
    slope = (other.value - one.value) / (_rows(other) - _rows(one))
    value = one.value + slope * (rows - _rows(one))
    if rows < _rows(one):
        value = max(value, one.value * rows / _rows(one))
    else:
        value = max(value, 0.0) if rows <= _rows(other) else max(value, other.value)
    return Growth(value, "the line through {} and {}", (one, other))


def _rows(rate: Rate) -> int:
    assert rate.rows is not None
    return rate.rows
