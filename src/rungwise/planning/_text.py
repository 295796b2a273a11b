"""Text of a plan for a terminal of 80 columns: numbers, formulas, and at the end the sources of the rates."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rungwise.planning._plan import Plan, title
from rungwise.planning._rates import Rate

_WIDTH = 80
_NAME, _VALUE = 22, 13


def plan_text(plan: Plan) -> str:
    r"""Text of a plan.

    >>> from rungwise.planning._need import Need
    >>> from rungwise.planning._plan import plan
    >>> print(plan_text(plan(Need(10_000))).partition("\n")[0])
    N = 10,000 pictures, D = 512, Q = 10 searches/s, machines of 64 GB
    """
    marks: dict[str, str] = {}  # one for all sizes of a rate
    sources: dict[str, list[Rate]] = {}
    for quantity in plan.quantities:
        for rate in quantity.rates:
            if not rate.assumed:  # which stands with what is reckoned from it
                marks.setdefault(rate.what, f"[{len(marks) + 1}]")
                sizes = sources.setdefault(rate.what, [])
                sizes += [] if rate in sizes else [rate]
    lines = [
        *_wrapped(title(plan.need)),
        *_wrapped(f"model: {plan.model}"),
        *_wrapped(f"store: {plan.store}: {plan.why}"),
    ]
    lines += [line for doubt in plan.doubts for line in _wrapped(f"but {doubt}")]
    lines.append("")
    for quantity in plan.quantities:
        whats = [rate.what for rate in quantity.rates]
        shown = ["" if what in whats[at + 1 :] else marks.get(what, "") for at, what in enumerate(whats)]
        how = textwrap.wrap(quantity.explained(shown), _WIDTH - _NAME - _VALUE)
        how += [line for doubt in quantity.doubts for line in textwrap.wrap(f"! {doubt}", _WIDTH - _NAME - _VALUE)]
        lines.append(f"{quantity.name:<{_NAME}}{quantity.said:<{_VALUE}}{how[0]}".rstrip())
        lines += [f"{'':<{_NAME + _VALUE}}{line}" for line in how[1:]]
    rows = "R = rows: N pictures and their captions" if plan.need.captions else "R = N rows"
    lines += [
        "",
        *_wrapped(
            f"{rows}; ! marks what was not measured as it is asked for here; --measure takes the rates of your machine"
        ),
        "",
    ]
    lines += [*_compared(plan), "", *_sources(marks, sources)]
    return "\n".join(lines)


def _compared(plan: Plan) -> Iterator[str]:
    yield f"{'store':<10}{'disk':>10}{'memory':>10}{'one search':>12}{'building':>11}{'machines':>10}"
    for one in plan.compared:
        said = (one.disk.said, one.memory.said, one.search.said, one.build.said, one.machines.said)
        cells = "".join(f"{text:>{width}}" for text, width in zip(said, (10, 10, 12, 11, 10), strict=True))
        mark = "  <-" if one.kind == plan.store else "  (no)" if one.wrong else ""
        yield f"{one.kind:<10}{cells}{mark}"
    for one in plan.compared:
        if one.kind != plan.store and one.wrong:
            yield from _wrapped(f"{one.kind}: {'; '.join(one.wrong)}", "  ")


def _sources(marks: dict[str, str], sources: dict[str, list[Rate]]) -> Iterator[str]:
    """Lines of what was measured, by machines; sizes of a rate stand together, with the machine of the last."""
    for machine in dict.fromkeys(sizes[-1].machine for sizes in sources.values()):
        yield f"measured on {machine}:" if machine else "not measured:"
        for what, sizes in sources.items():
            if sizes[-1].machine != machine:
                continue
            said = ", ".join(rate.said for rate in sizes)
            rows = [f"{rate.rows:,}" for rate in sizes if rate.rows]
            about = f"{' and '.join(rows)} rows" if rows else ""
            dimension = f"D = {sizes[-1].dimension}" if sizes[-1].dimension else ""
            places = ", ".join(dict.fromkeys(rate.source for rate in sizes))
            parts = (what, ", ".join(filter(None, (about, dimension))), places)
            yield from _wrapped(f"{marks[what]} {said}: {'; '.join(filter(None, parts))}", "    ")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
