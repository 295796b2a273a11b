"""Claims of a study, judged by a rule: the interval of the named difference lies above 0, holds 0, or lies below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rungwise.core.output import TextTable, short_repr
from rungwise.evaluation import Difference, Result, System, compare
from rungwise.evaluation.comparison import BETTER, WORSE, bounds_texts, judged_together, signed
from rungwise.evaluation.statistics import number_text
from rungwise.runs.study._study_file import StudyClaim

ClaimWord = Literal["holds", "does not show", "contradicted here"]
"""Verdict on a claim."""


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and what was measured of it.

    Attributes:
        claim: The claim.
        difference: Its number as both systems have it, tested over pictures and over seeds, with Holm's correction over
            all claims of the study.
    """

    claim: StudyClaim
    difference: Difference

    __repr__ = short_repr

    @property
    def verdict(self) -> ClaimWord:
        """Holds or is contradicted where both tests show it; else it does not show."""
        if self.difference.verdict == BETTER:
            return "holds"
        return "contradicted here" if self.difference.verdict == WORSE else "does not show"

    def lines(self) -> list[str]:
        """The verdict with what is claimed, and below it the numbers that it rests on."""
        _, by, first, second, difference, pictures, seeds, verdict = self.cells()
        counted = "" if self.difference.seeds is None else f"; {self.difference.seeds.count} seeds {seeds}"
        return [
            f"{verdict}: {self.claim.says}",
            f"  {self.claim.name}, by {by}: {second} - {first} = {difference} (pictures {pictures}{counted})",
        ]

    def cells(self) -> list[str]:
        """Row of a table: name, measure, both values, difference, intervals over pictures and seeds, verdict."""
        one = self.difference
        values = [number_text(value, one.unit) for value in (one.first, one.second)]
        tests = (one.pictures, one.seeds)
        intervals = ["-" if test is None else " .. ".join(bounds_texts(test.interval, one.unit)) for test in tests]
        return [
            self.claim.name,
            self.claim.measure,
            *values,
            signed(one.difference, one.unit),
            *intervals,
            self.verdict,
        ]


CLAIM_HEAD = ("claim", "by", "than", "better", "difference", "pictures", "seeds", "verdict")
"""Names of the columns of :meth:`JudgedClaim.cells`."""


def judged_claims(
    claims: Sequence[StudyClaim], results: Mapping[str, Sequence[Sequence[Result]]], *, draws: int = 20_000
) -> tuple[JudgedClaim, ...]:
    """The claims whose systems were both measured, judged together.

    Args:
        claims: Claims of one study.
        results: For each system the results of each of its runs.
        draws: Number of draws of the bootstrap over pictures. With few of them, their seed decides where a p-value is
            near to the bound.
    """
    found = []
    for claim in claims:
        first, second = (_with(claim.measure, results.get(one, ())) for one in (claim.than, claim.better))
        if first and second:
            systems = [System(claim.than, first), System(claim.better, second)]
            found.append((claim, compare(systems, [claim.measure], primary=claim.measure, draws=draws)[claim.measure]))
    judged = judged_together([difference for _, difference in found])
    return tuple(JudgedClaim(claim, one) for (claim, _), one in zip(found, judged, strict=True))


def claim_table(judged: Sequence[JudgedClaim]) -> TextTable:
    """A line for each claim."""
    return TextTable(list(CLAIM_HEAD), [one.cells() for one in judged], frozenset({"claim", "by", "verdict"}))


def _with(number: str, runs: Sequence[Sequence[Result]]) -> tuple[Result, ...]:
    """The result of each run that has a number; none where a run lacks it."""
    own = [next((result for result in run if number in result), None) for run in runs]
    return () if None in own else tuple(one for one in own if one is not None)
