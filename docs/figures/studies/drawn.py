"""The figure of a study."""

from __future__ import annotations

from statistics import mean

from matplotlib.figure import Figure
from measured import COLUMNS, Measured, values_of

COLOURS = ("#2b6cb0", "#c05621", "#3a8f63")


def figure(measured: Measured) -> Figure:
    """The drawn numbers of every training: a row for each arm, a colour for each point of the grid."""
    results, names = measured.results, measured.drawn
    arms = list(dict.fromkeys(name.partition("/")[0] for name in results))
    points = list(dict.fromkeys(name.partition("/")[2] for name in results))
    drawn = Figure(figsize=(9.6, 1.0 + 0.3 * len(arms)), layout="constrained")
    panels = drawn.subplots(1, len(names), sharey=True)
    for panel, name in zip(panels, names, strict=True):
        panel.set_title(COLUMNS[name], fontsize=10)
        panel.grid(axis="x", alpha=0.3)
        panel.tick_params(labelsize=8)
        for system, runs in results.items():
            arm, _, point = system.partition("/")
            colour, place = COLOURS[points.index(point) % len(COLOURS)], arms.index(arm)
            values = values_of(runs, name)
            panel.plot(values, [place] * len(values), "o", markersize=4, alpha=0.5, color=colour, markeredgewidth=0)
            panel.plot([mean(values)], [place], "|", markersize=12, color=colour, label=point)
    panels[0].set_yticks(range(len(arms)), arms, fontsize=9)
    panels[0].invert_yaxis()
    if points[1:]:
        handles, labels = panels[0].get_legend_handles_labels()
        of_labels = dict(zip(labels, handles, strict=True))
        drawn.legend(
            of_labels.values(), of_labels, loc="outside lower center", ncols=len(points), fontsize=9, frameon=False
        )
    return drawn
