"""The application: one model behind two forms of requests, with counters, tokens and limits as the search page has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import FastAPI, Response

from rungwise.core import UserError
from rungwise.model_server import _immich, _openai
from rungwise.model_server._model_limits import ModelLimits
from rungwise.model_server._served_model import ServedModel
from rungwise.models import DualEncoder
from rungwise.serving import Metrics, ServerSettings, answer_metrics, new_app
from rungwise.serving.access import Right
from rungwise.serving.schemas import json_answer, refusals

_RIGHTS: dict[tuple[str, str], Right] = {
    **{("GET", name): "watch" for name in ("ping", "metrics")},
    **{("GET", name): "read" for name in ("", "openapi.json", "v1")},
    **{("POST", name): "read" for name in ("predict", "v1")},
}
"""Right that an operation needs, by its method and the first part of its path."""


def create_model_app(
    model: DualEncoder,
    *,
    settings: ServerSettings | None = None,
    names: Sequence[str] = (),
    say: Callable[[str], object] = lambda _: None,
) -> FastAPI:
    """Application that encodes pictures and texts with a model, in the forms of Immich and of OpenAI.

    Args:
        model: Model that encodes; pictures or texts are refused where it reads rows of features in their place.
        settings: Who is let in, limits of what clients may hold, and the log; where the server listens is not read.
            Limits that are no :class:`ModelLimits` become such (:meth:`ModelLimits.of`).
        names: Names under which the model answers; a request that asks for another is refused. Empty answers under any
            name.
        say: Called with a line where somebody asks for a model of another name and is answered.

    Raises:
        UserError: If the model reads neither pictures nor words, a name is blank, or the token is too short.
    """
    settings = settings or ServerSettings()
    if not (model.reads_pictures or model.reads_words):
        raise UserError("the model reads rows of features, no pictures and no words; give one that reads either")
    if not all(name.strip() for name in names):
        raise UserError("a name of the model is blank; give one with letters")
    metrics = Metrics()
    served = ServedModel(model, ModelLimits.of(settings.limits), names=names, say=say, observe=metrics.encoded)
    served.queues.watched_by(metrics)
    metrics.watch("waiting_queries", "Requests whose texts wait to be encoded.", lambda: served.waiting)
    app = new_app("rungwise serve-model", settings, metrics=metrics, needed=_needed_right)

    @app.get("/", responses=refusals(), tags=["server"])
    async def about() -> Response:
        """What is served."""
        return json_answer(
            {
                "model": served.id,
                "dimension": model.dimension,
                "similarity": model.similarity.kind,
                "pictures": model.reads_pictures,
                "texts": model.reads_words,
                "version": app.version,
            }
        )

    app.include_router(_immich.routes(served))
    app.include_router(_openai.routes(served))
    answer_metrics(app, metrics)
    app.add_middleware(_openai.OpenAIErrors)
    return app


def _needed_right(method: str, path: str) -> Right | None:
    """The right that a request needs; None where no operation is known."""
    return _RIGHTS.get(("GET" if method == "HEAD" else method, path.removeprefix("/").partition("/")[0]))
