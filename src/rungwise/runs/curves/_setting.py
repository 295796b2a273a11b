"""Measures by a setting, over systems that differ in it: one curve for those that agree in all other settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from rungwise.core import UserError, to_plain
from rungwise.core.text import near_names
from rungwise.evaluation import Result
from rungwise.metrics import DIRECTIONS, Direction, Measure, R, Total
from rungwise.runs._systems import SAME_NUMBERS, SystemRuns
from rungwise.runs.curves._by_rank import chance_of_recall
from rungwise.runs.curves._measured import ComparableResults, known_measure, labels_of, title_of
from rungwise.runs.curves._panels import Panel, PlotCurve, PlotPart, band_notes, is_wide, spread

_NAMED = 2
"""Number of differing settings that a curve is named by."""
_Flat = dict[str, Any]


def setting_part(
    systems: Sequence[SystemRuns], found: ComparableResults, by: str, measures: Sequence[str] = ()
) -> tuple[PlotPart | None, list[str]]:
    """Panels of a number of the results each, and a line for each system that is left out.

    Args:
        systems: Systems, each of which is a point.
        found: Their results of one question.
        by: Dotted name of a setting, such as ``loss.negative_set``; its last word where no other setting ends with it.
        measures: Numbers such as ``i2t/R@1`` and ``rsum``, or measures such as ``R@1`` for both directions. By default
            rsum, or else the first number of the results.

    Raises:
        UserError: If no system has the setting, or no result has a number of a name.
    """
    left_out = list(found.left_out)
    flat = {system.name: _flat(to_plain(system.config)) for system in systems}
    name = _whole_name(by, list(flat.values()))
    groups: list[tuple[_Flat, dict[Any, tuple[str, tuple[Result, ...]]]]] = []
    for system, results in found.of:
        settings = dict(flat.get(system.name, {}))
        if name not in settings:
            left_out.append(f"setting: {system.name}: has no setting {name}")
            continue
        value = settings.pop(name)
        value = str(value) if isinstance(value, list | dict) else value
        points = next((own for others, own in groups if others == settings), None)
        if points is None:
            groups.append((settings, points := {}))
        if value in points:
            left_out.append(f"setting: {system.name}: has the same settings as {points[value][0]}, which is drawn")
            continue
        points[value] = (system.name, results)
    if not groups:
        return None, left_out
    names = _group_names([settings for settings, _ in groups], _presets(systems, groups), systems)
    values = {value for _, points in groups for value in points}
    numeric = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    order = sorted(values) if numeric else sorted(values, key=_words_last)
    first = found.of[0][1][0]
    panels = []
    for number in _numbers(measures, [result for _, results in found.of for result in results]):
        curves = []
        for own_name, (_, points) in zip(names, groups, strict=True):
            curve, missing = _curve(points, [one for one in order if one in points], number)
            left_out += [f"setting: {one}: its results have no {number}" for one in missing]
            if curve.has_values:
                curves.append(replace(curve, name=own_name))
        if not curves:
            continue
        chance = _chance(first, number)
        if chance is not None:
            ends = [one for one in order if numeric] or list(map(_word, order))
            x = tuple(float(one) if numeric else one for one in (ends[0], ends[-1])) if ends else ()
            curves.append(PlotCurve("chance", x, (chance,) * len(x), role="chance"))
        xs = [float(one) for one in order] if numeric else []
        title, label = labels_of(number)
        panels.append(
            Panel(
                title,
                _axis(name),
                label,
                tuple(curves),
                log_x=is_wide(xs),
                categories=() if numeric else tuple(map(_word, order)),
            )
        )
    if not panels:
        return None, left_out
    what = title_of(f"Results by {name}", first)
    return PlotPart("setting", what, tuple(panels), (*band_notes(panels), *found.notes)), left_out


def _curve(
    points: Mapping[Any, tuple[str, tuple[Result, ...]]], order: Sequence[Any], number: str
) -> tuple[PlotCurve, list[str]]:
    """One curve, and the systems whose results lack the number."""
    x, y, low, high, bands, missing = [], [], [], [], [], []
    for value in order:
        system, results = points[value]
        own = [one.numbers[number] for one in results if number in one.numbers]
        if not own:
            missing.append(system)
            continue
        at = spread([[one] for one in own], *_bounds(number))
        x.append(value if isinstance(value, int | float) and not isinstance(value, bool) else _word(value))
        y.append(at.y[0])
        low.append(at.low[0] if at.low else float("nan"))
        high.append(at.high[0] if at.high else float("nan"))
        bands.append(at.band)
    if not x or not any(band.seeds for band in bands):
        return PlotCurve("", tuple(x), tuple(y)), missing
    fewest = min((band for band in bands if band.seeds), key=lambda band: band.seeds)
    return PlotCurve("", tuple(x), tuple(y), tuple(low), tuple(high), fewest), missing


def _numbers(measures: Sequence[str], results: Sequence[Result]) -> list[str]:
    """Names of numbers: as they are given, or in both directions."""
    there = dict.fromkeys(name for one in results for name in one.numbers)
    if not measures:
        return ["rsum"] if "rsum" in there else list(there)[:1]
    found = []
    for name in measures:
        own = [name] if name in there else [f"{way}/{name}" for way in DIRECTIONS if f"{way}/{name}" in there]
        if not own:
            near = near_names(name, there, 1)
            raise UserError(
                f"--measures {name}: no result has this number{f'; did you mean {near[0]}?' if near else ''}; there are"
                f" {', '.join(there)}"
            )
        found += own
    return list(dict.fromkeys(found))


def _bounds(number: str) -> tuple[float, float]:
    measure = known_measure(number)
    return (-np.inf, np.inf) if measure is None else measure.bounds


def _chance(result: Result, number: str) -> float | None:
    """What an order at random reaches, for R@K and sums of such; None for other measures."""
    measure = known_measure(number)
    if isinstance(measure, R):
        terms: list[tuple[Direction, Measure]] = [(cast(Direction, number.partition("/")[0]), measure)]
    elif isinstance(measure, Total):
        terms = [(way, term) for way in DIRECTIONS for term in measure.terms]
    else:
        return None
    total = 0.0
    for way, term in terms:
        smallest = min(result.gallery[way])
        chance = chance_of_recall(result, way, np.array([min(term.k, smallest)])) if isinstance(term, R) else None
        if chance is None:
            return None
        total += float(chance[0])
    return total


def _flat(plain: Mapping[str, Any], before: str = "") -> _Flat:
    """Settings by their dotted names, without those that change no number."""
    found: _Flat = {}
    for name, value in plain.items():
        whole = f"{before}{name}"
        if whole in SAME_NUMBERS:
            continue
        if isinstance(value, Mapping):
            found |= _flat(value, f"{whole}.")
        else:
            found[whole] = value
    return found


def _whole_name(by: str, every: Sequence[_Flat]) -> str:
    """The dotted name of a setting that is given whole or by its end."""
    names = list(dict.fromkeys(name for settings in every for name in settings))
    if by in names:
        return by
    ending = [name for name in names if name.endswith(f".{by}")]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise UserError(f"--by {by}: several settings end so; name one of {', '.join(ending)}")
    differing = [name for name in names if len({repr(one.get(name)) for one in every}) > 1]
    near = near_names(by, names, 1)
    raise UserError(
        f"--by {by}: no run has this setting{f'; did you mean {near[0]}?' if near else ''}; the runs differ in"
        f" {', '.join(differing[:12]) or 'their seeds alone'}"
    )


def _presets(
    systems: Sequence[SystemRuns], groups: Sequence[tuple[_Flat, Mapping[Any, tuple[str, Any]]]]
) -> list[set[str]]:
    """Presets of the systems of each group."""
    preset = {system.name: system.config.preset for system in systems}
    return [{preset[name] for name, _ in points.values()} for _, points in groups]


def _group_names(groups: Sequence[_Flat], presets: Sequence[set[str]], systems: Sequence[SystemRuns]) -> list[str]:
    """Names of groups: their presets where these differ, or the settings in which they differ."""
    if len(groups) == 1:
        (preset,) = presets
        folders = [os.path.abspath(one.runs[0].folder) for one in systems]  # noqa: PTH100 - as their names are made
        common = Path(os.path.commonpath(folders)).name if len(folders) > 1 else systems[0].name
        return [next(iter(preset)) if len(preset) == 1 and any(preset) else common or "runs"]
    if all(len(one) == 1 and any(one) for one in presets) and len(set(map(min, presets))) == len(groups):
        return [min(one) for one in presets]
    every = list(dict.fromkeys(name for own in groups for name in own))
    differing = [name for name in every if len({repr(own.get(name)) for own in groups}) > 1]
    kinds = {name.rpartition(".")[0] for name in differing if name.rpartition(".")[2] == "kind"}
    telling = [name for name in differing if name.endswith(".kind") or name.rpartition(".")[0] not in kinds]
    telling.sort(key=lambda name: not name.endswith(".kind"))
    names = []
    for own in groups:
        words = [f"{name.removesuffix('.kind')} {_word(own.get(name))}" for name in telling[:_NAMED]]
        names.append(", ".join(words))
    if len(set(names)) < len(groups):
        names = [", ".join(f"{name} {_word(own.get(name))}" for name in differing) for own in groups]
    return names


def _words_last(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return not number, float(value) if number else 0.0, str(value)


def _word(value: Any) -> str:
    return "not set" if value in (None, "", []) else str(value)


def _axis(name: str) -> str:
    return {"data.share": "data.share, share of the training data"}.get(name, name)


def reads_degrees(measures: Sequence[str]) -> bool:
    """Whether some of these numbers are of measures that read degrees of relevance.

    >>> reads_degrees(["i2t/R@1"]), reads_degrees(["R@1", "nDCG@10"])
    (False, True)
    """
    found = [known_measure(one) for one in measures]
    return any(one is not None and one.graded for one in found)
