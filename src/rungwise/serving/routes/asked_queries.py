"""Route by which the queries that a server keeps are removed."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException, Request, Response

from rungwise.index.layout import forget_queries
from rungwise.serving._workload import Workload
from rungwise.serving.routes.favourites import reason_not_kept
from rungwise.serving.schemas import json_answer, refusals, responses
from rungwise.serving.state import Current, KeptQueries

__all__ = ["routes"]


def routes(current: Current, work: Workload, asked: KeptQueries | None, *, allowed: bool) -> APIRouter:
    """The operation that removes kept queries, also those that an earlier server kept.

    It is ``allowed`` to those who have the token, or where only this machine reaches the server.
    """
    router = APIRouter(tags=["queries"])

    @router.delete("/queries", response_model=responses.ForgottenQueries, responses=refusals())
    async def forget(request: Request) -> Response:
        """Remove all queries that were kept beside the index."""
        if reason := reason_not_kept(current, allowed=allowed):
            raise HTTPException(403, f"queries cannot be removed here: {reason}")
        folder = current.now().index.folder
        assert folder is not None  # it was asked for
        return json_answer(await work.read(request, lambda: _forgotten(asked, folder)))

    return router


def _forgotten(asked: KeptQueries | None, folder: Path) -> responses.ForgottenQueries:
    return responses.ForgottenQueries(forget_queries(folder) if asked is None else asked.forget())
