"""Application of the grading page: it sends pairs, and receives judgements that are stored at once.

Pictures are requested by the place of their pair, never by a path. A judgement contains the ids and the hash of the
text that were shown, so that a page left open while another table is served grades nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response

from rungwise.core import stamp
from rungwise.core.text import LONGEST_NAME, person_name
from rungwise.data import Issue
from rungwise.grading import _schemas as schemas
from rungwise.grading._agreement import agreement_of, grades_given
from rungwise.grading._questions import Questions
from rungwise.relevance.human import GRADES, Judgement, Judgements, add_judgement, now, read_judgements
from rungwise.serving import (
    ServerSettings,
    WorkQueues,
    client_of,
    mount_page,
    new_app,
    possible,
    sendable,
    without_places,
)
from rungwise.serving.access import json_body
from rungwise.serving.schemas import IMAGES, json_answer, refusals

_STATIC = Path(__file__).parent / "static"
_LISTED = 50

Who = Annotated[str, Query(min_length=1, max_length=LONGEST_NAME, description="The grader's name.")]
_FIELDS = {
    "who": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    "image": {"type": "string"},
    "caption": {"type": "string"},
    "text_hash": {"type": "string", "description": "As it came with the pair."},
    "grade": {"enum": [*sorted(GRADES, reverse=True), None], "description": "null takes back what was said before."},
}
_A_JUDGEMENT = {
    "required": True,
    "description": "A JSON object.",
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": _FIELDS, "required": [*_FIELDS], "additionalProperties": False}
        }
    },
}


class _Kept:
    """The judgement file, read again after every change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._known: tuple[object, Judgements] | None = None

    def now(self) -> Judgements:
        with self._lock:
            mark = stamp(self.path)
            if self._known is None or self._known[0] != mark:
                self._known = mark, read_judgements(self.path)
            return self._known[1]


def create_grading_app(
    questions: Questions,
    out: Path,
    *,
    file: str = "",
    grader: str = "",
    next_command: str = "",
    settings: ServerSettings | None = None,
    places: Mapping[Path, str] | None = None,
) -> FastAPI:
    """Application of the grading page and its HTTP interface.

    Answers are JSON; every refusal is ``{"error": "one line"}``.

    Args:
        questions: Pairs to grade, whose pictures can all be shown.
        out: Judgement file; others may append to it meanwhile.
        file: Name of the table, for the page.
        grader: Name that the page takes; empty asks the grader for one.
        next_command: Command that the page suggests when everything is graded.
        settings: Who is let in, and limits of what clients may hold.
        places: Files and folders that issues and errors may name, with the names that the page shows instead.
    """
    settings = settings or ServerSettings()
    queues = WorkQueues(settings.limits)
    places = {**(places or {}), out: out.name}
    app = new_app("rungwise grade", settings, places=places)
    kept, data = _Kept(out), questions.data
    captions_of_image = data.captions_of_image
    about = schemas.GradingAbout(
        name=data.name,
        file=file,
        out=out.name,
        pairs=len(questions),
        left_out=tuple(_in_words(one, places) for one in questions.issues[:_LISTED]),
        left_out_count=len(questions.issues),
        grades=tuple((grade, GRADES[grade]) for grade in sorted(GRADES, reverse=True)),
        grader=grader,
        next=next_command,
        version=questions.version,
    )

    @app.get("/grading/about", response_model=schemas.GradingAbout, responses=refusals(), tags=["grading"])
    async def described() -> Response:
        """What is graded, and how."""
        return json_answer(about)

    @app.get("/grading/progress", response_model=schemas.GradingProgress, responses=refusals(422), tags=["grading"])
    async def progress(request: Request, who: Who) -> Response:
        """How far a grader is, and how well graders agree."""
        name = person_name(who)
        return json_answer(await queues.read(request, lambda: _progress(questions, kept.now(), name)))

    @app.get("/grading/pairs/{place}", response_model=schemas.Pair, responses=refusals(404, 422), tags=["grading"])
    async def pair(place: int) -> Response:
        """One pair."""
        asked = questions.asked[_checked(questions, place)]
        image, caption = questions.ids(place)
        # The caption in question would tell that it was written for the picture.
        own = tuple(data.captions[at] for at in captions_of_image[asked.image].tolist() if at != asked.caption)
        text, text_hash, version = questions.text(place), questions.text_hash(place), questions.version
        return json_answer(
            schemas.Pair(place, sendable(image), sendable(caption), asked.direction, text, text_hash, own, version)
        )

    @app.get(
        "/grading/pictures/{place}",
        response_class=Response,
        responses=refusals(404, 409, 422) | IMAGES,
        tags=["grading"],
    )
    async def picture(
        place: int,
        request: Request,
        version: Annotated[str | None, Query(max_length=64, description="As the pair came with.")] = None,
    ) -> Response:
        """The picture of a pair."""
        if version not in (None, questions.version):
            raise HTTPException(409, "other pairs are asked by now; load the page again")
        path = data.paths[questions.asked[_checked(questions, place)].image]
        return await queues.files.answer(path, None, request, client_of(request))

    @app.post(
        "/grading/judgements",
        response_model=schemas.GradingProgress,
        responses=refusals(404, 408, 409, 413, 422),
        openapi_extra={"requestBody": _A_JUDGEMENT},
        tags=["grading"],
    )
    async def judge(request: Request) -> Response:
        """Keep what a person says of a pair; the answer says how far that person is."""
        asked = _asked(await json_body(request, queues.limits.body_seconds, "a judgement", _FIELDS))
        return json_answer(await queues.read(request, partial(_keep, questions, kept, asked)))

    mount_page(app, _STATIC)
    return app


@dataclass(frozen=True)
class _Asked:
    """A judgement as it was sent; None takes back an earlier one."""

    who: str
    image: str
    caption: str
    text_hash: str
    grade: int | None


def _asked(found: Mapping[str, Any]) -> _Asked:
    grade = found["grade"]
    if not all(isinstance(found[name], str) for name in _FIELDS if name != "grade"):
        raise HTTPException(422, "who, image, caption and text_hash of a judgement are texts; send them as such")
    if grade is not None and (not isinstance(grade, int) or isinstance(grade, bool) or grade not in GRADES):
        raise HTTPException(422, f"grade: give a whole number from {min(GRADES)} to {max(GRADES)}, or null")
    return _Asked(person_name(found["who"]), found["image"], found["caption"], found["text_hash"], grade)


def _checked(questions: Questions, place: int) -> int:
    if not 0 <= place < len(questions):
        raise HTTPException(404, f"there is no pair {place}; pairs are numbered from 0 to {len(questions) - 1}")
    return place


def _keep(questions: Questions, kept: _Kept, asked: _Asked) -> schemas.GradingProgress:
    place = _place_of(questions, asked)
    if place is None:
        raise HTTPException(404, "nobody is asked about this pair here; load the page again")
    if asked.text_hash != questions.text_hash(place):
        raise HTTPException(409, "this caption has another text by now; load the page again and read it anew")
    image, caption = questions.ids(place)
    direction = questions.asked[place].direction
    add_judgement(kept.path, Judgement(image, caption, asked.grade, asked.who, now(), asked.text_hash, direction))
    return _progress(questions, kept.now(), asked.who)


def _place_of(questions: Questions, asked: _Asked) -> int | None:
    named = product(possible(asked.image), possible(asked.caption))
    return next((place for pair in named if (place := questions.find(*pair)) is not None), None)


def _progress(questions: Questions, judgements: Judgements, who: str) -> schemas.GradingProgress:
    own: dict[int, int | None] = {}
    for one in judgements:
        place = questions.find(*one.pair) if one.who == who else None
        # A grade of a text that has changed since is none of this one.
        if place is not None and one.text_hash == questions.text_hash(place):
            own[place] = one.grade
    given = tuple(own.get(place) for place in range(len(questions)))
    agreement = agreement_of(judgements)
    counts = {str(grade): count for grade, count in grades_given(given).items()}
    return schemas.GradingProgress(
        who, given, tuple(own), counts, agreement, tuple(agreement.lines()), questions.version
    )


def _in_words(issue: Issue, places: Mapping[Path, str]) -> str:
    whole = f"{issue.kind}: {issue.where}{': ' if issue.detail else ''}{issue.detail}"
    return without_places(whole, "", places) or issue.kind
