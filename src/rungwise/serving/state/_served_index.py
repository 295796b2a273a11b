"""The version of the index that is served, and its successor after a change or replacement.

A request keeps the version that is current when it begins, so that its answer is consistent. Pictures are named by ids,
which mean the same in every version.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock, Thread
from time import monotonic
from typing import TypeVar

from rungwise.core import UnavailableError, digest_of_parts
from rungwise.core.output import line_of, short_repr
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
_NEWEST = 8
_EXAMPLES = 4
_LOOKED_AT = 500
"""Number of pictures from which examples are taken: an index may hold millions."""

_ANOTHER = "another model built the index that stands there now"
# Files of an old index that lay in the same folder are gone.
_OLD = "the old one is served while its files are there"
_OTHER_MODEL = f"{_ANOTHER}; {_OLD}; restart the server with that model, or serve with --reload"
_LOADING = f"{_ANOTHER}; it is being loaded"
_NOT_LOADED = f"{_ANOTHER}, and it cannot be loaded; {_OLD}; the server's log says why"
_UNREADABLE = f"the index that stands there now cannot be read; {_OLD}; the server's log says why"

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class SearchedIndex:
    """One version of an index, for searches.

    Attributes:
        searcher: Searcher of this version with the model.
        version: Name of the version, different for every one.
        found: Cache that looks up pictures by their ids.
    """

    searcher: Searcher
    version: str
    found: PictureCache

    __repr__ = short_repr

    @classmethod
    def of(cls, searcher: Searcher, look: Stamps) -> SearchedIndex:
        """The version that a searcher searches, of which the folder had these stamps when it was opened."""
        return cls(searcher, _version(look), PictureCache(searcher.index))

    @property
    def index(self) -> Index:
        """The index that is searched."""
        return self.searcher.index


@dataclass(frozen=True)
class ServedIndex(SearchedIndex):
    """One version of an index, with what pages show of it.

    Attributes:
        pictures: Number of pictures.
        captions: Number of distinct captions.
        newest: Ids of the newest pictures.
        examples: A few phrases that several pictures share: in captions, else in the user's columns, else as folders.
        columns: Columns of the pictures, as the first ones have them, without any number.
    """

    pictures: int
    captions: int
    newest: tuple[str, ...]
    examples: tuple[str, ...]
    columns: tuple[IndexColumn, ...]

    __repr__ = short_repr


class Current:
    """The version that is served now, and changes of it.

    A thread looks at the place of the index, one look at a time, so that no request waits for a store that hangs.

    Args:
        searcher: Searcher of an index with the model that built it.
        seconds: Shortest time between two looks at the place of the index.
        clock: Function that gives seconds from any moment on.
        reload: Function that makes the searcher of an index that another model built; None serves no such index.

    Attributes:
        problem: One sentence for whoever runs the server, where another index stands in the place of the one that is
            served; None without one. It names no path, since everybody who searches may read it.
    """

    def __init__(
        self,
        searcher: Searcher,
        seconds: float = _SECONDS_BETWEEN,
        clock: Callable[[], float] = monotonic,
        reload: Callable[[Index], Searcher] | None = None,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._reload = reload
        self._lock = Lock()
        self._changing = Lock()
        self._looking: Future[None] | None = None
        self._looked = clock()
        self._refused: tuple[Stamps, float] | None = None
        self._said = ""
        self._folder = searcher.index.folder
        # Stamps of our own: an index that this process changes is another version too.
        self._look: Stamps = () if self._folder is None else stamps(self._folder)
        if searcher.index.is_replaced():  # since it was opened
            self._look = ()
        self._served = _served(searcher, self._look)
        self.problem: str | None = None

    def now(self) -> ServedIndex:
        """The version for one request; a newer one is looked for, and read, in the background."""
        if self._clock() - self._looked >= self._seconds:
            self.look()
        return self._served

    def look(self) -> Future[None]:
        """Look for another version in the place of the index, and read it; done once it is served or refused.

        A look that is under way is the one that is given.
        """
        with self._lock:
            if self._looking is not None:
                return self._looking
            done: Future[None] = Future()
            if self._folder is None:
                done.set_result(None)
                return done
            self._looking, self._looked = done, self._clock()
            try:
                Thread(target=self._renew, args=(self._folder, done), name="rungwise-look", daemon=True).start()
            except RuntimeError:  # the system starts no thread now; the next request tries again
                self._looking = None
                done.set_result(None)
            return done

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
            looking = self._looking
        if looking is not None:
            looking.result()

    def _refused_lately(self, look: Stamps) -> bool:
        if self._refused is None:
            return False
        refused, when = self._refused
        return refused == look and self._clock() - when < _SECONDS_UNTIL_RETRY

    def _renew(self, folder: Path, done: Future[None]) -> None:
        try:
            look = stamps(folder)
            if look == self._look:
                self._refused = self.problem = None
            elif not self._refused_lately(look):
                self._load(folder, look)
            self._said = self._said if self.problem else ""
        except Exception as error:  # the store is away, or there is no memory: the next look tells more
            self._say(f"the place of the index cannot be looked at; what was read is served on: {line_of(error)}")
        finally:
            with self._lock:
                self._looking = None
            done.set_result(None)

    def _load(self, folder: Path, look: Stamps) -> None:
        problem = _UNREADABLE
        before = self._served
        try:
            index = Index.open(folder)
            opened = stamps(folder)
            if index.is_replaced():  # once more meanwhile; the next look reads it
                return
            served = None
            if index.manifest.models & before.index.manifest.models:
                served = _served(before.searcher.on(index), opened)
            elif self._reload is None:
                problem = _OTHER_MODEL
                before.searcher.on(index)  # which says whose it is
            else:
                problem = _NOT_LOADED
                if self.problem is None:
                    self.problem = _LOADING
                    _log.warning("another model built the index that stands there now; it is being loaded")
                served = _served(self._reload(index), opened)
            if served is not None and self._take(served, before, opened):
                _log.warning("the index was opened anew; %d pictures are served now", served.pictures)
        except UnavailableError:
            raise
        except Exception as error:  # whatever it is, the old one is served on
            self._refused, self.problem = (look, self._clock()), problem
            self._say(f"the index cannot be opened anew; {_OLD}: {line_of(error)}")

    def _take(self, served: ServedIndex, before: ServedIndex, look: Stamps) -> bool:
        """Serve a version in place of the one before, unless that was changed meanwhile: the next look reads it."""
        with self._changing, self._lock:
            if self._served is not before:
                return False
            self._served, self._look, self._refused, self.problem = served, look, None, None
            return True

    def _say(self, line: str) -> None:
        """Write a line to the log, unless the last look said the same."""
        if line != self._said:
            _log.warning("%s", line)
        self._said = line


def _served(searcher: Searcher, look: Stamps) -> ServedIndex:
    index = searcher.index
    items = list(islice(index.items(), _LOOKED_AT))
    some, looked_at = count_records((item.columns for item in items), _LOOKED_AT)
    return ServedIndex(
        **vars(SearchedIndex.of(searcher, look)),
        pictures=len(index),
        captions=index.caption_store.count(),
        newest=index.newest(_NEWEST),
        examples=_examples(items),
        columns=uncounted(Facets(StoreCounts(some, looked_at, looked_at)).columns),
    )


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
