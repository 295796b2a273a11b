"""Processor time of a whole search, part by part: vectors, words, folding, and where relevance ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rungwise.index import Index
    from rungwise.models import DualEncoder

PARTS = ("vectors", "words", "folding", "end")
"""Parts of a search whose cost depends on the rows, in the order in which they are added."""
SHOWN = 24
"""Hits of a search, as the page asks for them."""
_WARM_UP = 5
_TURNS = 3


def search_parts(index: Index, model: DualEncoder, queries: Sequence[str]) -> dict[str, float]:
    """Milliseconds of each part of a search in an index, in the mean over different queries.

    Args:
        index: Index that is searched.
        model: Model that built it.
        queries: Texts, each of which is searched in every way.

    Returns:
        Processor time of all threads by :data:`PARTS`, each being what the search takes more than without it, and of
        ``"encoding"`` one query; and under ``"store"`` the time that one search in the store takes, vectors alone.
    """
    from rungwise.index import Searcher, SearchOptions

    searcher = Searcher(index, model)
    known: dict[str, dict[str, NDArray[np.float32]]] = {}

    def encoded(text: str) -> None:
        known[text] = searcher.encode_texts(searcher.texts_of(text))

    encoded(queries[0])  # what the model loads with its first text is no part of a search
    found = {"encoding": _milliseconds(encoded, queries, time.process_time)}
    ways = [
        SearchOptions(words="off", fold_duplicates=False, end=False),
        SearchOptions(fold_duplicates=False, end=False),
        SearchOptions(end=False),
        SearchOptions(),
    ]
    taken = [float("inf")] * len(ways)
    for way in ways:  # what is read once is read before anything is measured
        for text in queries[:_WARM_UP]:
            searcher.search(text, SHOWN, options=way, vectors=known[text])
    for _ in range(_TURNS):
        for number, way in enumerate(ways):

            def search(text: str, way: SearchOptions = way) -> None:
                searcher.search(text, SHOWN, options=way, vectors=known[text])

            taken[number] = min(taken[number], _milliseconds(search, queries, time.process_time))
    for part, before, after in zip(PARTS, [0.0, *taken], taken, strict=False):
        found[part] = max(0.0, after - before)

    store = index.picture_store

    def asked(text: str) -> None:
        (vector,) = known[text].values()
        store.search(vector[None], SHOWN)

    whole = [text for text in queries if len(known[text]) == 1]
    found["store"] = min(_milliseconds(asked, whole, time.perf_counter) for _ in range(_TURNS))
    return found


def _milliseconds(job: Callable[[str], object], queries: Sequence[str], clock: Callable[[], float]) -> float:
    start = clock()
    for text in queries:
        job(text)
    return 1000 * (clock() - start) / len(queries)
