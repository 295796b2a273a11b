"""Puts a certain end of relevance into the answers that a page gets, so that tests need no model that judges so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rungwise.calibration import BEYOND, RUNGS

Bands = tuple[int, int, int]


def bands(exactly: int, close: int, loosely: int) -> Bands:
    """How many of the best stand in each band."""
    return exactly, close, loosely


def judged(
    page: Any,
    of: Bands | Callable[[dict[str, list[str]]], Bands | None],
    belief: float = 0.95,
    names: tuple[str, str, str] = RUNGS,
    remark: str = "",
) -> None:
    """Judge all searches of a page: ``of`` says how many stand in each band, or says it by what is asked."""

    def answer(route: Any) -> None:
        asked = parse_qs(urlsplit(route.request.url).query)
        found = route.fetch().json()
        wanted = of(asked) if callable(of) else of
        offset = int(asked.get("offset", ["0"])[0])
        for place, hit in enumerate(found.get("hits", []), start=offset):
            rung = None if wanted is None else _rung(place, wanted)
            degree = None if rung is None else 1 - rung / 4
            hit.update(rung=rung, degree=degree, band="" if rung is None else (*names, "")[rung - 1])
        if wanted is None:
            found["end"] = None
        else:
            shown = sum(wanted)
            end = {"shown": shown, "nothing": shown == 0, "belief": belief, "source": "a test", "advice": []}
            end |= {"names": list(names), "remark": remark}
            found["end"] = end
        route.fulfill(json=found)

    page.route("**/search?*", answer)


def _rung(place: int, of: Bands) -> int:
    for rung, count in enumerate(of, start=1):
        if place < count:
            return rung
        place -= count
    return BEYOND
