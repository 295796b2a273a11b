"""Report sections for the protocol labels: curves, numbers by class, and confusions of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np
from numpy.typing import NDArray

from rungwise.evaluation._result import Result
from rungwise.evaluation.analysis import MOST_CLASSES, Confusion, Diagnostics, confusion
from rungwise.evaluation.report import _plots as plots
from rungwise.evaluation.report._parts import section, table
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
            "Right is what shares a class label with the query. Dashed: the share of right candidates among all, which"
            " is the precision of a random order."
        )
        sections.append(section("Precision curves", f"<div class=plots>{''.join(shown)}</div>", note))
    if found.data.labels and result.has_queries:
        sections.append(_numbers(result, found))
        sections.append(_confusions(found))
    return sections


def _recall_curve(curves: Result) -> list[str]:
    name = str(AP11())
    points = {}
    for way, title in WAYS.items():
        if f"{way}/{name}" in curves.numbers and curves.has_queries:
            rows = curves.per_query(f"{way}/{name}")
            known = rows[~np.isnan(rows[:, 0])]
            if len(known):
                recall = np.linspace(0, 100, known.shape[1])
                points[title] = list(zip(recall.tolist(), known.mean(axis=0).tolist(), strict=True))
    if not points:
        return []
    return [_drawn(points, curves, plots.Axis("recall, percent", 0, 100), "Precision at eleven levels of recall")]


def _scope_curve(curves: Result) -> list[str]:
    points: dict[str, list[tuple[float, float]]] = {}
    for way, title in WAYS.items():
        gallery = curves.gallery[way][0]
        steps = [k for k in sorted({*_STEPS, gallery}) if k <= gallery]
        own = [(float(k), curves.numbers.get(f"{way}/{P(k)}", np.nan)) for k in steps]
        own = [(k, value) for k, value in own if not np.isnan(value)]
        if len(own) > 1:
            points[title] = own
    if not points:
        return []
    x = plots.Axis("K", 1, max(k for own in points.values() for k, _ in own), logarithmic=True)
    return [_drawn(points, curves, x, "Precision of the first K results (P@K)")]


def _largest(classes: tuple[ClassNumbers, ...]) -> tuple[ClassNumbers, ...]:
    """Classes with the most queries, in their given order."""
    kept = {one.label for one in sorted(classes, key=lambda one: -one.queries)[:_SHOWN]}
    return tuple(one for one in classes if one.label in kept)


def _drawn(points: dict[str, list[tuple[float, float]]], curves: Result, x: plots.Axis, title: str) -> str:
    chance = {}
    for way, name in WAYS.items():
        value = curves.numbers.get(f"{way}/{P(curves.gallery[way][0])}", np.nan)
        if name in points and not np.isnan(value):
            chance[name] = value
    highest = max(value for own in points.values() for _, value in own)
    y = plots.Axis("precision, percent", 0, max(10.0, 10 * np.ceil(highest / 10 - 1e-9)))
    return plots.lines(points, x, y, title, levels=chance, levels_name="chance")


def _numbers(result: Result, found: Diagnostics) -> str:
    classes = result.by_class or by_class(result, found.data.labels)
    most = max((len(own) for own in classes.classes.values()), default=0)
    cut = {way: _largest(own) for way, own in classes.classes.items()}
    cells = class_tables(replace(classes, classes=cut), result.numbers, result.units)
    tables = "".join(
        f"<div><h3>{escape(one.title.capitalize())}</h3><div class=tall tabindex=0 role=region"
        f' aria-label="{escape(one.title)}">{table(one.head, one.rows)}</div></div>'
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
            f"<div><p>Wrong classes that take most of the first {first}, best first:</p>{_words(one, shown)}</div>"
            "</div>"
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
    rows = []
    for row, at in enumerate(shown):
        cells = []
        for column, value in enumerate(part[row].tolist()):
            own = " class=own" if column == row else ""
            said = f' title="{names[row]}: {value:.1f} % {names[column]}"' if len(shown) <= _TITLED else ""
            cells.append(f"<td{own}{_strength(value, highest)}{said}>{_whole(value)}</td>")
        head = f'<th scope=row title="{names[row]}">{names[row]}</th>'
        rows.append(f"<tr>{head}{''.join(cells)}<td class=count>{found.queries[at]:,}</td></tr>")
    chance = "".join(f"<td>{_whole(float(found.chance[at]))}</td>" for at in shown)
    label = f"Classes of {results} found for {query} queries, in percent"
    return (
        f'<div class="scroll tall" tabindex=0 role=region aria-label="{label}"><table class=heat><thead><tr>'
        f"<th>{query} of</th>{top}<th scope=col class=count><span>queries</span></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody>"
        f"<tfoot><tr><th scope=row>all {results}</th>{chance}<td class=count></td></tr></tfoot></table></div>"
    )


def _strength(value: float, highest: float) -> str:
    """Style attribute for the colour strength of a cell, 0 to 100."""
    strength = 0 if np.isnan(value) else round(100 * value / highest)
    return f' style="--p:{strength}"' if strength else ""


def _whole(value: float) -> str:
    if np.isnan(value):
        return "-"
    return str(int(value + 0.5)) if value >= 0.5 else ""


def _words(found: Confusion, shown: Sequence[int]) -> str:
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
        f'<div class=tall tabindex=0 role=region aria-label="Wrong classes"><ul class=words>{"".join(lines)}</ul></div>'
    )


def _most_asked(found: Confusion) -> list[int]:
    """Positions of the classes to show, in the order of their names."""
    most: NDArray[np.int64] = np.argsort(-found.queries, kind="stable")[:_SHOWN]
    return sorted(most.tolist())


def _many(classes: int) -> str:
    return f"Of {classes:,} classes, the {_SHOWN} with the most queries." if classes > _SHOWN else ""


def _several(found: Diagnostics) -> bool:
    return any(len(own) > 1 for own in found.data.labels)
