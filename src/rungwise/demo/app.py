"""The demo's application: its own page at the root, and the ordinary search page of each model below its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Query, Response

from rungwise.demo.comparison import LONGEST, Answer
from rungwise.demo.examples import Example
from rungwise.demo.measuring import Compared
from rungwise.demo.places import NAMES, RELEVANT_FROM, TITLES, Name
from rungwise.demo.whole import Demo
from rungwise.serving.answers import json_answer, refusals
from rungwise.serving.app import answer_errors_in_one_line, create_app
from rungwise.serving.entrance import Entrance
from rungwise.serving.limits import ServingLimits
from rungwise.serving.pages import mount_page

_STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class About:
    """What the page says of the demo.

    Attributes:
        pictures: How many are searched.
        trained: How many both models learnt from.
        relevant_from: The degree from which a picture counts as relevant.
        titles: What each model is called.
        compared: Averages of both models over many queries.
        examples: Queries to try.
    """

    pictures: int
    trained: int
    relevant_from: float
    titles: Mapping[Name, str]
    compared: tuple[Compared, ...]
    examples: tuple[Example, ...]


def create_demo_app(
    demo: Demo, *, allowed_hosts: Sequence[str] | None = None, limits: ServingLimits | None = None
) -> FastAPI:
    """The demo's page and its interface over HTTP.

    Answers are JSON; every refusal is ``{"error": "one line"}``. Pictures come from the application of a model, which
    knows them by their ids and never by a path from a request.

    Args:
        demo: What is served.
        allowed_hosts: Names under which the application may be asked for, without port; any name unless given.
        limits: What strangers may hold.

    >>> import inspect
    >>> list(inspect.signature(create_demo_app).parameters)
    ['demo', 'allowed_hosts', 'limits']
    """
    app = FastAPI(title="rungwise demo", version=version("rungwise"), docs_url=None, redoc_url=None)
    answer_errors_in_one_line(app)
    app.add_middleware(Entrance, names=allowed_hosts, token=None)
    about = About(
        len(demo.comparison.ids),
        demo.results.trained,
        RELEVANT_FROM,
        TITLES,
        demo.results.compared,
        demo.results.examples,
    )

    @app.get("/demo/about", response_model=About, responses=refusals(), tags=["demo"])
    def described() -> Response:
        """What is compared, and what was measured."""
        return json_answer(about)

    @app.get("/demo/search", response_model=Answer, responses=refusals(422), tags=["demo"])
    def searched(q: str = Query(description="Plain words about a picture.", max_length=4 * LONGEST)) -> Response:
        """Both models' answers to a query, with what is exactly true of every hit."""
        return json_answer(demo.comparison.answer(q))

    for name in NAMES:
        side = demo.comparison.sides[name]
        app.mount(f"/{name}", create_app(side.index, side.model, allowed_hosts=allowed_hosts, limits=limits))
    mount_page(app, _STATIC)
    return app
