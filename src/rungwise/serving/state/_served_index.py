"""The version of the index that is served, and its successor after a change or replacement.

A request keeps the version that is current when it begins, so that its answer is consistent. Pictures are named by ids,
which mean the same in every version.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import TypeVar

from rungwise.core import digest_of_parts
from rungwise.core.output import printable
from rungwise.index import Index, Item, Searcher
from rungwise.index.layout.manifest import Stamps, stamps
from rungwise.index.stores import StoreCounts, count_records
from rungwise.language import phrases_of, shared_phrases
from rungwise.serving.schemas.responses import IndexColumn
from rungwise.serving.state._facets import Facets, uncounted
from rungwise.serving.state._picture_cache import PictureCache
from rungwise.serving.state._texts_of_items import texts_of

_SECONDS_BETWEEN = 1.0
_SECONDS_UNTIL_RETRY = 30.0
_EXAMPLES = 4
_LOOKED_AT = 500
"""Number of pictures from which examples are taken: an index may hold millions."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class ServedIndex:
    """One version of an index.

    Attributes:
        searcher: Searcher of this version with the model.
        version: Name of the version, different for every one.
        pictures: Number of pictures.
        captions: Number of distinct captions.
        examples: A few phrases that several pictures share: in captions, else in the user's columns, else as folders.
        columns: Columns of the pictures, as the first ones have them, without any number.
        found: Cache that looks up pictures by their ids.
    """

    searcher: Searcher
    version: str
    pictures: int
    captions: int
    examples: tuple[str, ...]
    columns: tuple[IndexColumn, ...]
    found: PictureCache

    @property
    def index(self) -> Index:
        """The index that is searched."""
        return self.searcher.index


class Current:
    """The version that is served now, and changes of it.

    Args:
        searcher: Searcher of an index with the model that built it.
        seconds: Shortest time between two looks at the folder of the index.
        clock: Function that gives seconds from any moment on.

    Attributes:
        problem: Reason why another index in the folder is not served; None without one. It names no path, since
            everybody who searches may read it.
    """

    def __init__(
        self, searcher: Searcher, seconds: float = _SECONDS_BETWEEN, clock: Callable[[], float] = monotonic
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._changing = Lock()
        self._loading: Thread | None = None
        self._looked = clock()
        self._refused: tuple[Stamps, float] | None = None
        self._folder = searcher.index.folder
        # Stamps of our own: an index that this process changes is another version too.
        self._look: Stamps = () if self._folder is None else stamps(self._folder)
        if searcher.index.is_replaced():  # since it was opened
            self._look = ()
        self._served = _served(searcher, self._look)
        self.problem: str | None = None

    def now(self) -> ServedIndex:
        """The version for one request; a newer one is looked for, and read in the background."""
        if self._folder is None or self._clock() - self._looked < self._seconds:
            return self._served
        with self._lock:
            if self._clock() - self._looked >= self._seconds and self._loading is None:
                self._looked = self._clock()
                look = stamps(self._folder)
                if look != self._look and not self._refused_lately(look):
                    self._loading = Thread(target=self._load, args=(self._folder, look), daemon=True)
                    self._loading.start()
            return self._served

    def change(self, by: Callable[[Index], T]) -> tuple[T, ServedIndex]:
        """Change the index, one change after the other.

        ``by`` receives the newest state of the index; its result is returned with the version after it.

        Raises:
            UserError: If ``by`` raises it, or the index in the folder is damaged or of another model.
        """
        with self._changing:
            searcher = self._served.searcher
            if self._folder is None:
                given = by(searcher.index)
                served = _served(searcher, ())
            else:
                given = by(searcher.on(Index.open(self._folder)).index)
                look = stamps(self._folder)
                served = _served(searcher.on(Index.open(self._folder)), look)
            with self._lock:
                self._served = served
                if self._folder is not None:
                    self._look, self._refused, self.problem = look, None, None
        return given, served

    def settle(self) -> None:
        """Wait until a version that is being read is served or refused."""
        with self._lock:
            loading = self._loading
        if loading is not None:
            loading.join()

    def _refused_lately(self, look: Stamps) -> bool:
        if self._refused is None:
            return False
        refused, when = self._refused
        return refused == look and self._clock() - when < _SECONDS_UNTIL_RETRY

    def _load(self, folder: Path, look: Stamps) -> None:
        problem = "it cannot be read; the server's log says why"
        try:
            with self._changing:
                index = Index.open(folder)
                opened = stamps(folder)
                if index.is_replaced():  # once more meanwhile; the next request looks for it
                    return
                problem = "another model built it"
                served = _served(self._served.searcher.on(index), opened)
                with self._lock:
                    self._served, self._look, self._refused, self.problem = served, opened, None, None
                _log.warning("the index was opened anew; %d pictures are served now", served.pictures)
        except Exception as error:  # whatever it is, the old one is served on
            reason = printable(" ".join(str(error).split()) or type(error).__name__)
            with self._lock:
                if problem != self.problem:
                    _log.warning("the index cannot be opened anew; the old one is served on: %s", reason)
                self._refused, self.problem = (look, self._clock()), problem
        finally:
            with self._lock:
                self._loading = None


def _served(searcher: Searcher, look: Stamps) -> ServedIndex:
    index = searcher.index
    items = list(islice(index.items(), _LOOKED_AT))
    examples = _examples(items)
    pictures, captions = len(index), index.caption_store.count()
    some, looked_at = count_records((item.columns for item in items), _LOOKED_AT)
    columns = uncounted(Facets(StoreCounts(some, looked_at, looked_at)).columns)
    return ServedIndex(searcher, _version(look), pictures, captions, examples, columns, PictureCache(index))


def _version(look: Stamps) -> str:
    """Name for the content of the folder; random for an index without a folder."""
    if not look:
        return os.urandom(6).hex()
    return digest_of_parts([repr(look)])[:12]


def _examples(items: Iterable[Item]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for texts in texts_of(items):
        found |= dict.fromkeys(shared_phrases([phrases_of(one) for one in texts], _EXAMPLES))
        if len(found) >= _EXAMPLES:
            break
    return tuple(found)[:_EXAMPLES]
