"""Route of the values of a column: folders, names, albums, as people look for them to filter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response

from rungwise.core.output import quoted
from rungwise.index import Condition, Where
from rungwise.serving._workload import Workload
from rungwise.serving.schemas import json_answer, refusals, responses
from rungwise.serving.state import Current, Overviews, ServedIndex

__all__ = ["routes"]

_LONGEST = 500
_MOST = 1000
_SOUGHT: tuple[responses.ColumnType, ...] = ("text", "texts")
_LOOKED_AT = 2000
"""Number of pictures whose values begin as typed that are looked at, where a store cannot count all."""
_COUNTED = 100
"""Number of values whose pictures such a store counts, each by a question of its own."""
_LAST = "\U0010ffff"
"""The last character, which no text goes beyond."""


def routes(current: Current, work: Workload, overviews: Overviews) -> APIRouter:
    """Operation that finds values of columns."""
    router = APIRouter()

    @router.get("/values", response_model=responses.ColumnValues, responses=refusals(422), tags=["search"])
    async def values(
        request: Request,
        column: Annotated[str, Query(max_length=_LONGEST, description="Name of the column, as `/about` has it.")],
        contains: Annotated[
            str, Query(max_length=_LONGEST, description="Text that a value has in it, in any case of letters.")
        ] = "",
        within: Annotated[
            str | None,
            Query(max_length=_LONGEST, description="Folder whose inner folders are listed; empty for the outermost."),
        ] = None,
        k: Annotated[int, Query(ge=1, le=_MOST, description="How many values; more than there are means all.")] = 30,
    ) -> Response:
        """Values of a column, each with its number of pictures; those that are typed are counted in any case.

        Where only some pictures were looked at, at most 100 that are typed are counted and given.
        """
        served = current.now()
        facets = overviews.facets_of(served)
        types = {one.name: one.type for one in overviews.columns_of(served)}
        if column not in types:
            raise HTTPException(422, f"column: no picture has a column {quoted(column)}; `/about` lists them")
        if facets is None:
            return json_answer(responses.ColumnValues(served.version, column, False, False, (), False))
        found, more = await work.read(request, partial(facets.values, column, contains, within, k=k))
        if facets.about and contains.strip() and types[column] in _SOUGHT:
            known = [one.value for one in found]
            found, beyond = await work.read(
                request, partial(_counted, served, column, types[column], contains, known, min(k, _COUNTED))
            )
            return json_answer(responses.ColumnValues(served.version, column, True, False, found, more or beyond))
        return json_answer(responses.ColumnValues(served.version, column, True, facets.about, found, more))

    return router


def _counted(
    served: ServedIndex, column: str, type_: responses.ColumnType, typed: str, known: Sequence[str], k: int
) -> tuple[tuple[responses.ColumnValue, ...], bool]:
    """Values that the store knows where only some pictures were looked at: those known, and texts that begin as typed.

    The store counts the pictures of each of ``k`` at most; also returned is whether there are more.
    """
    store, values = served.index.picture_store, dict.fromkeys(known)
    if type_ == "text":
        begins = Where((Condition(column, ">=", typed), Condition(column, "<", f"{typed}{_LAST}")))
        values |= dict.fromkeys(str(record[column]) for _, record in islice(store.records(begins), _LOOKED_AT))
    operator: Literal["==", "has"] = "==" if type_ == "text" else "has"
    wheres = {one: served.index.understood(Where((Condition(column, operator, one),))) for one in list(values)[:k]}
    rows = {one: store.count(where) for one, where in wheres.items()}
    return tuple(responses.ColumnValue(one, many, inner=False) for one, many in rows.items() if many), len(values) > k
