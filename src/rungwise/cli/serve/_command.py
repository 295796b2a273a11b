"""``rungwise serve``."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from rungwise.cli.frame import Browser, Limits, Port, parse
from rungwise.cli.serve._entrance import IDLE_OPEN, elsewhere, exposure, listed, settings_of, token_of, tokens_of
from rungwise.core import UserError
from rungwise.core.disk import usable_cache
from rungwise.core.text import idle_where, idle_without, refuse_idle
from rungwise.jobs import (
    ADVANCED,
    AlteredModel,
    Device,
    flag,
    near_words,
    open_searcher,
    read_model,
    read_model_of,
    say,
    say_now,
)
from rungwise.parts import named_modules
from rungwise.serving import ServingLimits
from rungwise.serving.access import with_token

if TYPE_CHECKING:
    from rungwise.data import CollectionSource, ImageCaptions
    from rungwise.index import Index
    from rungwise.index.update import Changes
    from rungwise.models import DualEncoder
    from rungwise.serving import Reranker, SearchProcesses

FOLLOWER = "rungwise-follower"
"""Name of the thread that follows the folders of an index."""

_OF_QUERIES = idle_where(
    "kept_queries", lambda _: True, "without --keep-queries, which keeps them", "give both, or leave {} out"
)
_EXAMPLES = (
    "rungwise serve photos.index",
    "rungwise serve photos.index --follow",
    "rungwise serve photos.index --host 0.0.0.0",
    "rungwise serve photos.index --host 0.0.0.0 --tokens tokens",
)


@dataclass
class Serve:
    """Serve the search page until Ctrl-C.

    Attributes:
        index: Folder of the index. Or s3://BUCKET/PREFIX.
        model: The model that built the index, if it has moved.
        host: Address to listen on. With 0.0.0.0 other machines are let in, with the token that is then printed.
        token: A password for the page. Better set RUNGWISE_TOKEN: others can read a command line.
        tokens: A file of several tokens, one NAME RIGHT TOKEN a line. The command rungwise token prints such lines.
            Rights are watch, read, grade and write. The file is read anew when it changes, so that a removed line ends
            its access. Or set RUNGWISE_TOKENS to such lines.
        open: No token, beyond this machine too. Whoever can reach the address sees every picture and caption.
        allowed_host: Another name under which the page may be asked for, such as that of a proxy before it; repeatable.
        follow: Index what changes in the folders, too. That is what rungwise index --watch does, in the same process.
        reload: Load another model where a new index names one. Once it is loaded, the new index is served with it.
            Without this option the old index is served on, and the log says so.
        rerank: Rank the first hits of searches with words anew with this model. One of kind scan, sgr or saf also shows
            on the page which parts of a picture answered which words.
        rerank_top: How many hits are ranked anew.
        processes: Search in so many processes beside the server's own. With several cores, many visitors at once then
            get their answers sooner. Each takes the memory of another model; the files of the index are shared.
        keep_queries: Keep what people search for so many days, in queries.jsonl of the index, for rungwise calibrate.
            The words, how often and the day are kept, and nothing of who asked. The page says so. Remove the file to
            forget them, at any time.
        log: Write a line of JSON for every request to the standard error.
        log_queries: Write what was searched for into these lines, too.
    """

    index: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="INDEX")]
    model: str | None = None
    device: Device = field(default=None, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    host: str = "127.0.0.1"
    port: Port = 8000
    browser: Browser = True
    token: str | None = None
    tokens: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    allowed_host: tyro.conf.UseAppendAction[tuple[str, ...]] = field(default=(), metadata=ADVANCED)
    follow: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    reload: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    rerank: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = field(default=None, metadata=ADVANCED)
    rerank_top: int = field(default=50, metadata=ADVANCED)
    processes: Annotated[int | None, tyro.conf.arg(metavar="NUMBER")] = field(default=None, metadata=ADVANCED)
    keep_queries: Annotated[int | None, tyro.conf.arg(metavar="DAYS")] = None
    log: Literal["none", "json"] = field(default="none", metadata=ADVANCED)
    log_queries: Annotated[bool, tyro.conf.FlagCreatePairsOff] = field(default=False, metadata=ADVANCED)
    limits: Limits = field(default_factory=ServingLimits, metadata=ADVANCED)

    IDLE = (
        idle_where(
            "log_queries", lambda asked: asked.log == "none", "without {log} json", "give both, or leave {} out"
        ),
        idle_without("rerank_top", "rerank", remedy="leave it out, or name a second model"),
        idle_where(
            "processes",
            lambda asked: asked.rerank is not None,
            "with {rerank}, as the server's own process ranks anew",
            "leave one of the two out",
        ),
        IDLE_OPEN,
    )


def main(arguments: list[str]) -> int:
    """Serve an index until Ctrl-C."""
    asked = parse(Serve, arguments, "rungwise serve", examples=_EXAMPLES)
    if asked.keep_queries is None:
        refuse_idle(asked.limits, _OF_QUERIES, option=lambda name: flag(f"limits.{name}"))
    if asked.rerank_top < 1:
        raise UserError(f"--rerank-top must be at least 1, got {asked.rerank_top}")
    if asked.processes is not None and asked.processes < 1:
        raise UserError(f"--processes must be at least 1, got {asked.processes}; leave it out to search without others")
    tokens = tokens_of(asked)
    token, beyond = token_of(asked, tokens)
    from rungwise.index import Index
    from rungwise.index.layout import require_kept
    from rungwise.serving import RequestLog, serve

    place: Any = asked.index if "://" in asked.index else Path(asked.index)
    index = Index.open(place)
    usable_cache()  # where a picture that is searched with is kept
    model = read_model_of(index, asked.model, asked.device, altered=asked.altered_model)
    if line := index.manifest.stand_in(model):
        say(line)
    reranker = _reranker(asked)
    if beyond:
        say(_exposed(index, guarded=not asked.open))
    if tokens is not None:
        say(listed(tokens))
    if asked.keep_queries is not None:
        say(_kept(require_kept(index.folder), asked.keep_queries))
    follower = _Follower(asked, index, model) if asked.follow else None
    with _processes(asked, index) as processes:
        serve(
            index,
            model,
            settings=settings_of(
                asked,
                token,
                tokens,
                log=RequestLog(sys.stderr, queries=asked.log_queries) if asked.log == "json" else None,
                keep_queries=asked.keep_queries,
            ),
            open_browser=asked.browser,
            ready=lambda address: _say_ready(len(index), address, asked.host, token),
            meaning=near_words(),
            reranker=reranker,
            reload=(lambda index: _reloaded(asked, index, follower)) if asked.reload else None,
            processes=processes,
        )
    if follower is not None:
        follower.end()
    return 0


def _processes(asked: Serve, index: Index) -> AbstractContextManager[SearchProcesses | None]:
    """Processes that search beside this one, if requested."""
    if asked.processes is None:
        return nullcontext()
    from rungwise.serving import SearchProcesses

    options = {"name": asked.model, "device": asked.device, "altered": asked.altered_model, "modules": named_modules()}
    assert index.folder is not None
    return SearchProcesses(
        asked.processes,
        index.folder,
        open_searcher,
        options,
        options_anew={**options, "name": None} if asked.reload else None,
        store_seconds=asked.limits.store_seconds,
    )


def _reloaded(asked: Serve, index: Index, follower: _Follower | None) -> DualEncoder:
    """The model of an index that took the place of another; the folders are followed with it from now on."""
    model = read_model_of(index, None, asked.device, altered=asked.altered_model)
    if follower is not None:
        follower.encode_with(index, model, None)
    return model


class _Follower:
    """Follows the folders of an index in a thread of its own, until the server has ended.

    It has the model a second time, from the first picture on that is to be encoded: the server's is in use.
    """

    def __init__(self, asked: Serve, index: Index, model: DualEncoder) -> None:
        source = index.source
        if source is None or index.folder is None:
            raise UserError(f"{asked.index}: does not say of which folder it was made; index it anew, or omit --follow")
        self._asked, self._folder, self._source, self._index = asked, index.folder, source, index
        self.encode_with(index, model, asked.model)
        self._ended = Event()
        self._thread = Thread(target=self._follow, name=FOLLOWER, daemon=True)
        self._thread.start()
        say(f"following {', '.join(source.paths)}")

    def encode_with(self, index: Index, model: DualEncoder, place: str | None) -> None:
        """Encode from now on with the model of an index, from a place, or from where the index names it."""
        from rungwise.models import LazyModel, ModelFacts

        def open_model() -> DualEncoder:
            return read_model_of(index, place, self._asked.device, altered=self._asked.altered_model)

        self._model = LazyModel(ModelFacts.of(model), open_model, lambda _: None)

    def end(self) -> None:
        """Let the thread end after the batch that it is writing."""
        self._ended.set()

    def _follow(self) -> None:
        from rungwise.index.update import follow

        while not self._ended.is_set():
            folders = self._source.folders

            def ended(folders: tuple[Path, ...] = folders) -> bool:
                return self._ended.is_set() or self._look().folders != folders

            follow(folders, self._folder, self._update, say_now, ended)
            if self._source.folders == folders:
                return
            say_now(f"following {', '.join(self._source.paths)}")

    def _look(self) -> CollectionSource:
        """Of which folders the index is that stands in the place now; that of before while there is none."""
        from rungwise.index import Index

        with suppress(UserError, OSError):
            if self._index.is_replaced():
                self._index = Index.open(self._folder)
                self._source = self._index.source or self._source
        return self._source

    def _update(self) -> tuple[ImageCaptions, Changes]:
        from rungwise.data import read_again
        from rungwise.index import Index

        # Another index may have taken the place of the first: what it leaves out must not come in by that one's rules.
        index = Index.open(self._folder)
        if index.source is None:
            raise UserError(f"{self._asked.index}: does not say of which folder it was made; index it anew")
        data = read_again(index.source)
        return data, index.update(data, self._model)


def _reranker(asked: Serve) -> Reranker | None:
    """The model that reranks first hits, if requested."""
    if asked.rerank is None:
        return None
    from rungwise.serving import Reranker

    reranker = Reranker(read_model(asked.rerank, asked.device, altered=asked.altered_model), asked.rerank_top)
    shows = ", which shows why they were found" if reranker.model.explains else ""
    say(f"the first {reranker.top} hits of searches with words are ranked anew by {reranker.name}{shows}")
    return reranker


def _say_ready(pictures: int, address: str, host: str, token: str | None) -> None:
    """Print the addresses of the page: for this machine, and for others where it differs."""
    say(f"{pictures} pictures at {with_token(address, token)}   (Ctrl-C ends)")
    for other in elsewhere(host, address):
        say(f"from other machines: {with_token(other, token)}")


def _kept(folder: Path, days: int) -> str:
    """What is kept of queries, and how it is removed."""
    from rungwise.index.layout import QUERIES

    file = folder / QUERIES
    return f"what people search for is kept for {days} day{'s' * (days > 1)} in {file}; remove the file to forget it"


def _exposed(index: Index, *, guarded: bool) -> str:
    """Warning about what others will be able to see."""
    what = f"{len(index)} pictures and {index.caption_store.count()} captions can be seen"
    return exposure(what, guarded=guarded)
