"""What a process that searches beside a server does: it reads searches, and writes their answers."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from time import monotonic
from typing import IO, Any

from rungwise.core import UserError
from rungwise.core.output import line_of
from rungwise.index import Index, Searcher
from rungwise.index.layout.manifest import stamps
from rungwise.serving.schemas import json_bytes, responses
from rungwise.serving.searches._answer_fields import fields_of
from rungwise.serving.searches._parameters import SearchParameters, filter_of
from rungwise.serving.searches._pending_searches import PendingSearch, SearchOutcome, searched, warmed
from rungwise.serving.searches._terms import picture_terms, query_of
from rungwise.serving.state import SearchedIndex

_HELD = 2
"""Versions of the index that are kept open: requests that are under way may mean the one before."""
_SECONDS_UNTIL_RETRY = 30.0
"""Time after which a version that could not be opened is looked for once more: its store may have been away."""


def answer_searches() -> None:
    """Answer the searches of a server (:class:`~rungwise.serving.SearchProcesses`) until there are no more."""
    # What a library prints is not to stand among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _answer_all(sys.stdin.buffer, answers)
    os._exit(0)  # the server waits for it, and taking the interpreter apart would take seconds


def _answer_all(asked: IO[bytes], answers: IO[bytes]) -> None:
    with answers, suppress(BrokenPipeError):
        try:
            versions = _Versions(**json.loads(asked.readline()))
        except Exception as error:
            _write(answers, {"problem": line_of(error)})
            return
        _write(answers, {"problem": ""})
        for line in asked:
            for answer in _answers(versions, json.loads(line)):
                if answer is None:
                    _write(answers, None)
                else:
                    content, nothing, has_words = answer
                    _write(answers, {"bytes": len(content), "nothing": nothing, "has_words": has_words}, content)


def _write(answers: IO[bytes], head: object, content: bytes = b"") -> None:
    answers.write(json.dumps(head).encode() + b"\n" + content)
    answers.flush()


def _answers(versions: _Versions, asked: Sequence[tuple[str, Any]]) -> Iterator[tuple[bytes, bool, bool] | None]:
    """JSON of each answer, whether nothing fits, and whether the query has words; None where the server searches."""
    searches = [_pending(versions, version, SearchParameters.model_construct(**one)) for version, one in asked]
    outcomes = searched([one for one in searches if one is not None], seconds=versions.store_seconds)
    for search, (_, one) in zip(searches, asked, strict=True):
        outcome = None if search is None else next(outcomes)
        if search is None or not isinstance(outcome, SearchOutcome):
            yield None  # the server's own search says what is wrong
        else:
            found = responses.FoundPictures(**fields_of(search, outcome, one["q"]))
            yield json_bytes(found), outcome.nothing, search.query.has_words


def _pending(versions: _Versions, version: str, asked: SearchParameters) -> PendingSearch | None:
    served = versions.of(version)
    if served is None:
        return None
    try:
        query = query_of(asked, picture_terms(asked, served, lambda _: None))
        return PendingSearch(served, query, asked.k, asked.offset, filter_of(asked.where), asked.options)
    except Exception:  # the server's own search says what is wrong
        return None


class _Versions:
    """The versions of an index that were asked for last."""

    def __init__(
        self,
        folder: str,
        opener: Sequence[str],
        options: Mapping[str, Any],
        options_anew: Mapping[str, Any] | None,
        store_seconds: float | None,
    ) -> None:
        self.store_seconds = math.inf if store_seconds is None else store_seconds
        self._folder = Path(folder)
        self._options_anew = options_anew
        self._open: Callable[..., Searcher] = attrgetter(opener[1])(import_module(opener[0]))
        self._held: dict[str, SearchedIndex] = {}
        self._missing, self._not_before = "", 0.0
        self._take(lambda index: self._open(index, **options))

    def of(self, version: str) -> SearchedIndex | None:
        """A version by its name; None where it does not stand in the place of the index."""
        if version not in self._held and (version != self._missing or monotonic() >= self._not_before):
            with suppress(Exception):
                self._take(self._searcher_of)
            if version not in self._held:  # it is not looked for with every search
                self._missing, self._not_before = version, monotonic() + _SECONDS_UNTIL_RETRY
        return self._held.get(version)

    def _take(self, searcher_of: Callable[[Index], Searcher]) -> None:
        """Open what stands in the place of the index now."""
        index = Index.open(self._folder)
        look = stamps(self._folder)
        if index.is_replaced():
            raise UserError("the index changed while it was opened")
        one = SearchedIndex.of(warmed(searcher_of(index)), look)
        self._held = dict([*self._held.items(), (one.version, one)][-_HELD:])

    def _searcher_of(self, index: Index) -> Searcher:
        last = list(self._held.values())[-1].searcher
        if last.index.manifest.models & index.manifest.models:
            return last.on(index)
        if self._options_anew is None:
            raise UserError("another model built the index that stands there now")
        return self._open(index, **self._options_anew)
