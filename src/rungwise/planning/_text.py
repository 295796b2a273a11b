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
    marks: dict[Rate, str] = {}
    for quantity in plan.quantities:
        for rate in quantity.rates:
            if not rate.assumed:  # which stands with what is reckoned from it
                marks.setdefault(rate, f"[{len(marks) + 1}]")
    lines = [
        *_wrapped(title(plan.need)),
        *_wrapped(f"model: {plan.model}"),
        *_wrapped(f"store: {plan.store}: {plan.why}"),
    ]
    lines += [line for doubt in plan.doubts for line in _wrapped(f"but {doubt}")]
    lines.append("")
    for quantity in plan.quantities:
        how = textwrap.wrap(
            quantity.explained([marks.get(rate, "") for rate in quantity.rates]), _WIDTH - _NAME - _VALUE
        )
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
    lines += [*_compared(plan), "", *_sources(marks)]
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


def _sources(marks: dict[Rate, str]) -> Iterator[str]:
    for machine in dict.fromkeys(rate.machine for rate in marks):
        yield f"measured on {machine}:" if machine else "not measured:"
        for rate, mark in marks.items():
            if rate.machine == machine:
                yield from _wrapped(f"{mark} {rate.said}: {rate.about}", "    ")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_on_hyphens=False)
