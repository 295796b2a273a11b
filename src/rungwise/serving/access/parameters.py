"""What a request may name: a parameter that an operation does not know is refused, and so is one that is given twice.

What is misspelt would otherwise be left out, and answered as if it had not been asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, get_origin

from fastapi import HTTPException
from fastapi.routing import APIRoute
from starlette.requests import Request

from rungwise.core.output.printable import quoted
from rungwise.core.text.linear import near_names


async def known_parameters(request: Request) -> None:
    """A dependency of every operation; addresses of pages may have what links and browsers add to them.

    Raises:
        HTTPException: 422 if the query of the address has a parameter that the operation does not know, or one twice of
            which it takes one.
    """
    route = request.scope.get("route")
    if not request.scope["query_string"] or not isinstance(route, APIRoute) or not route.include_in_schema:
        return
    known = {one.alias: get_origin(one.field_info.annotation) is list for one in route.dependant.query_params}
    given = Counter(name for name, _ in request.query_params.multi_items())
    require_known("parameter", given, known)
    twice = next((name for name, many in given.items() if many > 1 and not known[name]), None)
    if twice is not None:
        raise HTTPException(422, f"the parameter {twice} is given {given[twice]} times; give it once")


def require_known(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that is not known here.

    Args:
        what: The names are of, for the message.
        given: Those of a request.
        known: Those that there are.

    Raises:
        HTTPException: 422; it names the nearest, and all.

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
    """A JSON object, for ``json.loads(text, object_pairs_hook=object_of)``.

    Raises:
        ValueError: If a name stands twice in it.

    >>> object_of([("a", 1)])
    {'a': 1}
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _beginnings(name: str, known: Collection[str]) -> list[str]:
    """Names with which this one begins, or that begin with it; the longest first."""
    return sorted((one for one in known if name and (name.startswith(one) or one.startswith(name))), key=len)[::-1]
