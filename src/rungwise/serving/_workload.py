"""Queues of costly work: encoding and searching in one, decoding in another, reading in a third."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np
from fastapi import HTTPException
from numpy.typing import NDArray
from starlette.requests import Request

from rungwise.core import UserError
from rungwise.core.network import answered_within
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.pictures import WEB_FORMATS, PictureHeader, read_header, thumbnail
from rungwise.index import Searcher
from rungwise.models import PairScorer
from rungwise.serving._limits import ServingLimits, client_key
from rungwise.serving._metrics import Metrics
from rungwise.serving.access import Uploads
from rungwise.serving.queues import Batches, Memory, WorkQueue, outcome
from rungwise.serving.searches import (
    PendingSearch,
    SearchOutcome,
    SearchParameters,
    SearchProcesses,
    SentAnswer,
    VersionedSearch,
    searched,
)
from rungwise.serving.state import THUMBNAIL, KeptPictures, PictureFiles

_PICTURE_PATIENCE = 1.0
_READING_THREADS = 2

T = TypeVar("T")


class WorkQueues:
    """Queues of one server, which all of its applications share.

    Attributes:
        limits: Limits of the server.
        encoding: Queue of one thread: encoding uses every core already, and requests at the same time would only
            contend.
        decoding: Queue for decoding pictures.
        reading: Queue for reading from disk.
        memory: Budget of memory for decoding.
        uploads: Pictures that are being received.
        files: Sender of pictures.
    """

    def __init__(self, limits: ServingLimits) -> None:
        self.limits = limits
        self.encoding = WorkQueue(threads=1)
        self.decoding = WorkQueue(limits.decoding_threads, yielding=True)
        self.reading = WorkQueue(_READING_THREADS)
        self.memory = Memory(limits.decoding_memory)
        self.uploads = Uploads(limits)
        self.files = PictureFiles(self.decoding, self.memory, limits)

    async def encoded(self, request: Request, work: Callable[[], T]) -> T:
        """Do work in the queue of encoding."""
        submitted = self.encoding.submit(work, client=client_of(request), patience=_PICTURE_PATIENCE)
        return await outcome(submitted, request, self.limits.waiting_seconds)

    async def changed(self, request: Request, work: Callable[[], T]) -> T:
        """Change the store in the queue of encoding; what is waited for too long goes on to its end all the same."""
        submitted = self.encoding.submit(work, client=client_of(request), patience=_PICTURE_PATIENCE)
        return await outcome(submitted, request, self.limits.waiting_seconds, longest=self.limits.store_seconds)

    async def read(self, request: Request, work: Callable[[], T]) -> T:
        """Read from the store, for as long as the limits allow, in the queue of reading."""
        seconds = self.limits.store_seconds
        submitted = self.reading.submit(partial(_within, seconds, work), client=client_of(request))
        return await outcome(submitted, request, self.limits.waiting_seconds, longest=seconds)

    async def fitted(self, request: Request, work: Callable[[], T]) -> T:
        """Do work that may take minutes in the queue of reading."""
        submitted = self.reading.submit(work, client=client_of(request))
        return await outcome(submitted, request, self.limits.waiting_seconds)

    async def decoded(self, request: Request, work: Callable[[], T]) -> T:
        """Do work in the queue of decoding."""
        submitted = self.decoding.submit(work, client=client_of(request), patience=_PICTURE_PATIENCE)
        return await outcome(submitted, request, self.limits.waiting_seconds)

    @contextmanager
    def opened(self, body: bytes, *sides: int | None) -> Iterator[PictureHeader]:
        """Context in which a picture that was sent may be decoded, once there is memory for it; gives its header.

        Args:
            body: The bytes of the file.
            sides: Shorter side as in :func:`rungwise.data.pictures.load_picture`, for each time that it is decoded; the
                header is read with the first.

        Raises:
            HTTPException: 413 if it has too many pixels, or would take too much memory.
            UserError: If it cannot be read.
        """
        try:
            header = read_header(body, shorter_side=sides[0], formats=WEB_FORMATS)
            if header.pixels > self.limits.upload_pixels:
                raise HTTPException(
                    413, f"the picture has {header.pixels} pixels; send one of at most {self.limits.upload_pixels}"
                )
            needed = max(header.memory(side) for side in sides)
            needed += 2 * len(body)  # the file is there twice while it is decoded
            if needed > self.limits.decoding_memory:
                raise HTTPException(
                    413,
                    f"the picture would take {needed >> 20} MiB to decode, more than"
                    f" {self.limits.decoding_memory >> 20}; send a smaller one, or a JPEG",
                )
            with self.memory.taken(needed):
                yield header
        except UserError as error:  # its remedy is for those who have the file in a collection
            reason = (str(error).rpartition("; ")[0] or str(error)).replace("<uploaded picture>", "the picture")
            raise UserError(f"{reason}; send another file, such as a JPEG, PNG, WebP or GIF") from error

    def watched_by(self, metrics: Metrics) -> None:
        """Add gauges of the waiting work to the counters."""
        for name, queue in (("encoding", self.encoding), ("decoding", self.decoding), ("reading", self.reading)):
            metrics.watch(f"waiting_{name}", f"Pieces of work that wait for {name}.", partial(_waiting, queue))
        metrics.watch("uploads_bytes", "Bytes of pictures that are being received.", lambda: self.uploads.held)
        metrics.watch("decoding_free_bytes", "Memory that decoding may still take.", lambda: self.memory.left)


class Workload:
    """The work of one index.

    Attributes:
        files: Sender of pictures of the index.
        kept: The same as the argument.
        encoded: Method :meth:`WorkQueues.encoded` of the queues.
        changed: Method :meth:`WorkQueues.changed` of the queues.
        read: Method :meth:`WorkQueues.read` of the queues.
        fitted: Method :meth:`WorkQueues.fitted` of the queues.
        longest: Seconds for which a request may wait for the store.

    Args:
        queues: Queues of the server.
        kept: Data of pictures that visitors sent.
        metrics: Counters of the application.
        processes: Processes that search beside the server's own; None searches in this one.
    """

    def __init__(
        self, queues: WorkQueues, kept: KeptPictures, metrics: Metrics, processes: SearchProcesses | None = None
    ) -> None:
        self.kept = kept
        self._queues = queues
        self._limits, self.longest = queues.limits, queues.limits.store_seconds
        self.files, self.encoded, self.read = queues.files, queues.encoded, queues.read
        self.changed, self.fitted = queues.changed, queues.fitted
        limits = queues.limits
        self._queries = Batches(
            queues.encoding,
            partial(searched, seconds=limits.store_seconds),
            most=limits.queries_together,
            size=lambda one: sum(map(len, one.query.texts)),
            room=limits.characters_together,
            observe=metrics.encoded,
        )
        self._beside: Batches[VersionedSearch, SentAnswer | None] | None = None
        if processes is not None:
            self._beside = Batches(
                WorkQueue(processes.number),
                processes.answers,
                most=limits.queries_together,
                at_once=processes.number,
                size=lambda one: len(one.asked.q),
                room=limits.characters_together,
                observe=metrics.encoded,
            )
            metrics.watch("search_processes", "Processes that search beside the server's own.", lambda: processes.alive)
        self._searched = metrics.searched
        metrics.watch("waiting_queries", "Queries that wait to be encoded.", self._waiting)
        queues.watched_by(metrics)

    async def search(self, request: Request, search: PendingSearch) -> SearchOutcome:
        """Encode a query, together with others that wait, and search."""
        work = self._queries.submit(search, client=client_of(request))
        found = await outcome(work, request, self._limits.waiting_seconds, longest=self.longest)
        if search.query.has_words and search.offset == 0:
            self._searched(nothing=found.nothing)
        return found

    async def search_beside(self, request: Request, version: str, asked: SearchParameters) -> SentAnswer | None:
        """Let a process beside the server's own search in one version of the index; None where none does."""
        # What only this process has: pictures that were sent, and favourites.
        if self._beside is None or asked.picture or asked.favourites:
            return None
        work = self._beside.submit(VersionedSearch(version, asked), client=client_of(request))
        found = await outcome(work, request, self._limits.waiting_seconds, longest=self.longest)
        if found is not None and found.has_words and asked.offset == 0:
            self._searched(nothing=found.nothing)
        return found

    def _waiting(self) -> int:
        return self._queries.waiting + (0 if self._beside is None else self._beside.waiting)

    async def explained(self, request: Request, work: Callable[[], T], picture: Picture, model: PairScorer) -> T:
        """Let a model look at a picture of the index, in the queue of encoding.

        Args:
            request: Request that asks.
            work: Work to do.
            picture: Picture that the work reads; no message says where it lies.
            model: Model that does the work.

        Raises:
            HTTPException: 404 if the picture cannot be read; 422 if it would take too much memory.
        """
        return await self.encoded(request, partial(self._looked_at, work, picture, model))

    def _looked_at(self, work: Callable[[], T], picture: Picture, model: PairScorer) -> T:
        try:
            header = read_header(picture, shorter_side=model.decoded_side)
            size = picture.stat().st_size if not isinstance(picture, PackedPicture) else len(picture.read())
            needed = header.memory(model.decoded_side) + size
            if needed > self._limits.decoding_memory:
                raise HTTPException(422, f"this picture has {header.pixels} pixels, which are too many to look at anew")
            with self._queues.memory.taken(needed):
                return work()
        except (OSError, UserError) as error:  # the reasons name the file
            raise HTTPException(404, "the file of this picture is no longer there or can no longer be read") from error

    async def keep_picture(self, request: Request, searcher: Searcher) -> tuple[str, PictureHeader]:
        """Receive a picture, decode it in one queue, encode it in another, and keep its data."""
        client = client_of(request)
        async with self._queues.uploads.received(request, client) as body:
            header, encode, small = await self._decoded(request, searcher, body)
            vector = await self.encoded(request, encode)
        # Nothing is kept of a picture of which the vector is not known, and nobody waits for the disk but its sender.
        model = searcher.index.manifest.model_fingerprint
        return await self.read(request, partial(self.kept.keep, body, vector[0], small, model)), header

    async def with_picture(self, request: Request, searcher: Searcher, work: Callable[[bytes, PictureHeader], T]) -> T:
        """Receive a picture, check that it can be decoded, and change the store by it in the queue of encoding."""
        client = client_of(request)
        async with self._queues.uploads.received(request, client) as body:
            header, _, _ = await self._decoded(request, searcher, body)
            return await self.changed(request, partial(work, body, header))

    async def _decoded(
        self, request: Request, searcher: Searcher, body: bytes
    ) -> tuple[PictureHeader, Callable[[], NDArray[np.float32]], bytes]:
        if not body:
            raise HTTPException(
                422, "the request has no picture; send the bytes of the file as its body: curl --data-binary @photo.jpg"
            )
        return await self._queues.decoded(request, partial(self._decode, searcher, body))

    def _decode(
        self, searcher: Searcher, body: bytes
    ) -> tuple[PictureHeader, Callable[[], NDArray[np.float32]], bytes]:
        with self._queues.opened(body, THUMBNAIL, searcher.model.decoded_side) as header:
            return header, searcher.prepare_picture(body), thumbnail(body, THUMBNAIL)


def _within(seconds: float, work: Callable[[], T]) -> T:
    with answered_within(seconds):
        return work()


def client_of(request: Request) -> str:
    """Client of a request, as :func:`rungwise.serving._limits.client_key` names it."""
    return client_key(request.client.host) if request.client else ""


def _waiting(queue: WorkQueue) -> float:
    return queue.waiting
