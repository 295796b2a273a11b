"""Checks of parameters: one that an operation does not know is refused, and so is one that is given twice.

A misspelt parameter would otherwise be ignored silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, get_origin

from fastapi import HTTPException
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request

from rungwise.core.output import quoted
from rungwise.core.text import near_names


async def known_parameters(request: Request) -> None:
    """Dependency of every operation; addresses of pages may have what links and browsers add to them.

    Raises:
        HTTPException: 422 if the query string has an unknown parameter, or twice one that is taken once.
    """
    route = request.scope.get("route")
    if not request.scope["query_string"] or not isinstance(route, APIRoute) or not route.include_in_schema:
        return
    known = {name: get_origin(kind) is list for name, kind in _parameters_of(route)}
    given = Counter(name for name, _ in request.query_params.multi_items())
    require_known("parameter", given, known)
    twice = next((name for name, many in given.items() if many > 1 and not known[name]), None)
    if twice is not None:
        raise HTTPException(422, f"the parameter {twice} is given {given[twice]} times; give it once")


def _parameters_of(route: APIRoute) -> Iterator[tuple[str, Any]]:
    """Names and types of the parameters in a query string, of which a model may have several."""
    for one in route.dependant.query_params:
        kind = one.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from ((name, field.annotation) for name, field in kind.model_fields.items())
        else:
            yield one.alias, kind


def require_known(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse unknown names with status 422; the message names the nearest known name, and all.

    >>> require_known("parameter", ["query"], ["q", "k"])
    Traceback (most recent call last):
    fastapi.exceptions.HTTPException: 422: no parameter 'query' here; did you mean q? There are: k, q
    """
    for name in given:
        if name in known:
            continue
        near = near_names(name.lower(), known) or _beginnings(name.lower(), known)
        meant = f"; did you mean {near[0]}?" if near else ";"
        raise HTTPException(
            422, f"no {what} {quoted(name)} here{meant} There are: {', '.join(sorted(known)) or 'none'}"
        )


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Hook for ``json.loads(text, object_pairs_hook=object_of)`` that raises ValueError for a repeated name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _beginnings(name: str, known: Collection[str]) -> list[str]:
    """Known names with which this one begins, or that begin with it; the longest first."""
    return sorted((one for one in known if name and (name.startswith(one) or one.startswith(name))), key=len)[::-1]
