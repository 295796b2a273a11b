"""The application: the search page, and its interface over HTTP.

Pictures are named by their ids, which are looked up in the index and never taken for paths, so that no request can
reach any other file. Costly work waits in queues (:mod:`rungwise.serving._workload`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from rungwise.core.disk import usable_cache
from rungwise.index import Index, Meaning, Searcher
from rungwise.models import DualEncoder
from rungwise.serving._common_app import answer_metrics, new_app
from rungwise.serving._metrics import Metrics
from rungwise.serving._pages import mount_page
from rungwise.serving._workload import Workload, WorkQueues
from rungwise.serving.access import ServerSettings, may, needed_right, visitor_of
from rungwise.serving.routes import asked_queries, favourites, feedback, pictures, readiness, search, values, why
from rungwise.serving.schemas import json_answer, refusals, responses, sendable
from rungwise.serving.searches import MAX_OFFSET, MAX_RESULTS, SearchProcesses, warmed
from rungwise.serving.state import Current, KeptPictures, KeptQueries, Overviews, Reranker

_STATIC = Path(__file__).parent / "static"
_REFERENCE = Path(__file__).parent / "reference"
_KEPT = "sent-pictures"


def create_app(
    index: Index,
    model: DualEncoder,
    *,
    settings: ServerSettings | None = None,
    kept: Path | None = None,
    meaning: Meaning | None = None,
    only_here: bool = False,
    reranker: Reranker | None = None,
    queues: WorkQueues | None = None,
    reload: Callable[[Index], DualEncoder] | None = None,
    processes: SearchProcesses | None = None,
) -> FastAPI:
    """Application of the search page and its HTTP interface for one index.

    Answers are JSON; every refusal is ``{"error": "one line"}``. When the index is changed or another takes its place,
    the new state is served as soon as it is read, provided that the same model built it.

    Args:
        index: Index to search.
        model: Model that built the index.
        settings: Who is let in, limits of what clients may hold, and the log; where the server listens is not read.
        kept: Folder for data of pictures that were sent; by default in the cache folder.
        meaning: Source of known words near in meaning to an unknown one; by default spelling alone decides.
        only_here: Whether only this machine reaches the application. People may then grade pictures without a token.
        reranker: Model that reranks the first hits of searches with words, and may explain them.
        queues: Queues for the work, which applications of the same server share; their limits take the place of those
            of ``settings``. None makes new ones.
        reload: Function that loads the model of an index that takes the place of this one and was built by another
            model; it is called in a thread. None serves the old index on.
        processes: Processes that search beside this one, all but what a model reranks, favourites, and what is like a
            picture that was sent; None searches in this one.

    Queries that are kept (``settings.keep_queries``) are written while the application's lifespan runs, which it does
    under any server, but not within another application.

    Raises:
        UserError: If another model built the index, the token is too short, or queries cannot be kept with this index.
    """
    settings = settings or ServerSettings()
    queues = queues or WorkQueues(settings.limits)
    limits, writable = queues.limits, settings.known_tokens is not None
    searcher = Searcher(index, model, meaning=meaning)

    def searcher_of(index: Index) -> Searcher:
        assert reload is not None
        return warmed(Searcher(index, reload(index), meaning=meaning))

    current = Current(searcher, reload=None if reload is None else searcher_of)
    overviews, metrics = Overviews(), Metrics()
    sent = KeptPictures(
        kept or usable_cache() / _KEPT,
        room=limits.kept_bytes,
        seconds=limits.kept_seconds,
    )
    work = Workload(queues, sent, metrics, processes)
    metrics.watch("pictures", "Pictures of the index that is served.", lambda: current.now().pictures)
    places = {} if index.folder is None else {index.folder: "the index"}
    asked = None
    if settings.keep_queries is not None:
        asked = KeptQueries(index.folder, settings.keep_queries, limits.kept_queries)
    lifespan = None if asked is None else lambda _: asked.written_at_times()
    app = new_app("rungwise", settings, metrics=metrics, places=places, lifespan=lifespan, needed=needed_right)
    note = None if asked is None else asked.note
    app.include_router(search.routes(current, work, overviews, reranker, only_here=only_here, note=note))
    app.include_router(values.routes(current, work, overviews))
    app.include_router(why.routes(current, work, reranker))
    app.include_router(pictures.routes(current, work, writable=writable))
    gradable = writable or only_here
    app.include_router(feedback.routes(current, work, limits, allowed=gradable))
    app.include_router(favourites.routes(current, work, limits, allowed=gradable))
    app.include_router(asked_queries.routes(current, work, asked, allowed=gradable))
    app.include_router(readiness.routes(current, limits.ready_seconds))

    @app.get("/about", response_model=responses.About, responses=refusals(), tags=["server"])
    async def about(request: Request) -> Response:
        """What is being searched."""
        served = current.now()
        overviews.of(served)  # which is made by the time that the page asks for its themes
        manifest = served.index.manifest
        visitor, in_folder = visitor_of(request), served.index.folder is not None
        return json_answer(
            responses.About(
                name=manifest.name,
                pictures=served.pictures,
                captions=served.captions,
                skipped=manifest.skipped,
                dimension=manifest.dimension,
                similarity=served.index.similarity.kind,
                model=manifest.model_fingerprint[:12],
                index_version=served.version,
                problem=current.problem,
                columns=overviews.columns_of(served),
                max_results=MAX_RESULTS,
                max_offset=MAX_OFFSET,
                max_upload_bytes=limits.upload_bytes,
                max_upload_pixels=limits.upload_pixels,
                writable=writable and in_folder and may(request, "write"),
                gradable=gradable and in_folder and may(request, "grade"),
                calibratable=gradable and in_folder and may(request, "write"),
                who="" if visitor is None else visitor.name,
                not_kept=favourites.reason_not_kept(current, allowed=gradable),
                queries_kept_days=0 if asked is None else asked.days,
                reranked_by="" if reranker is None else reranker.name,
                rerank_top=0 if reranker is None else reranker.top,
                explains=reranker is not None and reranker.model.explains,
                only_here=only_here,
                version=app.version,
                examples=served.examples,
                newest=tuple(map(sendable, served.newest)),
            )
        )

    @app.get("/health", response_model=responses.Health, responses=refusals(), tags=["server"])
    async def health() -> Response:
        """That the server answers; whether its store does too, `/ready` says."""
        return json_answer(responses.Health("ok", current.now().pictures))

    answer_metrics(app, metrics)

    @app.get("/docs", include_in_schema=False)
    async def reference() -> FileResponse:
        return FileResponse(_REFERENCE / "index.html")

    mount_page(app, _STATIC)
    app.mount("/reference", StaticFiles(directory=_REFERENCE))
    return app
