"""The grading page's application: pairs go out, judgements come in and are kept at once.

Pictures are named by the place of their pair, never by a path from a request. A judgement comes with the ids and the
hash of the text that were shown, so that a page that stood open while another table was served grades nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from threading import Lock
from typing import Annotated, Any
from unicodedata import normalize

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from rungwise.core.reading import stamp
from rungwise.data.collection import Issue
from rungwise.grading import shapes
from rungwise.grading.agreement import agreement_of, grades_given
from rungwise.grading.questions import Questions
from rungwise.relevance.judgements import GRADES, Judgement, Judgements, add_judgement, now, read_judgements
from rungwise.serving.answers import IMAGES, json_answer, refusals
from rungwise.serving.app import answer_errors_in_one_line
from rungwise.serving.bodies import json_body
from rungwise.serving.entrance import Entrance
from rungwise.serving.files import PictureFiles
from rungwise.serving.ids import possible, sendable
from rungwise.serving.lanes import Lane, Memory
from rungwise.serving.limits import ServingLimits
from rungwise.serving.pages import mount_page
from rungwise.serving.work import client_of

_STATIC = Path(__file__).parent / "static"
_LISTED = 50
LONGEST_NAME = 80
"""Characters of a grader's name."""

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
    """The judgement file, read again whenever it is another one than before."""

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
    allowed_hosts: Sequence[str] | None = None,
    limits: ServingLimits | None = None,
) -> FastAPI:
    """The grading page and its interface over HTTP.

    Answers are JSON; every refusal is ``{"error": "one line"}``.

    Args:
        questions: What people are asked; all pictures can be shown.
        out: The judgement file; others may append to it meanwhile.
        file: Name of the table, for the page.
        grader: A name that the page takes, so that nobody is asked for one.
        next_command: What the page says to do when all is graded.
        allowed_hosts: Names under which the application may be asked for, without port; any name unless given.
        limits: What strangers may hold.

    >>> import inspect
    >>> list(inspect.signature(create_grading_app).parameters)[:2]
    ['questions', 'out']
    """
    limits = limits or ServingLimits()
    app = FastAPI(title="rungwise grade", version=version("rungwise"), docs_url=None, redoc_url=None)
    answer_errors_in_one_line(app)
    app.add_middleware(Entrance, names=allowed_hosts, token=None)
    pictures = PictureFiles(Lane(limits.decoding_threads), Memory(limits.decoding_memory), limits)
    kept, data = _Kept(out), questions.data
    captions_of_image = data.captions_of_image
    about = shapes.About(
        name=data.name,
        file=file,
        out=str(out),
        pairs=len(questions),
        left_out=tuple(map(_in_words, questions.issues[:_LISTED])),
        left_out_count=len(questions.issues),
        grades=tuple((grade, GRADES[grade]) for grade in sorted(GRADES, reverse=True)),
        grader=grader,
        next=next_command,
        version=questions.version,
    )

    @app.get("/grading/about", response_model=shapes.About, responses=refusals(), tags=["grading"])
    def described() -> Response:
        """What is graded, and how."""
        return json_answer(about)

    @app.get("/grading/progress", response_model=shapes.Progress, responses=refusals(422), tags=["grading"])
    def progress(who: Who) -> Response:
        """How far a grader is, and how well graders agree."""
        return json_answer(_progress(questions, kept.now(), _name_of(who)))

    @app.get("/grading/pairs/{place}", response_model=shapes.Pair, responses=refusals(404, 422), tags=["grading"])
    def pair(place: int) -> Response:
        """One pair."""
        asked = questions.asked[_checked(questions, place)]
        image, caption = questions.ids(place)
        # The caption in question would tell that it was written for the picture.
        own = tuple(data.captions[at] for at in captions_of_image[asked.image].tolist() if at != asked.caption)
        text, text_hash, version = questions.text(place), questions.text_hash(place), questions.version
        return json_answer(
            shapes.Pair(place, sendable(image), sendable(caption), asked.direction, text, text_hash, own, version)
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
        return await pictures.answer(path, None, request, client_of(request))

    @app.post(
        "/grading/judgements",
        response_model=shapes.Progress,
        responses=refusals(404, 408, 409, 413, 422),
        openapi_extra={"requestBody": _A_JUDGEMENT},
        tags=["grading"],
    )
    async def judge(request: Request) -> Response:
        """Keep what a person says of a pair; the answer says how far that person is."""
        asked = _asked(await json_body(request, limits.body_seconds, "a judgement"))
        return json_answer(await run_in_threadpool(_keep, questions, kept, asked))

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


def _asked(body: bytes) -> _Asked:
    wrong = HTTPException(
        422,
        f"give a JSON object with who (1 to {LONGEST_NAME} characters), image, caption, text_hash, and a grade from"
        f" {min(GRADES)} to {max(GRADES)} or null",
    )
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise wrong from error
    if not isinstance(found, dict) or found.keys() != _FIELDS.keys():
        raise wrong
    grade = found.pop("grade")
    if not all(isinstance(value, str) for value in found.values()):
        raise wrong
    if grade is not None and (not isinstance(grade, int) or isinstance(grade, bool) or grade not in GRADES):
        raise wrong
    if not (found["who"].strip() and len(found["who"]) <= LONGEST_NAME):
        raise wrong
    return _Asked(**{**found, "who": _name_of(found["who"])}, grade=grade)


def _name_of(who: str) -> str:
    """A name in one line, in which blanks and ways to write an accent make no other person."""
    return " ".join(normalize("NFC", who).split())


def _checked(questions: Questions, place: int) -> int:
    if not 0 <= place < len(questions):
        raise HTTPException(404, f"there is no pair {place}; pairs are numbered from 0 to {len(questions) - 1}")
    return place


def _keep(questions: Questions, kept: _Kept, asked: _Asked) -> shapes.Progress:
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


def _progress(questions: Questions, judgements: Judgements, who: str) -> shapes.Progress:
    own: dict[int, int | None] = {}
    for one in judgements:
        place = questions.find(*one.pair) if one.who == who else None
        # A grade of a text that has changed since is none of this one.
        if place is not None and one.text_hash == questions.text_hash(place):
            own[place] = one.grade
    given = tuple(own.get(place) for place in range(len(questions)))
    agreement = agreement_of(judgements)
    counts = {str(grade): count for grade, count in grades_given(given).items()}
    return shapes.Progress(who, given, tuple(own), counts, agreement, tuple(agreement.lines()), questions.version)


def _in_words(issue: Issue) -> str:
    return f"{issue.kind}: {issue.where}{': ' if issue.detail else ''}{issue.detail}"
