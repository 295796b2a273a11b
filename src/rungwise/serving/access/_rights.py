"""Rights of tokens, and the right that each operation of the search page needs.

What stands in no row of the table is kept from every token that has not all rights, so that an operation that somebody
forgets to enter is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from starlette.requests import Request

Right = Literal["watch", "read", "grade", "write"]
"""Right of a token; each includes those before it.

``watch`` is for programs that look after the server: whether it answers, and its counters, and no picture. ``read``
searches and looks at pictures. ``grade`` also grades, marks favourites and saves searches. ``write`` may do everything:
add, replace and delete pictures, fit the end of relevance to the grades, and remove kept queries.
"""

RIGHTS: tuple[Right, ...] = get_args(Right)
"""All rights, from the least."""

NeededRight = Callable[[str, str], Right | None]
"""Function that gives the right that a request needs by its method and path; None where the path is unknown."""

_BY_METHOD: dict[str, dict[Right, tuple[str, ...]]] = {
    "GET": {
        "watch": ("health", "ready", "metrics"),
        "read": (
            *("", "static", "common", "docs", "reference", "openapi.json"),
            *("about", "search", "similar", "captions", "sample", "values", "why", "items", "images", "pictures"),
            *("favourites", "searches"),
        ),
        "grade": ("grades",),
    },
    "POST": {
        "read": ("pictures",),
        "grade": ("grades",),
        "write": ("calibration", "items"),
    },
    "PUT": {"grade": ("favourites", "searches")},
    "DELETE": {"grade": ("favourites", "searches"), "write": ("queries", "items")},
}

NEEDED_RIGHTS: dict[tuple[str, str], Right] = {
    (method, name): right for method, rows in _BY_METHOD.items() for right, names in rows.items() for name in names
}
"""Right by the method of a request and the first part of its path; the page itself is the empty part."""


@dataclass(frozen=True)
class Visitor:
    """Bearer of a token.

    Attributes:
        name: Name of the token; empty for the one token of a server, which needs none.
        right: What it may do.
    """

    name: str
    right: Right

    def may(self, right: Right) -> bool:
        """Whether the token includes a right.

        >>> Visitor("ada", "grade").may("read"), Visitor("ada", "grade").may("write")
        (True, False)
        """
        return RIGHTS.index(right) <= RIGHTS.index(self.right)


def needed_right(method: str, path: str) -> Right | None:
    """The right that a request to the search page needs; None where no operation is known.

    >>> needed_right("GET", "/images/a.jpg"), needed_right("HEAD", "/ready"), needed_right("DELETE", "/items/a.jpg")
    ('read', 'watch', 'write')
    >>> needed_right("GET", "/nowhere") is None
    True
    """
    return NEEDED_RIGHTS.get(("GET" if method == "HEAD" else method, path.removeprefix("/").partition("/")[0]))


def may(request: Request, right: Right) -> bool:
    """Whether whoever sent a request may do this; where the server has no tokens, nobody is told apart."""
    visitor = visitor_of(request)
    return visitor is None or visitor.may(right)


def visitor_of(request: Request) -> Visitor | None:
    """Bearer of the token that came with a request; None where the server has no tokens."""
    found: Visitor | None = request.scope.get("visitor")
    return found
