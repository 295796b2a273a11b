"""Agreement of graders, and a summary of their grades."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rungwise.relevance.agreement import cohen_kappa, krippendorff_alpha
from rungwise.relevance.human import GRADES, Judgements


@dataclass(frozen=True)
class Couple:
    """Agreement of two graders.

    Attributes:
        first: Name of one grader.
        second: Name of the other grader.
        pairs: Number of pairs that both graded.
        alike: Number of pairs with the same grade.
        kappa: Cohen's kappa; None where it is not defined, such as where both gave one grade throughout.
        weighted: Cohen's kappa with quadratic weights.
    """

    first: str
    second: str
    pairs: int
    alike: int
    kappa: float | None
    weighted: float | None


@dataclass(frozen=True)
class GraderAgreement:
    """Agreement of all graders.

    Attributes:
        graders: Names of the graders.
        given: Number of pairs that each graded.
        shared: Number of pairs that two or more graded.
        couples: Agreement of every two graders who share a pair.
        alpha: Ordinal Krippendorff's alpha of all; None where it is not defined.
    """

    graders: tuple[str, ...]
    given: tuple[int, ...]
    shared: int
    couples: tuple[Couple, ...]
    alpha: float | None

    def lines(self) -> list[str]:
        """Summary for people, line by line.

        >>> GraderAgreement(("Ada",), (3,), 0, (), None).lines()
        ['Ada: 3 pairs', 'no pair was graded by two people yet, so there is no agreement to measure']
        """
        said = [f"{who}: {_pairs(count)}" for who, count in zip(self.graders, self.given, strict=True)]
        if not self.shared:
            return [*said, "no pair was graded by two people yet, so there is no agreement to measure"]
        said += [
            f"{one.first} and {one.second}: {one.alike} of {_pairs(one.pairs)} alike, Cohen's kappa"
            f" {_number(one.kappa)}, with quadratic weights {_number(one.weighted)}"
            for one in self.couples
        ]
        return [*said, f"all: Krippendorff's alpha (ordinal) {_number(self.alpha)} over {_pairs(self.shared)}"]


def agreement_of(judgements: Judgements) -> GraderAgreement:
    r"""Agreement of the graders of some judgements.

    >>> from rungwise.core.disk.sealed_lines import hash_of_text
    >>> from rungwise.relevance.human import Judgement
    >>> text = hash_of_text("a dog")
    >>> given = {"Ada": (4, 1, 2), "Bo": (4, 1, 1)}
    >>> found = agreement_of(Judgements(tuple(
    ...     Judgement(f"{place}", "a#0", grade, who, "2024-05-01T12:00:00Z", text)
    ...     for who, grades in given.items() for place, grade in enumerate(grades))))
    >>> print("\n".join(found.lines()))
    Ada: 3 pairs
    Bo: 3 pairs
    Ada and Bo: 2 of 3 pairs alike, Cohen's kappa 0.50, with quadratic weights 0.91
    all: Krippendorff's alpha (ordinal) 0.78 over 3 pairs
    """
    ratings = judgements.ratings(texts_apart=True)
    graded = ~np.isnan(ratings)
    couples = []
    for one, other in combinations(range(len(ratings)), 2):
        both = graded[one] & graded[other]
        if both.any():
            alike = int((ratings[one][both] == ratings[other][both]).sum())
            kappa = cohen_kappa(ratings[one], ratings[other])
            weighted = cohen_kappa(ratings[one], ratings[other], weights="quadratic")
            names = judgements.graders[one], judgements.graders[other]
            couples.append(Couple(*names, int(both.sum()), alike, _defined(kappa), _defined(weighted)))
    shared = int((graded.sum(axis=0) >= 2).sum()) if len(ratings) else 0
    alpha = _defined(krippendorff_alpha(ratings)) if shared else None
    return GraderAgreement(judgements.graders, tuple(graded.sum(axis=1).tolist()), shared, tuple(couples), alpha)


def grades_given(grades: Iterable[int | None]) -> dict[int, int]:
    """Number of times that each grade was given, the best grade first; None is no grade.

    >>> grades_given([4, None, 1, 4])
    {4: 2, 3: 0, 2: 0, 1: 1}
    """
    counts = Counter(grades)
    return {grade: counts[grade] for grade in sorted(GRADES, reverse=True)}


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:z.2f}"


def _pairs(count: int) -> str:
    return f"{count} pair{'' if count == 1 else 's'}"
