import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.grading import agreement_of
from rungwise.grading._agreement import Couple, GraderAgreement, grades_given
from rungwise.relevance.human import Judgement, Judgements, now

TEXT = hash_of_text("a dog")


def given(**grades: dict[int, int]) -> Judgements:
    return Judgements(
        tuple(
            Judgement(str(pair), "c", grade, who, now(), TEXT)
            for who, own in grades.items()
            for pair, grade in own.items()
        )
    )


def slow_kappa(first: list[int], second: list[int]) -> float:
    """By counting, as Cohen (1960) has it."""
    observed = sum(one == other for one, other in zip(first, second, strict=True)) / len(first)
    expected = sum((first.count(grade) / len(first)) * (second.count(grade) / len(second)) for grade in range(1, 5))
    return (observed - expected) / (1 - expected)


def test_each_two_graders_are_compared_on_what_both_graded() -> None:
    random = np.random.default_rng(1)
    people = {
        who: {int(pair): int(random.integers(1, 5)) for pair in random.permutation(20)[:12]} for who in ("A", "B", "C")
    }
    found = agreement_of(given(**people))
    assert (found.graders, found.given) == (("A", "B", "C"), (12, 12, 12))
    assert [(one.first, one.second) for one in found.couples] == [("A", "B"), ("A", "C"), ("B", "C")]
    for couple, (one, other) in zip(found.couples, combinations(people, 2), strict=True):
        both = sorted(people[one].keys() & people[other].keys())
        first, second = [people[one][pair] for pair in both], [people[other][pair] for pair in both]
        assert couple.pairs == len(both)
        assert couple.alike == sum(a == b for a, b in zip(first, second, strict=True))
        assert couple.kappa == pytest.approx(slow_kappa(first, second))
    assert found.shared == sum(sum(pair in own for own in people.values()) >= 2 for pair in range(20))
    assert found.alpha is not None
    assert -1 < found.alpha < 1


def test_what_is_not_defined_is_said() -> None:
    found = agreement_of(given(A={0: 3, 1: 3}, B={0: 3, 1: 3}))
    assert found.couples[0].kappa is None
    assert found.alpha is None
    assert "Cohen's kappa not defined, with quadratic weights not defined" in found.lines()[2]
    assert found.lines()[-1] == "all: Krippendorff's alpha (ordinal) not defined over 2 pairs"


def test_who_shares_no_pair_is_not_compared() -> None:
    found = agreement_of(given(A={0: 3}, B={1: 3}, C={1: 4}))
    assert [(one.first, one.second, one.pairs) for one in found.couples] == [("B", "C", 1)]
    assert found.shared == 1
    alone = agreement_of(given(A={0: 3, 1: 2}))
    assert (alone.couples, alone.shared, alone.alpha) == ((), 0, None)
    assert alone.lines()[0] == "A: 2 pairs"
    assert agreement_of(Judgements(())).graders == ()


def test_complete_agreement_is_one() -> None:
    found = agreement_of(given(A={0: 1, 1: 4, 2: 2}, B={0: 1, 1: 4, 2: 2}))
    assert found.couples[0].kappa == found.couples[0].weighted == found.alpha == 1.0
    assert not math.isnan(found.alpha)


def test_grades_are_counted() -> None:
    assert list(grades_given([4, None, 4, 1]).items()) == [(4, 2), (3, 0), (2, 0), (1, 1)]


def test_who_read_another_text_does_not_disagree() -> None:
    both = given(A={0: 4, 1: 2}, B={1: 2})
    changed = replace(both.kept[0], who="B", grade=1, text_hash=hash_of_text("a cat"))
    found = agreement_of(Judgements((*both.kept, changed)))
    assert (found.shared, found.couples[0].pairs, found.couples[0].alike) == (1, 1, 1)


def test_no_agreement_is_a_negative_zero() -> None:
    couple = Couple("A", "B", 6, 4, -1e-16, -0.004)
    line = GraderAgreement(("A", "B"), (6, 6), 6, (couple,), -0.001).lines()[2:]
    assert "-0.00" not in " ".join(line)
    assert line[0].endswith("Cohen's kappa 0.00, with quadratic weights 0.00")
