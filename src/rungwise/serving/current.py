"""The version of the index that is served, and its successor once another process has put one in its place.

A request takes the current version when it begins and keeps it to its end, so that positions, captions and vectors
belong together. Positions in addresses name their version, so that a page that shows an older one is told so.
"""

from __future__ import annotations

import hashlib
import logging
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock, Thread
from time import monotonic

from rungwise.core.printable import printable
from rungwise.core.reading import is_regular, read_bytes
from rungwise.index import Index, Searcher
from rungwise.index.storage import Stamps, stamps

_DESCRIPTIONS = ("index.json", "pictures/store.json", "captions/store.json")
"""Whoever changes an index replaces one of these in one step."""
_SECONDS_BETWEEN = 1.0
_SECONDS_UNTIL_RETRY = 30.0
_EXAMPLES = 4
_EXAMPLE_LENGTH = 60

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Served:
    """One version of an index.

    Attributes:
        searcher: Of it, with the model.
        version: Differs from that of every other version.
        ids: Of the pictures, by position.
        captions: How many distinct ones there are.
        examples: A few short ones.
    """

    searcher: Searcher
    version: str
    ids: tuple[str, ...]
    captions: int
    examples: tuple[str, ...]

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each id."""
        return {one: position for position, one in enumerate(self.ids)}

    @property
    def index(self) -> Index:
        """What is searched."""
        return self.searcher.index


class Current:
    """What is served now.

    Args:
        searcher: An index and the model that built it.
        seconds: At least so long after a look at the index comes the next.

    Attributes:
        problem: Why another index that stands in the folder now is not served; None if there is none. It names no path:
            everybody who searches may read it.
    """

    def __init__(self, searcher: Searcher, seconds: float = _SECONDS_BETWEEN) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._loading: Thread | None = None
        self._looked = monotonic()
        self._refused: tuple[Stamps, float] | None = None
        self._folder = searcher.index.folder
        # Stamps of our own: an index that this process changes is another version too.
        self._look: Stamps = () if self._folder is None else stamps(self._folder)
        self._served = _served(searcher, self._folder)
        if searcher.index.is_replaced():  # since it was opened
            self._look, self._served = (), _served(searcher, None)
        self.problem: str | None = None

    def now(self) -> Served:
        """The version for one request; a newer one is looked for, and read in the background."""
        with self._lock:
            if self._folder is not None and monotonic() - self._looked >= self._seconds and self._loading is None:
                self._looked = monotonic()
                look = stamps(self._folder)
                if look != self._look and not self._refused_lately(look):
                    self._loading = Thread(target=self._load, args=(self._folder, look), daemon=True)
                    self._loading.start()
            return self._served

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
        return refused == look and monotonic() - when < _SECONDS_UNTIL_RETRY

    def _load(self, folder: Path, look: Stamps) -> None:
        problem = "it cannot be read; the server's log says why"
        try:
            index = Index.open(folder)
            problem = "another model built it"
            served = _served(self._served.searcher.on(index), folder)
            with self._lock:
                # Changed once more meanwhile, its version may be that of the next, which the next request looks for.
                if not index.is_replaced():
                    self._served, self._look, self._refused, self.problem = served, look, None, None
                    _log.warning("the index was replaced; %d pictures are served now", len(index))
        except Exception as error:  # whatever it is, the old one is served on
            reason = printable(" ".join(str(error).split()) or type(error).__name__)
            with self._lock:
                if problem != self.problem:
                    _log.warning("the index was replaced; the old one is served on: %s", reason)
                self._refused, self.problem = (look, monotonic()), problem
        finally:
            with self._lock:
                self._loading = None


def _served(searcher: Searcher, folder: Path | None) -> Served:
    captions = list(searcher.index.captions())
    ids = tuple(item.id for item in searcher.index.items())
    short = [text for text in captions if len(text) <= _EXAMPLE_LENGTH]
    examples = tuple(short[:: max(1, len(short) // _EXAMPLES)][:_EXAMPLES])
    return Served(searcher, _version(folder), ids, len(captions), examples)


def _version(folder: Path | None) -> str:
    """A name for what the folder holds; drawn by lot for an index that is in no folder."""
    if folder is None:
        return os.urandom(6).hex()
    digest = hashlib.sha256()
    for name in _DESCRIPTIONS:
        if is_regular(folder / name):  # folders of version 1 have no stores
            digest.update(read_bytes(folder / name, "json_bytes"))
    return digest.hexdigest()[:12]
