"""Application of the demo: its own page at the root, and the ordinary search page of each model below its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from rungwise.demo._comparison import LONGEST, ComparedAnswer
from rungwise.demo._examples import ExampleQuery
from rungwise.demo._measurement import Compared
from rungwise.demo._places import NAMES, RELEVANT_FROM, TITLES, Name
from rungwise.demo._whole import Demo
from rungwise.serving import ServerSettings, WorkQueues, create_app, mount_page, new_app
from rungwise.serving.schemas import json_answer, refusals

_STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class DemoAbout:
    """Description of the demo for its page.

    Attributes:
        pictures: Number of pictures that are searched.
        trained: Number of pictures that both models learnt from.
        relevant_from: The degree from which a picture counts as relevant.
        titles: Title of each model.
        compared: Comparisons of both models over many queries.
        examples: Queries to try.
    """

    pictures: int
    trained: int
    relevant_from: float
    titles: Mapping[Name, str]
    compared: tuple[Compared, ...]
    examples: tuple[ExampleQuery, ...]


def about_of(demo: Demo) -> DemoAbout:
    """Description of a demo for its page."""
    return DemoAbout(
        len(demo.comparison.ids),
        demo.results.trained,
        RELEVANT_FROM,
        TITLES,
        demo.results.compared,
        demo.results.examples,
    )


def create_demo_app(demo: Demo, *, settings: ServerSettings | None = None) -> FastAPI:
    """Application of the demo's page and its HTTP interface.

    Answers are JSON; every refusal is ``{"error": "one line"}``. Pictures come from the application of a model, which
    finds them by their ids and never by a path from a request.
    """
    settings = settings or ServerSettings()
    queues = WorkQueues(settings.limits)
    app = new_app("rungwise demo", settings)
    about = about_of(demo)

    @app.get("/demo/about", response_model=DemoAbout, responses=refusals(), tags=["demo"])
    async def described() -> Response:
        """What is compared, and what was measured."""
        return json_answer(about)

    @app.get("/demo/search", response_model=ComparedAnswer, responses=refusals(422), tags=["demo"])
    async def searched(
        request: Request, q: Annotated[str, Query(description="Plain words about a picture.", max_length=4 * LONGEST)]
    ) -> Response:
        """Both models' answers to a query, with what is exactly true of every hit."""
        return json_answer(await queues.encoded(request, partial(demo.comparison.answer, q)))

    for name in NAMES:
        side = demo.comparison.sides[name]
        app.mount(f"/{name}", create_app(side.index, side.model, settings=settings, queues=queues))
    mount_page(app, _STATIC)
    return app
