"""Routes of grades: people's grades of pictures that a search found, and fitting the end of relevance to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from threading import Lock
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, HTTPException, Query, Request, Response

from rungwise.calibration import FEWEST_QUERIES
from rungwise.core import Limits, UserError
from rungwise.core.text import LONGEST_NAME, person_name
from rungwise.index import Grades, Searcher
from rungwise.serving._limits import ServingLimits
from rungwise.serving._workload import Workload
from rungwise.serving.access import Visitor, json_body, visitor_of
from rungwise.serving.queues import BusyError
from rungwise.serving.schemas import json_answer, refusals, responses, sendable
from rungwise.serving.searches import MAX_RESULTS, Offset, item_of
from rungwise.serving.state import Current

__all__ = ["Standing", "changes_of", "routes"]

_LONGEST_ID = 8000
_LOOKED_AT = 500
"""Number of hits of a judged search among which its graded pictures are looked for, before and after a fit."""
_SEARCHES = 100
"""Number of newest judged searches that are run again to say what a fit changed."""

_GRADES = get_args(responses.GradeName)
_FIELDS = {
    "query": {"type": "string", "minLength": 1, "maxLength": Limits.query_characters},
    "id": {"type": "string", "minLength": 1, "maxLength": _LONGEST_ID},
    "grade": {"enum": [*_GRADES, None], "description": "null takes back what was said before."},
}
_WHO = {"type": "string", "maxLength": LONGEST_NAME, "description": "Says it; grades of several people stand beside."}
_A_GRADE = {
    "required": True,
    "description": "A JSON object: `query`, `id`, and `grade`, which is right, close, wrong, or null to take it back;"
    " and `who`, which may be left out, and is the name of the token where tokens have names.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {**_FIELDS, "who": _WHO},
                "required": [*_FIELDS],
                "additionalProperties": False,
            }
        }
    },
}


def routes(current: Current, work: Workload, limits: ServingLimits, *, allowed: bool) -> APIRouter:
    """Operations that take grades and use them.

    Grades are ``allowed`` from those who have the token, or where only this machine reaches the server.
    """
    router = APIRouter()
    fitting = Lock()

    @router.post(
        "/grades",
        response_model=responses.GivenGrades,
        responses=refusals(404, 408, 413, 422),
        openapi_extra={"requestBody": _A_GRADE},
        tags=["grades"],
    )
    async def grade(request: Request) -> Response:
        """Keep what a person says of a picture that a search found; the answer holds the grades of that search."""
        _require(allowed, current)
        sent = await json_body(request, limits.body_seconds, "a grade", _FIELDS, ["who"])
        asked = _in_own_name(_asked(sent), visitor_of(request))
        return json_answer(await work.read(request, partial(_keep, current, asked)))

    @router.get("/grades", response_model=responses.GivenGrades, responses=refusals(422), tags=["grades"])
    async def grades(
        request: Request,
        q: Annotated[
            str | None, Query(max_length=Limits.query_characters, description="Of this query alone, as it was typed.")
        ] = None,
        k: Annotated[int, Query(ge=1, le=MAX_RESULTS, description="How many, the newest first.")] = 100,
        offset: Offset = 0,
    ) -> Response:
        """The grades that people gave."""
        _require(allowed, current)
        return json_answer(await work.read(request, partial(_given, current, q, k, offset)))

    @router.post("/calibration", response_model=responses.CalibrationOutcome, responses=refusals(422), tags=["grades"])
    async def calibrate(request: Request) -> Response:
        """Fit the end of relevance to the grades."""
        _require(allowed, current)
        if not fitting.acquire(blocking=False):
            raise BusyError
        try:
            # Some seconds: not where searches wait.
            return json_answer(await work.fitted(request, partial(_calibrate, current)))
        finally:
            fitting.release()

    return router


def _require(allowed: bool, current: Current) -> None:
    if not allowed:
        raise HTTPException(
            403, "grades are taken only where the server has a token, or only this machine reaches it; give it a token"
        )
    if current.now().index.folder is None:
        raise HTTPException(403, "this index is in no folder of the server, so no grades can be kept")


@dataclass(frozen=True)
class _Asked:
    """A grade as it was sent; None takes back an earlier one."""

    query: str
    id: str
    grade: responses.GradeName | None
    who: str


def _asked(found: Mapping[str, Any]) -> _Asked:
    query, item_id, grade, who = found["query"], found["id"], found["grade"], found.get("who", "")
    if not all(isinstance(one, str) for one in (query, item_id, who)) or grade not in (*_GRADES, None):
        raise HTTPException(
            422, f"query, id and who of a grade are texts, and the grade is {', '.join(_GRADES)} or null; correct it"
        )
    if not query.strip() or len(query) > Limits.query_characters or not 0 < len(item_id) <= _LONGEST_ID:
        raise HTTPException(422, f"query: give 1 to {Limits.query_characters} characters, and as id that of a picture")
    return _Asked(query, item_id, cast("responses.GradeName | None", grade), person_name(who) if who.strip() else "")


def _in_own_name(asked: _Asked, visitor: Visitor | None) -> _Asked:
    """The grade under the name of the token; who has a name of its own gives no grade under another."""
    if visitor is None or not visitor.name:
        return asked
    if asked.who not in ("", visitor.name):
        raise HTTPException(403, f"grades with this token are kept as those of {visitor.name}; leave out who")
    return replace(asked, who=visitor.name)


def _keep(current: Current, asked: _Asked) -> responses.GivenGrades:
    served = current.now()
    item = item_of(served, asked.id)
    served.index.grade(asked.query.strip(), item.id, asked.grade, asked.who)
    return _given(current, asked.query, MAX_RESULTS, 0)


def _given(current: Current, query: str | None, k: int, offset: int) -> responses.GivenGrades:
    every = current.now().index.grades()
    wanted = [one for one in reversed(every.kept) if query is None or one.query == query.strip()]
    shown = tuple(
        responses.GivenGrade(one.query, sendable(one.id), one.grade, one.when, one.who)
        for one in wanted[offset : offset + k]
    )
    return responses.GivenGrades(shown, len(wanted) > offset + k, len(every.by_query()), FEWEST_QUERIES)


def _calibrate(current: Current) -> responses.CalibrationOutcome:
    searcher = current.now().searcher
    grades = searcher.index.grades()
    calibration, found = searcher.calibration_of_grades()
    if not found.harmless:
        now = current.now()
        line = found.reason or "what judges now does as well on searches that the new one did not see"
        return responses.CalibrationOutcome(
            now.version, len(grades.by_query()), searcher.judging.source, (f"Nothing was changed: {line}.",), kept=False
        )
    before = _standing(searcher, grades)
    _, served = current.change(lambda index: index.keep_calibration(calibration))
    after = _standing(served.searcher, grades)
    return responses.CalibrationOutcome(
        served.version, len(grades.by_query()), calibration.source, changes_of(before, after), kept=True
    )


@dataclass(frozen=True)
class Standing:
    """Numbers of graded pictures of judged searches, and of those that stand before the end of relevance.

    Fitting pictures were called right or close.
    """

    fitting: int
    fitting_shown: int
    wrong: int
    wrong_shown: int


def changes_of(before: Standing, after: Standing) -> tuple[str, ...]:
    """Lines on what a fit changed for the judged searches.

    >>> changes_of(Standing(8, 5, 6, 3), Standing(8, 7, 6, 3))
    ('7 of 8 pictures that were called right or close are shown before the end; it was 5.', '3 of 6 pictures that were
    called wrong are shown before the end, as before.')
    """
    lines = []
    for called, count, was, now in (
        ("right or close", before.fitting, before.fitting_shown, after.fitting_shown),
        ("wrong", before.wrong, before.wrong_shown, after.wrong_shown),
    ):
        if count:
            pictures = "picture that was" if count == 1 else "pictures that were"
            compared = ", as before" if now == was else f"; it was {was}"
            shown = "is" if now == count == 1 else "are"
            lines.append(f"{now} of {count} {pictures} called {called} {shown} shown before the end{compared}.")
    return tuple(lines)


def _standing(searcher: Searcher, grades: Grades) -> Standing:
    fitting: list[bool] = []
    wrong: list[bool] = []
    for query, given in islice(reversed(grades.by_query().items()), _SEARCHES):
        try:
            answer = searcher.search(query, _LOOKED_AT)
        except UserError:  # what was typed then says nothing to this version
            continue
        first = answer.hits[: answer.end.shown if answer.end else 0]
        shown = {one for hit in first for one in (hit.id, *answer.folded.get(hit.id, ()))}
        for one in given.values():
            (wrong if one.grade == "wrong" else fitting).append(one.id in shown)
    return Standing(len(fitting), sum(fitting), len(wrong), sum(wrong))
