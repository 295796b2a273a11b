"""Queries of every generality made of a collection, with the degrees that its captions and columns give them.

Relevant is what a text of the picture states of the query: the share of its facts or words; of a column, whether the
picture has the text in it. A caption does not mention everything that a picture shows. So where no caption of a picture
states a query, and none contradicts it, the pair is uncertain: it counts as much as it is likely that one of so many
captions would have mentioned it, which is 1 - s ** captions. The silence s is the share of captions that do not state
what another caption of the same picture states; it is one half where no picture has two.

What a search knows of the texts of a hit is simulated by some of its captions, at least one, drawn at random; so a fit
learns what captions tell, and how much they leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import OTHER_UNRELATED, UNRELATED, Known, TrainingQueries
from rungwise.core import UserError
from rungwise.core.text import evenly_spread
from rungwise.index.cutoff import known_of_texts
from rungwise.index.query import Rarity
from rungwise.index.stores import words_of
from rungwise.quality.typed_queries import _drawing as drawing
from rungwise.quality.typed_queries._collection import TextedPictures
from rungwise.quality.typed_queries._drawing import Drawn
from rungwise.quality.typed_queries._given import GivenQuery
from rungwise.quality.typed_queries._statements import Reader, Statements, reader_of, statements_of
from rungwise.similarity import unit_rows

KINDS = ("phrase", "value", "pair", "caption", "given", "unrelated")
"""Names of the kinds of queries."""
MIXTURE: Mapping[str, float] = {"phrase": 0.5, "value": 0.15, "pair": 0.1, "caption": 0.25}
"""Shares of the kinds among the queries that are made; what a collection lacks goes to phrases and captions."""
RELEVANT_FROM = 0.75
"""Share of what a query states from which on a picture is relevant: both of two facts, three of four."""
_LEAST_CERTAINTY = 0.1
_AT_ONCE = 128


def training_queries(
    collection: TextedPictures, count: int, given: Sequence[GivenQuery] = (), seed: int = 0
) -> tuple[TrainingQueries, str]:
    """About ``count`` queries made of a collection, and given ones besides; gives also how texts were read.

    Raises:
        UserError: If nothing in the collection makes a query.
    """
    pictures = len(collection.ids)
    of_columns = [
        (text, at)
        for values in collection.columns.values()
        for at, cell in enumerate(values)
        for text in sorted(cell or ())
    ]
    texts = [*collection.captions, *(text for text, _ in of_columns)]
    owners = np.concatenate([collection.owners, np.array([at for _, at in of_columns], np.int64)]).astype(np.int64)
    reader, name = reader_of(collection.captions or texts)
    told = statements_of(texts, owners, pictures, reader)
    captions = statements_of(collection.captions, collection.owners, pictures, reader)
    drawn = _drawn(collection, captions, reader, count, seed)
    queries: list[tuple[str, Drawn, int]] = [(kind, query, -1) for kind, some in drawn.items() for query in some]
    share = MIXTURE["caption"] / (1 - MIXTURE["caption"])
    wanted = max(count - len(queries), int(share * len(queries))) if len(queries) < count else 0
    wanted = min(len(collection.captions), max(wanted, int(MIXTURE["caption"] * count)))
    for at in evenly_spread(len(collection.captions), wanted).tolist() if wanted else ():
        queries.append(("caption", Drawn(collection.captions[at], captions.of_texts[at]), at))
    queries += [("given", Drawn(query.text, reader(query.text)), -1) for query in given]
    if not queries:
        raise UserError(f"{collection.name}: no caption and no column makes a query; give DATA with captions")
    return _taught(collection, told, captions, queries, given, seed), name


def _drawn(
    collection: TextedPictures, captions: Statements, reader: Reader, count: int, seed: int
) -> dict[str, list[Drawn]]:
    values, pairs = drawing.values(collection.columns, int(MIXTURE["value"] * count), seed)
    pairs = pairs[: int(MIXTURE["pair"] * count)]
    left = count - int(MIXTURE["caption"] * count) - len(values) - len(pairs)
    return {
        "phrase": drawing.phrases(collection.captions, captions, reader, left, seed),
        "value": values,
        "pair": pairs,
    }


def _taught(
    collection: TextedPictures,
    told: Statements,
    captions: Statements,
    queries: Sequence[tuple[str, Drawn, int]],
    given: Sequence[GivenQuery],
    seed: int,
) -> TrainingQueries:
    model, pictures = collection.model, len(collection.ids)
    statements = [query.statement for _, query, _ in queries]
    degrees = told.shares(statements)
    certain = degrees >= RELEVANT_FROM
    certain |= captions.contradicted(statements)
    silence = captions.silence([query.statement for kind, query, _ in queries if kind == "phrase"])
    number = np.bincount(collection.owners, minlength=pictures)
    certainty = np.where(certain, 1.0, np.maximum(_LEAST_CERTAINTY, 1 - silence ** np.maximum(1, number))).astype(
        np.float32
    )
    for row, (_, query, at) in enumerate(queries):
        if at >= 0:
            degrees[row, collection.owners[at]] = certainty[row, collection.owners[at]] = 1.0
        if query.values:
            degrees[row], certainty[row] = _of_columns(collection, query)
    place = {one: at for at, one in enumerate(collection.ids)}
    first = len(queries) - len(given)
    for row, one in enumerate(given, first):
        if one.relevant is not None:
            degrees[row], certainty[row] = 0.0, 1.0
            degrees[row, [place[each] for each in one.relevant if each in place]] = 1.0
    nothing = [("unrelated", Drawn(text), -1) for text in OTHER_UNRELATED]
    every = [*queries, *nothing]
    texts = [query.text for _, query, _ in every]
    vectors = np.asarray(model.encode_text([*texts, *UNRELATED]), np.float32)
    scores = np.asarray(model.similarity.array(collection.images, vectors).T, np.float32)
    of_caption = np.array([at for _, _, at in every], np.int64)
    known = _Evidence(collection, seed).known(
        [*texts, *UNRELATED], vectors, np.append(of_caption, np.full(len(UNRELATED), -1))
    )
    none = np.zeros((len(nothing), pictures), np.float32)
    groups = pictures + np.arange(len(every))
    groups[of_caption >= 0] = collection.owners[of_caption[of_caption >= 0]]
    return TrainingQueries(
        tuple(texts),
        tuple(kind for kind, _, _ in every),
        groups,
        scores[: len(every)],
        np.concatenate([degrees, none]),
        np.concatenate([certainty, np.ones_like(none)]),
        tuple(known[: len(every)]),
        RELEVANT_FROM,
        scores[len(every) :],
        tuple(known[len(every) :]),
    )


def _of_columns(collection: TextedPictures, query: Drawn) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(pictures,) share of the query's columns that hold what it asks for, and certainties: of an empty cell none."""
    degrees = np.zeros(len(collection.ids), np.float32)
    certainty = np.ones(len(collection.ids), np.float32)
    for name, text in query.values:
        cells = collection.columns[name]
        degrees += np.array([cell is not None and text in cell for cell in cells], np.float32) / len(query.values)
        certainty[[cell is None for cell in cells]] = _LEAST_CERTAINTY
    return degrees, np.where(degrees >= RELEVANT_FROM, np.float32(1), certainty)


class _Evidence:
    """The captions of each picture that a search is taken to know, and its columns, compared with queries."""

    def __init__(self, collection: TextedPictures, seed: int) -> None:
        from scipy import sparse

        pictures, owners = len(collection.ids), collection.owners
        rng = np.random.default_rng(seed)
        number = np.bincount(owners, minlength=pictures)
        wanted = 1 + (rng.random(pictures) * np.maximum(0, number - 1)).astype(np.int64)
        order = np.lexsort((rng.random(len(owners)), owners))
        rank = np.arange(len(owners)) - np.concatenate([[0], np.cumsum(number)])[owners[order]]
        self._held = np.sort(order[rank < wanted[owners[order]]])
        self._owners = owners[self._held]
        self._collection = collection
        self._counts = np.bincount(self._owners, minlength=pictures)
        self._units = unit_rows(collection.caption_vectors[self._held]) if len(self._held) else None
        columns = [
            " ".join(sorted(text for values in collection.columns.values() for text in values[at] or ()))
            for at in range(pictures)
        ]
        self._texts = list(columns)
        for at, owner in zip(self._held.tolist(), self._owners.tolist(), strict=True):
            self._texts[owner] += "\n" + collection.captions[at]
        self._rarity = Rarity(text for text in self._texts if text)
        words: dict[str, int] = {}
        rows, places = [], []
        for at, text in enumerate(self._texts):
            for word in set(words_of(text)):
                rows.append(at)
                places.append(words.setdefault(word, len(words)))
        self._words = words
        self._has = sparse.csr_matrix(
            (np.ones(len(rows), np.float32), (rows, places)), shape=(pictures, max(1, len(words)))
        )
        self._silent = np.array([not text for text in self._texts])

    def known(self, texts: Sequence[str], vectors: NDArray[np.float32], own: NDArray[np.int64]) -> list[Known]:
        """What a search knows of each text; ``own`` (texts,) is the caption that it is, which is left out, or -1."""
        model, found = self._collection.model, []
        stated = self._stated(texts)
        for start in range(0, len(texts), _AT_ONCE):
            here = slice(start, start + _AT_ONCE)
            alike = self._alike(vectors[here], own[here])
            for at, (text, vector) in enumerate(zip(texts[here], vectors[here], strict=True), start):
                one = known_of_texts([text], vector, model) or Known(vector=vector, words=1)
                share = stated[at]
                if own[at] >= 0:
                    share = self._without(share, text, int(own[at]))
                found.append(
                    replace(
                        one,
                        caption_scores=None if alike is None else alike[at - start],
                        stated=share,
                        counts=self._counts,
                        bearers=self._rarity.bearers(text),
                        texts=self._rarity.texts,
                    )
                )
        return found

    def _stated(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, pictures) share of the words of each text, weighted by rarity, that each picture's texts hold."""
        from scipy import sparse

        rows, places, weights = [], [], []
        for at, text in enumerate(texts):
            shares = self._rarity.weights(text)
            for word, weight in shares.items():
                if word in self._words:
                    rows.append(at)
                    places.append(self._words[word])
                    weights.append(weight)
        asked = sparse.csr_matrix((weights, (rows, places)), shape=(len(texts), self._has.shape[1]), dtype=np.float32)
        found: Any = (asked @ self._has.T).toarray()
        found[:, self._silent] = np.nan
        return np.asarray(np.minimum(found, 1.0), np.float32)

    def _without(self, shares: NDArray[np.float32], text: str, caption: int) -> NDArray[np.float32]:
        """The shares, of the picture whose caption this is by its other texts alone."""
        owner = int(self._collection.owners[caption])
        others = [self._collection.captions[at] for at in self._held[self._owners == owner].tolist() if at != caption]
        values = [one for of in self._collection.columns.values() for one in sorted(of[owner] or ())]
        own = shares.copy()
        left = "\n".join([*others, *values])
        own[owner] = self._rarity.shares(text, [left])[0] if left else np.nan
        return own

    def _alike(self, vectors: NDArray[np.float32], own: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """(queries, pictures) highest cosine with the held captions of each picture; NaN without any."""
        if self._units is None:
            return None
        cosines = unit_rows(vectors) @ self._units.T
        mine = np.searchsorted(self._held, own)
        has = np.flatnonzero((own >= 0) & (mine < len(self._held)))
        has = has[self._held[mine[has]] == own[has]]
        cosines[has, mine[has]] = -np.inf
        order = np.argsort(self._owners, kind="stable")
        have, starts = np.unique(self._owners[order], return_index=True)
        best = np.maximum.reduceat(cosines[:, order], starts, axis=1)
        found = np.full((len(vectors), len(self._collection.ids)), np.nan, np.float32)
        found[:, have] = np.where(np.isneginf(best), np.nan, best)
        return found
