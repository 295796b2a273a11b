"""Table of the measurements, at most 80 columns wide."""

from __future__ import annotations

from rungwise.demo._measurement import Compared, MeasureLine


def rendered(compared: Compared) -> str:
    """Text of a comparison.

    >>> print(rendered(Compared("searches", 100, 600, (MeasureLine("CS@100", 0.31, 0.42, 0.0, 0.05, 0.17),))))
    searches: 100, in 600 pictures
                                     triplet  degrees  chance  degrees - triplet
    CS@100                             0.310    0.420   0.000  +0.050 .. +0.170
    """
    head = f"{'':<33}{'triplet':>7}{'degrees':>9}{'chance':>8}  degrees - triplet"
    title = f"{compared.title}: {compared.queries:,}, in {compared.gallery:,} pictures"
    return "\n".join((title, head, *(_row(line) for line in compared.lines)))


def _row(line: MeasureLine) -> str:
    digits = 3 if line.name.startswith("CS") else 1
    numbers = f"{line.triplet:>7.{digits}f}{line.degrees:>9.{digits}f}{line.chance:>8.{digits}f}"
    return f"{line.name:<33}{numbers}  {line.low:+.{digits}f} .. {line.high:+.{digits}f}"
