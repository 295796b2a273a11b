"""Trials of a search: the values that they try, and the one that the validation split chooses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import short_repr
from rungwise.runs.study._study_file import DrawRange, StudyArm, StudyConfig, StudySearch

_DIGITS = 4
"""Significant digits of a drawn number: more would say nothing, and nobody could read them."""


@dataclass(frozen=True)
class StudyTrial:
    """One trial of an arm.

    Attributes:
        number: Its number, from 1.
        values: Values of the searched settings by dotted name.
    """

    number: int
    values: Mapping[str, Any]

    __repr__ = short_repr


def trials_of(study: StudyConfig, arm: StudyArm) -> tuple[StudyTrial, ...]:
    """The trials of an arm; none where nothing is searched for it.

    Random values of a setting follow from the seed of the draws and the name of the setting alone. So arms with the
    same range try the same values, and a larger budget begins with the trials of a smaller one.
    """
    search, ranges = study.search, study.ranges_of(arm)
    if search is None or not ranges:
        return ()
    if search.by == "grid":
        points = product(*(one.choice for one in ranges.values()))
        return tuple(StudyTrial(at, dict(zip(ranges, point, strict=True))) for at, point in enumerate(points, 1))
    assert search.trials is not None
    drawn = {name: _drawn(one, name, search) for name, one in ranges.items()}
    return tuple(StudyTrial(at + 1, {name: own[at] for name, own in drawn.items()}) for at in range(search.trials))


def best_trial(search: StudySearch, values: Sequence[float]) -> int:
    """Position of the trial that the measure finds best; the first of equal ones.

    Raises:
        UserError: If no trial has a value.

    >>> best_trial(StudySearch(trials=3, measure="i2t/MedR"), [5.0, 2.0, 2.0])
    1
    """
    chosen, best, place = search.choice.chosen, None, -1
    for at, value in enumerate(values):
        if not math.isnan(value) and chosen.better(value, best):
            best, place = value, at
    if place < 0:
        raise UserError(f"search: no trial has a value of {search.choice.name}; choose by another measure")
    return place


def _drawn(one: DrawRange, name: str, search: StudySearch) -> list[Any]:
    """Values of a setting, one for each trial."""
    assert search.trials is not None
    random = np.random.default_rng(int(digest_of_parts([f"{search.draws}/{name}"])[:16], 16))
    shares = random.random(search.trials)
    if one.choice:
        return [one.choice[int(share * len(one.choice))] for share in shares]
    if one.uniform is not None:
        low, high = one.uniform
        return [_rounded(low + share * (high - low), low, high) for share in shares]
    assert one.log_uniform is not None
    low, high = one.log_uniform
    return [_rounded(low * (high / low) ** share, low, high) for share in shares]


def _rounded(value: float, low: float, high: float) -> float:
    """A number with few digits, within the range."""
    return min(max(float(f"{value:.{_DIGITS}g}"), low), high)
