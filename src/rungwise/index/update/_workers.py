"""Pictures opened and encoded by Ray's workers, on this machine or on many, for an update that writes their rows.

The pictures are cut into shares of some hundred. Ray Data hands them to actors, each of which has loaded the model
once, and gives back their answers in the order of the shares. A worker that dies is replaced, and its share is done
again. Which rows are written stays with :class:`~rungwise.index.update.Update`.
"""

from __future__ import annotations

import base64
import json
import logging
import socket
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.compute import thread_pool
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import PackedPicture, Picture, packed_picture
from rungwise.data.pictures import MISSING, picture_name
from rungwise.index._items import Item, ItemSource
from rungwise.index.update._encoding import results_of
from rungwise.index.update._file_reader import MOST, FileContent, FileToRead, OpenedBatch, look_at, stamp_of
from rungwise.index.update._skipped import Skipped
from rungwise.index.update._thumbnails import Thumbnails

if TYPE_CHECKING:
    from rungwise.models import DualEncoder

_SHARE = 256
"""Number of pictures that a worker is given at a time, which is what is done again where one dies."""
_WAVE = 4096
"""Number of shares that Ray is given at a time: it keeps data of each, and workers load the model once a wave."""
_SECONDS = 2.0
"""Seconds in which answers are gathered before they are written: a store takes many rows for little more than few."""
_BEGINNING = 16
"""Number of characters of a SHA-256 sum that tell contents apart."""
_LEAST_READERS = 4
"""Least number of threads that open files in a worker; they mostly wait."""
_DEATHS = 20
"""Restarts of one worker after which the command ends: each may die of the same picture or of too little memory."""
_CORES_HELD = 0.5
"""Part of a worker's share of the cores that Ray counts as taken: all would leave none to Ray's own tasks."""

Load = Callable[[], "DualEncoder"]
"""Gives the model; called once in every worker."""
Plain = dict[str, Any]


@dataclass(frozen=True)
class Workers:
    """Workers that open and encode the pictures of an update; given to :meth:`Index.update` as ``files``.

    Attributes:
        ray: The connected module ``ray``, as :func:`rungwise.core.compute.cluster` gives it.
        load: Gives the model in each worker.
        count: Number of workers; if None, one for each GPU, or else for each core, of all machines.
        on_gpus: The model computes on GPUs, where machines have some; each worker then has one to itself.
        clock: Gives seconds, by which it is decided what is written together.
    """

    ray: Any
    load: Load
    count: int | None = None
    on_gpus: bool = True
    clock: Callable[[], float] = time.perf_counter

    __repr__ = short_repr

    def __call__(self, data: ImageCaptions, thumbnails: Thumbnails | None, known: Collection[str]) -> OpenedBatch:
        """Prepare to open and encode a collection's pictures; refuses rows of features, which nobody needs to open."""
        if data.features is not None:
            raise UserError(f"{data.name}: rows of features are read by one process as fast; leave --ray out")
        return _Shared(self, data, thumbnails, known)

    @property
    def gpus(self) -> int:
        """Number of GPUs of all machines that the workers may use."""
        return int(self.ray.cluster_resources().get("GPU", 0)) if self.on_gpus else 0

    @property
    def number(self) -> int:
        """Number of workers that there will be."""
        return self.count or self.gpus or max(1, int(self.ray.cluster_resources().get("CPU", 1)))


class _Shared:
    """The pictures of one collection, cut into shares."""

    def __init__(
        self, workers: Workers, data: ImageCaptions, thumbnails: Thumbnails | None, known: Collection[str]
    ) -> None:
        self._workers, self._data, self._thumbnails = workers, data, thumbnails
        self._known = _beginnings(known)

    def batches(self, asked: Sequence[FileToRead]) -> Iterator[list[FileContent | Skipped]]:
        """Batches of the answers that come in within some seconds, in the order of the pictures."""
        batch: list[FileContent | Skipped] = []
        clock = self._workers.clock
        since = clock()
        for found in self._found(asked):
            batch += found
            if clock() - since >= _SECONDS or len(batch) >= MOST:
                yield batch
                batch, since = [], clock()
        if batch:
            yield batch

    def _found(self, asked: Sequence[FileToRead]) -> Iterator[list[FileContent | Skipped]]:
        """Content of the pictures of each share, in their order."""
        starts = range(0, len(asked), _SHARE)
        for wave in range(0, len(starts), _WAVE):
            some = starts[wave : wave + _WAVE]
            answers = self._answers((asked[start : start + _SHARE] for start in some), len(some))
            for start, answer in zip(some, answers, strict=True):
                found = json.loads(answer["found"])
                vectors = np.frombuffer(answer["vectors"], np.float32)
                vectors = vectors.reshape(-1, answer["dimension"]) if len(vectors) else vectors
                share = asked[start : start + _SHARE]
                yield [self._back(one, said, vectors) for one, said in zip(share, found, strict=True)]

    def _back(self, asked: FileToRead, said: Plain, vectors: NDArray[np.float32]) -> FileContent | Skipped:
        """A worker's answer about a picture, as if the picture had been read here."""
        size, content = said["source"]
        source = replace(asked.source, size=size, content=content)
        if "left" in said:
            if said["left"]["kind"] == MISSING and stamp_of(asked.item.path, {})[0] >= 0:
                raise UserError(
                    f"{asked.item.path}: is here, and a worker does not find it; keep the pictures where every machine"
                    " sees them under the same path, or in an object store"
                )
            return Skipped(asked.item.id, Issue(**said["left"]), source)
        encoded: NDArray[np.float32] | Issue | None = None
        if "vector" in said:
            encoded = vectors[said["vector"]]
        elif "refused" in said:
            encoded = Issue(**said["refused"])
            if encoded.where == str(asked.item.path):  # which the collection may name in a shorter way
                encoded = replace(encoded, where=picture_name(self._data.paths[asked.position]))
        facts = {name: tuple(one) if isinstance(one, list) else one for name, one in said["facts"].items()}
        small = base64.b64decode(said["small"]) if "small" in said else None
        stamp = asked.source.size, asked.source.modified
        return FileContent(asked.position, asked.item, source, stamp, facts, small, encoded, tuple(said["notes"]))

    def _answers(self, shares: Iterable[Sequence[FileToRead]], number: int) -> Iterator[Plain]:
        """Answers of the workers for the ``number`` shares of a wave, in order, of which one at a time is held here."""
        from ray.data import ActorPoolStrategy, DataContext, from_items

        workers, ray = self._workers, self._workers.ray
        context = DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        _silence("ray.data")
        known = ray.put(self._known)  # held here for as long as a worker may begin anew
        count = min(workers.number, number)
        cpus, gpus = ray.cluster_resources().get("CPU", 1), workers.gpus
        threads = max(1, int(cpus) // count)
        work = from_items(
            [{"share": json.dumps([_plain(one) for one in share])} for share in shares], override_num_blocks=number
        )
        with warnings.catch_warnings():
            # Ray will take no bounds of restarts from 2.64 on, which pyproject.toml therefore leaves out.
            warnings.simplefilter("ignore")
            answers = work.map_batches(
                _Worker,
                fn_constructor_args=(workers.load, threads, self._thumbnails, [known]),
                batch_size=1,
                compute=ActorPoolStrategy(size=count),
                num_cpus=min(1.0, cpus / count) * _CORES_HELD,  # never more than there is: Ray would wait for it
                num_gpus=min(1.0, gpus / count),
                max_restarts=_DEATHS,
                max_task_retries=_DEATHS,
            )
        try:
            for answer in answers.iter_rows():
                if answer["failure"]:
                    raise UserError(f"{answer['failure']}; what is in the index stays")
                yield answer
        except UserError:
            raise
        except Exception as error:  # where a process of Ray's own dies, whatever Ray meets first
            said = [type(error).__name__, *str(error).strip().splitlines()][-1][:300]
            raise UserError(
                f"Ray: {said}; what is in the index stays, and the same command goes on from there"
            ) from error


class _Worker:
    """An actor that has the model, opens the pictures of a share and encodes those with new content.

    The network may take ``threads`` threads; ``known`` holds one reference to :func:`_beginnings` of known contents.
    """

    def __init__(self, load: Load, threads: int, thumbnails: Thumbnails | None, known: Sequence[Any]) -> None:
        import ray

        self._failure, self._thumbnails = "", thumbnails
        self._known: NDArray[np.bytes_] = ray.get(known[0])  # which all workers of a machine share
        try:
            self._model = load()
        except Exception as error:  # whatever it is, the command says it in a line
            self._failure = _failure(error)
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        self._pool = thread_pool(max(_LEAST_READERS, threads))

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Answer for the one share of a batch."""
        answer = {"found": "", "vectors": b"", "dimension": 0, "failure": self._failure}
        if not self._failure:
            try:
                found, vectors = self._found([_asked(one) for one in json.loads(batch["share"][0])])
                answer |= {"found": json.dumps(found), "vectors": vectors.tobytes(), "dimension": vectors.shape[1]}
            except Exception as error:  # likewise
                answer["failure"] = _failure(error)
        return {name: [value] for name, value in answer.items()}

    def _found(self, share: Sequence[FileToRead]) -> tuple[list[Plain], NDArray[np.float32]]:
        def look(one: FileToRead) -> FileContent | Skipped:
            assert one.item.path is not None
            return look_at(one, one.item.path, self._thumbnails)

        looked = list(self._pool.map(look, share))
        new: dict[str, int] = {}
        for at, one in enumerate(looked):
            if isinstance(one, FileContent) and not _is_among(self._known, one.source.content):
                new.setdefault(one.source.content, at)
        pictures = [path for at in new.values() if (path := share[at].item.path) is not None]
        encoded = self._model.encode_image(pictures)
        found = [_said(one) for one in looked]
        kept = 0
        for at, result in zip(new.values(), results_of(encoded, len(pictures)), strict=True):
            if isinstance(result, Issue):
                found[at]["refused"] = asdict(result)
            else:
                found[at]["vector"], kept = kept, kept + 1
        return found, np.asarray(encoded.vectors, np.float32)


def _beginnings(contents: Iterable[str]) -> NDArray[np.bytes_]:
    """Sorted beginnings of SHA-256 sums.

    Workers need not have the whole sums: where two begin alike, a new picture is taken for a known one, and the process
    that writes finds that it is not and encodes it.
    """
    return np.sort(np.array([_beginning(one) for one in contents], f"S{_BEGINNING}"))


def _beginning(content: str) -> bytes:
    return content[:_BEGINNING].encode(errors="replace")


def _is_among(beginnings: NDArray[np.bytes_], content: str) -> bool:
    at = int(np.searchsorted(beginnings, _beginning(content)))
    return at < len(beginnings) and beginnings[at] == _beginning(content)


def _failure(error: Exception) -> str:
    """Why a worker cannot do its work, in one line."""
    said = " ".join(str(error).split())[:500]
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"a worker on {socket.gethostname()}: {kind}{said}"


def _plain(asked: FileToRead) -> Plain:
    """Fields of a picture as they are sent to a worker."""
    picture, source = asked.item.path, asked.source
    assert picture is not None
    plain: Plain = {"id": asked.item.id, "position": asked.position, "source": [source.size, source.modified]}
    plain["folder"] = asked.item.folder
    if isinstance(picture, PackedPicture):
        return plain | {"path": str(picture.file), "place": picture.place}
    return plain | {"path": str(picture)}


def _asked(plain: Plain) -> FileToRead:
    """The picture of :func:`_plain`, without captions and columns."""
    path, place = Path(plain["path"]), plain.get("place")
    picture: Picture = path if place is None else packed_picture(path, place)
    size, modified = plain["source"]
    item = Item(plain["id"], picture, folder=plain["folder"])
    return FileToRead(plain["position"], item, ItemSource(size, modified, ""))


def _said(one: FileContent | Skipped) -> Plain:
    """Fields of what was found in a picture's file, as they are sent back."""
    plain: Plain = {"source": [one.source.size, one.source.content]}
    if isinstance(one, Skipped):
        return plain | {"left": asdict(one.issue)}
    plain |= {"facts": dict(one.facts), "notes": list(one.notes)}
    return plain if one.thumbnail is None else plain | {"small": base64.b64encode(one.thumbnail).decode()}


def _silence(name: str) -> None:
    """Let a library print nothing; its messages are in its own files, and what ends the run is said in a line."""
    for handler in logging.getLogger(name).handlers:
        if not isinstance(handler, logging.FileHandler):
            handler.setLevel(logging.CRITICAL + 1)
