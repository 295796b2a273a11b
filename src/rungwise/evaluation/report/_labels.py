"""Report sections for the protocol labels: curves, numbers by class, and confusions of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from rungwise.evaluation.analysis import MOST_CLASSES, Confusion, Diagnostics, MeanCurve, confusion, mean_curve
from rungwise.evaluation.report import _plots as plots
from rungwise.evaluation.report._parts import saved_table, section, table
from rungwise.evaluation.result import Result
from rungwise.evaluation.statistics import WAYS, ClassNumbers, by_class, class_tables
from rungwise.metrics import AP11, P

_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_SHOWN = 100
"""Largest number of classes in a table; those with the most queries are taken."""

_TITLED = 40
"""Largest number of classes for which each cell has a tooltip: with more, the page would be mostly tooltips."""

_KINDS = {"i2t": ("image", "captions"), "t2i": ("caption", "images")}


def curve_measures(images: int, captions: int) -> tuple[str, ...]:
    """Names of the measures that a report's curves read, besides those that are asked for.

    The precision of the whole gallery is the share of right candidates, which a random order has everywhere.

    >>> curve_measures(12, 60)
    ('AP11', 'P@1', 'P@2', 'P@5', 'P@10', 'P@12', 'P@20', 'P@50', 'P@60')
    """
    steps = {k for k in _STEPS if k <= max(images, captions)} | {images, captions}
    return (str(AP11()), *(str(P(k)) for k in sorted(steps)))


def sections_of_labels(result: Result, found: Diagnostics, curves: Result) -> list[str]:
    """Sections of a report under the protocol labels; where the data have no labels, only curves.

    ``result`` has the numbers to show by class, ``curves`` some or all measures of :func:`curve_measures`; both are of
    the rankings of ``found``.

    >>> from rungwise.data import ImageCaptions
    >>> from rungwise.evaluation.analysis import diagnose
    >>> from rungwise.evaluation import EvaluationSettings, evaluate, positives_from_labels
    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]), labels=(("dog",), ("cat",)))
    >>> right = positives_from_labels(data.labels, data.image_of_caption)
    >>> result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], measures=["MAP", "AP11"], protocol="labels",
    ...     settings=EvaluationSettings(positives=right))
    >>> found = diagnose({"similarity": np.eye(2)}, data, positives=right, protocol="labels")
    >>> sections = sections_of_labels(result, found, result)
    >>> [section.partition("</h2>")[0].rpartition(">")[2] for section in sections]
    ['Precision curves', 'Numbers by class', 'Which class is taken for which']
    """
    sections = []
    if shown := [*_recall_curve(curves), *_scope_curve(curves)]:
        note = (
            "Right is what shares a class label with the query. Chance: the share of right candidates among all, which"
            " is the precision of a random order at every K, on average. Bands: 95 % bootstrap intervals over images,"
            " at each point by itself."
        )
        figures = "".join(figure.html() for figure in shown)
        sections.append(section("Precision curves", f"<div class=plots>{figures}</div>", note))
    if found.data.labels and result.has_queries:
        sections.append(_numbers(result, found))
        sections.append(_confusions(found))
    return sections


def _recall_curve(curves: Result) -> list[plots.Figure]:
    name = str(AP11())
    found = {}
    for way, title in WAYS.items():
        if f"{way}/{name}" in curves.numbers and curves.has_queries:
            rows = curves.per_query(f"{way}/{name}")
            if not np.isnan(rows[:, 0]).all():
                levels = np.linspace(0, 100, rows.shape[1])
                found[title] = mean_curve(levels, rows, curves.image_of_query(way), chance=_chance(curves, way))
    note = (
        "Interpolated: at each level, the best precision at that recall or above, averaged over queries. So even a"
        " random order lies a little above the dashed line."
    )
    return _drawn(found, plots.Axis("recall, percent", 0, 100), "Precision at eleven levels of recall", note)


def _scope_curve(curves: Result) -> list[plots.Figure]:
    found: dict[str, MeanCurve] = {}
    for way, title in WAYS.items():
        gallery = curves.gallery[way][0]
        steps = [k for k in sorted({*_STEPS, gallery}) if k <= gallery]
        own = [k for k in steps if not np.isnan(curves.numbers.get(f"{way}/{P(k)}", np.nan))]
        if len(own) > 1 and curves.has_queries:
            values = np.stack([curves.per_query(f"{way}/{P(k)}") for k in own], axis=1)
            found[title] = mean_curve(own, values, curves.image_of_query(way), chance=_chance(curves, way))
    if not found:
        return []
    x = plots.Axis("K", 1, max(float(curve.x[-1]) for curve in found.values()), logarithmic=True)
    note = "Percentage of the first K results that are right, averaged over queries."
    return _drawn(found, x, "Precision of the first K results (P@K)", note)


def _chance(curves: Result, way: str) -> tuple[float, ...] | float:
    """Share of right candidates among all, in percent; nothing where it was not measured."""
    value = curves.numbers.get(f"{way}/{P(curves.gallery[way][0])}", np.nan)
    return () if np.isnan(value) else value


def _largest(classes: tuple[ClassNumbers, ...]) -> tuple[ClassNumbers, ...]:
    """Classes with the most queries, in their given order."""
    kept = {one.label for one in sorted(classes, key=lambda one: -one.queries)[:_SHOWN]}
    return tuple(one for one in classes if one.label in kept)


def _drawn(found: dict[str, MeanCurve], x: plots.Axis, title: str, note: str) -> list[plots.Figure]:
    if not found:
        return []
    highest = max(float(curve.high.max()) for curve in found.values())
    y = plots.Axis("precision, percent", 0, max(10.0, 10 * np.ceil(highest / 10 - 1e-9)))
    return [plots.lines(found, x, y, title, note=note, chance="chance")]


def _numbers(result: Result, found: Diagnostics) -> str:
    classes = result.by_class or by_class(result, found.data.labels)
    most = max((len(own) for own in classes.classes.values()), default=0)
    cut = {way: _largest(own) for way, own in classes.classes.items()}
    cells = class_tables(replace(classes, classes=cut), result.numbers, result.units)
    tables = "".join(
        f"<div><h3>{escape(one.title.capitalize())}</h3>{table(one.head, one.rows, one.title, tall=True)}</div>"
        for one in cells
    )
    notes = [_many(most), "A query with several labels counts in each of its classes." if _several(found) else ""]
    notes += [f"{note}." for note in classes.notes()]
    return section("Numbers by class", f"<div class=plots>{tables}</div>", " ".join(filter(None, notes)))


def _confusions(found: Diagnostics) -> str:
    title = "Which class is taken for which"
    if len({label for own in found.data.labels for label in own}) > MOST_CLASSES:
        return section(title, "", f"There are more than {MOST_CLASSES:,} classes, which make no table.")
    parts = []
    for lists in found.lists.values():
        one = confusion(lists, found.data.labels, found.data.image_of_caption)
        query, results = _KINDS[one.direction]
        first = min(one.k, len(lists.occurrences))
        shown = _most_asked(one)
        parts.append(
            f"<h3>{query.capitalize()} queries: classes of the first {first} {results}</h3>"
            f"<div class=confusion>{_heat(one, shown, query, results)}"
            f"<div><p>Wrong classes that take most of the first {first}, best first:</p>"
            f"{_words(one, shown, query)}</div></div>"
        )
    note = (
        "A row is a class of queries. It says what percentage of their first results has each class; the classes that"
        " were asked for are outlined. Empty is below 0.5 %. The last row is the share of each class among all"
        " candidates, which a random order would show."
    )
    if _several(found):
        note += (
            " A result with several labels counts in each by a fraction. It may stand under another class and be"
            " right, since it shares a second label with its query; the lists of wrong classes leave it out."
        )
    notes = " ".join(filter(None, (note, _many(len(one.classes)) if parts else "")))
    return section(title, "".join(parts), notes)


def _heat(found: Confusion, shown: Sequence[int], query: str, results: str) -> str:
    names = [escape(found.classes[at]) for at in shown]
    part = found.shares[np.ix_(shown, shown)]
    highest = float(np.nanmax(part, initial=0)) or 1.0
    top = "".join(f'<th scope=col title="{name}"><span>{name}</span></th>' for name in names)
    rows, plain = [], []
    for row, at in enumerate(shown):
        cells = []
        for column, value in enumerate(part[row].tolist()):
            own = " class=own" if column == row else ""
            said = f' title="{names[row]}: {value:.1f} % {names[column]}"' if len(shown) <= _TITLED else ""
            cells.append(f"<td{own}{_strength(value, highest)}{said}>{_whole(value)}</td>")
        head = f'<th scope=row title="{names[row]}">{names[row]}</th>'
        rows.append(f"<tr>{head}{''.join(cells)}<td class=count>{found.queries[at]:,}</td></tr>")
        plain.append([found.classes[at], *map(_whole, part[row].tolist()), f"{found.queries[at]:,}"])
    of_all = [_whole(float(found.chance[at])) for at in shown]
    chance = "".join(f"<td>{one}</td>" for one in of_all)
    label = f"Classes of {results} found for {query} queries, in percent"
    columns = [f"{query} of", *(found.classes[at] for at in shown), "queries"]
    link = saved_table(columns, [*plain, [f"all {results}", *of_all, ""]], label)
    legend = (
        "<p class=legend><span><i class='key own'></i>the class that was asked for</span>"
        f"<span><i class='key other'></i>another class</span><span>full colour: {highest:.0f} %</span></p>"
    )
    return (
        f"<div>{legend}"
        f'<div class="scroll tall" tabindex=0 role=region aria-label="{label}"><table class=heat><thead><tr>'
        f"<th>{query} of</th>{top}<th scope=col class=count><span>queries</span></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody>"
        f"<tfoot><tr><th scope=row>all {results}</th>{chance}<td class=count></td></tr></tfoot></table></div>"
        f"{link}</div>"
    )


def _strength(value: float, highest: float) -> str:
    """Style attribute for the colour strength of a cell, 0 to 100."""
    strength = 0 if np.isnan(value) else round(100 * value / highest)
    return f' style="--p:{strength}"' if strength else ""


def _whole(value: float) -> str:
    if np.isnan(value):
        return "-"
    return str(int(value + 0.5)) if value >= 0.5 else ""


def _words(found: Confusion, shown: Sequence[int], query: str) -> str:
    lines = []
    for at in shown:
        label = found.classes[at]
        nearest = [
            f"{escape(name)} <small>{_whole(share)}\u00a0%</small>"
            for name, share in found.nearest_wrong(label)
            if share >= 0.5
        ]
        said = ", ".join(nearest) or ("no query" if np.isnan(found.shares[at]).all() else "none")
        lines.append(f"<li><b>{escape(label)}</b>: {said}</li>")
    return (
        f'<div class=tall tabindex=0 role=region aria-label="Wrong classes of {query} queries">'
        f"<ul class=words>{''.join(lines)}</ul></div>"
    )


def _most_asked(found: Confusion) -> list[int]:
    """Positions of the classes to show, in the order of their names."""
    most: NDArray[np.int64] = np.argsort(-found.queries, kind="stable")[:_SHOWN]
    return sorted(most.tolist())


def _many(classes: int) -> str:
    return f"Of {classes:,} classes, the {_SHOWN} with the most queries." if classes > _SHOWN else ""


def _several(found: Diagnostics) -> bool:
    return any(len(own) > 1 for own in found.data.labels)
