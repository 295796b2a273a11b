"""Text and tables of what ``rungwise calibrate`` learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from rungwise.calibration import Calibration, CalibrationComparison, KindComparison, Names, TrainingQueries
from rungwise.core.output import printable
from rungwise.core.text import evenly_spread

if TYPE_CHECKING:
    from rich.table import Table

_EXAMPLES = 5
_LONGEST = 40
"""Largest number of characters of a query."""
_KINDS = {
    "phrase": "phrases of captions",
    "value": "values of columns",
    "pair": "pairs of values",
    "caption": "whole captions",
    "given": "your own queries",
    "asked": "queries that people asked",
    "graded": "graded searches",
    "unrelated": "unrelated texts",
}
_FEW = 30
"""Number of queries below which a kind has too few to say much."""


def render_queries(queries: TrainingQueries) -> Text:
    """Lines on the queries of a fit: how many of each kind, and how many pictures are relevant to one."""
    counts = Counter(queries.kinds)
    named = ", ".join(f"{many:,} {_KINDS[kind]}" for kind, many in counts.items())
    relevant = (queries.relevance >= queries.relevant_from).sum(axis=1)[[kind != "unrelated" for kind in queries.kinds]]
    return Text(
        f"{named}\n{queries.similarity.shape[1]:,} pictures, {relevant.mean():.1f} relevant to a query on average"
    )


def render_comparison(found: CalibrationComparison, now: Names) -> Iterator[Table | Text]:
    """Tables and lines, at most 80 columns wide; ``now`` are the names that what judges now gives."""
    if found.kinds:
        yield _table(found.kinds)
        yield Text(_said_of_names(found, now))
        yield Text("\n".join(["such as, of queries that it did not see:", *_examples(found)]))


def render_kept(calibration: Calibration) -> Iterator[Table | Text]:
    """What a calibration keeps of how it did."""
    yield Text(str(calibration))
    if calibration.kinds:
        yield _table(calibration.kinds)
    else:
        yield Text("it keeps no comparison: nothing was there to compare it with, or it was made by hand")


def verdict(found: CalibrationComparison) -> str:
    """Line on why what judges now stays, and what would help; empty where the new calibration may take its place."""
    if found.harmless:
        return ""
    if not found.kinds:
        return f"{found.reason}; more pictures with captions, or grades of hits (rungwise serve), would help"
    lost = [kind for kind in found.kinds if not kind.harmless]
    sure, possible = [", ".join(_KINDS[one.kind] for one in lost if (one.high < 0) is it) for it in (True, False)]
    if not sure:
        loss = f"it cannot be excluded that {possible} lose"
    else:
        loss = f"{sure} lose" + (f", and it cannot be excluded that {possible} do" if possible else "")
    if any(kind.after < kind.before for kind in lost):
        better = "captions that say more of what the pictures show, or several for each, or grades of hits"
    elif min(kind.queries for kind in lost) < _FEW:
        better = "more pictures with captions, or --query-file with queries of your own"
    else:
        better = "more pictures with captions, or grades of hits"
    return f"{loss}; what would help: {better}"


def unlearnable(queries: TrainingQueries) -> str:
    """Line on why queries that were made of texts teach nothing, and what would help."""
    scores = queries.similarity
    if (scores.max(axis=1) == scores.min(axis=1)).all():
        return "to the model all pictures are the same, so that nothing can be learnt; pictures that differ would help"
    return (
        "texts and scores do not tell what fits a query from what does not, so that nothing can be learnt; captions"
        " that tell the pictures apart, or grades of hits (rungwise serve), would help"
    )


def _table(kinds: Sequence[KindComparison]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        caption='CutF1 in percent; 95 % interval; right among those called "exactly"',
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("held-out queries", no_wrap=True)
    for head in ("", "now", "new", "difference", '"exactly" right'):
        table.add_column(head, justify="right", no_wrap=True)
    for kind in kinds:
        right = "-" if kind.exactly != kind.exactly else f"{100 * kind.exactly:.0f} %"
        table.add_row(
            _KINDS.get(kind.kind, printable(kind.kind)),
            f"{kind.queries:,}",
            f"{kind.before:.1f}",
            f"{kind.after:.1f}",
            f"{kind.after - kind.before:+.1f} [{kind.low:+.1f}, {kind.high:+.1f}]",
            right,
        )
    return table


def _said_of_names(found: CalibrationComparison, now: Names) -> str:
    before, after = found.named_before, found.named_after
    return (
        f'of the hits shown are called: "exactly" {100 * after[0]:.0f} %, "close" {100 * after[1]:.0f} %\n'
        f'as it is now: "{now[0]}" {100 * before[0]:.0f} %, "{now[1]}" {100 * before[1]:.0f} %'
    )


def _examples(found: CalibrationComparison) -> Iterator[str]:
    """Queries from the fewest relevant pictures to the most, evenly spread."""
    some = sorted((one for one in found.examples if one.relevant), key=lambda one: (one.relevant, one.text))
    for at in evenly_spread(len(some), _EXAMPLES).tolist() if some else ():
        one = some[at]
        plain = printable(" ".join(one.text.split()))
        short = plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1].rstrip() + "\u2026"
        yield f'  "{short}": {one.after} shown, {one.right} of {one.relevant} right; now {one.before}'
