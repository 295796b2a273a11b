"""Route of the values of a column: folders, names, albums, as people look for them to filter."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from rungwise.core.output import quoted
from rungwise.serving._workload import Workload
from rungwise.serving.schemas import json_answer, refusals, responses
from rungwise.serving.state import Current, Overviews

__all__ = ["routes"]

_LONGEST = 500
_MOST = 1000


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
        """Values of a column, each with its number of pictures."""
        served = current.now()
        facets = overviews.facets_of(served)
        if column not in {one.name for one in overviews.columns_of(served)}:
            raise HTTPException(422, f"column: no picture has a column {quoted(column)}; `/about` lists them")
        if facets is None:
            return json_answer(responses.ColumnValues(served.version, column, False, False, (), False))
        found, more = await work.read(request, partial(facets.values, column, contains, within, k=k))
        return json_answer(responses.ColumnValues(served.version, column, True, facets.about, found, more))

    return router
