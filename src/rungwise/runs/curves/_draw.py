"""From systems to a plot: which kinds they can be drawn as, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rungwise.core import UserError
from rungwise.core.text import near_names
from rungwise.evaluation import Result
from rungwise.runs._systems import SystemRuns
from rungwise.runs.curves._by_rank import degree_part, recall_part
from rungwise.runs.curves._curve_plot import CurvePlot
from rungwise.runs.curves._epochs import epoch_part
from rungwise.runs.curves._measured import MeasuredSystem, chosen, measured_of
from rungwise.runs.curves._panels import PlotPart
from rungwise.runs.curves._setting import reads_degrees, setting_part

KINDS = ("epochs", "recall", "degrees", "setting")
"""Kinds of curves: by epoch, by K, by rank, by a setting."""

_Part = tuple[PlotPart | None, list[str]]


def draw(
    systems: Sequence[SystemRuns],
    kinds: Sequence[str] = (),
    *,
    results: Mapping[str, Result] = MappingProxyType({}),
    measures: Sequence[str] = (),
    by: str = "",
    protocol: str = "",
    split: str = "",
    draws: int = 1000,
    width: float = 9.0,
    height: float = 3.2,
) -> CurvePlot:
    """Curves of systems in one picture; nothing is drawn before it is saved or shown.

    Args:
        systems: Systems, from :func:`rungwise.runs.systems_of`; the seeds of each make one line with a band.
        kinds: Some of :data:`KINDS`. By default ``setting`` where ``by`` is given, else all of the others that the runs
            hold the numbers of.
        results: Results by their names, each a system of its own; they have no epochs and no settings.
        measures: Columns of histories for ``epochs``, and numbers of results for ``setting``.
        by: Dotted name of the setting on the x axis of ``setting``.
        protocol: Protocol of the results; by default that of most systems.
        split: Split of the results; by default that of most systems.
        draws: Bootstrap draws of pictures for the bands of systems with one seed; 0 draws no such bands.
        width: Width of the picture in inches.
        height: Height of each row of panels in inches.

    Raises:
        UserError: If a kind is not known, an option is missing or does not fit, or nothing can be drawn.
    """
    asked = _checked(kinds, by, width, height, draws)
    measured = measured_of(systems, results)
    parts: list[PlotPart] = []
    left_out: list[str] = []
    for kind in asked or (("setting",) if by else KINDS[:3]):
        part, lines = _part(kind, systems, measured, measures, by, protocol, split, draws)
        left_out += lines
        if part is not None:
            parts.append(part)
    if not parts:
        reasons = "; ".join(left_out[:2])
        more = f"; and {len(left_out) - 2} more" if len(left_out) > 2 else ""
        raise UserError(f"nothing can be drawn: {reasons or 'no run is given'}{more}")
    return CurvePlot(tuple(parts), tuple(dict.fromkeys(left_out)), width, height)


def _part(
    kind: str,
    systems: Sequence[SystemRuns],
    measured: Sequence[MeasuredSystem],
    measures: Sequence[str],
    by: str,
    protocol: str,
    split: str,
    draws: int,
) -> _Part:
    if kind == "epochs":
        own = [f"epochs: {one.name}: a result has no epochs" for one in measured[len(systems) :]]
        part, lines = epoch_part(systems, measures)
        return part, [*lines, *own]
    found = chosen(
        measured, kind, protocol, split, graded=kind == "degrees" or (kind == "setting" and reads_degrees(measures))
    )
    if found is None:
        return None, [
            f"{kind}: {one.name}: has no results yet; rungwise evaluate {one.folder} DATA" for one in measured
        ]
    if kind == "recall":
        return recall_part(found, draws)
    if kind == "degrees":
        return degree_part(found, draws)
    return setting_part(systems, found, by, measures)


def _checked(kinds: Sequence[str], by: str, width: float, height: float, draws: int) -> tuple[str, ...]:
    for one in kinds:
        if one not in KINDS:
            near = near_names(one, KINDS, 1)
            raise UserError(
                f"--kind {one}: no kind of plot{f'; did you mean {near[0]}?' if near else ''}; there are"
                f" {', '.join(KINDS)}"
            )
    if "setting" in kinds and not by:
        raise UserError("--kind setting: give --by, the setting on the x axis, such as --by data.share")
    for name, size in (("width", width), ("height", height)):
        if not 1 <= size <= 100:
            raise UserError(f"--{name} {size:g}: give 1 to 100 inches")
    if draws < 0:
        raise UserError(f"--draws {draws}: give 0 for no bands over pictures, or more")
    return tuple(dict.fromkeys(kinds))
